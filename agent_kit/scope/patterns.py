"""Denied patterns: gitignore's language over absolute paths. ``pathspec`` says what one matches."""

from __future__ import annotations

import re
import unicodedata
import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache

from agent_kit.scope.flavour import Flavour, Malformed
from agent_kit.scope.text import fold

__all__ = [
    "MAX_ALTERNATIVES",
    "Pattern",
    "alternatives",
    "has_open_brace",
    "is_pattern",
    "parse_pattern",
    "unescaped",
]

MAX_ALTERNATIVES = 1000
_MAX_BRACES = 100  # nested much deeper they would exhaust the interpreter's stack
_MAGIC = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")
_WORD = re.compile(r"\w+")
_CLASSES = ("[:", "[.", "[=")  # begin a class such as [[:alpha:]], which pathspec doesn't know
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:")  # alone it would be the drive's current folder
_SPECIAL = re.compile(r"[*?\[\]\\{}]")  # braces, too: the rules of lock 2 expand them once more
_EXTENDED = re.compile(r"[\\/]{2}\?[\\/]")  # begins an extended-length path on Windows
# An escaped character, or a bracket expression as far as pathspec reads it.
_ATOM = re.compile(r"(\\.|\[[!^]?\]?[^\]/]*\])", re.DOTALL)

_NESTED = re.compile(r"(?<!\\)\[\[")  # "[[]" names a bracket; Python warns of nested sets to come


@dataclass(frozen=True, slots=True)
class Pattern:
    """One alternative of one configured pattern.

    ``source`` is the entry as configured. ``absolute`` is the gitignore pattern over absolute
    paths: it begins with ``/``, or with ``**/`` when it applies everywhere. ``fixed`` is the
    canonical folder that every match lies in, ``None`` when it applies everywhere. ``folded`` is
    ``absolute``, folded but for its bracket expressions: ``[A-_]`` would lose its range.
    """

    source: str
    absolute: str
    fixed: str | None
    folded: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", _folded(self.absolute))

    @property
    def regex(self) -> str:
        """An expression over folded canonical paths without their first slash."""
        regex = regex_of(self.folded)
        assert regex is not None, "parse_pattern has asked"
        return f"(?i:{regex})" if "[" in self.folded else regex

    def below(self, folder: str) -> Pattern:
        """The same pattern, fixed to another canonical folder."""
        rest = self.absolute[len(stem(self.fixed or "/")) :]
        return replace(self, absolute=stem(folder) + rest, fixed=folder)


def is_pattern(text: str, platform: str = "posix") -> bool:
    r"""Whether an entry is a pattern: it has an unescaped ``*``, ``?`` or ``[``.

    On Windows a backslash divides and escapes nothing.

    >>> is_pattern("*.pem"), is_pattern(r"\*.pem"), is_pattern(r"a\*.pem", "windows")
    (True, False, True)
    """
    if "*" not in text and "?" not in text and "[" not in text:
        return False
    if "\\" not in text:
        return True
    return _MAGIC.search(_slashed(text) if platform == "windows" else text) is not None


def _slashed(text: str) -> str:
    """A Windows entry with slashes one way, the extended-length prefix gone."""
    match = _EXTENDED.match(text)
    return text[match.end() if match else 0 :].replace("\\", "/")


def unescaped(text: str) -> str:
    """``text`` without the backslashes that escape a character."""
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def parse_pattern(
    source: str, project: str, home: str | None, flavour: Flavour
) -> tuple[Pattern, ...]:
    """The alternatives of a pattern entry; none when it can only be a literal name.

    Raises Malformed with what is wrong: a comment, a negation, a climb, too many alternatives, a
    class such as ``[[:alpha:]]``.
    """
    text = _slashed(source) if flavour.name == "windows" else source
    found: list[Pattern] = []
    for alternative in alternatives(text):
        _refuse(alternative)
        spaced = alternative.endswith("\\ ")
        ended = alternative if spaced else alternative.rstrip(" ")
        absolute, fixed = _anchored(ended, project, home, flavour)
        pattern = Pattern(source, absolute, fixed)
        if _may_be_broken(absolute):
            if _is_no_pattern(_WORD.sub("a", pattern.folded)):
                return ()
            _refuse_classes(absolute)
        found.append(pattern)
    return tuple(found)


