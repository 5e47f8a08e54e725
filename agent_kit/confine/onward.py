"""The way from the broker to the model's endpoint: connections that are made, kept and used again.

asyncio makes the connections and h11 speaks HTTP on them: an HTTP client of its own would take half of
the time that the broker needs to load, beside a CLI that boots, and as long for a request as all the
rest of it. One request at a time is on a connection. A kept one is watched: what comes unasked, or an
end, closes it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

import h11

from agent_kit.confine.upstream import Upstream, proxy_login, trust
from agent_kit.confine.wire import Wire

__all__ = ["Answer", "Endpoint", "FailedError", "ProxyRefusedError", "system_trust"]

_KEEP: Final = 55.0  # seconds that an idle connection is used again
_HEAD: Final = 100 * 1024  # bytes of an answer's head
_CONNECT: Final = 30.0  # seconds until an endpoint counts as unreachable; an answer may take longer
_STAGGER: Final = 0.25  # seconds until the next address of a name is tried as well (RFC 8305)
_PORTS: Final = {"http": 80, "https": 443}


class FailedError(Exception):
    """There is no answer, or no more of it. The cause says why; its words may hold a header."""


class ProxyRefusedError(FailedError):
    """The proxy on the way said no."""


class Endpoint:
    """The model's endpoint. Raises ``OSError`` when a certificate file can't be used."""

    def __init__(self, upstream: Upstream) -> None:
        self._base = urlsplit(upstream.base_url)
        self._socket = upstream.unix_socket
        self._proxy = urlsplit(upstream.proxy) if upstream.proxy and not self._socket else None
        self._login = _login(upstream.proxy) if self._proxy else []
        both = (self._base, self._proxy)
        secure = any(each and each.scheme == "https" for each in both)
        self._trusted = _trusted(upstream) if secure else None
        self._idle: list[_Connection] = []

    async def send(self, request: h11.Request, body: AsyncIterator[bytes]) -> Answer:
        """Ask, and wait for the head of the answer. ``request`` has a path alone as its target.

        Raises FailedError, and what ``body`` raises.
        """
        connection = self._free() or await self._connected()
        try:
            head = await connection.ask(self._addressed(request), body)
        except BaseException:
            connection.close()
            raise
        return Answer(head, connection, self)

    def done(self, connection: _Connection) -> None:
        """Keep a connection on which all was said. One that was idle for too long is closed."""
        with contextlib.suppress(h11.ProtocolError):
            if connection.keep():
                self._idle.append(connection)
                while self._idle[0].is_old():
                    self._idle.pop(0).close()
                return
        connection.close()

    def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            self._idle.pop().close()

    def _free(self) -> _Connection | None:
        """A kept connection that can still be used, the last one first."""
        while self._idle:
            connection = self._idle.pop()
            if connection.wake():
                return connection
            connection.close()
        return None

    def _addressed(self, request: h11.Request) -> h11.Request:
        """A proxy of an ``http`` endpoint gets the whole address, and the login."""
        if self._proxy is None or self._base.scheme == "https":
            return request
        base = f"http://{self._base.netloc}".encode()
        headers = [*self._login, *request.headers.raw_items()]
        return h11.Request(method=request.method, target=base + request.target, headers=headers)

    async def _connected(self) -> _Connection:
        try:
            async with asyncio.timeout(_CONNECT):
                return await self._connect()
        except (OSError, UnicodeError, h11.ProtocolError) as error:  # a timeout is an OSError, too
            raise FailedError from error

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        if self._socket:
            name = self._base.hostname if self._base.scheme == "https" else None
            _, wire = await loop.create_unix_connection(
                Wire, self._socket, ssl=self._context(self._base), server_hostname=name
            )
            return _Connection(wire)
        first = self._proxy or self._base
        _, wire = await loop.create_connection(
            Wire,
            first.hostname or "",
            _port(first),
            ssl=self._context(first),
            happy_eyeballs_delay=_STAGGER,
        )
        connection = _Connection(wire)
        if self._proxy is not None and self._base.scheme == "https":
            try:
                await self._tunnel(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _context(self, url: SplitResult) -> ssl.SSLContext | None:
        return self._trusted if url.scheme == "https" else None

    async def _tunnel(self, connection: _Connection) -> None:
        """Have the proxy connect to the endpoint, which alone sees what follows."""
        host = self._base.hostname or ""
        place = f"[{host}]" if ":" in host else host
        target = f"{place}:{_port(self._base)}".encode()
        asked = h11.Request(
            method=b"CONNECT", target=target, headers=[(b"host", target), *self._login]
        )
        head = await connection.ask(asked, _nothing())
        if not 200 <= head.status_code < 300:
            raise ProxyRefusedError
        assert self._trusted is not None
        await connection.secure(self._trusted, host)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def _port(url: SplitResult) -> int:
    return url.port or _PORTS[url.scheme]


def _login(proxy: str | None) -> list[tuple[bytes, bytes]]:
    login = proxy_login(proxy) if proxy else None
    if login is None:
        return []
    value = base64.b64encode(":".join(login).encode())
    return [(b"proxy-authorization", b"Basic " + value)]


def _trusted(upstream: Upstream) -> ssl.SSLContext:
    context = trust(upstream, system_trust)
    context.set_alpn_protocols(["http/1.1"])
    return context


def system_trust() -> ssl.SSLContext:
    """The system's certificates. Where OpenSSL doesn't know their place, another one does."""
    known = ssl.get_default_verify_paths()
    if sys.platform == "linux" and (known.cafile or _has_certificates(known.capath)):
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _has_certificates(folder: str | None) -> bool:
    """Whether OpenSSL finds any in a folder: it looks for names that are hashes."""
    return folder is not None and any(map(_HASHED.fullmatch, os.listdir(folder)))


_HASHED: Final = re.compile(r"[0-9a-f]{8}\.[0-9]+")


class _Connection:
    """One connection, and what was said on it so far."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        self._kept_until: float | None = None  # not kept: something is under way

    async def ask(self, request: h11.Request, body: AsyncIterator[bytes]) -> h11.Response:
        """Send a request, and wait for the head of the answer."""
        try:
            await self._send(request)
            async for data in body:
                await self._send(h11.Data(data=data))
            await self._send(h11.EndOfMessage())
        except _UnsentError:
            pass  # an endpoint that answers early may have closed its ear
        event = await self.event()
        if isinstance(event, h11.Response):
            return event
        raise FailedError(f"{type(event).__name__} in the place of an answer")

    async def _send(self, event: h11.Event) -> None:
        try:
            pieces = self._http.send_with_data_passthrough(event) or ()
            await self._wire.send(pieces, last=isinstance(event, h11.EndOfMessage))
        except OSError as error:
            raise _UnsentError from error
        except h11.LocalProtocolError as error:
            raise FailedError from error

    async def event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        """What comes next. Raises FailedError."""
        try:
            while True:
                while (event := self._http.next_event()) is h11.NEED_DATA:
                    self._http.receive_data(await self._wire.read())
                if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                    return event
        except (OSError, h11.RemoteProtocolError) as error:
            raise FailedError from error

    async def secure(self, trusted: ssl.SSLContext, host: str) -> None:
        """TLS with whoever a proxy has connected to. The proxy itself may have said no more."""
        more = "the proxy said more than that it is connected"
        if self._http.trailing_data[0]:
            raise FailedError(more)
        await self._wire.secure(trusted, host)
        if self._wire.has_more():  # it would be read as if it had come through TLS
            raise FailedError(more)
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)

    def keep(self) -> bool:
        """Make it ready for the next request. Whether it can be."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        if self._http.trailing_data[0] or self._wire.has_more():
            return False
        self._kept_until = time.monotonic() + _KEEP
        self._wire.heard = self._wire.close
        return True

    def wake(self) -> bool:
        """Whether nothing has come meanwhile, and it is not too old."""
        if self._wire.is_closing() or self.is_old():
            return False
        self._wire.heard = self._kept_until = None
        return True

    def is_old(self) -> bool:
        return self._kept_until is not None and time.monotonic() >= self._kept_until

    def close(self) -> None:
        """At once when something is under way; an idle one is taken leave of."""
        self._wire.heard = None
        if self._kept_until is None:
            self._wire.abort()
        else:
            self._wire.close()


class _UnsentError(Exception):
    """The other side takes no more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The endpoint's answer: its head, and its body as it comes."""

    head: h11.Response
    _connection: _Connection
    _endpoint: Endpoint

    async def body(self) -> AsyncIterator[bytes]:
        """Pieces of the body. Raises FailedError when it breaks."""
        while isinstance(event := await self._connection.event(), h11.Data):
            yield event.data
        if not isinstance(event, h11.EndOfMessage):
            raise FailedError(f"{event!r} in the place of the rest")

    def close(self) -> None:
        self._endpoint.done(self._connection)
