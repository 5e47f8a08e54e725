"""Lock 2, the rules: a scope in the CLI's own permission language.

Only ``Read(…)`` and ``Edit(…)`` are written: ``Write``, ``Glob`` and ``NotebookEdit`` rules with a
path do nothing, Edit covers every writing tool, and Read covers Grep and Glob, whose hits it
filters. A path is ``//`` and its components: with one slash it would be relative to the settings
file and match nothing. How a name is spelled so that it means itself: ``agent_kit.sdk._spelling``.

What the language can't tell apart (measured on CLI 2.1.332; the gate can, and judges first):

* names that differ in case only,
* a name with ``?`` or a backslash, and one with any other character in that place,
* a name that ends in a tab or a line break, and one with any other last character.

Paths are absolute: POSIX, Windows (``C:\\x``, ``/c/x``, ``\\\\server\\share``, ``\\\\?\\C:\\x``), or
the scope's canonical form of either. Where a rule refuses, it refuses what links resolve to as well,
but a hard link is a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_kit.scope.control import CONTROL_NAMES
from agent_kit.scope.flavour import FLAVOURS, Malformed
from agent_kit.scope.left_out import rule_forms
from agent_kit.scope.patterns import parse_pattern
from agent_kit.sdk._spelling import (
    canonical,
    exact,
    names_of,
    pattern_spellings,
    spellings,
    unicode_forms,
)

__all__ = [
    "RuleSet",
    "allow_rules",
    "control_file_rules",
    "deny_rules",
    "edit_rules",
    "pattern_rules",
    "spell",
    "write_rules",
]

_DENY = ("Read", "Edit")
_READ_ONLY = ("Edit",)
_ALL = "//**"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """``permissions.deny``, ``permissions.allow`` and ``permissions.ask`` of one session, in a stable
    order, no rule twice.

    ``unspellable`` are the denied paths that no rule can hold. ``inexact`` are the allowed folders
    that no rule names without naming others too: they have no rule, so the CLI asks.
    """

    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    unspellable: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


def spell(path: str, *, platform: str = "posix") -> str | None:
    """An absolute path as a rule names it; ``None`` when the language has no way to.

    Raises ``ValueError`` for a relative path.

    >>> spell("/srv/agent/.env"), spell(r"C:\\Users\\ada\\.env", platform="windows"), spell("/")
    ('//srv/agent/.env', '//c/Users/ada/.env', '//')
    >>> print(spell("/w/[draft] what?.md"))
    //w/\\[draft\\] what?.md
    """
    found = _spelled(path, platform)
    return found[0] if found else None


def deny_rules(path: str, *, platform: str = "posix") -> tuple[str, ...]:
    """The rules that refuse reading and writing ``path`` and everything in it; none if unspellable.

    Both Unicode forms of the name are refused, and a screenshot's other name: the CLI opens the one
    when it is asked for the other.

    >>> deny_rules("/srv/.env")
    ('Read(//srv/.env)', 'Read(//srv/.env/**)', 'Edit(//srv/.env)', 'Edit(//srv/.env/**)')
    >>> deny_rules("/")
    ('Read(//**)', 'Edit(//**)')
    """
    return _refusing(_DENY, _every_form(path, platform))


def edit_rules(path: str, *, platform: str = "posix") -> tuple[str, ...]:
    """The rules that refuse writing ``path`` and everything in it, and nothing else."""
    return _refusing(_READ_ONLY, _every_form(path, platform))


def allow_rules(path: str, *, write: bool = False, platform: str = "posix") -> tuple[str, ...]:
    """The rule that grants reading (with ``write`` also writing) ``path`` and everything in it.

    It is the folder's name as it is, case aside. None is made for a name that a rule could only
    give together with others, such as one with a ``?``.

    >>> allow_rules("/srv/notes"), allow_rules("/srv/notes", write=True), allow_rules("/srv/a?")
    (('Read(//srv/notes/**)',), ('Edit(//srv/notes/**)',), ())
    """
    try:
        spelled = exact(canonical(path, platform), platform)
    except Malformed:
        return ()
    tool = "Edit" if write else "Read"
    return () if spelled is None else (f"{tool}({_below(spelled)})",)


def pattern_rules(
    pattern: str, *, project_dir: str = "/", platform: str = "posix", home: str | None = None
) -> tuple[str, ...]:
    """The rules of a denied gitignore pattern, read as ``FileScope.denied_paths`` reads it.

    ``project_dir`` and ``home`` are absolute; relative patterns lie below the project, ``~`` is the
    home folder. A class that the language reads differently becomes ``?``. Two things are not
    matched as gitignore would: ``?`` and ``[!…]`` are half of a character beyond U+FFFF.
    Raises ``ValueError`` for a text that is no pattern.

    >>> pattern_rules("**/.env*")[:2]
    ('Read(//**/.env*)', 'Read(//**/.env*/**)')
    >>> pattern_rules("src/*.{key,pem}", project_dir="/w/[x]")[::4]
    ('Read(//w/\\\\[x\\\\]/src/*.key)', 'Read(//w/\\\\[x\\\\]/src/*.pem)')
    """
    project = canonical(project_dir, platform)
    folder = None if home is None else canonical(home, platform)
    forms = [
        spelled
        for form in (*unicode_forms(pattern), *_folded(pattern, project, folder, platform))
        for spelled in pattern_spellings(form, project, folder, platform)
    ]
    return _refusing(_DENY, forms)


def _folded(pattern: str, project: str, home: str | None, platform: str) -> Iterator[str]:
    """The pattern as the gate compares it, where it stops no search and that is another text: then a
    name in ASCII is closed by the rules, too (``STRASSE`` by ``straße``)."""
    if not pattern.isascii():
        for each in parse_pattern(pattern, project, home, FLAVOURS[platform]):
            if each.fixed is None:
                yield from rule_forms(each.absolute, each.folded)


def control_file_rules(
    folder: str, *, names: Iterable[str] = CONTROL_NAMES, platform: str = "posix"
) -> tuple[str, ...]:
    """The rules that refuse writing files and folders of these ``names`` at any depth of ``folder``.

    Case does not matter, so folded names will do.

    >>> control_file_rules("/w", names=(".git",))
    ('Edit(//w/**/.git)', 'Edit(//w/**/.git/**)')
    """
    bodies = [_below(spelled) for spelled in _every_form(folder, platform)]
    ends = [spellings("/" + name, "posix")[0].lstrip("/") for name in names]
    return _refusing(_READ_ONLY, [f"{body}/{end}" for body in bodies for end in ends])


def write_rules(
    *,
    denied_literals: Iterable[str] = (),
    denied_patterns: Iterable[str] = (),
    read_only_dirs: Iterable[str] = (),
    control_dirs: Iterable[str] = (),
    readable_dirs: Iterable[str] = (),
    writable_dirs: Iterable[str] = (),
    project_dir: str = "/",
    platform: str = "posix",
    home: str | None = None,
    control_names: Iterable[str] = CONTROL_NAMES,
) -> RuleSet:
    """Every rule of one session.

    A path that is a link is given twice, as configured and as resolved. ``read_only_dirs`` (also
    the tools-only ones) lose writing only; ``control_dirs`` lose their control files. A pattern is
    read as ``pattern_rules`` reads it, one that is none is unspellable.
    Raises ``ValueError`` for a relative path.
    """
    names = tuple(control_names)
    denied = [(path, deny_rules(path, platform=platform)) for path in denied_literals]
    denied += [
        (pattern, _pattern_or_none(pattern, project_dir, platform, home))
        for pattern in denied_patterns
    ]
    denied += [(path, edit_rules(path, platform=platform)) for path in read_only_dirs]
    denied += [
        (path, control_file_rules(path, names=names, platform=platform)) for path in control_dirs
    ]
    allowed = [(path, allow_rules(path, platform=platform)) for path in readable_dirs]
    allowed += [(path, allow_rules(path, write=True, platform=platform)) for path in writable_dirs]
    return RuleSet(
        deny=_once(_rules(denied), platform),
        allow=_once(_rules(allowed), platform),
        unspellable=_without_rules(denied),
        inexact=_without_rules(allowed),
    )


_Made = list[tuple[str, tuple[str, ...]]]


def _pattern_or_none(
    pattern: str, project_dir: str, platform: str, home: str | None
) -> tuple[str, ...]:
    try:
        return pattern_rules(pattern, project_dir=project_dir, platform=platform, home=home)
    except Malformed:
        return ()


def _rules(made: _Made) -> Iterator[str]:
    return (rule for _, rules in made for rule in rules)


def _without_rules(made: _Made) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path, rules in made if not rules))


def _once(rules: Iterable[str], platform: str) -> tuple[str, ...]:
    """Each rule once, in order. On Windows the first spelling's case is kept.

    Elsewhere case is kept apart: it costs a rule, and trusts the CLI less.
    """
    kept: dict[str, str] = {}
    for rule in rules:
        kept.setdefault(rule.casefold() if platform == "windows" else rule, rule)
    return tuple(kept.values())


def _spelled(path: str, platform: str) -> tuple[str, ...]:
    try:
        return spellings(canonical(path, platform), platform)
    except Malformed:
        return ()


def _every_form(path: str, platform: str) -> list[str]:
    return [spelled for name in names_of(path) for spelled in _spelled(name, platform)]


def _below(spelled: str) -> str:
    return _ALL if spelled in ("//", _ALL) else spelled + "/**"


def _refusing(tools: tuple[str, ...], bodies: Iterable[str]) -> tuple[str, ...]:
    """For each tool and body the thing itself and what is below it."""
    pairs = [(body, _below(body)) for body in dict.fromkeys(bodies)]
    return tuple(
        f"{tool}({text})"
        for body, below in pairs
        for tool in tools
        for text in ((below,) if below == _ALL else (body, below))
    )