def alternatives(text: str) -> list[str]:
    """What ``{a,b}`` in a text stands for, each once. Raises Malformed when it is too much."""
    if "{" not in text:
        return [text]
    if text.count("{") > _MAX_BRACES:
        raise Malformed(f"it has more than {_MAX_BRACES} braces")
    import bracex  # here, not at import: most scopes have no braces

    try:
        return list(dict.fromkeys(bracex.expand(text, keep_escapes=True, limit=MAX_ALTERNATIVES)))
    except bracex.ExpansionLimitException:
        raise Malformed(f"it has more than {MAX_ALTERNATIVES:,} alternatives") from None


def has_open_brace(text: str) -> bool:
    """Whether a brace that opens is never closed, so that it is a part of the name."""
    depth = 0
    for character in _ATOM.sub("", text):
        if character == "{":
            depth += 1
        elif character == "}" and depth:
            depth -= 1
    return depth > 0


def _refuse(pattern: str) -> None:
    if pattern.startswith(("#", "!")):
        raise Malformed(
            f"a pattern can't begin with '{pattern[0]}'; write '\\{pattern}' for the name"
        )
    if not pattern.strip("/ "):
        raise Malformed("it names no file")
    if ".." in pattern and ".." in pattern.split("/"):
        raise Malformed("'..' has no place in a pattern")


def _anchored(
    pattern: str, project: str, home: str | None, flavour: Flavour
) -> tuple[str, str | None]:
    """The pattern over absolute paths, and the folder that it is fixed to."""
    if "/" not in (name := pattern.rstrip("/")):
        return f"**/{name}/" if pattern.endswith("/") else f"**/{name}", None
    share = "/" if flavour.name == "windows" and pattern.startswith("//") else ""
    names = pattern.split("/")
    if "." in names or "" in names[1:-1]:
        names = [names[0], *(n for n in names[1:-1] if n and n != "."), names[-1]]
    if names[0] == "**":
        return "/".join(names), None
    last = len(names) - (1 if names[-1] else 2)  # one alternative may be a plain name
    at = next((i for i, name in enumerate(names) if is_pattern(name)), last)
    head = share + unescaped("/".join(names[:at])) or ("/" if at else ".")
    if flavour.name == "windows" and _DRIVE.fullmatch(head):
        head += "/"
    fixed = flavour.entry(head, project, home)
    return "/".join([stem(fixed), *names[at:]]), fixed


def stem(fixed: str) -> str:
    """How a pattern names the folder that it is fixed to."""
    if fixed == "/":
        return ""
    return _SPECIAL.sub(r"\\\g<0>", fixed) if _SPECIAL.search(fixed) else fixed


def ended(pattern: str) -> str:
    """The pattern without the white space at its end, of which pathspec keeps an escaped space."""
    return pattern if pattern.endswith("\\ ") else pattern.rstrip()


def _may_be_broken(pattern: str) -> bool:
    """Whether it is worth asking pathspec: only brackets and a last backslash can go wrong."""
    return "[" in pattern or pattern.endswith("\\")


@lru_cache(maxsize=256)
def _is_no_pattern(shape: str) -> bool:
    """Whether pathspec refuses a pattern of this shape, with each word in it written as one letter."""
    return regex_of(shape) is None


def _refuse_classes(pattern: str) -> None:
    if not any(name in pattern for name in _CLASSES):
        return
    for atom in _ATOM.findall(pattern):
        if atom.startswith("[") and any(name in atom[1:] for name in _CLASSES):
            raise Malformed(f"it has a class, {atom}]: write the characters out")


def _folded(absolute: str) -> str:
    if "[" not in absolute:
        return ended(fold(absolute))
    return ended("".join(map(_folded_atom, _ATOM.split(absolute))))


def _folded_atom(atom: str) -> str:
    """Text folded, a bracket expression as it is, or as ``?`` when nobody can read it."""
    if not atom.startswith("["):
        return fold(atom)
    bracket = unicodedata.normalize("NFC", atom)
    return bracket if _is_readable(bracket) else "?"


@lru_cache(maxsize=256)
def _is_readable(bracket: str) -> bool:
    """Whether a bracket expression is an expression, in one sense: ``[z-a]`` and ``[a--b]`` aren't."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(regex_of(bracket) or "")
    except (re.error, FutureWarning):
        return False
    return True


def regex_of(folded: str) -> str | None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # 37 ms, so not at import

    try:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(folded)
    except ValueError as error:
        raise Malformed("it isn't a gitignore pattern") from error
    if regex is None:
        return None
    # The group tells pathspec a folder's match from a file's; many patterns can't share its name.
    plain = _NESTED.sub(r"[\\[", str(regex).replace("(?P<ps_d>", "(?:"))
    return plain if plain.startswith("^") else f".*{plain}"  # pathspec searches, the index matches
