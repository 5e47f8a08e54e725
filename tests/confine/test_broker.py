"""The broker between real sockets: an endpoint on loopback, and a client that says any bytes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import h11
import pytest

from agent_kit.confine import onward
from agent_kit.confine.broker import running, serve
from agent_kit.confine.onward import FailedError
from agent_kit.confine.relay import _unreachable
from agent_kit.confine.routes import CLOSED_BETAS, ROUTES
from agent_kit.confine.upstream import INSIDE_HOST, Upstream, upstream_from
from agent_kit.confine.wire import READ_SIZE, Wire

KEY = "made-up"
REAL = "sk-ant-the-real-one"
MIB = 1024 * 1024


# --- the endpoint ---------------------------------------------------------------------------------


@dataclass
class Got:
    """One request that a server got. ``body`` is left out when the server didn't read it."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def values(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each.lower() == name]


Answer = Callable[[Got, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _head(reader: asyncio.StreamReader) -> Got:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in lines[1:] if line]
    return Got(lines[0], [(name, value.strip()) for name, _, value in pairs])


async def _body(got: Got, reader: asyncio.StreamReader) -> bytes:
    if got.values("content-length"):
        return await reader.readexactly(int(got.values("content-length")[0]))
    body = b""
    while got.values("transfer-encoding") and (size := await _size(reader)):
        body += await reader.readexactly(size)
        await reader.readline()
    if got.values("transfer-encoding"):
        await reader.readline()
    return body


async def _size(reader: asyncio.StreamReader) -> int:
    """Of the next chunk."""
    return int(await reader.readuntil(b"\n"), 16)


def whole(status: str = "200 OK", body: bytes = b"{}", *lines: str) -> Answer:
    """The whole request is read, then answered with this."""

    async def answer(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.body = await _body(got, reader)
        more = "".join(f"{line}\r\n" for line in lines)
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    return answer


@dataclass
class Endpoint:
    """A server on loopback, or on a Unix socket, that answers as ``answer`` does."""

    answer: Answer = field(default_factory=whole)
    got: list[Got] = field(default_factory=list)
    port: int = 0
    connections: int = 0
    greeting: bytes = b""
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)  # a client, on us

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(self.greeting)
        try:
            while True:
                got = await _head(reader)
                self.got.append(got)
                await self.answer(got, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            writer.close()

    @contextlib.asynccontextmanager
    async def running(
        self, trust: ssl.SSLContext | None = None, path: str | None = None
    ) -> AsyncIterator[Endpoint]:
        if path:
            server = await asyncio.start_unix_server(self._serve, path)
        else:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=trust)
            self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with Endpoint().running() as found:
        yield found


def upstream(url: str, **more: str) -> Upstream:
    return upstream_from({"ANTHROPIC_API_KEY": REAL, "ANTHROPIC_BASE_URL": url, **more})


# --- the broker and its client --------------------------------------------------------------------


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, str]:
        found = json.loads(self.body)
        assert found["type"] == "error"
        return dict(found["error"])


