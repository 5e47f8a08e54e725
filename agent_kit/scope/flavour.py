"""How a path text becomes an absolute path, on POSIX and on Windows, without touching a disk.

Inside the kit every path is *canonical*: it begins with ``/``, its components are divided by ``/``,
and it holds no ``.``, ``..`` or empty component. ``C:\\work`` is ``/c:/work``; ``\\\\server\\share`` is
``/unc:/server/share``. So one judgement serves both, and either can be tested on any machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from agent_kit.scope.mentions import screenshot_twin
from agent_kit.scope.text import ANY_SPACE, JS_SPACE

__all__ = ["FLAVOURS", "POSIX", "WINDOWS", "Flavour", "Malformed", "Readings", "collapse"]


class Malformed(ValueError):
    """A text that names no file in a way that can be judged. The argument says why."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Every file that one text may name.

    ``cli`` are the canonical paths that the CLI may open: each of them must be allowed. ``other``
    are further canonical readings (untrimmed, ``~`` literal): none of them may be denied.
    ``physical`` are absolute paths that still hold ``..``, for a file system that follows a link
    before it climbs: none of those may be denied either.
    """

    cli: tuple[str, ...]
    other: tuple[str, ...] = ()
    physical: tuple[str, ...] = ()


class Flavour(Protocol):
    """What differs between POSIX and Windows texts."""

    @property
    def name(self) -> str:
        """``posix`` or ``windows``."""

    @property
    def exact_case(self) -> bool:
        """Whether an allowed folder's name counts with its case."""

    def absolute(self, text: str, base: str) -> str:
        """The canonical path of ``text``, relative to canonical ``base``. Raises Malformed."""

    def readings(self, text: str, base: str, home: str | None, tail: str = "") -> Readings:
        """Every file ``text`` may name, each with ``tail`` (relative) below it. Raises Malformed.

        ``home`` is canonical; without one a leading ``~`` can't be judged.
        """

    def entry(self, text: str, base: str, home: str | None) -> str:
        """The canonical path of a configured entry (``~`` expanded). Raises Malformed."""

    def display(self, path: str) -> str:
        """A canonical path as this system writes it."""

    def split(self, text: str) -> list[str]:
        """The components of a text as written."""


def collapse(path: str) -> str:
    """``path`` (beginning with ``/``) without empty, ``.`` and ``..`` components."""
    kept: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del kept[-1:]
        elif name and name != ".":
            kept.append(name)
    return "/" + "/".join(kept)


def _untidy(path: str) -> bool:
    return "/." in path or "//" in path or path[-1] == "/"


class _Posix:
    name: Final = "posix"
    exact_case: Final = True

    def absolute(self, text: str, base: str) -> str:
        path = text if text[:1] == "/" else f"{base}/{text}"
        return collapse(path) if _untidy(path) else path

    def readings(self, text: str, base: str, home: str | None, tail: str = "") -> Readings:
        if tail:
            return _with_tail(self, text, base, home, tail)
        bare = text.strip(ANY_SPACE)
        if len(bare) == len(text) and text[:1] != "~" and ".." not in text:  # the usual case
            return Readings(_with_twin(self.absolute(text, base)))
        trimmed = text.strip(JS_SPACE)
        meant = _home_expanded(trimmed, home)
        cli = self.absolute(meant, base)
        other = {self.absolute(raw, base) for raw in (text, trimmed, bare)} - {cli}
        physical = meant if meant[:1] == "/" else f"{base}/{meant}"
        climbs = ".." in physical.split("/")
        return Readings(_with_twin(cli), tuple(sorted(other)), (physical,) if climbs else ())

    def entry(self, text: str, base: str, home: str | None) -> str:
        return self.absolute(_home_expanded(text, home), base)

    def display(self, path: str) -> str:
        return path

    def split(self, text: str) -> list[str]:
        return text.split("/")


def _with_twin(path: str) -> tuple[str, ...]:
    """A path, and the screenshot that the CLI opens when there is no such file."""
    twin = screenshot_twin(path)
    return (path,) if twin is None else (path, twin)


def _home_expanded(text: str, home: str | None, slashes: str = "/") -> str:
    if text[:1] != "~" or text[1:2] not in slashes:  # no slash, "~" alone, is in any text
        return text
    if home is None:
        raise Malformed("there is no home folder for '~'")
    return home + "/" + text[2:]


def _with_tail(flavour: Flavour, text: str, base: str, home: str | None, tail: str) -> Readings:
    starts = flavour.readings(text, base, home)
    return Readings(
        tuple(flavour.absolute(tail, start) for start in starts.cli),
        tuple(flavour.absolute(tail, start) for start in starts.other),
        tuple(f"{start}/{tail}" for start in starts.physical),
    )


