"""A Messages endpoint on loopback that plays a script to the real CLI and records every request."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from agent_kit.testing._plays import IssuedCall, Plays
from agent_kit.testing._requests import Request
from agent_kit.testing._server import Answer, LoopbackServer
from agent_kit.testing._steps import Script, Step, ToolResult
from agent_kit.testing._stream import as_events, as_message

__all__ = ["ScriptedModel"]

_AGENT_HEADER = "x-claude-code-agent-id"
_SIDE_TEXT = "Untitled"


class ScriptedModel:
    """The model of a test: it says what the script says and keeps what it was told.

    Use it as a context manager, plain or async: it listens on a free port of 127.0.0.1 until the
    block ends. Script functions run in a thread of the server, one at a time, and may look at the
    record; while one runs, everybody else waits for it.

    ``script`` is a list of steps or a function of the turn. ``subagents`` gives scripts to
    subagents by the type that their ``Agent`` call names, else by a text that stands in their prompt;
    the call's own ``script`` goes first. What no agent was given is ``unplayed``.
    Raises ``TypeError`` when a script is none.

    >>> with ScriptedModel(["Hello."]) as model:
    ...     model.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self, script: Script = (), *, subagents: Mapping[str, Script] | None = None
    ) -> None:
        self._plays = Plays(script, subagents or {})
        self._lock = threading.RLock()  # a script function may ask for the record
        self._requests: list[Request] = []
        self._server: LoopbackServer | None = None
        self.error: Exception | None = None
        """The first exception of a script function: the CLI got an error answer in its place."""

    # --- running -----------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """``http://127.0.0.1:<port>``. Raises ``RuntimeError`` when the model isn't running."""
        if self._server is None:
            raise RuntimeError("The scripted model isn't running: use it in a with block.")
        return self._server.url

    def start(self) -> Self:
        """Listen on a free port. Raises ``RuntimeError`` when it runs already."""
        if self._server is not None:
            raise RuntimeError("The scripted model runs already.")
        self._server = LoopbackServer(self._answer)
        return self

    def stop(self) -> None:
        """Stop listening; the record stays. Does nothing when the model isn't running."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # --- the record --------------------------------------------------------------------------

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request so far, in the order of arrival, side requests and refused ones included."""
        with self._lock:
            return tuple(self._requests)

    @property
    def issued(self) -> tuple[IssuedCall, ...]:
        """Every call that the scripts made so far, in order."""
        with self._lock:
            return tuple(self._plays.issued.values())

    @property
    def results(self) -> Mapping[str, ToolResult]:
        """What the model was told of each call so far: call id to result."""
        with self._lock:
            return {
                result.call_id: result
                for request in self._requests
                for result in self._plays.results(request.body.get("messages") or ())
            }

    @property
    def unplayed(self) -> tuple[Step, ...]:
        """The steps of list scripts that nobody reached. A test that proves that something was
        *not* seen proves nothing when the steps that would have shown it are in here."""
        with self._lock:
            return self._plays.unplayed()

    @property
    def outside(self) -> tuple[str, ...]:
        """What the CLI or its commands wanted from other hosts: all of it was refused here."""
        return tuple(request.path for request in self.requests if _is_outside(request))

    def saw(self, text: str) -> bool:
        """Whether ``text`` was in any request: as it is, escaped, or in base64 data."""
        return any(request.saw(text) for request in self.requests)

    def where(self, text: str) -> tuple[str, ...]:
        """Each place where ``text`` was seen, for a person: ``#3.messages[2].content[0].text``."""
        return tuple(
            f"#{number}{place if place.startswith('.') else ' ' + place}"
            for number, request in enumerate(self.requests)
            for place in request.where(text)
        )

    # --- one request -------------------------------------------------------------------------

    def _answer(self, method: str, path: str, headers: Mapping[str, str], text: str) -> Answer:
        body = _parse(text)
        request = Request(
            method=method,
            path=path,
            text=text,
            body=body,
            agent=headers.get(_AGENT_HEADER),
            side=_is_side(headers, body),
        )
        with self._lock:
            self._requests.append(request)
        return self._respond(request)

    def _respond(self, request: Request) -> Answer:
        if _is_outside(request):
            return Answer.json({"error": "This session has no network."}, status=403)
        place = request.path.split("?")[0]
        if request.method != "POST" or not place.endswith("/messages"):
            return Answer.json({"input_tokens": 1} if place.endswith("/count_tokens") else {})
        try:
            return self._message(request)
        except Exception as error:  # noqa: BLE001 - the test's, not a server thread's
            self.error = self.error or error
            fault = {"type": "invalid_request_error", "message": f"The script raised {error!r}."}
            return Answer.json({"type": "error", "error": fault}, status=400)

    def _message(self, request: Request) -> Answer:
        with self._lock:
            number = len(self._requests)
            if request.side:
                blocks: list[dict[str, Any]] = [{"type": "text", "text": _SIDE_TEXT}]
            else:
                blocks = self._plays.answer(request.agent, request.body)
        message_id, model = f"msg_{number:04d}", str(request.body.get("model", "scripted"))
        if request.body.get("stream"):
            return Answer(kind="text/event-stream", body=as_events(message_id, model, blocks))
        return Answer.json(as_message(message_id, model, blocks))


def _parse(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _is_side(headers: Mapping[str, str], body: Mapping[str, Any]) -> bool:
    """Whether no agent speaks: a conversation without tools still manages its context."""
    return not (headers.get(_AGENT_HEADER) or body.get("tools") or body.get("context_management"))


def _is_outside(request: Request) -> bool:
    """Whether the CLI took the model for a proxy to another host."""
    return request.method == "CONNECT" or request.path.startswith("http")
