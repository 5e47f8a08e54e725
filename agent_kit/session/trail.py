"""The decision trail: one line of JSON for each judged call, written without holding up the call.

``note`` makes the line's fields out of the call, bounded, and leaves them in a queue; a thread of the
trail's own writes them to the file and to the logger ``agent_kit.decisions``. A disk that is slow or
full costs lines, never a call, and the trail says how many.

What the trail doesn't promise: lines survive the end of the host, not that of the machine (no fsync); one
host writes a trail at a time (lines of two stay whole, their rotation may drop some).
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_kit.policy.judged import Judged
from agent_kit.session.trail_entry import entry_of, line_of, lost_line
from agent_kit.session.trail_file import TRAIL_NAME, TrailFile, read_trail

__all__ = ["QUEUE", "Trail", "read_trail", "trail_path"]

QUEUE: Final = 4096  # entries that may wait; the most that a stuck disk costs before lines are lost
_IDLE: Final = 10.0  # seconds without an entry after which the thread ends and the file is closed
_AT_EXIT: Final = 2.0  # seconds that the process's end waits for all trails together

_log: Final = logging.getLogger("agent_kit.trail")
_decisions: Final = logging.getLogger("agent_kit.decisions")
_decisions.addHandler(logging.NullHandler())  # nobody asked for them on stderr
_SPAN_FIELDS: Final = ("tool", "verdict", "code", "lock", "rule", "ms", "asked")
_OPEN: Final[weakref.WeakSet[Trail]] = weakref.WeakSet()


def trail_path(host: Path, session_id: str) -> Path:
    """Where a session's trail is, below the ``host/`` part of its run folder."""
    return host / f"{session_id}{TRAIL_NAME}"


class _Entry(NamedTuple):
    seconds: float
    fields: dict[str, Any]
    context: contextvars.Context | None  # the caller's, for the logger; None where it is off


