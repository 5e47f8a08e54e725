"""URLs that are fetched: taken apart once, by rules narrower than any library's.

What two parsers may read in two ways is refused, so that the host that was judged is the host that is
asked. A host is kept in ASCII, lower case, without a dot at its end; a numeric one only as an address
in its usual spelling.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from agent_kit.store import StoreError
from agent_kit_sources.downloading import refusals
from agent_kit_sources.downloading.addresses import Address

__all__ = ["MAX_URL", "Url", "host_from", "matches", "parse_url", "redirected"]

MAX_URL = 4096
"""Most characters of a URL."""

_PORTS: Final = {"http": 80, "https": 443}
_PLACE: Final = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]+)(?::(?P<port>[0-9]{0,5}))?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")  # as the last label: an address, to a resolver
_MOST_HOST: Final = 253  # characters
# What stands in a path or a query as it is; the rest is percent-encoded.
_KEPT: Final = "/%:@!$&'()*+,;=~-._?"
_HIDDEN: Final = ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """A URL, checked. ``target`` is what stands in a request: path and query, in ASCII.

    ``host`` is without brackets; ``address`` is the same as a value, when the host is one.
    """

    scheme: str
    host: str
    port: int
    target: str
    address: Address | None = None

    @property
    def path(self) -> str:
        """The path, percent-encoded."""
        return self.target.partition("?")[0]

    @property
    def place(self) -> str:
        """Host and port, as the ``Host`` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def told(self) -> str:
        """The URL for people to see: of a query only that there was one, as it may hold a key."""
        more = "?…" if "?" in self.target else ""
        return f"{self.scheme}://{self.place}{self.path}{more}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}{self.target}"


def parse_url(text: str) -> Url:
    """The URL that a text is. What follows a ``#`` is left out.

    Raises StoreError when it isn't http or https, holds credentials, or could be read in two ways.
    """
    text = text.strip()
    found = _split(text)
    if found.scheme not in _PORTS:
        raise refusals.bad_url("it is neither http nor https")
    if "@" in found.netloc:
        raise refusals.bad_url("it holds a user or a password")
    place = _PLACE.fullmatch(found.netloc)
    if place is None:
        raise refusals.bad_url("its host or port can't be read")
    port = int(place["port"] or _PORTS[found.scheme])
    if not 0 < port < 65536:
        raise refusals.bad_url("its port can't be read")
    host, address = host_from(place["host"])
    return Url(scheme=found.scheme, host=host, port=port, target=_target(found), address=address)


def redirected(url: Url, location: str) -> Url:
    """Where a redirect leads. Raises StoreError as :func:`parse_url`, and for https to http."""
    try:
        text = urljoin(str(url), location.strip())
    except ValueError:
        raise refusals.bad_url("the server's redirect can't be read") from None
    onward = parse_url(text)
    if url.scheme == "https" and onward.scheme != "https":
        raise refusals.downgraded()
    return onward


def host_from(text: str) -> tuple[str, Address | None]:
    """A host in its one spelling, and the address that it is. IPv6 stands in brackets.

    Raises StoreError for what is no host, and for an address in an unusual spelling.

    >>> host_from("Bücher.Example."), host_from("１２７.0.0.1")[0]
    (('xn--bcher-kva.example', None), '127.0.0.1')
    """
    if text.startswith("["):
        return _bracketed(text[1:-1])
    host = (text if text.isascii() else _ascii(text)).lower().removesuffix(".")
    labels = host.split(".")
    if len(host) > _MOST_HOST or not all(map(_LABEL.fullmatch, labels)):
        raise refusals.bad_url("its host is no name")
    if not _NUMERIC.fullmatch(labels[-1]):
        return host, None
    try:
        return host, IPv4Address(host)
    except ValueError:
        raise refusals.bad_url("its host is an address in an unusual spelling") from None


def matches(host: str, patterns: tuple[str, ...] | None) -> bool:
    """Whether a list allows a host; ``*.example.org`` means every name below it, not itself."""
    if patterns is None:
        return True
    return any(
        host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
        for pattern in patterns
    )


def _split(text: str) -> SplitResult:
    if not text or len(text) > MAX_URL:
        raise refusals.bad_url(f"it is empty or has more than {MAX_URL} characters")
    if "\\" in text or any(unicodedata.category(char) in _HIDDEN for char in text):
        raise refusals.bad_url("it holds a space, a backslash or a character that isn't seen")
    try:
        return urlsplit(text)
    except ValueError:
        raise refusals.bad_url("its host can't be read") from None


def _bracketed(text: str) -> tuple[str, Address]:
    try:
        found = ip_address(text)
    except ValueError:
        found = None
    if not isinstance(found, IPv6Address) or found.scope_id is not None:
        raise refusals.bad_url("its host is no IPv6 address, or has a zone")
    return str(found), found


def _ascii(text: str) -> str:
    import idna  # a large table: most hosts need none

    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise refusals.bad_url("its host is no international name") from None


def _target(found: SplitResult) -> str:
    query = f"?{found.query}" if found.query else ""
    return quote(f"{found.path or '/'}{query}", safe=_KEPT)


def host_pattern(text: str) -> str | None:
    """An entry of a list of hosts in its one spelling; ``None`` when it is no name."""
    start = "*." if text.startswith("*.") else ""
    try:
        host, address = host_from(text.removeprefix("*."))
    except StoreError:
        return None
    return None if address else f"{start}{host}"
