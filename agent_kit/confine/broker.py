"""The one way out of a confinement: a reverse proxy that adds the key to the model's requests.

It runs in the host, beside the confined CLI, for as long as that does. From inside it takes the
requests of `routes.ROUTES` with the made-up key, and sends them to the one endpoint that it was given;
everything else it answers itself. It keeps no log, and no sentence of its own holds a header. What
the endpoint answers is passed on as it is: an endpoint that repeats the key in an answer tells it.

What this can't see: the body. Whoever can make requests inside can ask the endpoint for what it does
itself, such as a search in the web, where the key is allowed to.

asyncio and h11 speak HTTP with the CLI and with the endpoint (:mod:`agent_kit.confine.onward`). A web
framework would add nothing: there is no page here, and loading one takes longer than all of this.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Final

from agent_kit.confine.onward import Endpoint
from agent_kit.confine.relay import Connection, end
from agent_kit.confine.routes import Judge
from agent_kit.confine.upstream import INSIDE_HOST, Upstream
from agent_kit.confine.wire import Wire

__all__ = ["running", "serve"]

_MOST: Final = 128  # connections from inside at the same time


async def serve(
    listening: socket.socket,
    upstream: Upstream,
    *,
    key: str,
    stop: asyncio.Event,
    ready: Callable[[], object] | None = None,
) -> None:
    """Be the broker on ``listening``, a bound stream socket, until ``stop`` is set or it is cancelled.

    ``key`` is what requests from inside must have in place of the real one. At the end the socket
    is closed, and so is every connection. ``ready`` is called when it answers. Raises ``OSError`` (also ``ssl.SSLError``) when a
    certificate file of ``upstream`` can't be used.
    """
    if listening.family == socket.AF_UNIX:
        host = INSIDE_HOST
    else:
        host = "{}:{}".format(*listening.getsockname()[:2])
    with contextlib.closing(listening), contextlib.closing(Endpoint(upstream)) as endpoint:
        judge = Judge(upstream=upstream, key=key.encode(), host=host.encode())
        open_now: set[asyncio.Task[None]] = set()

        def accept(wire: Wire) -> None:
            if len(open_now) >= _MOST:
                wire.abort()
                return
            task = asyncio.ensure_future(Connection(judge, endpoint, wire).run())
            open_now.add(task)
            task.add_done_callback(open_now.discard)

        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Wire(accept), sock=listening)
        try:
            if ready is not None:
                ready()
            await stop.wait()
        finally:
            server.close()
            await end(open_now)


@contextlib.contextmanager
def running(
    listening: socket.socket, upstream: Upstream, *, key: str
) -> Iterator[threading.Thread]:
    """:func:`serve` in a thread of its own, for as long as the block lasts.

    What it raises before it answers is raised at once. What it raises later is raised at the end of the
    block: until then the thread is just not alive, and whoever connects is turned away.
    """
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        stop = asyncio.Event()
        found = asyncio.get_running_loop(), stop
        answers = partial(ready.set_result, found)
        await serve(listening, upstream, key=key, stop=stop, ready=answers)

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - told in the other thread
            failed.append(error)
            if not ready.done():
                ready.set_exception(error)

    failed: list[BaseException] = []
    thread = threading.Thread(target=work, name="agent-kit-broker", daemon=True)
    thread.start()
    loop, stop = ready.result()
    try:
        yield thread
    finally:
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            loop.call_soon_threadsafe(stop.set)
        thread.join()
    if failed:
        raise failed[0]