class Trail:
    """Appends to the file at ``path``, whose folder must be there; it follows no link.

    At ``max_bytes`` the file becomes ``<name>.1``, and so on up to ``<name>.<keep>``. At most ``QUEUE``
    entries wait; a later one is lost. Lost lines are counted in a line ``{"time": …, "lost": n}`` in their
    place, and said in the log once. Raises ValueError for a number below 1, TypeError for none.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_bytes: int = 10 * 2**20, keep: int = 5
    ) -> None:
        for name, number in (("max_bytes", max_bytes), ("keep", keep)):
            if not isinstance(number, int) or isinstance(number, bool):
                raise TypeError(f"{name} is a whole number, not {type(number).__name__}")
            if number < 1:
                raise ValueError(f"{name} is at least 1")
        self._path = Path(os.path.abspath(path))
        self._max_bytes, self._keep = max_bytes, keep
        self._turn = threading.Condition()
        self._waiting: deque[_Entry | int] = deque()  # a number: so many were lost here
        self._missed = 0  # lost since the last entry that found a place
        self._unsaid = 0  # lost, and not said in the file; the thread's own
        self._noted = self._handled = 0
        self._thread: threading.Thread | None = None
        self._ending = False
        self._told = False
        _OPEN.add(self)

    def note(self, judged: Judged) -> None:
        """Record a call. Doesn't wait, neither for the disk nor for a logging handler, and never raises.

        An active OpenTelemetry span gets an event.
        """
        try:
            fields = entry_of(judged)
            _mark_span(fields)
            wanted = _decisions.isEnabledFor(_level(fields))
            context = contextvars.copy_context() if wanted else None
            kept = self._add(_Entry(time.time(), fields, context))
        except Exception:  # noqa: BLE001 - a call never fails for its record
            kept = False
        if not kept:
            self._miss()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until what was noted before is written or lost. Whether that took at most ``timeout`` seconds."""
        with self._turn:
            if self._missed and not self._start():
                return False
            wanted = self._noted + bool(self._missed)
            return self._turn.wait_for(lambda: self._handled >= wanted, timeout)

    def close(self, timeout: float = 5.0) -> bool:
        """As ``flush``, and end the thread. A later entry begins again."""
        end = time.monotonic() + timeout
        self.flush(timeout)
        with self._turn:
            self._ending = True
            self._turn.notify_all()
            left = max(0.0, end - time.monotonic())
            return self._turn.wait_for(lambda: self._thread is None, left)

    def _add(self, entry: _Entry) -> bool:
        with self._turn:
            if len(self._waiting) >= QUEUE or not self._start():
                return False
            if self._missed:
                self._put(self._missed)
                self._missed = 0
            self._put(entry)
            self._turn.notify_all()
            return True

    def _put(self, found: _Entry | int) -> None:
        self._waiting.append(found)
        self._noted += 1

    def _miss(self) -> None:
        with self._turn:
            self._missed += 1
            self._turn.notify_all()
        self._tell("more is judged than can be written", beside=True)

    def _start(self) -> bool:
        """Have a thread, with the lock held."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="agent-kit trail", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter ends, or the machine has no more of them
                self._thread = None
        return self._thread is not None

    def _run(self) -> None:
        file = TrailFile(self._path, max_bytes=self._max_bytes, keep=self._keep)
        over = False
        while not over:
            while (found := self._next()) is not None:
                self._handle(file, found)
                with self._turn:
                    self._handled += 1
                    self._turn.notify_all()
            self._handle(file, 0)  # what was lost, where the disk takes it by now
            file.close()  # without the lock: a disk may take its time
            over = self._let_go()

    def _let_go(self) -> bool:
        """Give the thread up, unless something came meanwhile."""
        with self._turn:
            if self._waiting or self._missed:
                return False
            self._thread, self._ending = None, False
            self._turn.notify_all()
            return True

    def _next(self) -> _Entry | int | None:
        """What is to be written next; ``None`` when nothing comes, or nothing shall."""
        with self._turn:
            while not self._waiting and not self._missed and not self._ending:
                if not self._turn.wait(_IDLE):
                    return self._waiting.popleft() if self._waiting else None
            if self._waiting:
                return self._waiting.popleft()
            if self._missed:
                self._put(self._missed)
                self._missed = 0
                return self._waiting.popleft()
            return None

    def _handle(self, file: TrailFile, found: _Entry | int) -> None:
        if isinstance(found, int):
            self._unsaid += found
        try:
            if self._unsaid:
                file.write(lost_line(time.time(), self._unsaid))
                self._unsaid = 0
            if isinstance(found, _Entry):
                file.write(line_of(found.seconds, found.fields))
        except Exception as error:  # noqa: BLE001 - whatever it is, the line isn't there
            self._unsaid += isinstance(found, _Entry)
            self._tell(str(error))
        if isinstance(found, _Entry) and found.context is not None:
            found.context.run(_say, found.fields)

    def _tell(self, why: str, *, beside: bool = False) -> None:
        """Say once that decisions are lost; ``beside`` in a thread: a logging handler may wait for a disk."""
        with self._turn:
            told, self._told = self._told, True
        if told:
            return
        if beside:
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=_warn, args=(self._path, why), daemon=True).start()
        else:
            _warn(self._path, why)


def _warn(path: Path, why: str) -> None:
    with contextlib.suppress(Exception):
        _log.warning("decisions are missing in %s: %s", path, why)


def _level(fields: Mapping[str, Any]) -> int:
    return logging.INFO if fields["verdict"] in ("allow", "ask") else logging.WARNING


def _say(fields: Mapping[str, Any]) -> None:
    """Log a decision. The names begin with ``decision_``: those of a host's own stay free."""
    extra = {f"decision_{name}": value for name, value in fields.items()}
    told = fields["verdict"], fields["tool"], fields["target"] or ""
    with contextlib.suppress(Exception):
        _decisions.log(_level(fields), "%s %s %s", *told, extra=extra)


def _mark_span(fields: Mapping[str, Any]) -> None:
    """Add an event to the active span. No span is active where nobody has loaded OpenTelemetry."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    with contextlib.suppress(Exception):
        span = trace.get_current_span()
        if span.is_recording():
            given = ((name, fields[name]) for name in _SPAN_FIELDS)
            told = {f"agent_kit.{name}": value for name, value in given if value is not None}
            span.add_event("agent_kit.decision", told)


@atexit.register
def _flush_all() -> None:
    end = time.monotonic() + _AT_EXIT
    for trail in list(_OPEN):
        trail.flush(max(0.0, end - time.monotonic()))
