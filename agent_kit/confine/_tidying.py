"""What is done at the end of a confined session, by its launcher or by the user's next session.

What a session wrote is never obeyed: what is to be done lies among the notes, which no session opens
(:mod:`agent_kit.confine._places`). Standard library only: the launcher loads this without the package.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
    from typing import Any, Final
else:  # the same, without enumerations: they take longer to load
    import _signal as signal

if TYPE_CHECKING or __package__:
    from agent_kit.confine import _bringing as bringing
    from agent_kit.confine import _places as places
    from agent_kit.confine._steering import known_files, remove_new_files, said
    from agent_kit.confine._walking import change_mode, remove_tree, walk
else:  # it runs alone: the package is not there, its neighbours are
    import _bringing as bringing
    import _places as places
    from _steering import known_files, remove_new_files, said
    from _walking import change_mode, remove_tree, walk

__all__ = [
    "attempt",
    "described_end",
    "end_descendants",
    "forget",
    "neighbours",
    "remove",
    "take_from_neighbours",
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
    "led",
    "removed",
)


def attempt(step: Any, *arguments: Any) -> None:
    """One step of the end: when it fails that is said, and the next ones are done all the same."""
    try:
        step(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is
        name = getattr(step, "__name__", "it").strip("_").replace("_", " ")
        said(f"at the end of a session a step failed ({name}): {type(error).__name__}: {error}")


def described_end(description: dict[str, Any], *, started: bool) -> dict[str, Any]:
    """What is to be done at a session's end, for whoever is there to do it.

    Before it is ``started`` nothing in the writable folders is its own.
    """
    noted = {name: description[name] for name in _NOTED}
    noted["started"] = time.time()
    if not started:
        return {**noted, "writable": [], "known": []}
    return {**noted, "known": known_files(description)}


def tidy_up(noted: dict[str, Any]) -> None:
    """Everything that there is to do at the end, when nothing of the session runs any more.

    What can't be brought back is kept, and it is said where.
    """
    attempt(_take_privileges, noted)
    attempt(remove_new_files, noted)
    attempt(_open_up_all, noted["own_folder"])
    attempt(_bring_back, noted)


def _bring_back(noted: dict[str, Any]) -> None:
    if failed := bringing.bring_back(noted):
        said(f"not brought back from a session: {', '.join(failed)}.{_kept(noted)}")


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


def take_from_neighbours(project: str, own_folder: str) -> None:
    """Move the control files away that other sessions have made: they would steer this one."""
    for _, noted in _neighbours(project, own_folder):  # dead ones, too: they may not be beside it
        attempt(remove_new_files, noted)


def neighbours(project: str, own_folder: str) -> list[dict[str, Any]]:
    """What running sessions noted that can write something in a project, or all of it.

    ``project`` is absolute, links resolved; the session of ``own_folder`` doesn't count.
    """
    return [noted for place, noted in _neighbours(project, own_folder) if _is_held(place)]


def _neighbours(project: str, own_folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for folder in places.notes_folders():
        with contextlib.suppress(OSError):
            for name in os.listdir(folder) if places.fault_of(folder) is None else ():
                place = os.path.join(folder, name)
                if name != os.path.basename(own_folder) and (noted := _shared(place, project)):
                    yield place, noted


def _shared(place: str, project: str) -> dict[str, Any] | None:
    try:
        noted = places.read_note(place)
        tops = [f"{top}/" for top in noted["writable"]]
    except (OSError, ValueError, KeyError):
        return None
    here = f"{project}/"
    return noted if any(top.startswith(here) or here.startswith(top) for top in tops) else None


def _is_held(place: str) -> bool:
    if (lock := places.lock(place)) is not None:
        os.close(lock)
    return lock is None


def forget(place: str) -> None:
    """Take a session's place among the notes away: a folder with files."""
    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            os.unlink(os.path.join(place, name))
        os.rmdir(place)


def _tidy_up_after(place: str, own_folder: str) -> None:
    if (lock := places.lock(place)) is None:
        return
    try:
        noted = places.read_note(place)
        beside = os.path.dirname(noted["own_folder"]) == os.path.dirname(own_folder)
        if beside or os.path.basename(place) == os.path.basename(own_folder):
            tidy_up(noted)
            remove(noted["own_folder"])
            forget(place)
    except FileNotFoundError:  # nothing was started yet
        forget(place)
    except (OSError, ValueError, KeyError):  # left for a person to look at
        pass
    finally:
        os.close(lock)


def remove(own_folder: str) -> None:
    """A session's own folder goes, and the one that it is in when it was the last."""
    with contextlib.suppress(OSError):
        handle = os.open(os.path.dirname(own_folder), places.FOLDER | os.O_CLOEXEC)
        try:
            remove_tree(handle, os.path.basename(own_folder))
        finally:
            os.close(handle)
    with contextlib.suppress(OSError):  # other sessions are running
        os.rmdir(os.path.dirname(own_folder))


def end_descendants() -> None:
    """Nothing that was started inside stays."""
    while found := list(_children(os.getpid())):
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _reap()


def _reap() -> None:
    """Wait for one child to end, and take whatever else has ended: no listing sees it again."""
    options = 0
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            options = os.WNOHANG


def _children(parent: int) -> Iterator[int]:
    """The living children of a process; a grandchild becomes one when its parent has ended."""
    yield from (
        _listed(parent) if os.path.exists(_LIST.format(parent, parent)) else _searched(parent)
    )


_LIST: Final = "/proc/{}/task/{}/children"  # only where the kernel was built with it


def _listed(parent: int) -> Iterator[int]:
    for thread in os.listdir(f"/proc/{parent}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            text = places.read_text(_LIST.format(parent, thread))
            yield from map(int, text.split())


def _searched(parent: int) -> Iterator[int]:
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = places.read_text(f"/proc/{name}/stat")
            if int(text.rpartition(")")[2].split()[1]) == parent:  # proc(5): state, then the parent
                yield int(name)


_PRIVILEGES: Final = stat.S_ISUID | stat.S_ISGID


def _take_privileges(noted: dict[str, Any]) -> None:
    """No file that the session changed lends its owner's rights to others.

    A folder that its owner can't list hides nothing: others may still be let through it.
    """
    since = noted["started"] - 1  # a file system's clock is a little behind
    for top in noted["writable"]:
        for here in walk(top):
            for name in here.files:
                with contextlib.suppress(OSError):
                    found = os.stat(name, dir_fd=here.handle, follow_symlinks=False)
                    if found.st_mode & _PRIVILEGES and found.st_ctime >= since:
                        change_mode(here.handle, name, take=_PRIVILEGES)


def _open_up_all(folder: str) -> None:
    for here in walk(os.path.realpath(folder), keep_open=True):
        here.allow_changes()