@dataclass
class Client:
    """One connection to the broker."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def reply(self, *, head_only: bool = False) -> Reply:
        async with asyncio.timeout(20):
            got = await _head(self.reader)
        status = int(got.line.split()[1])
        body = b"" if head_only or status == 100 else await _body(got, self.reader)
        return Reply(status, {name.lower(): value for name, value in got.headers}, body)

    async def ask(self, body: bytes = b"{}", **fields: str) -> Reply:
        self.writer.write(request(body, **fields))
        return await self.reply(head_only=fields.get("method") == "HEAD")

    async def raw(self, data: bytes) -> bytes:
        """What comes back until the broker hangs up."""
        self.writer.write(data)
        async with asyncio.timeout(20):
            return await self.reader.read()


def request(
    body: bytes = b"{}",
    *,
    method: str = "POST",
    target: str = "/v1/messages",
    host: str = INSIDE_HOST,
    key: str | None = KEY,
    more: str = "",
) -> bytes:
    """The bytes of a request. ``more`` is whole lines."""
    login = "" if key is None else f"x-api-key: {key}\r\n"
    length = f"content-length: {len(body)}\r\n"
    head = f"{method} {target} HTTP/1.1\r\nhost: {host}\r\n{login}{length}{more}\r\n"
    return head.encode("latin-1") + body


@dataclass
class Broker:
    path: str

    @contextlib.asynccontextmanager
    async def client(self, limit: int = 2**16) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_unix_connection(self.path, limit=limit)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()

    async def ask(self, body: bytes = b"{}", **fields: str) -> Reply:
        async with self.client() as client:
            return await client.ask(body, **fields)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short: a Unix socket's path holds 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ak-") as found:
        yield Path(found)


def listening(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    return found


Start = Callable[[Upstream], contextlib.AbstractAsyncContextManager[Broker]]


@pytest.fixture
def start(folder: Path) -> Start:
    @contextlib.asynccontextmanager
    async def started(to: Upstream) -> AsyncIterator[Broker]:
        path = folder / "model.sock"
        stop = asyncio.Event()
        sock = listening(path)
        sock.listen()  # a client may be faster than the broker's start
        task = asyncio.ensure_future(serve(sock, to, key=KEY, stop=stop))
        try:
            yield Broker(str(path))
        finally:
            stop.set()
            async with asyncio.timeout(5):
                await task
            path.unlink()

    return started


# --- what the endpoint gets -----------------------------------------------------------------------


async def test_the_endpoint_gets_the_real_key_and_the_rest_of_the_request_as_it_is(
    endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(f"{endpoint.url}/gate/way")) as broker:
        more = "anthropic-beta: a-1\r\nX-App: cli\r\nexpect: 100-continue\r\ncookie: a=b\r\n"
        more += "connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\n"
        reply = await broker_reply_after_100(broker, more)
        assert reply.status == 200
    (got,) = endpoint.got
    assert got.line == "POST /gate/way/v1/messages?beta=true HTTP/1.1"
    assert got.body == b'{"a": 1}'
    found = sorted((name.lower(), value) for name, value in got.headers)
    assert found == [
        ("anthropic-beta", "a-1"),
        ("content-length", "8"),
        ("host", f"127.0.0.1:{endpoint.port}"),
        ("x-api-key", REAL),
        ("x-app", "cli"),
    ]


async def test_what_the_cli_sends_is_passed_on_and_no_other_header(
    endpoint: Endpoint, start: Start
) -> None:
    sent = {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate, br, zstd",
        "anthropic-beta": "claude-code-20250219, effort-2025-11-24",
        "anthropic-dangerous-direct-browser-access": "true",
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
        "user-agent": "claude-cli/2.1.332 (external, sdk-py)",
        "x-app": "cli",
        "x-claude-code-agent-id": "a1",
        "x-claude-code-session-id": "b2",
        "x-stainless-retry-count": "0",
    }
    others = (
        "X-HTTP-Method-Override: DELETE",
        "X-Original-URL: /v1/files",
        "X-Rewrite-URL: /v1/files",
        "X-Forwarded-Host: other.example",
        "Forwarded: host=other.example",
        "X-Application: x",
        "anthropic_beta: files-api-2025-04-14",
        "accept-language: x",
    )
    async with start(upstream(endpoint.url, ANTHROPIC_CUSTOM_HEADERS="x-tenant: ours")) as broker:
        lines = (*(f"{name}: {value}" for name, value in sent.items()), *others, "X-Tenant: no")
        assert (await broker.ask(more="".join(f"{line}\r\n" for line in lines))).status == 200
    (got,) = endpoint.got
    found = {name.lower(): value for name, value in got.headers}
    rest = {"x-tenant": "ours", "x-api-key": REAL, "content-length": found["content-length"]}
    assert found == sent | rest | {"host": f"127.0.0.1:{endpoint.port}"}
    assert len(got.headers) == len(found)


async def test_no_header_takes_the_length_of_the_body_away(
    endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker:
        more = "connection: Content-Length, host, transfer-encoding, x-app\r\nx-app: cli\r\n"
        assert (await broker.ask(more=more)).status == 200
    (got,) = endpoint.got
    assert got.body == b"{}"
    assert got.values("content-length") == ["2"]
    assert got.values("x-app") == []


@pytest.mark.parametrize(
    "beta", ['"files-api-2025"', "a;files-api-2025", "a b", "a,,b", "a,", "", "a_b", "é", "A-1"]
)
async def test_a_beta_that_is_no_name_is_answered_with_400(
    beta: str, endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker:
        assert (await broker.ask(more=f"anthropic-beta: {beta}\r\n")).status == 400
        more = f"anthropic-beta: fine-1\r\nanthropic-beta: {beta}\r\n"
        assert (await broker.ask(more=more)).status == 400
        assert endpoint.got == []
        assert (await broker.ask(more="anthropic-beta: a-1 ,\tb-2,c\r\n")).status == 200


async def broker_reply_after_100(broker: Broker, more: str) -> Reply:
    async with broker.client() as client:
        ask = request(b"", target="/v1/messages?beta=true", more=more)
        client.writer.write(ask.replace(b"content-length: 0", b"content-length: 8"))
        assert (await client.reply()).status == 100
        client.writer.write(b'{"a": 1}')
        return await client.reply()


async def test_custom_headers_of_the_host_win_but_for_the_clis_own_beta_and_name(
    endpoint: Endpoint, start: Start
) -> None:
    custom = "x-tenant: ours\nanthropic-beta: x\nuser-agent: y\nauthorization: Basic z\nhost: v"
    async with start(upstream(endpoint.url, ANTHROPIC_CUSTOM_HEADERS=custom)) as broker:
        more = "X-Tenant: theirs\r\nanthropic-beta: cli-1\r\n"
        await broker.ask(more=more)
    (got,) = endpoint.got
    assert got.values("x-tenant") == ["ours"]
    assert got.values("anthropic-beta") == ["cli-1"]
    assert got.values("user-agent") == ["y"]
    assert got.values("authorization") == ["Basic z"]
    assert got.values("host") == ["v"]


async def test_a_token_is_replaced_as_well(endpoint: Endpoint, start: Start) -> None:
    to = upstream_from({"ANTHROPIC_AUTH_TOKEN": REAL, "ANTHROPIC_BASE_URL": endpoint.url})
    async with start(to) as broker:
        reply = await broker.ask(key=None, more=f"Authorization: bearer {KEY}\r\n")
    assert reply.status == 200
    assert endpoint.got[0].values("authorization") == [f"Bearer {REAL}"]
    assert endpoint.got[0].values("x-api-key") == []


async def test_a_body_in_chunks_arrives_whole(endpoint: Endpoint, start: Start) -> None:
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        head = request(b"", more="transfer-encoding: chunked\r\n")
        client.writer.write(head.replace(b"content-length: 0\r\n", b""))
        client.writer.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert (await client.reply()).status == 200
    assert endpoint.got[0].body == b"abcde"


async def test_an_endpoint_on_a_unix_socket_of_the_host_is_reached(
    folder: Path, start: Start
) -> None:
    path = str(folder / "up.sock")
    async with Endpoint().running(path=path) as found:
        async with start(upstream("http://up.example", ANTHROPIC_UNIX_SOCKET=path)) as broker:
            assert (await broker.ask()).status == 200
        assert found.got[0].values("host") == ["up.example"]


# --- what is not passed on ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "more"),
    [
        (None, ""),
        ("", ""),
        (REAL, ""),
        (KEY + "x", ""),
        (None, "authorization: Bearer other\r\n"),
        (None, f"authorization: Basic {KEY}\r\n"),
        (None, f"authorization: {KEY}\r\n"),
        (KEY, "authorization: Bearer an-account-of-ones-own\r\n"),
        (KEY, "x-api-key: an-account-of-ones-own\r\n"),
        (None, f"cookie: x-api-key={KEY}\r\n"),
    ],
)
async def test_without_the_made_up_key_or_with_another_beside_it_the_answer_is_401(
    key: str | None, more: str, endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker:
        reply = await broker.ask(key=key, more=more)
        assert (reply.status, reply.error["type"]) == (401, "authentication_error")
    assert endpoint.got == []


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
async def test_each_route_is_passed_on(route: object, endpoint: Endpoint, start: Start) -> None:
    async with start(upstream(endpoint.url)) as broker:
        reply = await broker.ask(method=route.method, target=route.path)  # type: ignore[attr-defined]
        assert reply.status == 200
    assert len(endpoint.got) == 1


CLOSED = (
    ("GET", "/v1/messages"),
    ("HEAD", "/v1/messages"),
    ("PUT", "/v1/messages"),
    ("DELETE", "/v1/messages"),
    ("OPTIONS", "*"),
    ("post", "/v1/messages"),
    ("HEAD", "/"),
    ("POST", "/"),
    ("POST", "/v1/messages/"),
    ("POST", "//v1/messages"),
    ("POST", "/v1//messages"),
    ("POST", "/V1/messages"),
    ("POST", "/v1/messages;a=b"),
    ("POST", "/v1/messages%3Fa"),
    ("POST", "/v1/%6dessages"),
    ("POST", "/v1/messages#"),
    ("POST", "/v1/messages/../files"),
    ("POST", "/v1/files/../messages"),
    ("POST", "/v1/messages/batches"),
    ("GET", "/v1/messages/batches/b/results"),
    ("GET", "/v1/models"),
    ("GET", "/v1/files"),
    ("POST", "/v1/files"),
    ("GET", "/v1/files/f/content"),
    ("GET", "/v1/skills"),
    ("POST", "/v1/sessions"),
    ("GET", "/v1/organizations/me"),
    ("POST", "/v1/oauth/token"),
    ("GET", "/api/oauth/profile"),
    ("GET", "/api/claude_code/settings"),
    ("POST", "/api/event_logging/batch"),
    ("POST", "http://other.example/v1/messages"),
    ("POST", f"http://{INSIDE_HOST}/v1/messages"),
    ("GET", "https://other.example/"),
    ("CONNECT", "other.example:443"),
)


@pytest.mark.parametrize(("method", "target"), CLOSED)
async def test_every_other_request_is_answered_with_403(
    method: str, target: str, endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        reply = await client.ask(method=method, target=target)
        assert reply.status == 403
        if method != "HEAD":
            assert reply.error["type"] == "permission_error"
        if method != "CONNECT":
            assert (await client.ask()).status == 200  # the connection goes on
    assert len(endpoint.got) == (method != "CONNECT")


@pytest.mark.parametrize("start_of", [start for start, _ in CLOSED_BETAS])
@pytest.mark.parametrize("spelled", ["{}2026-01-01", "a-1, {}2026-01-01,b-1", "A-1,{}X"])
async def test_a_beta_that_is_more_than_a_message_is_answered_with_403(
    start_of: str, spelled: str, endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker:
        for beta in (spelled.format(start_of), spelled.format(start_of).upper()):
            more = f"anthropic-beta: fine-1\r\nanthropic-beta: {beta}\r\n"
            assert (await broker.ask(more=more)).status == 403
        assert endpoint.got == []
        assert (await broker.ask(more="anthropic-beta: fine-1,my-skills-1\r\n")).status == 200


@pytest.mark.parametrize("host", ["other.example", "", "127.0.0.1", f"{INSIDE_HOST}:80", "x\ty"])
async def test_another_host_header_is_answered_with_400(
    host: str, endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker:
        assert (await broker.ask(host=host)).status == 400
    assert endpoint.got == []


GOOD = request().decode()
ODD = {
    "two lengths": GOOD.replace("content-length: 2", "content-length: 2\r\ncontent-length: 40"),
    "a length and chunks": GOOD.replace(
        "content-length: 2\r\n\r\n{}",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "an unknown coding": GOOD.replace("content-length: 2", "transfer-encoding: xchunked"),
    "a coding twice": GOOD.replace(
        "content-length: 2", "transfer-encoding: chunked\r\ntransfer-encoding: chunked"
    ),
    "a space before the colon": GOOD.replace("content-length:", "content-length :"),
    "a folded line": GOOD.replace("x-api-key: ", "x-a: b\r\n \x00x-api-key: "),
    "a length with a sign": GOOD.replace("content-length: 2", "content-length: +2"),
    "a length in hexadecimal": GOOD.replace("content-length: 2", "content-length: 0x2"),
    "an empty name": GOOD.replace("host:", ": b\r\nhost:"),
    "two hosts": GOOD.replace("host:", "host: a\r\nhost:"),
    "no host": GOOD.replace(f"host: {INSIDE_HOST}\r\n", ""),
    "an old version": GOOD.replace("HTTP/1.1", "HTTP/1.0"),
    "a space in the target": GOOD.replace("/v1/messages", "/v1/messages /x"),
    "no HTTP at all": "hello\r\n\r\n",
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a head without end": GOOD[:20] + "x" * 200_000,
}


@pytest.mark.parametrize("name", ODD)
async def test_a_request_with_two_readings_is_none(
    name: str, endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        smuggled = ODD[name] + request(target="/v1/files").decode()
        client.writer.write(smuggled.encode("latin-1"))
        client.writer.write_eof()
        assert (await client.reader.readline()).split()[1] in (b"400", b"501")
        with contextlib.suppress(OSError):
            await client.reader.read()
    assert endpoint.got == []


async def test_chunks_that_are_none_end_the_request_before_it_is_whole(
    endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        head = request(b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
        await client.raw(head + b"2\r\n{}XX0\r\n\r\n")
        async with asyncio.timeout(5):
            await endpoint.hung_up.wait()
    assert endpoint.got == []  # its head had not been sent yet


async def test_more_connections_than_any_cli_makes_are_closed_at_once(
    endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(broker.client()) for _ in range(128)]
        assert (await clients[-1].ask()).status == 200
        async with broker.client() as late:
            with contextlib.suppress(OSError):
                assert await late.raw(request()) == b""
        assert (await clients[0].ask()).status == 200


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", ["429 Too Many", "529 Overloaded", "500 Oh", "413 Large", "204 No"]
)
async def test_a_status_and_its_headers_and_its_body_come_as_they_are(
    status: str, endpoint: Endpoint, start: Start
) -> None:
    body = b"" if status == "204 No" else b"\x1f\x8bnot really zipped"
    lines = ("Retry-After: 7", "content-encoding: gzip", "X-A: 1", "X-A: 2", "keep-alive: 5")
    endpoint.answer = whole(status, body, *lines, "connection: x-hop", "x-hop: 1")
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        client.writer.write(request())
        got = await _head(client.reader)
        assert got.line == f"HTTP/1.1 {status}"
        found = [(name.lower(), value) for name, value in got.headers]
        assert [pair for pair in found if pair[0] != "content-length"] == [
            ("retry-after", "7"),
            ("content-encoding", "gzip"),
            ("x-a", "1"),
            ("x-a", "2"),
        ]
        assert await client.reader.readexactly(len(body)) == body


async def test_one_connection_takes_many_requests_and_so_does_the_endpoints(
    endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        for number in range(3):
            assert (await client.ask(str(number).encode())).status == 200
        client.writer.write(request(b"3") + request(b"4") + request(b"5"))  # ahead of the answers
        for _ in range(3):
            assert (await client.reply()).status == 200
    assert [got.body for got in endpoint.got] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert endpoint.connections == 1


async def test_what_comes_unasked_is_no_answer_to_the_next_request(
    endpoint: Endpoint, start: Start
) -> None:
    async def more(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await whole()(got, reader, writer)
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 408 Late\r\ncontent-length: 0\r\n\r\n")

    endpoint.answer = more
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        for number in (1, 2, 3):
            assert (await client.ask()).status == 200
            assert endpoint.connections == number
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("what", [b"HTTP/1.1 408 Late\r\n\r\n", b"", None])
@pytest.mark.parametrize("kept_by_then", [False, True])
async def test_what_has_come_by_the_very_turn_in_which_a_connection_is_taken_counts(
    what: bytes | None, kept_by_then: bool
) -> None:
    """Nobody reads a kept connection, and another request may take it in the turn in which it was put back."""
    here, there = socket.socketpair()
    with there:
        _, wire = await asyncio.get_running_loop().create_connection(Wire, sock=here)
        connection = onward._Connection(wire)
        there.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        asked = h11.Request(method="GET", target="/", headers=[("host", "endpoint")])
        assert (await connection.ask(asked, onward._nothing())).status_code == 204
        assert isinstance(await connection.event(), h11.EndOfMessage)

        kept = connection.keep() if kept_by_then else None
        if what is not None:
            wire.data_received(what) if what else wire.eof_received()
        if kept is None:
            kept = connection.keep()
        assert (kept and connection.wake()) is (what is None)
        wire.abort()
        await asyncio.sleep(0)


async def test_pieces_go_out_together_before_the_loops_next_turn_or_with_the_last() -> None:
    here, there = socket.socketpair()
    there.setblocking(False)
    with there:
        _, wire = await asyncio.get_running_loop().create_connection(Wire, sock=here)

        def arrived() -> bytes:
            with contextlib.suppress(BlockingIOError):
                return there.recv(2 * READ_SIZE)
            return b""

        await wire.send([b"head", b"1"], last=False)
        await wire.send([b"2"], last=False)
        assert arrived() == b""
        await asyncio.sleep(0)
        assert arrived() == b"head12"
        await wire.send([b"3"], last=False)
        await wire.send([b"4"], last=True)
        assert arrived() == b"34"
        await wire.send([bytes(READ_SIZE)], last=False)  # more than is held
        assert len(arrived()) == READ_SIZE
        await wire.send([b"5"], last=False)
        wire.close()
        await asyncio.sleep(0)
        assert arrived() == b"5"
        await asyncio.sleep(0)


async def test_an_answer_with_a_large_head_comes_as_it_is(endpoint: Endpoint, start: Start) -> None:
    async def slowly(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _body(got, reader)
        lines = (f"x-{number}: {'v' * 1000}\r\n" for number in range(40))
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for line in lines:
            writer.write(line.encode())
            await asyncio.sleep(0.001)
        writer.write(b"content-length: 2\r\n\r\n{}")

    endpoint.answer = slowly
    async with start(upstream(endpoint.url)) as broker:
        reply = await broker.ask()
    assert (reply.status, reply.headers["x-39"]) == (200, "v" * 1000)


async def test_events_arrive_one_by_one(endpoint: Endpoint, start: Start) -> None:
    taken = asyncio.Event()

    async def events(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _body(got, reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(5):
            data = f"data: {number}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await taken.wait()  # the next one is not sent before the client has this one
            taken.clear()
        writer.write(b"0\r\n\r\n")

    endpoint.answer = events
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        client.writer.write(request())
        await _head(client.reader)
        async with asyncio.timeout(5):
            for number in range(5):
                size = int(await client.reader.readline(), 16)
                assert await client.reader.readexactly(size + 2) == b"data: %d\n\n\r\n" % number
                taken.set()
            assert await client.reader.readexactly(5) == b"0\r\n\r\n"


async def test_an_answer_that_breaks_in_the_middle_breaks_for_the_client(
    endpoint: Endpoint, start: Start
) -> None:
    async def broken(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _body(got, reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await writer.drain()
        raise ConnectionResetError

    endpoint.answer = broken
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        found = await client.raw(request())
    assert found.endswith(b"\r\n\r\n3\r\nabc\r\n")  # and no end


async def test_an_endpoint_that_hangs_up_or_is_not_there_is_a_502_with_a_reason(
    endpoint: Endpoint, start: Start
) -> None:
    async def nothing(*_: object) -> None:
        raise ConnectionResetError

    endpoint.answer = nothing
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        reply = await client.ask()
        assert (reply.status, reply.error["type"]) == (502, "api_error")
        assert "broke before an answer" in reply.error["message"]
        endpoint.answer = whole()
        assert (await client.ask()).status == 200
    async with start(upstream(endpoint.url.replace("http:", "https:"))) as broker:
        endpoint.greeting = b"no TLS\r\n"
        reply = await broker.ask()
        assert (reply.status, "TLS failed" in reply.error["message"]) == (502, True)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with start(upstream(f"http://127.0.0.1:{port}")) as broker:
        reply = await broker.ask()
        assert (reply.status, "Connection refused" in reply.error["message"]) == (502, True)


def test_a_failure_is_told_by_its_cause_and_never_in_its_own_words() -> None:
    causes = (
        (socket.gaierror(-2, REAL), "its name can't be resolved"),
        (OSError(errno.EHOSTUNREACH, REAL), "No route to host"),
        (ssl.SSLError(1, REAL), "TLS failed"),
        (OSError(REAL), "nothing answers there"),
        (TimeoutError(), "too long"),
        (ValueError(REAL), "broke before an answer"),
    )
    for cause, sentence in causes:
        error = FailedError(REAL)
        error.__cause__ = cause
        found = _unreachable(error).sentence
        assert sentence in found
        assert REAL not in found


async def test_an_endpoint_that_changes_to_another_protocol_is_a_502(
    endpoint: Endpoint, start: Start
) -> None:
    endpoint.answer = whole("101 Switching Protocols", b"", "upgrade: x", "connection: upgrade")
    async with start(upstream(endpoint.url)) as broker:
        assert (await broker.ask(more="upgrade: x\r\nconnection: upgrade\r\n")).status == 502
    assert endpoint.got[0].values("upgrade") == []


async def test_an_answer_before_the_body_is_over_reaches_the_client(
    endpoint: Endpoint, start: Start
) -> None:
    async def early(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.write_eof()
        raise ConnectionResetError

    endpoint.answer = early
    async with start(upstream(endpoint.url)) as broker:
        reply = await broker.ask(bytes(4 * MIB))
    assert reply.status in (413, 502)


# --- back pressure and hanging up -----------------------------------------------------------------


async def test_a_client_that_hangs_up_ends_the_request_at_the_endpoint(
    endpoint: Endpoint, start: Start
) -> None:
    async def forever(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _body(got, reader)
        if begin:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await reader.readexactly(1)

    endpoint.answer = forever
    async with start(upstream(endpoint.url)) as broker:
        for begin in (False, True):
            endpoint.hung_up.clear()
            async with broker.client() as client:
                client.writer.write(request())
                while len(endpoint.got) < 1 + begin:
                    await asyncio.sleep(0.01)
                if begin:
                    await client.reader.readuntil(b"abc")
                assert not endpoint.hung_up.is_set()
            async with asyncio.timeout(5):
                await endpoint.hung_up.wait()


async def test_a_client_that_hangs_up_within_its_body_ends_the_request_at_the_endpoint(
    endpoint: Endpoint, start: Start
) -> None:
    async with start(upstream(endpoint.url)) as broker:
        async with broker.client() as client:
            client.writer.write(request(bytes(1000))[:-1])
            while not endpoint.got:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            await endpoint.hung_up.wait()
    assert endpoint.got[0].body == b""  # never whole


async def test_a_slow_reader_stops_the_endpoint(endpoint: Endpoint, start: Start) -> None:
    sent = 0

    async def much(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await _body(got, reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (64 * MIB))
        for _ in range(64 * 16):
            writer.write(bytes(MIB // 16))
            await writer.drain()
            sent += MIB // 16

    endpoint.answer = much
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        client.writer.write(request())
        await client.reader.readuntil(b"\r\n\r\n")
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.3)
        assert 0 < sent < 16 * MIB  # what the sockets' own buffers hold
        async with asyncio.timeout(30):
            for _ in range(64):
                await client.reader.readexactly(MIB)


async def test_32_mib_go_either_way_in_little_memory(folder: Path) -> None:
    size, chunk = 32 * MIB, MIB // 16
    counted = 0

    async def counts(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal counted
        while counted < size:
            counted += len(await reader.read(chunk))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // chunk):
            writer.write(bytes(chunk))
            await writer.drain()

    async with Endpoint(counts).running() as endpoint:
        async with _traced(folder / "s", upstream(endpoint.url)) as peak:
            reader, writer = await asyncio.open_unix_connection(str(folder / "s"))
            head = request(b"").replace(b"content-length: 0", b"content-length: %d" % size)
            writer.write(head)
            for _ in range(size // chunk):
                writer.write(bytes(chunk))
                await writer.drain()
            await _head(reader)
            for _ in range(size // chunk):
                await reader.readexactly(chunk)
            writer.close()
    assert counted == size
    assert peak() < 4 * MIB


@contextlib.asynccontextmanager
async def _traced(path: Path, to: Upstream) -> AsyncIterator[Callable[[], int]]:
    """The most memory that Python's objects took while a broker ran, all sides together."""
    stop = asyncio.Event()
    sock = listening(path)
    sock.listen()
    task = asyncio.ensure_future(serve(sock, to, key=KEY, stop=stop))
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1] if tracemalloc.is_tracing() else peak
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        stop.set()
        await task


