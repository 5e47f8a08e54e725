"""The questions of one terminal, in the order they came."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from agent_kit.policy.approval import Approval, PersonsAnswer, Unasked
from agent_kit.terminal.device import Withdrawn
from agent_kit.terminal.place import Place

__all__ = ["NO_RICH", "UNSHOWN", "Question", "desk_of"]

_log = logging.getLogger("agent_kit.terminal")

NO_RICH: Final = "Nobody could be asked: the host's terminal needs a package that isn't installed."
UNSHOWN: Final = "Nobody could be asked: the question could not be shown."

_TOGETHER: Final = 0.05  # seconds: questions that come at once are counted from the first on
_GOODBYE: Final = 1.0  # seconds for the terminal to be left as it was when the program ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question; whoever waits for ``answer`` withdraws it by cancelling that."""

    approval: Approval
    place: Place
    plain: bool
    answer: Future[PersonsAnswer] = field(default_factory=Future)


class _Desk:
    """A queue with a thread that lives as long as there are questions in it.

    The thread is a daemon: a terminal that takes no more output (Ctrl+S) keeps nothing but its own
    questions waiting, neither an event loop nor the end of the program.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[Question] = deque()
        self._worker: threading.Thread | None = None
        self._over = False

    def put(self, question: Question) -> None:
        with self._lock:
            if self._worker is None:
                worker = threading.Thread(target=self._work, name="agent-kit-terminal", daemon=True)
                worker.start()  # it waits for the lock
                self._worker = worker
            self._queue.append(question)

    def leave(self) -> None:
        """Withdraw everything: the program ends."""
        self._over = True
        if (worker := self._worker) is not None:
            worker.join(_GOODBYE)

    def _work(self) -> None:
        time.sleep(_TOGETHER)
        while (question := self._next()) is not None:
            with suppress(Withdrawn):
                answer = self._ask(question)
                with suppress(InvalidStateError):  # withdrawn a moment ago
                    question.answer.set_result(answer)

    def _next(self) -> Question | None:
        with self._lock:
            while self._queue and not self._over:
                question = self._queue.popleft()
                if not question.answer.cancelled():
                    return question
            self._worker = None
            return None

    def _ask(self, question: Question) -> PersonsAnswer:
        """The person's answer, or a refusal where there is none. Raises Withdrawn."""
        from agent_kit.terminal.dialogue import Dialogue

        def withdrawn() -> bool:
            return self._over or question.answer.cancelled()

        try:
            device = question.place.open()
            try:
                dialogue = Dialogue(
                    device,
                    question.approval,
                    plain=question.plain,
                    waiting=self._waiting,
                    withdrawn=withdrawn,
                )
                return dialogue.run()
            finally:
                device.close()
        except Withdrawn:
            raise
        except ImportError:
            _log.exception("questions in the terminal need rich: pip install rich")
            return Unasked(message=NO_RICH)
        except Exception:  # noqa: BLE001 - whatever it is, the call must not run
            _log.exception("a question could not be shown in the terminal")
            return Unasked(message=UNSHOWN)

    def _waiting(self) -> int:
        with self._lock:
            return sum(not question.answer.cancelled() for question in self._queue)


_DESKS: Final[dict[str, _Desk]] = {}
_DESKS_LOCK: Final = threading.Lock()


def desk_of(place: Place) -> _Desk:
    """The one desk of a terminal, for all event loops and askers."""
    with _DESKS_LOCK:
        return _DESKS.setdefault(place.key, _Desk())


@atexit.register
def _leave_all() -> None:
    for desk in tuple(_DESKS.values()):
        desk.leave()
