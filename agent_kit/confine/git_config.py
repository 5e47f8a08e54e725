"""What a repository's own configuration names as its own: more configuration, hooks, attributes.

Git reads those files, and runs the hooks, wherever they are (git-config(1)). They are looked for without
git: on a hostile configuration git might run what it names. What can't be read names nothing.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

from agent_kit.confine.view import above

__all__ = ["named_by_git"]

_MOST: Final = 1 << 20  # bytes of one file
_FILES: Final = 64  # files of configuration; git itself goes ten deep
_SECTION: Final = re.compile(r'\s*\[([^\]"\s]*)\s*(?:"(?:[^"\\]|\\.)*"\s*)?\]')
_ENTRY: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*=[ \t]*(.*)", re.DOTALL)
_VALUE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"?|\\(.)|([#;].*)|([^"\\#;]+)', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_COMMENT: Final = re.compile(r"^[ \t]*[#;].*$", re.MULTILINE)
_GOES_ON: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_CHARACTERS: Final = {"n": "\n", "t": "\t", "b": "\b"}
_INCLUDES: Final = (("include", "path"), ("includeif", "path"))  # whatever the condition
_FOLDERS: Final = (("core", "hookspath"),)
_ATTRIBUTES: Final = ("core", "attributesfile")


class _Repository(NamedTuple):
    """``root`` is what git is in when it takes a relative path; ``folders`` hold its configuration."""

    root: str
    folders: tuple[str, ...]


def named_by_git(project: str) -> tuple[str, ...]:
    """The files and folders that the configuration of a project's repository names, there or not.

    Absolute paths, links not resolved: what ``include.path``, ``includeIf.*.path``, ``core.hooksPath``
    and ``core.attributesFile`` say, of included files as well.
    """
    if (repository := _repository(project)) is None:
        return ()
    found: dict[str, None] = {}
    todo = [
        os.path.join(folder, name)
        for folder in repository.folders
        for name in ("config", "config.worktree")
    ]
    read: set[str] = set()
    while todo and len(read) < _FILES:
        file = os.path.realpath(todo.pop(0))
        if file in read:
            continue
        read.add(file)
        for key, value in _entries(_text(file)):
            if key in _INCLUDES:
                path = _absolute(value, os.path.dirname(file))
                todo.append(path)
            elif key in _FOLDERS:
                path = _absolute(value, repository.root)
                if os.path.basename(path) == "_":  # husky's: it runs the hooks beside that folder
                    path = os.path.dirname(path)
            else:
                path = _absolute(value, repository.root)
            if key in _FOLDERS or not os.path.isdir(path):
                found[path] = None
    return tuple(found)


def _repository(project: str) -> _Repository | None:
    """The nearest one at or above a folder. Its ``.git`` may be a file that names another folder."""
    for root in (project, *above(project)):
        git = os.path.join(root, ".git")
        if not os.path.lexists(git):
            continue
        if not os.path.isdir(git):
            named = _text(git).removeprefix("gitdir:").strip()
            git = os.path.join(root, named)
        common = _text(os.path.join(git, "commondir")).strip()
        return _Repository(root, (git, os.path.join(git, common)))
    return None


def _absolute(value: str, base: str) -> str:
    return os.path.join(base, os.path.expanduser(value)).rstrip("/") or "/"


def _entries(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Those of the keys that name files, in order; a line that is none is passed over."""
    section = ""
    for line in _lines(text):
        if (header := _SECTION.match(line)) is not None:
            section = header[1].partition(".")[0].lower()
            line = line[header.end() :]  # noqa: PLW2901 - an entry may follow
        if (entry := _ENTRY.match(line)) is None:
            continue
        key = section, entry[1].lower()
        if (key in _INCLUDES or key in _FOLDERS or key == _ATTRIBUTES) and (
            value := _plain(entry[2])
        ):
            yield key, value


def _lines(text: str) -> list[str]:
    """Comments go, and a line that ends in an escape goes on in the next."""
    return _GOES_ON.sub(r"\1", _COMMENT.sub("", text.replace("\r\n", "\n"))).split("\n")


def _plain(value: str) -> str:
    """A value without its quotes, its escapes, and a comment behind it."""
    parts: list[str] = []
    for match in _VALUE.finditer(value.strip()):
        quoted, escaped, comment, bare = match.groups()
        if comment is not None:
            break
        if quoted is not None:
            parts.append(_ESCAPED.sub(lambda found: _character(found[1]), quoted))
        else:
            parts.append(bare if escaped is None else _character(escaped))
    else:
        return "".join(parts)
    return "".join(parts).rstrip()


def _character(escaped: str) -> str:
    return _CHARACTERS.get(escaped, escaped)


def _text(path: str) -> str:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ""
        with open(path, "rb") as file:
            return os.fsdecode(file.read(_MOST)).removeprefix("\ufeff")
    except (OSError, ValueError):
        return ""
