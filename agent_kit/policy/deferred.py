"""Questions that outlive the host: kept on disk until a person answers, there or elsewhere.

A run that meets one ends. The answer is written beside the question by whoever has it; the resumed
session finds it when the model makes the same call again, and uses it once. (The CLI's own way to
defer a call runs it at the resume before any hook is asked, measured on CLI 2.1.332.)
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agent_kit.policy.approval import Approved, Edited, PersonsAnswer, Rejected, edit, reject
from agent_kit.scope.errors import ConfigError, Fault

__all__ = ["Question", "QuestionStore", "answer", "pending_questions"]

_ID: Final = re.compile(r"[0-9a-f]{32}")
_FOLDER: Final = "questions"  # of the run folder's host/ part


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call that waits for a person. ``asked_at`` is ISO 8601, UTC; the rest is as in
    :class:`~agent_kit.policy.approval.Approval`. ``seen`` tells the file from itself changed."""

    question_id: str
    session_id: str
    tool: str
    tool_input: Mapping[str, Any]
    target: str | None = None
    reason: str = ""
    agent: str | None = None
    rule: str | None = None
    asked_at: str = ""
    seen: Any = field(default=None, repr=False)
    answer: Mapping[str, Any] | None = None

    @property
    def resume_prompt(self) -> str:
        """What to say to the resumed session, so that the model goes on with the call."""
        if self.answer is None:
            return f"The question about your call of {self.tool} is still open."
        said = _read_answer(self.answer)
        if isinstance(said, Rejected):
            return f"A person rejected your call of {self.tool}. Go on without it."
        return f"A person has approved your call of {self.tool}. Make exactly the same call again."


@dataclass(frozen=True, slots=True)
class QuestionStore:
    """The questions of one run, a file each, for this user alone. ``host`` is its ``host/`` part."""

    host: Path

    @property
    def folder(self) -> Path:
        return self.host / _FOLDER

    def ask(self, question: Question) -> Question:
        """Keep a question. One that waits already for the same call is returned instead."""
        if (known := self.find(question.tool, question.tool_input, question.agent)) is not None:
            return known
        kept = Question(
            **{
                **_fields(question),
                "question_id": uuid.uuid4().hex,
                "asked_at": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )
        self.folder.mkdir(mode=0o700, exist_ok=True)
        _write(self.folder / f"{kept.question_id}.json", _fields(kept))
        return kept

    def find(self, tool: str, tool_input: Mapping[str, Any], agent: str | None) -> Question | None:
        """The question about this very call, answered or not."""
        wanted = (tool, _canonical(tool_input), agent)
        for question in self.all():
            if (question.tool, _canonical(question.tool_input), question.agent) == wanted:
                return question
        return None

    def take(self, question: Question) -> PersonsAnswer | None:
        """The answer, which is used up by this; ``None`` while there is none.

        Of two who ask at once one gets it.
        """
        if question.answer is None:
            return None
        said = _read_answer(question.answer)
        path = self.folder / f"{question.question_id}.json"
        try:
            path.rename(path.with_suffix(".used"))
        except FileNotFoundError:
            return None
        return said

    def all(self) -> tuple[Question, ...]:
        """Every question that isn't used up, oldest first. What can't be read is left out."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            with suppress(OSError, ValueError, TypeError):
                found.append(Question(**json.loads(path.read_text(encoding="utf-8"))))
        return tuple(sorted(found, key=lambda question: question.asked_at))


def pending_questions(run_dir: str | os.PathLike[str]) -> tuple[Question, ...]:
    """The questions of a run that nobody has answered, oldest first. ``run_dir`` is its run folder."""
    every = QuestionStore(Path(run_dir) / "host").all()
    return tuple(question for question in every if question.answer is None)


def answer(
    question_id: str, said: PersonsAnswer, *, run_dir: str | os.PathLike[str] | None = None
) -> Question:
    """Answer a question of a session that has ended, from whatever process.

    ``run_dir`` is the run folder; without it the runs of all agents under the platform's state
    folder are looked through. The answer counts once the session is resumed (``SessionConfig.resume``)
    and the model makes the call again: ``question.resume_prompt`` says so to it.

    Raises LookupError for a question that there is not, or that was answered; TypeError for what is
    no answer.
    """
    if not isinstance(said, (Approved, Edited, Rejected)):
        raise TypeError("answer with approve(), edit(new_input) or reject(message)")
    path = _place(question_id, run_dir)
    question = Question(**json.loads(path.read_text(encoding="utf-8")))
    if question.answer is not None:
        raise LookupError(f"question {question_id} is answered already")
    answered = Question(**{**_fields(question), "answer": _written(said)})
    _write(path, _fields(answered))
    return answered


def _place(question_id: str, run_dir: str | os.PathLike[str] | None) -> Path:
    if not isinstance(question_id, str) or _ID.fullmatch(question_id) is None:
        raise LookupError(f"{question_id!r} is no question's id")
    name = f"host/{_FOLDER}/{question_id}.json"
    if run_dir is not None:
        found = [path] if (path := Path(run_dir) / name).is_file() else []
    else:
        import platformdirs  # here, not at import: it takes 18 ms

        found = list(platformdirs.user_state_path("agent-kit").glob(f"*/runs/*/{name}"))
    if not found:
        raise LookupError(f"no question {question_id} waits; name its run_dir if it has one")
    return found[0]


def _fields(question: Question) -> dict[str, Any]:
    return {**asdict(question), "tool_input": dict(question.tool_input)}


def _written(said: PersonsAnswer) -> dict[str, Any]:
    if isinstance(said, Rejected):
        return {"said": "reject", "message": said.message}
    if isinstance(said, Edited):
        return {"said": "edit", "tool_input": dict(said.tool_input)}
    return {"said": "approve"}  # nothing is remembered for a session that isn't there


def _read_answer(written: Mapping[str, Any]) -> PersonsAnswer:
    """Raises ValueError for what is no answer."""
    match written.get("said"):
        case "approve":
            return Approved()
        case "edit":
            return edit(written["tool_input"])
        case "reject":
            return reject(str(written.get("message", "")))
    raise ConfigError([Fault(field="answer", value=written, remedy="answer the question anew.")])


def _canonical(tool_input: Any) -> str:
    return json.dumps(tool_input, sort_keys=True, default=repr)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all, readable by this user alone."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