# --- proxies and certificates ---------------------------------------------------------------------


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for localhost that nobody signed, and a server's context with it."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", str(key)]
    command += ["-addext", "subjectAltName=DNS:localhost", "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


async def test_a_certificate_is_checked_against_what_the_host_trusts(
    folder: Path, start: Start
) -> None:
    cert, context = certificate(folder)
    async with Endpoint().running(context) as endpoint:
        url = f"https://localhost:{endpoint.port}"
        for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"):
            async with start(upstream(url, **{name: str(cert)})) as broker:
                assert (await broker.ask()).status == 200
        assert len(endpoint.got) == 2
        unchecked = upstream(url, NODE_TLS_REJECT_UNAUTHORIZED="0")
        async with start(unchecked) as broker:
            reply = await broker.ask()
            assert reply.status == 502
            assert "NODE_EXTRA_CA_CERTS" in reply.error["message"]
        assert len(endpoint.got) == 2


async def test_a_proxy_is_asked_for_an_http_endpoint_with_its_login_and_the_key(
    start: Start,
) -> None:
    async with Endpoint().running() as proxy:
        to = upstream("http://far.example/p", HTTP_PROXY=f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        async with start(to) as broker:
            assert (await broker.ask()).status == 200
    assert proxy.got[0].line == "POST http://far.example/p/v1/messages HTTP/1.1"
    assert proxy.got[0].values("proxy-authorization") == ["Basic bWU6cEBzcw=="]
    assert proxy.got[0].values("x-api-key") == [REAL]


def tunnel(to: Endpoint, seen: bytearray) -> Answer:
    """A proxy that connects to an endpoint. ``seen`` gets what passes, either way."""

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(MIB):
                seen.extend(data)
                sink.write(data)
        finally:  # however the broker takes its leave
            sink.close()

    async def answer(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_connection("127.0.0.1", to.port)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(pump(reader, onward), pump(there, writer))

    return answer


async def test_a_proxy_of_an_https_endpoint_sees_its_name_and_no_key(
    folder: Path, start: Start
) -> None:
    cert, context = certificate(folder)
    seen = bytearray()

    async with (
        Endpoint().running(context) as endpoint,
        Endpoint(tunnel(endpoint, seen)).running() as proxy,
    ):
        url = f"https://localhost:{endpoint.port}"
        env = {"https_proxy": proxy.url, "SSL_CERT_FILE": str(cert)}
        async with start(upstream(url, **env)) as broker:
            assert (await broker.ask()).status == 200
        assert [got.line for got in proxy.got] == [f"CONNECT localhost:{endpoint.port} HTTP/1.1"]
        assert REAL not in str(proxy.got)
        assert seen
        assert REAL.encode() not in seen
        assert endpoint.got[0].values("x-api-key") == [REAL]


async def test_a_proxy_that_speaks_tls_itself_sees_no_key_either(
    folder: Path, start: Start
) -> None:
    cert, context = certificate(folder)
    seen = bytearray()

    async with (
        Endpoint().running(context) as endpoint,
        Endpoint(tunnel(endpoint, seen)).running(context) as proxy,
    ):
        env = {
            "https_proxy": f"https://me:p%40ss@localhost:{proxy.port}",
            "SSL_CERT_FILE": str(cert),
        }
        async with start(upstream(f"https://localhost:{endpoint.port}", **env)) as broker:
            assert (await broker.ask()).status == 200
        assert proxy.got[0].values("proxy-authorization") == ["Basic bWU6cEBzcw=="]
        assert endpoint.got[0].values("proxy-authorization") == []
        assert endpoint.got[0].values("x-api-key") == [REAL]
        assert REAL.encode() not in seen


@pytest.mark.parametrize("pause", [0, 0.05])
async def test_what_a_proxy_says_before_tls_is_no_answer_of_the_endpoint(
    folder: Path, start: Start, pause: float
) -> None:
    cert, _ = certificate(folder)

    async def forger(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.sleep(pause)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
        await reader.read(MIB)

    async with Endpoint(forger).running() as proxy:
        env = {"https_proxy": proxy.url, "SSL_CERT_FILE": str(cert)}
        async with start(upstream("https://far.example", **env)) as broker:
            reply = await broker.ask()
    assert reply.status == 502
    assert b"forged" not in reply.body


async def test_a_proxy_that_refuses_is_a_502(folder: Path, start: Start) -> None:
    answer = whole("407 Login", b"", f"x-echo: {REAL}")
    async with Endpoint(answer).running() as proxy:
        async with start(upstream("https://far.example", HTTPS_PROXY=proxy.url)) as broker:
            reply = await broker.ask()
    assert (reply.status, "the proxy refused" in reply.error["message"]) == (502, True)
    assert REAL not in str(reply)


# --- start and end --------------------------------------------------------------------------------


async def test_over_tcp_the_host_is_the_address_it_listens_on(endpoint: Endpoint) -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    stop = asyncio.Event()
    task = asyncio.ensure_future(serve(sock, upstream(endpoint.url), key=KEY, stop=stop))
    try:
        for host, status in ((f"127.0.0.1:{port}", 200), ("localhost", 400), (INSIDE_HOST, 400)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert (await Client(reader, writer).ask(host=host)).status == status
            writer.close()
    finally:
        stop.set()
        await task
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_it_ends_at_once_when_told_with_requests_under_way(
    how: str, endpoint: Endpoint, folder: Path
) -> None:
    async def forever(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _body(got, reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        await reader.readexactly(1)

    endpoint.answer = forever
    stop = asyncio.Event()
    sock = listening(folder / "s")
    sock.listen()
    before = asyncio.all_tasks()
    task = asyncio.ensure_future(serve(sock, upstream(endpoint.url), key=KEY, stop=stop))
    reader, writer = await asyncio.open_unix_connection(str(folder / "s"))
    writer.write(request())
    await _head(reader)
    _idle, idle = await asyncio.open_unix_connection(str(folder / "s"))
    await asyncio.sleep(0.05)
    stop.set() if how == "stop" else task.cancel()
    async with asyncio.timeout(1):
        await asyncio.wait([task])
        assert await reader.read() == b""
        await endpoint.hung_up.wait()
    assert task.cancelled() == (how == "cancel")
    await asyncio.sleep(0.05)
    left = {each for each in asyncio.all_tasks() - before if "_serve" not in str(each)}
    assert left == set()
    writer.close()
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_unix_connection(str(folder / "s"))


async def test_in_a_thread_it_lasts_as_long_as_the_block(endpoint: Endpoint, folder: Path) -> None:
    before = threading.active_count()
    with running(listening(folder / "s"), upstream(endpoint.url), key=KEY):
        while True:  # until it listens
            with contextlib.suppress(ConnectionRefusedError):
                assert (await Broker(str(folder / "s")).ask()).status == 200
                break
            await asyncio.sleep(0.01)
    assert threading.active_count() == before


def test_a_certificate_file_that_is_none_is_raised(folder: Path) -> None:
    (folder / "ca.pem").write_text("no certificate")
    to = upstream("https://far.example", NODE_EXTRA_CA_CERTS=str(folder / "ca.pem"))
    with (
        pytest.raises(ssl.SSLError),
        listening(folder / "s") as sock,
        running(sock, to, key=KEY),
    ):
        pass


# --- the key --------------------------------------------------------------------------------------


async def test_the_key_is_in_no_log_and_no_answer_whatever_goes_wrong(
    endpoint: Endpoint,
    start: Start,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = ""

    async def odd(got: Got, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _body(got, reader)
        writer.write(odds[len(endpoint.got) - 1])
        await writer.drain()
        raise ConnectionResetError

    odds = [
        b"HTTP/1.1 999999 x\r\n\r\n",
        b"",
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.1 200\r\na b: c\r\n\r\n",
    ]
    odds += [b"HTTP/1.1 101 Switch\r\nupgrade: x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nabc"]
    endpoint.answer = odd
    asyncio.get_running_loop().set_debug(True)
    async with start(upstream(endpoint.url)) as broker:
        for _ in odds:
            async with broker.client() as client:
                found = await client.raw(request(more="connection: close\r\n"))
                seen += found.decode("latin-1")
        seen += str(await broker.ask(key=REAL[:-1])) + str(await broker.ask(target="/x"))
    out = capfd.readouterr()
    assert len(endpoint.got) == len(odds)
    assert endpoint.got[0].values("x-api-key") == [REAL]
    assert seen
    assert caplog.records
    for text in (seen, out.out, out.err, caplog.text):
        assert REAL not in text
        assert KEY not in text


async def test_an_unforeseen_failure_is_logged_by_its_name_alone(
    endpoint: Endpoint,
    start: Start,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError(REAL)

    monkeypatch.setattr("agent_kit.confine.routes.Judge.onward", fails)
    async with start(upstream(endpoint.url)) as broker, broker.client() as client:
        assert await client.raw(request()) == b""
    assert "unforeseen ZeroDivisionError" in caplog.text
    assert REAL not in caplog.text


def test_loading_the_broker_loads_no_framework_and_not_the_rules() -> None:
    code = "import agent_kit.confine.broker, sys; print(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "h11" in loaded
    assert not loaded & {
        "httpcore2",
        "anyio",
        "starlette",
        "uvicorn",
        "httpx2",
        "mcp",
        "claude_agent_sdk",
        "pydantic",
    }
    assert "agent_kit.scope" not in done.stdout.split()


def test_a_broker_that_cannot_begin_says_so_at_once_and_turns_everybody_away(
    tmp_path: Path,
) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    upstream = Upstream(
        base_url="https://127.0.0.1:1", headers=(), ca_file=str(tmp_path / "ca.pem")
    )
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path := str(tmp_path / "socket"))
    listening.listen()
    with pytest.raises(ssl.SSLError), running(listening, upstream, key=KEY):
        pytest.fail("it began")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        with pytest.raises(ConnectionRefusedError):
            client.connect(path)
