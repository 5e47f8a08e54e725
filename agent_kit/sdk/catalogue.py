"""The skills and commands that the CLI finds in a plugin or a ``.claude`` folder, with their names.

Measured on CLI 2.1.317 and 2.1.332. Skills are ``skills/<name>/SKILL.md``; commands are all ``.md``
files below ``commands/``, called ``a:b`` after their folders, and a ``SKILL.md`` there is called
after its folder. A plugin's have ``<plugin>:`` before; its manifest may name further folders and
files, or hold a command's text itself. The front matter's ``name`` is one more name. Links are
followed. What this finds is at least what the CLI takes.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent_kit.scope.text import JS_SPACE
from agent_kit.sdk.commands import UNKNOWN_NAMES, Command, Place

__all__ = ["MAX_FILES", "find_commands", "plugin_name"]

MAX_FILES: Final = 5_000  # of one folder: more is no folder of commands
# As the CLI finds it: the next "---" ends it, wherever that stands.
_HEADER: Final = re.compile(rf"\A\ufeff?---[{re.escape(JS_SPACE)}]*\n(.*?)---", re.DOTALL)
_TOOL: Final = re.compile(r"[\w*-]+")
_FIELD: Final = re.compile(
    r"^(?:name|arguments|allowed-tools):.*(?:\n(?:[^\S\n]+|-).*)*", re.MULTILINE
)


def find_commands(places: Sequence[Place]) -> tuple[Command, ...]:
    """Every skill and command in these places. What can't be read is left out, as the CLI does."""
    return tuple(each for place in places for each in _found(place))


def plugin_name(folder: str) -> str:
    """What the CLI calls the plugin in ``folder``."""
    return str(_manifest(folder).get("name") or os.path.basename(folder))


def _found(place: Place) -> Iterator[Command]:
    if not place.plugin:
        yield from _skills(place, os.path.join(place.folder, "skills"))
        yield from _commands(place, os.path.join(place.folder, "commands"))
        return
    manifest = _manifest(place.folder)
    yield from _skill(place, place.folder, os.path.basename(place.folder))
    for folder in ("skills", *_listed(manifest.get("skills"))):
        path = os.path.normpath(os.path.join(place.folder, folder))
        yield from _skill(place, path, os.path.basename(path))
        yield from _skills(place, path)
    named = manifest.get("commands")
    if isinstance(named, Mapping):
        yield from _described(place, named)
        return
    for folder in _listed(named) or ["commands"]:
        path = os.path.normpath(os.path.join(place.folder, folder))
        if os.path.isfile(path):
            yield from _command(place, path, _stem(os.path.basename(path)))
        else:
            yield from _commands(place, path)


def _described(place: Place, named: Mapping[str, Any]) -> Iterator[Command]:
    """Commands that the manifest describes one by one: a file each, or a text."""
    for name, value in named.items():
        entry = value if isinstance(value, Mapping) else {"source": value}
        if isinstance(entry.get("content"), str):
            manifest = _manifest_file(place.folder)
            yield _made(place, manifest, name, entry["content"], skill=False)
        elif isinstance(entry.get("source"), str):
            path = os.path.normpath(os.path.join(place.folder, entry["source"]))
            yield from _command(place, path, name)


def _skills(place: Place, top: str) -> Iterator[Command]:
    for name in _names_in(top):
        yield from _skill(place, os.path.join(top, name), name)


def _skill(place: Place, folder: str, name: str) -> Iterator[Command]:
    file = os.path.join(folder, "SKILL.md")
    if (body := _read(file)) is not None:
        yield _made(place, file, name, body, skill=True)


def _commands(place: Place, top: str) -> Iterator[Command]:
    count = 0
    for folder, parts in _folders(top):
        for name in _names_in(folder):
            if not name.lower().endswith(".md"):
                continue
            if (count := count + 1) > MAX_FILES:
                return
            file = os.path.join(folder, name)
            if name.lower() == "skill.md":
                called = ":".join(parts) or os.path.basename(top)
                if (body := _read(file)) is not None:
                    yield _made(place, file, called, body, skill=True)
            else:
                yield from _command(place, file, ":".join((*parts, _stem(name))))


def _folders(top: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """``top`` and every folder below it with the names on the way; no link leads in a circle."""
    todo: list[tuple[str, tuple[str, ...], frozenset[str]]] = [(top, (), frozenset())]
    while todo:
        folder, parts, above = todo.pop()
        real = os.path.realpath(folder)
        if real in above or not os.path.isdir(folder):
            continue
        yield folder, parts
        todo.extend(
            (os.path.join(folder, name), (*parts, name), above | {real})
            for name in _names_in(folder)
        )


def _command(place: Place, file: str, name: str) -> Iterator[Command]:
    if (body := _read(file)) is not None:
        yield _made(place, file, name, body, skill=False)


def _stem(name: str) -> str:
    return name.removesuffix(".md")


def _made(place: Place, file: str, name: str, body: str, *, skill: bool) -> Command:
    header = _header(body)
    called = header.get("name")
    called = called if isinstance(called, str) else ""
    before = f"{place.plugin}:" if place.plugin else ""
    aliases = {called, before + called} if called else set()
    return Command(
        name=before + name,
        file=file,
        body=body,
        place=place,
        aliases=tuple(sorted(aliases - {before + name})),
        arguments=tuple(
            w for w in _words(header.get("arguments")) if w.strip() and not w.isdecimal()
        ),
        tools=tuple(_TOOL.findall(" ".join(_words(header.get("allowed-tools"))))),
        skill=skill,
    )


def _header(body: str) -> dict[str, Any]:
    """The front matter. Where it is no YAML, field by field: the CLI takes much for YAML."""
    if (match := _HEADER.match(body)) is None:
        return {}
    if (fields := _yaml(match[1])) is not None:
        return fields
    found: dict[str, Any] = {"arguments": [UNKNOWN_NAMES]} if "arguments" in match[1] else {}
    for field in _FIELD.finditer(match[1]):
        found.update(_yaml(field[0]) or {})
    return found


def _yaml(text: str) -> dict[str, Any] | None:
    from frontmatter.default_handlers import YAMLHandler  # here, not at import: it takes a while

    try:
        fields = YAMLHandler().load(text)
    except Exception:  # noqa: BLE001 - it may be anything but YAML
        return None
    return fields if isinstance(fields, dict) else None


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _listed(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]


def _manifest_file(folder: str) -> str:
    return os.path.join(folder, ".claude-plugin", "plugin.json")


def _manifest(folder: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_read(_manifest_file(folder)) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _read(file: str) -> str | None:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            return None
        with open(file, encoding="utf-8", errors="replace", newline="") as opened:
            return opened.read()
    except (OSError, ValueError):
        return None
