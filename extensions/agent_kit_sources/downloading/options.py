"""What the host of a session decides about downloads, and the outside world as they see it."""

from __future__ import annotations

import math
import os
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent_kit.scope import ConfigError, Fault
from agent_kit_sources.downloading.addresses import AddressGuard
from agent_kit_sources.downloading.certificates import trusted
from agent_kit_sources.downloading.urls import host_pattern
from agent_kit_sources.origin import MAX_ORIGINAL

__all__ = ["Downloads", "Network", "Progress", "Resolver", "look_up"]

Progress = Callable[[int, int | None], None]
"""Gets the bytes so far, and how many there will be as the server says (``None``: it doesn't)."""

Resolver = Callable[[str, int, float], Sequence[str]]
"""Gets a name, a port and the seconds that it may take; gives addresses as text, none when unknown."""

_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloads:
    """What may be downloaded. Raises ``ConfigError`` with every mistake at once.

    * ``hosts``: names that may be downloaded from, ``*.example.org`` for all below one; ``None``: any
      public host. Redirects are held to it, too. It doesn't open a private address.
    * ``ports``: which ones.
    * ``max_bytes``: most bytes of a file. ``seconds``: most for the whole of a download, look-ups and
      redirects included; ``idle_seconds``: most without a byte, and for one connection.
    * ``past_proxy``: connect directly although the environment names a proxy. Without it nothing is
      downloaded there, as nobody could tell where the proxy connects to.
    * ``progress``: called in the download's thread, soon after each 64 KiB. What it raises is logged.
    """

    hosts: tuple[str, ...] | None = None
    ports: tuple[int, ...] = (80, 443)
    max_bytes: int = MAX_ORIGINAL
    seconds: float = 300.0
    idle_seconds: float = 30.0
    past_proxy: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if faults := [*self._faults()]:
            raise ConfigError(faults)
        if self.hosts is not None:
            spelled = tuple(host_pattern(host) or "" for host in self.hosts)
            object.__setattr__(self, "hosts", spelled)

    def _faults(self) -> Iterator[Fault]:
        yield from _host_faults(self.hosts)
        yield from _port_faults(self.ports)
        size = f"give a number of bytes from 1 to {MAX_ORIGINAL}."
        time = "give a number of seconds above 0."
        checks: tuple[tuple[str, object, bool, str], ...] = (
            ("max_bytes", self.max_bytes, _is_whole(self.max_bytes, 1, MAX_ORIGINAL), size),
            ("seconds", self.seconds, _is_time(self.seconds), time),
            ("idle_seconds", self.idle_seconds, _is_time(self.idle_seconds), time),
            ("past_proxy", self.past_proxy, type(self.past_proxy) is bool, "give True or False."),
            (
                "progress",
                self.progress,
                self.progress is None or callable(self.progress),
                "give a function of two numbers, or None.",
            ),
        )
        yield from (
            _fault(name, value, say) for name, value, is_right, say in checks if not is_right
        )


def look_up(host: str, port: int, seconds: float) -> Sequence[str]:
    """The addresses of a name, as the system gives them. None when it takes more than ``seconds``."""
    found: queue.SimpleQueue[Sequence[str]] = queue.SimpleQueue()

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            rows = []
        found.put(tuple(dict.fromkeys(str(row[4][0]) for row in rows)))

    threading.Thread(target=ask, daemon=True, name="look-up").start()  # it can't be broken off
    try:
        return found.get(timeout=seconds)
    except queue.Empty:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The outside world. Tests put another one in its place.

    ``env`` is read for certificate files and for whether a proxy is set, for nothing else.
    """

    guard: AddressGuard = field(default_factory=AddressGuard)
    resolve: Resolver = look_up
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    trust: Callable[[Mapping[str, str]], ssl.SSLContext] = trusted

    def proxy(self) -> str | None:
        """The variable that sets a proxy, ``None`` when none does."""
        if "*" in (self.env.get("no_proxy", "").strip(), self.env.get("NO_PROXY", "").strip()):
            return None
        return next((name for name in _PROXIES if self.env.get(name, "").strip()), None)


def _host_faults(hosts: object) -> Iterator[Fault]:
    remedy = "give a tuple of names, such as example.org or *.example.org, or None for any."
    if hosts is None:
        return
    if not isinstance(hosts, tuple) or not hosts:
        yield _fault("hosts", hosts, remedy)
        return
    for host in hosts:
        if not isinstance(host, str) or host_pattern(host) is None:
            yield _fault("hosts", host, "give a name, without scheme, port and path; no address.")


def _port_faults(ports: object) -> Iterator[Fault]:
    if not isinstance(ports, tuple) or not ports:
        yield _fault("ports", ports, "give a tuple of ports, such as (80, 443).")
        return
    wrong = (port for port in ports if not _is_whole(port, 1, 65535))
    yield from (_fault("ports", port, "give ports from 1 to 65535.") for port in wrong)


def _is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value > 0  # type: ignore[operator,arg-type]


def _fault(name: str, value: object, remedy: str) -> Fault:
    return Fault(field=f"downloads.{name}", value=value, remedy=remedy)
