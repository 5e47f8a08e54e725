"""The host's side of a reading: a child is started, held to its limits, and its answer checked.

The child parses what a stranger made, so nothing that it does is trusted: it gets no variable of
the host's environment, it locks itself where the kernel lets it, and what it writes is read up to a
limit and must be one of two shapes.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any

from agent_kit_sources.extracting.limits import Limits
from agent_kit_sources.extracting.reading.plain import plain
from agent_kit_sources.extracting.refusals import refusal

__all__ = ["CHILD", "Extract", "extract"]

CHILD = str(Path(__file__).with_name("child.py"))
"""The program that the child runs."""

_AT_ONCE = threading.BoundedSemaphore(2)
# What an interpreter may need to find its own libraries; no secret is kept there.
_ENVIRONMENT = ("LD_LIBRARY_PATH",)
_PIECE = 65_536  # bytes
# A library that isn't written in Python gives up like this where there is no memory for it.
_ENDS: Mapping[int, str] = {signal.SIGXCPU: "time", signal.SIGABRT: "memory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Parts ``first`` to ``last`` of a document, of its ``count``; ``unit`` is empty for one piece.

    ``end`` is the last part that was asked for. ``length`` is the number of characters of the last part that was looked at. Where more follows,
    ``next_part`` and ``next_offset`` say where; else ``next_part`` is 0.
    """

    kind: str
    unit: str
    count: int
    facts: str
    text: str
    first: int
    last: int
    end: int
    length: int
    next_part: int
    next_offset: int


def extract(handle: int, request: Mapping[str, Any], *, file: str, limits: Limits) -> Extract:
    """What the child makes of an open file. ``file`` is its name in sentences.

    Raises :class:`StoreError` in one sentence, whatever the child does.
    """
    asked = json.dumps({**request, "limits": asdict(limits), "lock": lock_of_child()})
    with _turn(file, limits):
        data, code = _run(handle, asked, limits)
    if code is not None:
        raise refusal(code, file, limits)
    answer = _object(data)
    if isinstance(fault := answer.get("fault"), str):
        details = answer.get("details")
        raise refusal(fault, file, limits, details if isinstance(details, dict) else {})
    if (found := _checked(answer, limits)) is None:
        raise refusal("died", file, limits)
    return found


def lock_of_child() -> dict[str, Any]:
    """What the child locks itself with; empty where the kernel has no lock for it."""
    from agent_kit.confine.alone import reading_lock

    return reading_lock()


@contextmanager
def _turn(file: str, limits: Limits) -> Iterator[None]:
    if not _AT_ONCE.acquire(timeout=limits.waiting_seconds):
        raise refusal("busy", file, limits)
    try:
        yield
    finally:
        _AT_ONCE.release()


def _run(handle: int, asked: str, limits: Limits) -> tuple[bytes, str | None]:
    """What the child wrote, and the code of what went wrong, if that can be seen from outside."""
    deadline = time.monotonic() + limits.seconds
    try:
        child = _started(handle, asked)
    except OSError:  # its sentence would be about the document
        return b"", "died"
    with child:
        assert child.stdout is not None
        try:
            data, code = _bounded(child.stdout, deadline, limits)
        finally:
            # Not reaped yet, so the number is still its own. One that has ended keeps its status, and
            # what it started goes as well.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
    return data, code or (None if data else _why(child.returncode))


def _started(handle: int, asked: str) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - this interpreter, and a program of ours
        [sys.executable, "-I", "-B", "-X", "utf8", CHILD, asked],
        stdin=handle,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,  # it is killed with all that it started
    )


def _bounded(pipe: IO[bytes], deadline: float, limits: Limits) -> tuple[bytes, str | None]:
    """What comes through the pipe until its end, the deadline, or the most bytes."""
    data = bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)
        while len(data) <= limits.answer_bytes:
            if not waiting.select(timeout=max(0.0, deadline - time.monotonic())):
                return b"", "time"
            if not (piece := os.read(pipe.fileno(), _PIECE)):
                return bytes(data), None
            data += piece
    return b"", "died"


def _why(returncode: int) -> str:
    """What an end without an answer means."""
    return _ENDS.get(-returncode, "died")


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_TYPES = {"str": str, "int": int}


def _checked(answer: dict[str, Any], limits: Limits) -> Extract | None:
    """The answer as a value, with nothing hidden in its text; ``None`` where it is rubbish."""
    try:
        given = {field.name: answer[field.name] for field in fields(Extract)}
    except KeyError:
        return None
    if any(type(given[field.name]) is not _TYPES[str(field.type)] for field in fields(Extract)):
        return None
    if len(given["text"]) > limits.characters:
        return None
    return Extract(**given | {"text": plain(given["text"])})
