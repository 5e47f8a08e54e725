"""Starts a CLI inside a confinement, and stays outside until it ends.

Run as a program: ``python -I -S launcher.py DESCRIPTION WORDS…``. The description is a JSON file in
the run folder's ``host/`` part; it holds paths and no secret. Nothing is looked up in the working
folder or on ``PATH``; before the CLI runs only the standard library is loaded, after that the broker.

What goes wrong before that ends the launcher with status 126 and one sentence: nothing is ever
started outside.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FAILED: Final = 126
_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER


def main(arguments: list[str]) -> int:
    """Run the CLI with ``arguments[1:]`` as the description in the file ``arguments[0]`` says."""
    description: dict[str, Any] = {}
    try:
        description = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        _subreap()
        _make_folders(description)
        listening = _listen(description["broker"])
        child = _start(description, arguments[1:])
        with _broker(description, listening):
            return _wait(child)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing runs unconfined
        sys.stderr.write(f"agent-kit: the confined CLI could not be started: {error}\n")
        return FAILED
    finally:
        for step in (_end_descendants, _bring_back, _remove_control_files, _remove_folders):
            with contextlib.suppress(OSError, KeyError):
                step(description)


def _subreap() -> None:
    """Orphans become this process's children: it can end them."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


# --- before -------------------------------------------------------------------------------------


def _make_folders(description: dict[str, Any]) -> None:
    """The session's own folder, for this user alone. What a killed run left there goes."""
    own = description["own_folder"]
    _make_own(os.path.dirname(own))
    shutil.rmtree(own, ignore_errors=True)
    for folder in (own, *description["made_folders"]):
        os.mkdir(folder, mode=0o700)
    for source, target in description["copied_in"]:
        _copy(source, target)


def _make_own(folder: str) -> None:
    """The folder of this user's sessions. Somebody else may have made one of its name before."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is a link, another user's, or open to others: remove it")


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
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: child.send_signal(number))
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
    secret = set(description["env_secret"])
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in names or (name.startswith(starts) and name not in secret)
    }
    return {**kept, **description["env"]}


# --- after --------------------------------------------------------------------------------------


def _wait(child: subprocess.Popen[bytes]) -> int:
    code = child.wait()
    return code if code >= 0 else 128 - code


def _end_descendants(_description: dict[str, Any]) -> None:
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
        text = Path(f"/proc/{parent}/task/{thread}/children").read_text(encoding="ascii")
        yield from map(int, text.split())


def _bring_back(description: dict[str, Any]) -> None:
    """The transcript and its results go where an unconfined CLI keeps them."""
    for source, target in description["copied_out"]:
        _copy(source, target)


def _copy(source: str, target: str) -> None:
    """A file or a folder, without following links: what is inside may have made them."""
    if not os.path.lexists(source) or os.path.islink(source):
        return
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    if os.path.isdir(source):
        for entry in os.scandir(source):
            _copy(entry.path, os.path.join(target, entry.name))
    elif stat.S_ISREG(os.lstat(source).st_mode):
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
        partial = f"{target}.{os.getpid()}.part"
        with os.fdopen(handle, "rb") as read, open(partial, "wb") as written:
            os.chmod(partial, 0o600)
            shutil.copyfileobj(read, written)
        os.replace(partial, target)


def _remove_control_files(description: dict[str, Any]) -> None:
    """What would steer a later session and was not there before is taken away, and reported."""
    known = set(description["known_control_files"])
    names = set(description["control_names"])
    removed = []
    for top in description["writable"]:
        for path in control_files(top, names):
            if path not in known:
                _remove(path)
                removed.append(path)
    if removed:
        report = Path(description["report"])
        report.write_text("".join(f"{path}\n" for path in removed), encoding="utf-8")


def control_files(top: str, names: set[str]) -> Iterator[str]:
    for here, folders, files in os.walk(top):
        for name in (*folders, *files):
            if name.casefold() in names:
                yield os.path.join(here, name)
        folders[:] = [name for name in folders if name.casefold() not in names]


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _remove_folders(description: dict[str, Any]) -> None:
    shutil.rmtree(description["own_folder"], ignore_errors=True)
    with contextlib.suppress(OSError):  # other sessions are running
        os.rmdir(os.path.dirname(description["own_folder"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
