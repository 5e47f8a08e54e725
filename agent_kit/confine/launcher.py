"""Starts a CLI inside a confinement, and stays outside until it ends.

Run as a program: ``python -I -S launcher.py DESCRIPTION WORDS…``. The description is a JSON file in
the run folder's ``host/`` part; it holds paths and no secret. Nothing is looked up in the working
folder or on ``PATH``; before the CLI runs only the standard library is loaded, after that the broker.

What goes wrong before that ends the launcher with status 126 and one sentence: nothing is ever
started outside.

Two processes look after a session: the second starts the CLI and answers it, the first waits and
tidies up. Each does the other's part when that one is killed; what is left when both are, the user's
next session tidies up, which knows it by its lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FAILED: Final = 126
_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER


def main(arguments: list[str]) -> int:
    """Run the CLI with ``arguments[1:]`` as the description in the file ``arguments[0]`` says."""
    with contextlib.ExitStack() as undo:
        try:
            description = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
            _subreap()
            _make_folders(description, undo)
            listening = _listen(description["broker"])
            undo.callback(_tidy_up, _note(description))
            undo.callback(_quietly, _end_descendants)
            first = os.pidfd_open(os.getpid())
            if second := os.fork():
                return _stand_by(second, listening)
            try:
                return _run(description, arguments[1:], listening, first)
            finally:
                if not _ended(first):
                    undo.pop_all()  # it does that
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing runs unconfined
            sys.stderr.write(f"agent-kit: the confined CLI could not be started: {error}\n")
            return FAILED


def _quietly(step: Any, *arguments: Any) -> None:
    """One step of the end: when it fails, the next ones are done all the same."""
    with contextlib.suppress(OSError, KeyError):
        step(*arguments)


def _run(
    description: dict[str, Any], words: list[str], listening: socket.socket | None, first: int
) -> int:
    """The second process: the CLI, until it or the first process ends."""
    _subreap()
    child = _start(description, words)
    with _broker(description, listening):
        if first in _wait_for(first, os.pidfd_open(child.pid)):
            child.kill()
        return _status(child.wait())


def _stand_by(second: int, listening: socket.socket | None) -> int:
    """The first process: until the second ends, which it has to when the host does."""
    host = os.pidfd_open(os.getppid())
    if listening is not None:
        listening.close()
    _pass_on_signals(second)
    ended = os.pidfd_open(second)
    if ended not in _wait_for(host, ended):
        os.kill(second, signal.SIGTERM)
        if not _wait_for(ended, seconds=_GRACE):
            os.kill(second, signal.SIGKILL)
    return _status(os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]))


def _status(code: int) -> int:
    """What a shell says of a process that ended so; less than 0: by a signal."""
    return code if code >= 0 else 128 - code


_GRACE: Final = 3.0  # seconds for the CLI to end by itself when the host has ended


def _wait_for(*processes: int, seconds: float | None = None) -> list[int]:
    """Those of some processes, given as descriptors, that have ended: wait for one of them."""
    polled = select.poll()
    for each in processes:
        polled.register(each, select.POLLIN)
    return [each for each, _ in polled.poll(None if seconds is None else seconds * 1000)]


def _ended(process: int) -> bool:
    return bool(_wait_for(process, seconds=0))


def _pass_on_signals(process: int) -> None:
    def passed_on(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, passed_on)


def _subreap() -> None:
    """Orphans become this process's children: it can end them."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


# --- before -------------------------------------------------------------------------------------


def _make_folders(description: dict[str, Any], undo: contextlib.ExitStack) -> None:
    """The session's own folder, for this user alone. What killed sessions left goes."""
    _make_and_lock(description["own_folder"])
    undo.callback(_quietly, _remove_folders, description)
    for folder in description["made_folders"]:
        os.mkdir(folder, mode=0o700)
    for path, text in description["programs"].items():
        Path(path).write_text(text, encoding="utf-8")
        os.chmod(path, 0o700)
    runners = description["runners_config"] = _runners_config()
    for name in description["copied_in"]:  # links, too: it is the runner who made them
        _copy_in(os.path.join(runners, name), os.path.join(description["config_dir"], name))