_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])"
    r"(\..*)?",
    re.IGNORECASE,
)
_SHORT = re.compile(r"~[0-9]")
_DRIVE = re.compile(r"([A-Za-z]):(.*)", re.DOTALL)
_GIT_BASH = re.compile(r"/([A-Za-z])(/.*)?", re.DOTALL)


class _Windows:
    """Windows texts. ``\\\\?\\`` is stripped; what names a device or a stream is refused."""

    name: Final = "windows"
    exact_case: Final = False

    def absolute(self, text: str, base: str) -> str:
        path, anchor = _anchored(_plain(text), base)
        names = path.split("/")
        for name in names:
            _refuse_odd(name)
        rest = collapse("/" + path)
        return anchor + rest if rest != "/" else anchor

    def readings(self, text: str, base: str, home: str | None, tail: str = "") -> Readings:
        if tail:
            return _with_tail(self, text, base, home, tail)
        trimmed = text.strip(JS_SPACE)
        meant = self._expanded(trimmed, home)
        cli = [self.absolute(meant, base)]
        if trimmed[:2] == "~\\":  # not expanded by the CLI on POSIX; here either may be meant
            cli.append(self.absolute(trimmed, base))
        if (drive := _GIT_BASH.fullmatch(_plain(meant))) is not None:
            cli.append(self.absolute(f"{drive[1]}:{drive[2] or '/'}", base))
        return Readings(tuple(path for each in cli for path in _with_twin(each)))

    def _expanded(self, text: str, home: str | None) -> str:
        return _home_expanded(text, home and self.display(home), "/\\")

    def entry(self, text: str, base: str, home: str | None) -> str:
        meant = self._expanded(text, home)
        if (drive := _GIT_BASH.fullmatch(meant)) is not None:
            meant = f"{drive[1]}:{drive[2] or '/'}"
        return self.absolute(meant, base)

    def display(self, path: str) -> str:
        if path.startswith("/unc:/"):
            return "\\\\" + path[6:].replace("/", "\\")
        drive, _, rest = path[1:].partition("/")
        return drive.upper() + "\\" + rest.replace("/", "\\")

    def split(self, text: str) -> list[str]:
        return text.replace("\\", "/").split("/")


def _plain(text: str) -> str:
    """Slashes one way, the extended-length prefix gone."""
    path = text.replace("\\", "/")
    if path.startswith("//?/"):
        path = path[4:]
        path = "//" + path[4:] if path[:4].upper() == "UNC/" else path
        if path[:2] != "//" and _DRIVE.match(path) is None:
            raise Malformed("it names a volume, not a drive")
    if path.startswith("//./"):
        raise Malformed("it names a device")
    return path


def _anchored(path: str, base: str) -> tuple[str, str]:
    """The rest of a path, and the canonical anchor that it stands on."""
    if path.startswith("//"):
        server, _, rest = path.lstrip("/").partition("/")
        share, _, rest = rest.partition("/")
        if not server or not share or {server, share} & {".", ".."}:
            raise Malformed("a network path needs a server and a share")
        return rest, f"/unc:/{server.lower()}/{share}"
    if (drive := _DRIVE.fullmatch(path)) is not None:
        anchor = f"/{drive[1].lower()}:"
        if drive[2][:1] == "/":
            return drive[2], anchor
        if base != anchor and not base.startswith(anchor + "/"):
            raise Malformed("it is relative to another drive's folder")
        return base[len(anchor) :] + "/" + drive[2], anchor
    anchor = _anchor_of(base)
    if anchor == "/":
        raise Malformed("it names no drive")
    return (path if path[:1] == "/" else f"{base[len(anchor) :]}/{path}"), anchor


def _anchor_of(base: str) -> str:
    depth = 3 if base.startswith("/unc:/") else 1
    return "/".join(base.split("/")[: depth + 1])


# What Windows reads as something else than the name says.
_ODD = (
    (lambda name: ":" in name, "it names a stream"),
    (lambda name: len(name) > 255, "a component is too long"),
    (lambda name: name.endswith((".", " ")), "a component ends in a dot or a space"),
    (lambda name: _SHORT.search(name) is not None, "it holds a short (8.3) name"),
    (lambda name: _DEVICE.fullmatch(name.partition(".")[0].rstrip()) is not None, "it is a device"),
)


def _refuse_odd(name: str) -> None:
    if name in ("", ".", ".."):
        return
    for odd, reason in _ODD:
        if odd(name):
            raise Malformed(reason)


POSIX: Flavour = _Posix()
WINDOWS: Flavour = _Windows()
FLAVOURS: dict[str, Flavour] = {"posix": POSIX, "windows": WINDOWS}
