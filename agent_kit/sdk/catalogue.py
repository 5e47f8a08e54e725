"""The skills and commands that the CLI finds in a plugin or a ``.claude`` folder, with their names.

Measured on CLI 2.1.317 and 2.1.332. Skills are ``skills/<name>/SKILL.md``; commands are all ``.md``
files below ``commands/``, called ``a:b`` after their folders, and a ``SKILL.md`` there is called
after its folder. A plugin's have ``<plugin>:`` before; its manifest may name further folders and
files, or hold a command's text itself. The front matter's ``name`` is one more name. Links are
followed. What this finds is at least what the CLI takes: where there is more than the limits below,
it raises ConfigError instead of leaving out the rest.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final

from agent_kit.policy.starts import DEFAULT_AGENT
from agent_kit.scope import ConfigError, Fault
from agent_kit.scope.text import JS_SPACE
from agent_kit.sdk.commands import UNKNOWN_NAMES, Command, Place

__all__ = [
    "MAX_FILES",
    "MAX_NAMES",
    "MAX_TEXT",
    "MAX_TEXTS",
    "find_commands",
    "folders_below",
    "forks",
    "header",
    "is_clear",
    "plugin_name",
    "read_text",
    "texts_below",
]

MAX_FILES: Final = 5_000  # skills and commands of one place
MAX_NAMES: Final = 20_000  # below one folder, each way to it counted: links make many of few
MAX_TEXT: Final = 4 << 20  # characters of one file
MAX_TEXTS: Final = 64 << 20  # characters of one place: they are all held in memory
# As the CLI finds it: the next "---" ends it, wherever that stands.
_HEADER: Final = re.compile(rf"\A\ufeff?---[{re.escape(JS_SPACE)}]*\n(.*?)---", re.DOTALL)
_TOOL: Final = re.compile(r"[\w*-]+")
_FIELD: Final = re.compile(
    r"^([\"']?)(?:name|arguments|allowed-tools)\1[^\S\n]*:.*(?:\n(?:[^\S\n]+|-).*)*", re.MULTILINE
)
# In a front matter: what two readers of YAML may read differently, and what may hide a word.
_UNCLEAR: Final = re.compile(r"[\x85\u2028\u2029]|\r(?!\n)")
_HIDING: Final = re.compile(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]|\r(?!\n)")
_FORKS: Final = re.compile(r"^\W*context\W*fork\b", re.MULTILINE)
_AGENT: Final = re.compile(r"^([\"']?)agent\1[ \t]*:(.*)", re.MULTILINE)
_SOURCES: Final = "setting_sources"  # the field that loads what is no plugin's


def find_commands(places: Sequence[Place]) -> tuple[Command, ...]:
    """Every skill and command in these places. What can't be read is left out, as the CLI does.

    Raises ConfigError for a place, a folder or a file over a limit; the field is the place's.
    """
    return tuple(each for place in places for each in _bounded(place))


def plugin_name(folder: str) -> str:
    """What the CLI calls the plugin in ``folder``. Raises ConfigError for an endless manifest."""
    return str(_manifest(folder).get("name") or os.path.basename(folder))


def _bounded(place: Place) -> Iterator[Command]:
    size = 0
    for count, each in enumerate(_found(place), start=1):
        size += len(each.body)
        if count > MAX_FILES or size > MAX_TEXTS:
            held = f"{MAX_FILES:,} skills and commands, or {MAX_TEXTS:,} characters of them"
            raise _too_much(_field(place), place.folder, held)
        yield each


def _field(place: Place) -> str:
    return "plugins" if place.plugin else _SOURCES


def _too_much(field: str, path: str, held: str) -> ConfigError:
    remedy = f"more than {held}: take some out of it, or don't load it."
    return ConfigError([Fault(field=field, value=path, remedy=remedy)])


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
    names = _names_in(top)
    if len(names) > MAX_NAMES:
        raise _too_much(_field(place), top, f"{MAX_NAMES:,} names")
    for name in names:
        yield from _skill(place, os.path.join(top, name), name)


def _skill(place: Place, folder: str, name: str) -> Iterator[Command]:
    file = os.path.join(folder, "SKILL.md")
    if (body := read_text(file, field=_field(place))) is not None:
        yield _made(place, file, name, body, skill=True)


def _commands(place: Place, top: str) -> Iterator[Command]:
    for folder, parts, names in folders_below(top, field=_field(place)):
        for name in names:
            if not name.lower().endswith(".md"):
                continue
            file = os.path.join(folder, name)
            if name.lower() == "skill.md":
                called = ":".join(parts) or os.path.basename(top)
                if (body := read_text(file, field=_field(place))) is not None:
                    yield _made(place, file, called, body, skill=True)
            else:
                yield from _command(place, file, ":".join((*parts, _stem(name))))


def folders_below(
    top: str, *, field: str = _SOURCES
) -> Iterator[tuple[str, tuple[str, ...], Sequence[str]]]:
    """``top`` and every folder below it, links followed, but in no circle.

    Each with the names on the way from ``top``, and the names in it. Raises ConfigError for
    ``field`` when there are more than MAX_NAMES; a ``top`` that is none has no folders.
    """
    left = MAX_NAMES
    todo: list[tuple[str, tuple[str, ...], frozenset[str]]] = [(top, (), frozenset())]
    while todo:
        folder, parts, above = todo.pop()
        if not os.path.isdir(folder) or (real := os.path.realpath(folder)) in above:
            continue
        names = _names_in(folder)
        if (left := left - len(names)) < 0:
            raise _too_much(field, top, f"{MAX_NAMES:,} names, as its links are followed")
        yield folder, parts, names
        within = above | {real}
        todo.extend((os.path.join(folder, name), (*parts, name), within) for name in names)


def texts_below(top: str, *, field: str = _SOURCES) -> Iterator[tuple[str, str]]:
    """Every file below ``top`` with its text; without what can't be read and what is no file.

    Raises ConfigError for ``field`` when there is more than the limits.
    """
    left = MAX_TEXTS
    for folder, _, names in folders_below(top, field=field):
        for name in names:
            file = os.path.join(folder, name)
            if (text := read_text(file, field=field)) is None:
                continue
            if (left := left - len(text)) < 0:
                raise _too_much(field, top, f"{MAX_TEXTS:,} characters")
            yield file, text


def _command(place: Place, file: str, name: str) -> Iterator[Command]:
    if (body := read_text(file, field=_field(place))) is not None:
        yield _made(place, file, name, body, skill=False)


def _stem(name: str) -> str:
    return name.removesuffix(".md")


def _made(place: Place, file: str, name: str, body: str, *, skill: bool) -> Command:
    fields = header(body)
    called = fields.get("name")
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
            w for w in _words(fields.get("arguments")) if w.strip() and not w.isdecimal()
        ),
        tools=tuple(_TOOL.findall(" ".join(_words(fields.get("allowed-tools"))))),
        skill=skill,
        forks=forks(body),
    )


def forks(body: str) -> tuple[str | None, ...]:
    """The type of agent that runs a body with this front matter; ``(None,)``: any, ``()``: none.

    The CLI starts one at ``context: fork``, however YAML writes that, and takes much for YAML that is
    none (measured on CLI 2.1.332). This finds at least as many.
    """
    if (match := _HEADER.match(body)) is None:
        return ()
    text, word = match[1], "fork" in match[1].casefold()
    fields = None if _UNCLEAR.search(text) else _yaml(text)
    if fields is None:
        return (None,) if word or _HIDING.search(text) else ()
    if fields.get("context") != "fork":
        may_be = _FORKS.search(text.casefold()) or (word and "&" in text)
        return (None,) if may_be else ()
    agent, lines = fields.get("agent"), _AGENT.findall(text)
    if "&" in text or len(lines) > 1 or not isinstance(agent, (str, NoneType)):
        return (None,)
    if not agent:
        return (DEFAULT_AGENT,)
    return (agent,) if lines and agent in lines[0][1] else (None,)


def is_clear(body: str) -> bool:
    """Whether :func:`header` finds every field: there is no front matter, or it is YAML."""
    return (match := _HEADER.match(body)) is None or _yaml(match[1]) is not None


def header(body: str) -> dict[str, Any]:
    """The front matter. Where it is no YAML, field by field: the CLI takes much for YAML.

    Then it holds ``name``, ``arguments`` and ``allowed-tools`` alone, as far as they can be read.
    """
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
        found = json.loads(read_text(_manifest_file(folder), field="plugins") or "{}")
    except ConfigError:
        raise
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def read_text(file: str, *, field: str = _SOURCES) -> str | None:
    """The text of a regular file; ``None`` for anything else and for what can't be read.

    Raises ConfigError for ``field`` when it has more than MAX_TEXT characters.
    """
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            return None
        with open(file, encoding="utf-8", errors="replace", newline="") as opened:
            text = opened.read(MAX_TEXT + 1)
    except (OSError, ValueError):
        return None
    if len(text) > MAX_TEXT:
        raise _too_much(field, file, f"{MAX_TEXT:,} characters")
    return text
