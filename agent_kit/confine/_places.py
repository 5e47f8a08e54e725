"""Where confined sessions of this user keep what is theirs, and what is to be done at their ends.

Two folders, each for this user alone. A session's *own* folder may be where ``TMPDIR`` says. The
*notes* say what is to be done when a session ends, and whoever tidies up obeys them: they lie where
the environment has no say, and no session may open that place. Standard library only: the launcher
loads this without the package. What takes long to load is loaded where it is used, here and in the
neighbours: the CLI waits for it.
"""

from __future__ import annotations

import contextlib
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_TOPS: Final = ("/var/tmp", "/tmp")  # noqa: S108 - the first one outlives a restart; both are checked
_NOTE: Final = (
    "session.txt"  # a literal: JSON takes longer to load, and a note is rarely read; no secret
)


def own_tops() -> tuple[str, ...]:
    """Where sessions' own folders may be, the best place first; links resolved.

    Below ``/tmp`` last: a confinement may have a ``/tmp`` that is its own, and commands write there.
    """
    import tempfile

    found = dict.fromkeys(map(os.path.realpath, (tempfile.gettempdir(), *_TOPS)))
    shared = os.path.realpath("/tmp")  # noqa: S108
    return tuple(sorted(found, key=lambda top: f"{top}/".startswith(f"{shared}/")))


def own_folders() -> tuple[str, ...]:
    """The folders of this user's sessions, one for each place; none where users have no numbers."""
    if not hasattr(os, "getuid"):
        return ()
    return tuple(os.path.join(top, f"agent-kit-{os.getuid()}") for top in own_tops())


def notes_folders() -> tuple[str, ...]:
    """Where the notes may be, the best place first: the second is for when the first is unusable."""
    if not hasattr(os, "getuid"):
        return ()
    name = f"agent-kit-{os.getuid()}.notes"
    return tuple(os.path.join(os.path.realpath(top), name) for top in _TOPS)


def fault_of(folder: str) -> str | None:
    """Why a folder is not for this user alone, or can't be made so; ``None``: it is or can."""
    top = os.path.dirname(folder)
    try:
        above = os.stat(top)
    except OSError as error:
        return f"{top} can't be used ({error.strerror})"
    if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
        return f"others may rename what is in {top}"
    try:
        found = os.lstat(folder)
    except OSError:
        usable = os.access(top, os.W_OK | os.X_OK)
        return None if usable else f"nothing can be made in {top}"
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return f"{folder} is a link, another user's, or open to others: remove it"
    return None


def check(folder: str) -> None:
    """Raise PermissionError unless a folder is for this user alone."""
    if fault := fault_of(folder):
        raise PermissionError(fault)


def make(folder: str) -> None:
    """Make a folder for this user alone. Somebody else may have made one of its name before."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)
    check(folder)


def lock(folder: str) -> int | None:
    """Hold a folder for as long as one of this session's processes lives.

    ``None``: another holds it, it has gone, or its file system knows no locks.
    """
    import fcntl  # here: a plan on Windows loads this module, too, and confines nothing

    handle = None
    with contextlib.suppress(OSError):
        handle = os.open(folder, FOLDER | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.lstat(folder)):
            return handle
    if handle is not None:
        os.close(handle)
    return None


def write_note(place: str, noted: dict[str, Any]) -> None:
    """Put what is to be done at the end into a session's place among the notes, whole or not at all."""
    partial = os.path.join(place, f"{_NOTE}.part")
    write_text(partial, repr(noted))
    os.replace(partial, os.path.join(place, _NOTE))


def read_note(place: str) -> dict[str, Any]:
    """What a session noted. Raises FileNotFoundError when nothing was started yet.

    Raises ValueError for a note that speaks of anything but the session's own folder, or brings back
    anything but its transcript, its results and its sign-in.
    """
    import ast

    try:
        noted: dict[str, Any] = ast.literal_eval(read_text(os.path.join(place, _NOTE)))
    except SyntaxError as error:
        raise ValueError(f"{place} holds no note") from error
    session, own = os.path.basename(place), str(noted["own_folder"])
    right = (
        os.path.basename(own) == session
        and os.path.basename(os.path.dirname(own)) == f"agent-kit-{os.getuid()}"
        and noted["config_dir"] == os.path.join(own, "config")
        and all(_is_a_sessions(name, session) for name in noted["copied_out"])
    )
    if not right:
        raise ValueError(f"{place} is no session's note")
    return noted


def read_text(path: str) -> str:
    """The text of a file; what is no UTF-8 in it is replaced."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write_text(path: str, text: str) -> None:
    """Make a file hold ``text``; what was no UTF-8 when it was read is written as it was."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _is_a_sessions(name: str, session: str) -> bool:
    folder, _, rest = name.partition("/")
    project, _, last = rest.partition("/")
    if name == ".credentials.json":
        return True
    return (
        folder == "projects" and project not in ("", "..") and last in (session, f"{session}.jsonl")
    )
