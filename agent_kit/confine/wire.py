"""A connection of the broker's, to either side: what comes in, what goes out, and word of who hangs up.

What goes out is gathered: what is there in one turn of the loop is written at once. h11 gives a message
in up to five pieces, and each one written by itself wakes the other side for a part of what it waits
for. Nobody has to read to learn of an end: a task that only waits for one costs every request as much
as passing it on.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["READ_SIZE", "Wire"]

READ_SIZE: Final = 64 * 1024
"""Bytes that are held of one direction of one request, a few times over."""


class Wire(asyncio.StreamReaderProtocol):
    """A protocol for asyncio to connect. ``made`` is called with it when that has been done."""

    heard: Callable[[], object] | None = None
    """Called whenever something comes: bytes, the other side's end, the loss of the connection."""

    def __init__(self, made: Callable[[Wire], object] | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader(limit=READ_SIZE, loop=loop)
        super().__init__(self._reader, loop=loop)
        self._made = made
        self._pieces: list[bytes] = []
        self._size = 0
        self._due: asyncio.Handle | None = None
        self.ended = False  # the other side says no more

    # --- what comes in ----------------------------------------------------------------------------

    async def read(self) -> bytes:
        """The next bytes, at most ``READ_SIZE``; none at the end. Raises ``OSError``."""
        return await self._reader.read(READ_SIZE)

    def has_more(self) -> bool:
        """Whether bytes that nobody has read, or the end, are there. Nothing else may be read then."""
        look = self._reader.read(1)
        try:
            look.send(None)
        except (StopIteration, OSError):
            return True
        finally:
            look.close()
        return False

    # --- what goes out ----------------------------------------------------------------------------

    async def send(self, pieces: Iterable[bytes], *, last: bool) -> None:
        """Write, in this turn of the loop (``last``) or before the next, and wait for room.

        Raises ``OSError`` when the connection is broken.
        """
        for piece in pieces:
            self._pieces.append(piece)
            self._size += len(piece)
        if last or self._size >= READ_SIZE:
            self._write()
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._write)
        await self._writer.drain()

    async def secure(self, trusted: ssl.SSLContext, host: str) -> None:
        """Go on with TLS."""
        await self._writer.start_tls(trusted, server_hostname=host)

    def is_closing(self) -> bool:
        return self._writer.is_closing()

    def close(self) -> None:
        """Write what is left, and take leave."""
        self._write()
        self._writer.close()

    def abort(self) -> None:
        """End it at once."""
        self._take()
        self._writer.transport.abort()

    def _write(self) -> None:
        if pieces := self._take():
            self._writer.writelines(pieces)

    def _take(self) -> list[bytes]:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        pieces, self._pieces, self._size = self._pieces, [], 0
        return pieces

    # --- what asyncio tells -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.WriteTransport)
        loop = asyncio.get_running_loop()
        self._writer = asyncio.StreamWriter(transport, self, self._reader, loop)
        if self._made is not None:
            self._made(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._tell()

    def eof_received(self) -> bool | None:
        self.ended = True
        keep = super().eof_received()
        self._tell()
        return keep

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        super().connection_lost(exc)
        self._tell()

    def _tell(self) -> None:
        if self.heard is not None:
            self.heard()
