"""Programs that a confined session may run: where they really are, and what they need to be seen."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_kit.confine.system import is_system

__all__ = [
    "OFF_PATH",
    "Program",
    "all_on_path",
    "find_program",
    "hidden_from_path",
    "is_the_systems",
    "needed_folders",
    "on_path",
]

OFF_PATH: Final = "can't be found on PATH"
_USUAL: Final = "/usr/local/bin:/usr/bin:/bin"

Program = tuple[str, str]
"""The path that is run, and the file that it is, links resolved."""

# "<name> which <program>" knows the real one.
_SHIMS: Final = ("pyenv", "rbenv", "nodenv", "goenv", "asdf", "mise")


def find_program(name: str, env: Mapping[str, str], writable: Sequence[str] = ()) -> Program | None:
    """The program of this name or absolute path, through shims; ``None`` when there is none.

    A version manager is asked, which runs it: none that lies in a ``writable`` folder.
    """
    found = on_path(name, env.get("PATH"))
    if found is None:
        return None
    found = _behind_shim(found, name, env, writable) or found
    return os.path.abspath(found), os.path.realpath(found)


def on_path(name: str, path: str | None, writable: Sequence[str] = ()) -> str | None:
    """The program of this name or absolute path, with ``path`` for ``PATH``; ``None``: the process's.

    Of the names on ``PATH``, those that lie or end in a ``writable`` folder are passed over.
    """
    if os.path.isabs(name):
        return shutil.which(name)
    reals = [os.path.realpath(folder) for folder in writable]
    return next((each for each in all_on_path(name, path) if not _is_below(each, reals)), None)


def all_on_path(name: str, path: str | None) -> Iterator[str]:
    """Every program of this name, in the order of ``PATH``.

    An entry that is relative is passed over: it would be the working folder's program, and that may
    be a project's.
    """
    entries = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    if os.sep not in name:
        found = (shutil.which(name, path=entry) for entry in entries if os.path.isabs(entry))
        yield from filter(None, found)


def _is_below(program: str, folders: Sequence[str]) -> bool:
    """Whether it lies in one of these real folders, by its own name or by what it leads to."""
    names = (os.path.realpath(os.path.dirname(program)), os.path.realpath(program))
    return any(
        f"{name}/".startswith(f"{folder.rstrip('/')}/") for name in names for folder in folders
    )


def is_the_systems(program: str) -> bool:
    """Whether nobody but the system can change what is run by this absolute path.

    Everywhere but in the usual folders, it and all that is above it must be root's, and no other's
    to write. A root, as whom a session may write anywhere, must find it on a read-only file system.
    """
    folder, real = os.path.dirname(program), os.path.realpath(program)
    if folder in _USUAL.split(os.pathsep):
        return True
    folder = os.path.realpath(folder)
    above = {name for each in (real, folder) for name in (each, *map(str, Path(each).parents))}
    if not all(map(_is_roots, above)):
        return False
    own = (real, os.path.dirname(real), folder)
    return os.geteuid() != 0 or not any(os.access(each, os.W_OK) for each in own)


def _is_roots(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    kept = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX  # only owners move names
    return found.st_uid == 0 and bool(kept or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def hidden_from_path(name: str) -> str | None:
    """Why a program that is installed isn't found, and what to do; ``None`` when it isn't installed."""
    found = on_path(name, _USUAL)
    return None if found is None else f"{name} {OFF_PATH}: put {os.path.dirname(found)} on PATH."


def _behind_shim(
    found: str, name: str, env: Mapping[str, str], writable: Sequence[str]
) -> str | None:
    folder = Path(found).parent
    if folder.name != "shims":
        return None
    reals = [os.path.realpath(each) for each in writable]
    entries = env.get("PATH", os.defpath).split(
        os.pathsep
    )  # a manager is a script, and runs others
    path = os.pathsep.join(
        each for each in entries if not _is_below(os.path.join(each, name), reals)
    )
    for manager in sorted(_SHIMS, key=lambda each: each not in str(folder)):  # its own one first
        if (program := on_path(manager, env.get("PATH"), writable)) is None:
            continue
        try:
            asked = subprocess.run(  # noqa: S603 - the host's own version manager
                [program, "which", name],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
                env={**env, "PATH": path},
                cwd="/",
            )
        except (OSError, subprocess.TimeoutExpired):  # the shim itself is what there is
            continue
        if asked.returncode == 0 and os.path.isabs(path := asked.stdout.strip()):
            return path
    return None


def needed_folders(programs: Iterable[Program]) -> tuple[str, ...]:
    """The folders and files that these programs need beyond the system's, real paths, each once.

    A program needs itself. One in ``<prefix>/bin`` needs the prefix where that is an installation by
    itself: a virtual environment (and the one that it was made from), a version of a version
    manager. ``~/.local`` and ``~/bin`` hold much else and are none.
    """
    return tuple(dict.fromkeys(folder for program in programs for folder in _needed(*program)))


def _needed(path: str, real: str) -> Iterator[str]:
    for each in dict.fromkeys((path, real)):
        prefix = os.path.dirname(os.path.dirname(each))
        if os.path.basename(os.path.dirname(each)) == "bin" and _is_installation(prefix):
            yield os.path.realpath(prefix)
            if (base := _base_of(prefix)) is not None:
                yield base
        elif not is_system(each):
            yield os.path.realpath(each)


def _is_installation(prefix: str) -> bool:
    """Whether a folder is one installation of one thing."""
    if any(os.path.exists(os.path.join(prefix, mark)) for mark in _MARKS):
        return True
    real = Path(os.path.realpath(prefix))
    above = enumerate(each.name for each in real.parents)
    of_a_manager = any(level < _VERSIONS.get(name, 0) for level, name in above)
    return of_a_manager or _VERSION.fullmatch(real.name) is not None


_MARKS: Final = ("pyvenv.cfg", "conda-meta")
# What version managers call the folder of their installations, and how deep these lie in it.
_VERSIONS: Final[Mapping[str, int]] = {
    "versions": 2,  # versions/3.11.7 (pyenv and its kin), versions/node/v20.1.0 (nvm)
    "toolchains": 1,  # rustup
    "installs": 3,  # installs/node/20.1.0, installs/golang/1.21/go (asdf and mise)
}
_VERSION: Final = re.compile(r"(?:cpython|pypy|node|go|jdk|python)-?v?\d[\w.+-]*")


def _base_of(prefix: str) -> str | None:
    """The prefix that a virtual environment was made from, unless that is the system's."""
    try:
        lines = Path(prefix, "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home":
            base = os.path.realpath(os.path.dirname(value.strip()))
            known = _is_installation(base) and not is_system(base)
            return base if known else None
    return None