def _copy_in(source: str, target: str) -> None:
    if os.path.isdir(source):
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif os.path.isfile(source):
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        shutil.copyfile(source, target)
        os.chmod(target, 0o600)
        _date(target, os.stat(source))


def _make_own(folder: str) -> None:
    """The folder of this user's sessions. Somebody else may have made one of its name before."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)
    _check_own(folder)


def _check_own(folder: str) -> None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is a link, another user's, or open to others: remove it")


def _make_and_lock(own: str) -> None:
    """Make the folder. One that lives is another session of the same id: it gets time to end."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        _make_own(os.path.dirname(own))
        with contextlib.suppress(FileExistsError, FileNotFoundError):  # a neighbour tidies up
            tidy_up_after_others(os.path.dirname(own))
            os.mkdir(own, mode=0o700)
            if _lock(own) is not None:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the same session is still running, in {own}")


_PATIENCE: Final = 5.0  # seconds


def _lock(folder: str) -> int | None:
    """Hold a folder for as long as one of this session's processes lives; ``None``: it is held."""
    import fcntl  # here: a plan on Windows loads this module, too, and confines nothing

    handle = None
    with contextlib.suppress(OSError):
        handle = os.open(folder, _FOLDER)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.lstat(folder)):
            return handle
    if handle is not None:
        os.close(handle)
    return None


_NOTE: Final = "session.json"  # what has to be done for a session at its end; no secret
_NOTED: Final = ("own_folder", "config_dir", "runners_config", "copied_out")
_NOTED_TOO: Final = ("writable", "control_names", "removed")


def _note(description: dict[str, Any]) -> dict[str, Any]:
    """Write down what is to be done at the end, for whoever is there to do it."""
    known = [[path, _identity(path)] for path in _steering(description)]
    noted = {name: description[name] for name in (*_NOTED, *_NOTED_TOO)}
    noted |= {"known": known, "started": time.time()}
    path = Path(description["own_folder"], _NOTE)
    path.write_text(json.dumps(noted), encoding="utf-8")
    return noted


def tidy_up_after_others(folder: str) -> None:
    """Do what sessions that were killed with all their processes could not do.

    ``folder`` is the one of this user's sessions, or is not there. The living are left alone.
    """
    if not os.path.lexists(folder):
        return
    _check_own(folder)
    for name in os.listdir(folder):
        own = os.path.join(folder, name)
        with contextlib.suppress(OSError, ValueError, KeyError):
            if (lock := _lock(own)) is None:
                continue
            try:
                text = Path(own, _NOTE).read_text(encoding="utf-8")
                _tidy_up(json.loads(text))
            except FileNotFoundError:  # nothing was started yet
                pass
            finally:
                _remove_tree(own)
                os.close(lock)


def _listen(broker: dict[str, Any] | None) -> socket.socket | None:
    """The socket that the CLI inside asks the model through. Bound before the CLI is started."""
    if broker is None:
        return None
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(broker["socket"])
    listening.listen(128)
    return listening


@contextlib.contextmanager
def _broker(description: dict[str, Any], listening: socket.socket | None) -> Iterator[None]:
    """Answer there while the CLI runs. What that needs is loaded only now: the CLI boots meanwhile."""
    if listening is None:
        yield
        return
    sys.path += description["broker"]["paths"]
    from agent_kit.confine.broker import running
    from agent_kit.confine.upstream import upstream_from

    with running(listening, upstream_from(os.environ), key=description["broker"]["key"]):
        yield


def _start(description: dict[str, Any], words: list[str]) -> subprocess.Popen[bytes]:
    launch = description["launch"]
    handle = _readable(launch["text"])
    argv = [word.replace("{fd}", str(handle)) for word in launch["argv"]]
    passed = () if handle is None else (handle,)
    child = subprocess.Popen(  # noqa: S603 - what the host described
        [*argv, description["cli"], *words], env=_environment(description), pass_fds=passed
    )
    _pass_on_signals(child.pid)
    return child


