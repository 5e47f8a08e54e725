"""What the broker adds to a request, to a long answer, and to a session of the real CLI.

Endpoint, broker and client are processes of their own, as they are for a confined session.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import socketserver
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Final

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from agent_kit.confine.upstream import INSIDE_HOST, inside_env, upstream_from
from agent_kit.testing import ScriptedModel, ToolCall, cli_env
from benchmarks.imports import fresh
from benchmarks.measure import Effort, Row, alternate, seconds, take_turns

__all__ = ["measure"]

_KEY: Final = "made-up"
_ASKED: Final = 64 * 1024  # bytes of a request: a session's usual one
_ANSWERED: Final = 4 * 1024
_LONG: Final = 64 * 1024 * 1024
_PIECE: Final = 64 * 1024


def measure(effort: Effort) -> Iterator[Row]:
    yield _import(effort)
    with _endpoint() as url, _broker(url) as path:
        direct, through = _client(url), _client(path)
        samples = alternate(lambda: direct(_ANSWERED), lambda: through(_ANSWERED), effort)
        yield samples.difference(
            "broker.request", "a request of 64 kB through the broker, less direct"
        )
        samples = take_turns(
            lambda: seconds(lambda: direct(_LONG))[0],
            lambda: seconds(lambda: through(_LONG))[0],
            max(2, effort.blocks // 20),
        )
        yield samples.ratio("broker.stream", "an answer of 64 MiB through the broker : direct")
    yield _sessions(effort)


def _import(effort: Effort) -> Row:
    statement = "import agent_kit.confine.broker"
    fresh(statement)  # writes the byte code
    samples = take_turns(
        lambda: seconds(lambda: fresh("import asyncio"))[0],
        lambda: seconds(lambda: fresh(statement))[0],
        effort.starts,
    )
    return samples.difference("broker.import", f"{statement}, less asyncio")


# --- the sides ------------------------------------------------------------------------------------


class _Answers(socketserver.StreamRequestHandler):
    """Reads a request, and answers with as many bytes as its ``x-stainless-size`` says."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        piece = bytes(_PIECE)
        while head := self._head():
            self.rfile.read(int(head["content-length"]))
            size = int(head["x-stainless-size"])
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
            for at in range(0, size, _PIECE):
                self.wfile.write(piece[: size - at])

    def _head(self) -> dict[str, str]:
        found = {}
        while (line := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            found[name.lower()] = value.strip()
        return found


def _run_endpoint(told: Connection) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Answers) as server:
        server.daemon_threads = True
        told.send(f"http://127.0.0.1:{server.server_address[1]}")
        server.serve_forever()


def _run_broker(told: Connection, url: str, path: str) -> None:
    from agent_kit.confine.broker import serve

    async def main() -> None:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(path)
        sock.listen()
        told.send(path)
        env = {"ANTHROPIC_API_KEY": "the real one", "ANTHROPIC_BASE_URL": url}
        await serve(sock, upstream_from(env), key=_KEY, stop=asyncio.Event())

    asyncio.run(main())


@contextmanager
def _endpoint() -> Iterator[str]:
    with _process(_run_endpoint) as url:
        yield url


@contextmanager
def _broker(url: str) -> Iterator[str]:
    """The path of the socket of a broker before the endpoint at ``url``."""
    with (
        tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as folder,
        _process(_run_broker, url, os.path.join(folder, "s")) as path,
    ):
        yield path


@contextmanager
def _process(run: Callable[..., None], *given: str) -> Iterator[str]:
    """What a process tells when it is ready; it is ended at the end."""
    fresh_ones = multiprocessing.get_context("spawn")
    told, tells = fresh_ones.Pipe(duplex=False)
    process = fresh_ones.Process(target=run, args=(tells, *given), daemon=True)
    process.start()
    tells.close()
    try:
        yield told.recv()
    finally:
        process.terminate()
        process.join()


def _client(where: str) -> Callable[[int], None]:
    """One connection; a call makes one request for an answer of so many bytes."""
    if where.startswith("http"):
        host = where.removeprefix("http://")
        name, _, port = host.partition(":")
        sock = socket.create_connection((name, int(port)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    else:
        host = INSIDE_HOST
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(where)
    body, room = bytes(_ASKED), bytearray(_PIECE)

    def ask(size: int) -> None:
        head = f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: {_KEY}\r\n"
        head += f"x-stainless-size: {size}\r\ncontent-length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode() + body)
        got = b""
        while b"\r\n\r\n" not in got:
            got += sock.recv(_PIECE)
        assert b" 200 " in got[:20]
        left = size - len(got.partition(b"\r\n\r\n")[2])
        while left > 0:
            left -= sock.recv_into(room)

    return ask


# --- sessions -------------------------------------------------------------------------------------


def _sessions(effort: Effort) -> Row:
    samples = take_turns(
        lambda: asyncio.run(_session(effort.calls, brokered=False)),
        lambda: asyncio.run(_session(effort.calls, brokered=True)),
        effort.sessions,
    )
    return samples.ratio(
        "broker.session", f"a session of {effort.calls} calls through the broker : direct"
    )


async def _session(calls: int, *, brokered: bool) -> float:
    """Seconds of one session from connecting to its end; the broker runs already."""
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        (Path(folder) / "a.md").write_text("text")
        steps = [ToolCall("Read", {"file_path": "a.md"}) for _ in range(calls)]
        with ScriptedModel([*steps, "Done."]) as model:
            env = cli_env(model, home)
            if not brokered:
                return await _taken(env, folder)
            with _broker(model.url) as path:
                return await _taken({**env, **inside_env(env, key=_KEY, socket=path)}, folder)


async def _taken(env: dict[str, str], cwd: str) -> float:
    options = ClaudeAgentOptions(
        cwd=cwd, env=env, tools=["Read"], allowed_tools=["Read"], setting_sources=[]
    )
    start = perf_counter()
    async with ClaudeSDKClient(options) as client:
        await client.query("Go.")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                assert message.result == "Done.", message
    return perf_counter() - start
