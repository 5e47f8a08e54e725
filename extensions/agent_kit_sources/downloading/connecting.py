"""Connections to judged addresses alone, each step with an end in time.

httpcore2 asks a backend to connect to a host: this one holds the addresses that were judged, and looks
nothing up. TLS checks the name all the same.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final

import httpcore2

from agent_kit_sources.downloading import refusals
from agent_kit_sources.downloading.addresses import Address
from agent_kit_sources.downloading.options import Network
from agent_kit_sources.downloading.urls import Url

__all__ = ["MAX_HEAD", "Clock", "JudgedBackend", "judged"]

MAX_HEAD = 64 * 1024
"""Most bytes of an answer's head, interim answers included."""

_MOST_ADDRESSES: Final = 4  # of a name that are tried; all are judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How long a download may still take. ``seconds`` in all, ``idle`` for one step, from now on."""

    seconds: float
    idle: float
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_end", time.monotonic() + self.seconds)

    def step(self) -> float:
        """The seconds that the next step may take. Raises StoreError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise refusals.too_long(self.seconds)
        return min(left, self.idle)

    def late(self) -> Exception:
        """Why a step that took too long did."""
        is_over = time.monotonic() >= self._end
        return refusals.too_long(self.seconds) if is_over else refusals.idle(self.idle)


def judged(url: Url, network: Network, clock: Clock) -> tuple[Address, ...]:
    """The addresses of a URL's host: looked up once, and every one of them allowed.

    Raises StoreError when one isn't, or there is none.
    """
    if url.address is not None:
        found: Sequence[Address] = (url.address,)
    else:
        texts = network.resolve(url.host, url.port, clock.step())
        clock.step()
        try:
            found = [ip_address(text) for text in texts]
        except ValueError:
            found = ()
    if not found or any(network.guard.why_not(address) for address in found):
        raise refusals.not_public(url.host)
    return tuple(found)


class JudgedBackend(httpcore2.NetworkBackend):
    """Connects to the given addresses in turn, whatever host it is asked for.

    Until :meth:`head_is_here` its connections give no more than ``MAX_HEAD`` bytes.
    """

    def __init__(self, addresses: tuple[Address, ...], clock: Clock) -> None:
        self._addresses = addresses[:_MOST_ADDRESSES]
        self._plain = httpcore2.SyncBackend()
        self._limits = _Limits(clock)

    def head_is_here(self) -> None:
        """What follows is the body."""
        self._limits.head_left = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the clock says
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        failed: Exception = httpcore2.ConnectError(host)
        for address in self._addresses:
            try:
                step = self._limits.clock.step()
                stream = self._plain.connect_tcp(
                    str(address), port, step, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream, self._limits)
        raise failed

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        raise httpcore2.ConnectError(path)


class _Limits:
    """What holds for the connections of one request."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.head_left: int | None = MAX_HEAD  # bytes; None: the head is here

    def most(self, wanted: int) -> int:
        """The bytes that may be read now."""
        if self.head_left is None:
            return wanted
        if self.head_left <= 0:
            raise httpcore2.RemoteProtocolError("the head is too long")
        return min(wanted, self.head_left)

    def took(self, read: int) -> None:
        if self.head_left is not None:
            self.head_left -= read


class _Stream(httpcore2.NetworkStream):
    """A connection whose every step ends in time, and whose head has an end."""

    def __init__(self, inner: httpcore2.NetworkStream, limits: _Limits) -> None:
        self._inner = inner
        self._limits = limits

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        clock = self._limits.clock
        try:
            data = self._inner.read(self._limits.most(max_bytes), clock.step())
        except httpcore2.ReadTimeout:
            raise clock.late() from None
        self._limits.took(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        clock = self._limits.clock
        try:
            self._inner.write(buffer, clock.step())
        except httpcore2.WriteTimeout:
            raise clock.late() from None

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        step = self._limits.clock.step()
        inner = self._inner.start_tls(ssl_context, server_hostname, step)
        return _Stream(inner, self._limits)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
