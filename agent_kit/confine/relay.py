"""One connection from inside: requests, their way to the endpoint, and its answers back."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

import h11

from agent_kit.confine.onward import Answer, Endpoint, FailedError, ProxyRefusedError
from agent_kit.confine.routes import BAD, Judge, Refusal, of_the_message
from agent_kit.confine.wire import Wire

__all__ = ["Connection", "end"]

_log = logging.getLogger(__name__)

_HEAD: Final = 64 * 1024  # bytes of a request's head


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they are over."""
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


class _GoneError(Exception):
    """The client has hung up."""


class Connection:
    """One connection from inside: requests, one after the other, and their answers.

    Nothing is read that isn't passed on, and nothing is fetched before what came has been taken.
    """

    def __init__(self, judge: Judge, endpoint: Endpoint, wire: Wire) -> None:
        self._judge = judge
        self._endpoint = endpoint
        self._wire = wire
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        self._bare = False  # the request is one whose answer has no body

    async def run(self) -> None:
        """Until either side ends it. Raises nothing but ``CancelledError``."""
        try:
            while await self._one():
                self._http.start_next_cycle()
        except (_GoneError, OSError):
            pass  # nobody is there to be told
        except Exception as error:  # noqa: BLE001 - its text may hold a header
            _log.warning("The broker met an unforeseen %s.", type(error).__name__)
        finally:
            self._wire.close()

    async def _one(self) -> bool:
        """Answer one request. Whether another can follow."""
        try:
            request = await self._event()
            if not isinstance(request, h11.Request):
                return False
            self._bare = request.method == b"HEAD"
            if (refusal := self._judge.refusal(request)) is not None:
                await self._refuse(refusal)
            else:
                await self._pass_on(request)
            await self._read_rest()
        except h11.RemoteProtocolError:
            await self._refuse(BAD)
            return False
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _read_rest(self) -> None:
        """Let the client finish a body that nobody wants, so that it reads the answer."""
        if self._http.our_state is h11.DONE and not self._http.they_are_waiting_for_100_continue:
            async for _ in self._body():
                pass

    async def _pass_on(self, request: h11.Request) -> None:
        """Until the answer is over or the client has hung up, which ends the onward request."""
        task = asyncio.current_task()
        assert task is not None

        def gone() -> None:
            if self._wire.ended and self._http.their_state is h11.DONE:
                task.cancel()

        self._wire.heard = gone
        try:
            await self._relay(request)
        finally:
            self._wire.heard = None

    async def _relay(self, request: h11.Request) -> None:
        try:
            answer = await self._endpoint.send(self._judge.onward(request), self._body())
        except FailedError as error:
            await self._refuse(_unreachable(error))
            return
        try:
            await self._answer(answer)
        except FailedError as error:
            raise _GoneError from error  # what broke there breaks here: the end is not sent
        finally:
            answer.close()

    async def _answer(self, answer: Answer) -> None:
        head = answer.head
        await self._send(
            h11.Response(
                status_code=head.status_code, headers=of_the_message(head), reason=head.reason
            )
        )
        async for data in answer.body():
            await self._send(h11.Data(data=data))
        await self._send(h11.EndOfMessage())

    async def _refuse(self, refusal: Refusal) -> None:
        """Answer with an error in the form of the Messages API, unless an answer has begun."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            raise _GoneError
        error = {"type": refusal.kind, "message": f"agent-kit: {refusal.sentence}"}
        body = json.dumps({"type": "error", "error": error}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        reason = refusal.status.phrase.encode()
        await self._send(h11.Response(status_code=refusal.status, headers=headers, reason=reason))
        if not self._bare:
            await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())

    # --- reading and writing ----------------------------------------------------------------------

    async def _event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._wire.read())
        return event

    async def _body(self) -> AsyncIterator[bytes]:
        """Raises ``h11.RemoteProtocolError`` when the client hangs up in the middle."""
        while self._http.their_state is h11.SEND_BODY:
            if isinstance(event := await self._event(), h11.Data):
                yield bytes(event.data)
        if self._wire.ended:
            raise _GoneError

    async def _send(self, event: h11.Event) -> None:
        pieces = self._http.send_with_data_passthrough(event) or ()
        await self._wire.send(pieces, last=isinstance(event, h11.EndOfMessage))


# --- failures -------------------------------------------------------------------------------------


def _unreachable(error: FailedError) -> Refusal:
    """What to say for an endpoint that gave no answer. An exception's own text may hold a header."""
    return Refusal(
        status=HTTPStatus.BAD_GATEWAY,
        kind="api_error",
        sentence=f"the model's endpoint can't be reached: {_cause(error)}.",
    )


def _cause(error: BaseException) -> str:
    for each in _chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return (
                f"its certificate is not trusted ({each.verify_message}); install the system's"
                " certificates (ca-certificates), or name a file in NODE_EXTRA_CA_CERTS or"
                " SSL_CERT_FILE"
            )
        if isinstance(each, ssl.SSLError):
            return f"TLS failed ({getattr(each, 'reason', None) or 'no reason given'})"
        if isinstance(each, socket.gaierror):
            return "its name can't be resolved"
        if isinstance(each, ProxyRefusedError):
            return "the proxy refused"
        if isinstance(each, TimeoutError) and each.errno is None:
            return "it took too long to connect"
        if isinstance(each, OSError) and each.errno:
            return os.strerror(each.errno)
        if isinstance(each, OSError):  # of several, each for another address
            return "nothing answers there"
    return "the connection broke before an answer"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
