"""What is done at the end of a confined session, by its launcher or by the user's next session.

What a session wrote is never obeyed: what is to be done lies among the notes, which no session opens
(:mod:`agent_kit.confine._places`). Standard library only: the launcher loads this without the package.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING or __package__:
    from agent_kit.confine import _bringing as bringing
    from agent_kit.confine import _places as places
else:  # it runs alone: the package is not there, its neighbours are
    import _bringing as bringing
    import _places as places

__all__ = [
    "described_end",
    "end_descendants",
    "quietly",
    "remove",
    "tidy_up",
    "tidy_up_after_others",
]

_NOTED: Final = (
    "own_folder",
    "config_dir",
    "runners_config",
    "copied_out",
    "writable",
    "control_names",
    "removed",
)


def quietly(step: Any, *arguments: Any) -> None:
    """One step of the end: when it fails, the next ones are done all the same."""
    with contextlib.suppress(OSError, KeyError):
        step(*arguments)


def described_end(description: dict[str, Any], *, started: bool) -> dict[str, Any]:
    """What is to be done at a session's end, for whoever is there to do it.

    Before it is ``started`` nothing in the writable folders is its own.
    """
    noted = {name: description[name] for name in _NOTED}
    noted["started"] = time.time()
    if not started:
        return {**noted, "writable": [], "known": []}
    return {**noted, "known": [[path, _identity(path)] for path in _steering(description)]}


def tidy_up(noted: dict[str, Any]) -> None:
    """Everything that there is to do at the end, when nothing of the session runs any more.

    What can't be brought back is kept, and it is said where.
    """
    quietly(_take_privileges, noted)
    quietly(_remove_control_files, noted)
    quietly(_open_up_all, noted["own_folder"])
    if failed := bringing.bring_back(noted):
        kept = _kept(noted)
        sys.stderr.write(
            f"agent-kit: not brought back from a session: {', '.join(failed)}.{kept}\n"
        )


def _kept(noted: dict[str, Any]) -> str:
    """Take the transcript and the results out of what will be removed; says where they are."""
    kept = f"{noted['own_folder']}.kept-{time.time_ns()}"
    with contextlib.suppress(OSError):
        os.rename(os.path.join(noted["config_dir"], "projects"), kept)
        return f" It is kept in {kept}"
    return ""


def tidy_up_after_others(own_folder: str) -> None:
    """Do what sessions that were killed with all their processes could not do.

    Those are meant that had their own folders beside ``own_folder``, and one of the same id. The
    living are left alone.
    """
    for folder in places.notes_folders():
        if os.path.lexists(folder) and places.fault_of(folder) is None:
            for name in os.listdir(folder):
                _tidy_up_after(os.path.join(folder, name), own_folder)


def _tidy_up_after(place: str, own_folder: str) -> None:
    if (lock := places.lock(place)) is None:
        return
    try:
        noted = places.read_note(place)
        beside = os.path.dirname(noted["own_folder"]) == os.path.dirname(own_folder)
        if beside or os.path.basename(place) == os.path.basename(own_folder):
            tidy_up(noted)
            remove(noted["own_folder"])
            shutil.rmtree(place, ignore_errors=True)
    except FileNotFoundError:  # nothing was started yet
        shutil.rmtree(place, ignore_errors=True)
    except (OSError, ValueError, KeyError):  # left for a person to look at
        pass
    finally:
        os.close(lock)


def remove(own_folder: str) -> None:
    """A session's own folder goes, and the one that it is in when it was the last."""
    _remove_tree(own_folder)
    with contextlib.suppress(OSError):  # other sessions are running
        os.rmdir(os.path.dirname(own_folder))


def end_descendants() -> None:
    """Nothing that was started inside stays."""
    while found := list(_children(os.getpid())):
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _children(parent: int) -> Iterator[int]:
    """The living children of a process; a grandchild becomes one when its parent has ended."""
    yield from (
        _listed(parent) if os.path.exists(_LIST.format(parent, parent)) else _searched(parent)
    )


_LIST: Final = "/proc/{}/task/{}/children"  # only where the kernel was built with it


def _listed(parent: int) -> Iterator[int]:
    for thread in os.listdir(f"/proc/{parent}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            text = Path(_LIST.format(parent, thread)).read_text(encoding="ascii")
            yield from map(int, text.split())


def _searched(parent: int) -> Iterator[int]:
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
            if int(text.rpartition(")")[2].split()[1]) == parent:  # proc(5): state, then the parent
                yield int(name)


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
            _move(path, str(kept / f"{number}-{os.path.basename(path)}"))
            lines.append(f"{number}: {path}\n")
    _shut_again(opened)
    if lines:
        (kept / "list.txt").write_text("".join(lines), encoding="utf-8")


def _move(path: str, target: str) -> None:
    """Out of the folder that is at its place now, through no link, whatever is swapped meanwhile."""
    with _itself(os.path.dirname(path)) as folder:
        shutil.move(os.path.join(folder, os.path.basename(path)), target)


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
