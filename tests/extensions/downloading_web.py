"""A web on loopback: servers that answer as they are told, and names that lead to them."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_network
from types import TracebackType
from typing import Any, Self

from agent_kit_sources.downloading import AddressGuard, Network

__all__ = ["HERE", "PRIVATE", "Names", "Server", "drip", "network", "reply"]

HERE = "127.0.0.1"
PRIVATE = "127.0.0.2"  # stands for an address that isn't public

GUARD = AddressGuard(
    within=(ip_network("127.0.0.0/8"),),
    refused=((ip_network(f"{PRIVATE}/32"), "private"),),
    hidden=frozenset(),
)

Script = bytes | Callable[[socket.socket], None]


def reply(
    body: bytes = b"", *headers: str, status: str = "200 OK", length: int | None = None
) -> bytes:
    """An answer. ``length`` is what it says, in place of the body's."""
    said = len(body) if length is None else length
    head = [f"HTTP/1.1 {status}", f"Content-Length: {said}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def drip(first: bytes, each: bytes, pause: float) -> Callable[[socket.socket], None]:
    """Sends a piece after each pause (seconds), until nobody listens or ten seconds are over."""

    def send(connection: socket.socket) -> None:
        connection.sendall(first)
        end = time.monotonic() + 10
        while time.monotonic() < end and not (pause and _has_gone(connection, pause)):
            connection.sendall(each)

    return send


def _has_gone(connection: socket.socket, seconds: float) -> bool:
    """Whether the other side closes within some seconds."""
    connection.settimeout(seconds)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return False
    finally:
        connection.settimeout(10)


class Server:
    """Answers by path; any other path gets 404. ``heads`` are the requests as they came."""

    def __init__(
        self,
        answers: Mapping[str, Script],
        *,
        context: ssl.SSLContext | None = None,
        address: str = HERE,
    ) -> None:
        self._answers = answers
        self._context = context
        self.heads: list[str] = []
        self.connections = 0
        self._listener = socket.create_server((address, 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=15)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._talk, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _talk(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with suppress(OSError), connection:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (more := connection.recv(4096)):
                    head += more
                if not head:
                    return
                text = head.decode("latin-1")
                self.heads.append(text)
                answer = self._answers.get(text.split(" ")[1], reply(status="404 Not Found"))
                if callable(answer):
                    answer(connection)
                else:
                    connection.sendall(answer)


class Names:
    """Names that lead somewhere: to one list of addresses, or to another at each look-up."""

    def __init__(self, **names: Sequence[str] | Sequence[Sequence[str]]) -> None:
        self._names = {
            name.replace("_", "."): [list(each) for each in found]
            if found and not isinstance(found[0], str)
            else [list(found)]
            for name, found in names.items()
        }
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, seconds: float) -> Sequence[str]:
        assert seconds > 0
        self.asked.append(host)
        found = self._names.get(host, [[]])
        return found.pop(0) if len(found) > 1 else found[0]  # type: ignore[return-value]


def network(names: Callable[..., Any] | None = None, **more: Any) -> Network:
    """The loopback as if it were the internet; ``files.example`` leads to it."""
    more.setdefault("guard", GUARD)
    more.setdefault("env", {})
    return Network(resolve=names or Names(files_example=[HERE], other_example=[HERE]), **more)
