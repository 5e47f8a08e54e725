"""Code of the host's, run so that neither a slow answer nor a thrown one can hold up or slip through.

An async function runs as a task, a sync one in a thread of its own: a daemon, since what never ends
must keep neither later calls from a thread nor the process from ending. Nobody waits for what took too
long; it is cancelled where that is possible, and what it says later is not heard.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

__all__ = ["Aborted", "Overdue", "run_host_code"]


class Overdue(Exception):
    """It took longer than it may."""


class Aborted(Exception):
    """The call was stopped meanwhile."""


_ABANDONED: Final[set[asyncio.Future[Any]]] = set()  # or they would be collected while they run


async def run_host_code(
    function: Callable[..., Any], *args: Any, limit: float | None, abort: asyncio.Event
) -> Any:
    """What ``function(*args)`` returns, sync or async, within ``limit`` seconds (``None``: whenever).

    Raises Overdue, Aborted once ``abort`` is set, and whatever it raises itself, of which
    what is no ``Exception`` (``SystemExit``, an odd ``CancelledError``) comes as a RuntimeError.
    """
    running = asyncio.ensure_future(_call(function, args))
    stopped = asyncio.ensure_future(abort.wait())
    try:
        await asyncio.wait((running, stopped), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        if not running.done():
            _abandon(running)
    if abort.is_set():
        _abandon(running)
        raise Aborted
    if not running.done():
        raise Overdue
    if running.cancelled():
        raise RuntimeError("it cancelled itself")
    error = running.exception()
    if error is not None and not isinstance(error, Exception):
        raise RuntimeError(f"it raised {type(error).__name__}") from error
    return running.result()


def _abandon(running: asyncio.Future[Any]) -> None:
    _ABANDONED.add(running)
    running.add_done_callback(_forget)
    running.cancel()


def _forget(running: asyncio.Future[Any]) -> None:
    _ABANDONED.discard(running)
    if not running.cancelled():
        running.exception()  # or the loop complains that nobody asked


async def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        if _is_async(function):
            return await function(*args)
        found = await _in_thread(function, args)
        return await found if inspect.isawaitable(found) else found
    except SystemExit as error:  # in a task it would end the loop
        raise RuntimeError("it tried to end the process") from error


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - an object may be called, too
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


async def _in_thread(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    around = contextvars.copy_context()

    def run() -> None:
        try:
            found, error = around.run(function, *args), None
        except BaseException as caught:  # noqa: BLE001 - it is told where it was asked
            found, error = None, caught
        with suppress(RuntimeError):  # the loop has ended: nobody is there to be told
            loop.call_soon_threadsafe(_settle, answer, found, error)

    threading.Thread(target=run, name="agent-kit-authorizer", daemon=True).start()
    return await answer


def _settle(answer: asyncio.Future[Any], found: Any, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        answer.set_exception(error)
    else:  # a future takes no StopIteration, and the others would end the loop
        answer.set_exception(RuntimeError(f"it raised {type(error).__name__}"))