def _readable(text: str | None) -> int | None:
    """A descriptor from which ``text`` can be read."""
    if text is None:
        return None
    handle = os.memfd_create("agent-kit")
    os.write(handle, text.encode("utf-8", "surrogateescape"))
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _environment(description: dict[str, Any]) -> dict[str, str]:
    """What the CLI needs of the host's, and what the description sets."""
    names, starts = set(description["env_names"]), tuple(description["env_starts"])
    secret = description["env_secret"]
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in names
        or (name.startswith(starts) and not any(word in name.upper() for word in secret))
    }
    return {**kept, **description["env"]}


# --- after --------------------------------------------------------------------------------------


def _tidy_up(noted: dict[str, Any]) -> None:
    """Everything that there is to do at the end, when nothing of the session runs any more."""
    _quietly(_take_privileges, noted)
    _quietly(_remove_control_files, noted)
    _quietly(_open_up_all, noted["own_folder"])
    _quietly(_bring_back, noted)


def _end_descendants() -> None:
    """Nothing that was started inside stays."""
    while found := list(_children(os.getpid())):
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _children(parent: int) -> Iterator[int]:
    """The living children of a process; a grandchild becomes one when its parent has ended."""
    for thread in os.listdir(f"/proc/{parent}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            text = Path(f"/proc/{parent}/task/{thread}/children").read_text(encoding="ascii")
            yield from map(int, text.split())


def _bring_back(description: dict[str, Any]) -> None:
    """The transcript and its results go where an unconfined CLI keeps them.

    What is inside may have made links: not one is followed, on the way or at its end.
    """
    for name in description["copied_out"]:
        *folders, last = name.split("/")
        with contextlib.ExitStack() as opened:
            here = os.open(description["config_dir"], _FOLDER)
            opened.callback(os.close, here)
            for folder in folders:
                here = os.open(folder, _FOLDER, dir_fd=here)
                opened.callback(os.close, here)
            target = os.path.join(description["runners_config"], name)
            _quietly(_copy_out, here, last, target)


_MOST: Final = 256 * 1024 * 1024  # bytes of a file that is brought back
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _copy_out(folder: int, name: str, target: str) -> None:
    """``name`` in an open folder, with all that is below."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        here = os.open(name, _FOLDER, dir_fd=folder)
        try:
            for each in os.listdir(here):
                _quietly(_copy_out, here, each, os.path.join(target, each))
        finally:
            os.close(here)
    elif stat.S_ISREG(mode) and status.st_size <= _MOST and not _is_as_new(target, status):
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        partial = f"{target}.{os.getpid()}.part"
        handle = os.open(name, _FILE, dir_fd=folder)
        with os.fdopen(handle, "rb") as read, open(partial, "wb") as written:
            os.chmod(partial, 0o600)
            shutil.copyfileobj(read, written)
        _date(partial, status)
        os.replace(partial, target)


def _is_as_new(path: str, status: os.stat_result) -> bool:
    """Whether a file is no older: a session beside this one may have brought its own back."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(path).st_mtime_ns >= status.st_mtime_ns
    return False


def _date(path: str, status: os.stat_result) -> None:
    """Give a copy the time of its original, which is in no future."""
    when = min(status.st_mtime_ns, time.time_ns())
    os.utime(path, ns=(when, when))


def _runners_config() -> str:
    """Where a CLI with the environment that the host gave would keep its configuration."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")


def _steering(description: dict[str, Any], opened: _Opened | None = None) -> Iterator[str]:
    """What is in the writable folders and would steer a later session."""
    names = set(description["control_names"])
    for top in description["writable"]:
        yield from control_files(top, names, opened)


_Opened = list[tuple[str, int]]
"""Folders that were made ones that this user may list and change, and the modes that they had."""


def control_files(top: str, names: set[str], opened: _Opened | None) -> Iterator[str]:
    """Everything below ``top`` that has one of these names, which are folded; bare repositories, too.

    With ``opened`` a folder that may not be listed or changed is made one that may, and noted there.
    """
    if opened is not None:
        _open_up(top, opened)
    for here, folders, files in os.walk(top):
        found = [name for name in (*folders, *files) if name.casefold() in names]
        yield from (os.path.join(here, name) for name in found)
        folders[:] = [name for name in folders if name not in found]
        if opened is not None:
            for name in folders:
                _open_up(os.path.join(here, name), opened)
        if any(parts <= {*map(str.casefold, (*folders, *files))} for parts in _BARE):
            yield from (os.path.join(here, n) for n in (*folders, *files) if n.casefold() == "head")


# gitrepository-layout(5): without its HEAD git takes neither for a repository.
_BARE: Final = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))


def _open_up(folder: str, opened: _Opened) -> None:
    """Let this user list and change a folder: what is inside may have taken that away."""
    with contextlib.suppress(OSError), _itself(folder) as here:
        mode = os.stat(here).st_mode
        if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
            os.chmod(here, stat.S_IMODE(mode) | 0o700)
            opened.append((folder, stat.S_IMODE(mode)))


def _shut_again(opened: _Opened) -> None:
    """Give folders the modes back that they had; one that was moved away is no loss."""
    for folder, mode in reversed(opened):
        with contextlib.suppress(OSError), _itself(folder) as here:
            os.chmod(here, mode)


@contextlib.contextmanager
def _itself(path: str) -> Iterator[str]:
    """A name for what is at ``path`` now, through no link, whatever others put there meanwhile."""
    file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.readlink(f"/proc/self/fd/{file}") != path:
            raise FileNotFoundError(path)
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)


def _identity(path: str) -> tuple[object, ...]:
    """What tells that a name still leads to the same thing: a link's target, a file's inode."""
    found = os.lstat(path)
    target = os.readlink(path) if stat.S_ISLNK(found.st_mode) else None
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), target


def _remove_control_files(noted: dict[str, Any]) -> None:
    """What was not there at the start is moved to the host's part of the run folder, and listed.

    It is not deleted: a person may have made it meanwhile. What was there, and has another name now,
    stays.
    """
    known = {path: tuple(identity) for path, identity in noted["known"]}
    before, opened = frozenset(known.values()), _Opened()
    kept, lines = Path(noted["removed"]), []
    for number, path in enumerate(_steering(noted, opened)):
        with contextlib.suppress(OSError):
            found = _identity(path)
            if found == known.get(path) or (path not in known and found in before):
                continue
            kept.mkdir(mode=0o700, exist_ok=True)
            shutil.move(path, str(kept / f"{number}-{os.path.basename(path)}"))
            lines.append(f"{number}: {path}\n")
    _shut_again(opened)
    if lines:
        (kept / "list.txt").write_text("".join(lines), encoding="utf-8")


_PRIVILEGES: Final = stat.S_ISUID | stat.S_ISGID


def _take_privileges(noted: dict[str, Any]) -> None:
    """No file that the session changed lends its owner's rights to others.

    A folder that its owner can't list hides nothing: others may still be let through it.
    """
    opened = _Opened()
    for top in noted["writable"]:
        _open_up(top, opened)
        for here, folders, files in os.walk(top):
            for name in folders:
                _open_up(os.path.join(here, name), opened)
            for name in files:
                with contextlib.suppress(OSError):
                    _take_them(os.path.join(here, name), noted["started"])
    _shut_again(opened)


def _take_them(path: str, since: float) -> None:
    if not os.lstat(path).st_mode & _PRIVILEGES:  # of nearly every file there is no more to ask
        return
    with _itself(path) as file:
        found = os.stat(file)
        changed = found.st_ctime >= since - 1  # a file system's clock is a little behind
        if stat.S_ISREG(found.st_mode) and found.st_mode & _PRIVILEGES and changed:
            os.chmod(file, stat.S_IMODE(found.st_mode) & ~_PRIVILEGES)


def _open_up_all(folder: str) -> None:
    folder, opened = os.path.realpath(folder), _Opened()
    _open_up(folder, opened)
    for here, folders, _ in os.walk(folder):
        for name in folders:
            _open_up(os.path.join(here, name), opened)


def _remove_tree(folder: str) -> None:
    _open_up_all(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_folders(description: dict[str, Any]) -> None:
    _remove_tree(description["own_folder"])
    with contextlib.suppress(OSError):  # other sessions are running
        os.rmdir(os.path.dirname(description["own_folder"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
