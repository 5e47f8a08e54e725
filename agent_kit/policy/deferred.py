"""Questions that outlive the host: kept on disk until a person answers, there or elsewhere.

A run that meets one ends. The answer is written beside the question by whoever has it; the resumed
session finds it when the model makes the same call again, and uses it once. (The CLI's own way to
defer a call runs it at the resume before any hook is asked, measured on CLI 2.1.332.)

Of a question there are up to two files: ``<id>.json``, which is ``<id>.used`` once its answer was
taken, and ``<id>.answer``. Each is written once. What is a link, another user's, or writable by
others is neither read nor written to.
"""

from __future__ import annotations

import json
import os
import re
import stat
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agent_kit.policy.approval import Approved, Edited, PersonsAnswer, Rejected, edit, reject
from agent_kit.policy.folder import needs_folder

__all__ = ["Question", "QuestionStore", "answer", "pending_questions"]

_ID: Final = re.compile(r"[0-9a-f]{32}")
_FOLDER: Final = "questions"  # of the run folder's host/ part
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_READ: Final = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0)  # a pipe must not block
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_UNREADABLE: Final = (OSError, ValueError, TypeError, RecursionError)


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
    cwd: str | None = None
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
            why = f" They say: {said.message}" if said.message else ""
            return f"A person rejected your call of {self.tool}. Go on without it.{why}"
        return f"A person has approved your call of {self.tool}. Make exactly the same call again."


@dataclass(frozen=True, slots=True)
class QuestionStore:
    """The questions of one run, for this user alone. ``host`` is its ``host/`` part.

    Whatever is asked of it raises PermissionError when its folder is a link, another user's, or
    writable by others.
    """

    host: Path

    @property
    def folder(self) -> Path:
        return self.host / _FOLDER

    def ask(self, question: Question) -> Question:
        """Keep a question. One of the same session for the same call is returned instead.

        Raises TypeError for an input that JSON can't hold.
        """
        if (known := self.find(question)) is not None:
            return known
        asked_at = datetime.now(UTC).isoformat(timespec="seconds")
        kept = replace(question, question_id=uuid.uuid4().hex, asked_at=asked_at, answer=None)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._is_there()
        _create(self._file(kept, "json"), _fields(kept))
        return kept

    def find(self, wanted: Question) -> Question | None:
        """The question about this very call; of several one that has an answer, then the oldest."""
        call = _call_of(wanted)
        alike = [each for each in self.all() if _call_of(each) == call]
        return next((each for each in alike if each.answer is not None), next(iter(alike), None))

    def take(self, question: Question) -> PersonsAnswer | None:
        """The answer, which is used up by this; ``None`` while there is none.

        Of two who ask at once one gets it.
        """
        if question.answer is None or not self._is_there():
            return None
        said = _read_answer(question.answer)
        path = self._file(question, "json")
        try:
            path.rename(path.with_suffix(".used"))
        except FileNotFoundError:
            return None
        return said

    def answer(self, question: Question, said: PersonsAnswer) -> Question:
        """Keep the answer to a question. Raises LookupError when there is one already."""
        path, written = self._file(question, "answer"), _written(said)
        try:
            _create(path, written)
        except FileExistsError:
            unread = "" if question.answer else f", unless {path} is damaged: then remove it"
            lacks = f"question {question.question_id} is answered already{unread}"
            raise LookupError(lacks) from None
        return replace(question, answer=written)

    def all(self) -> tuple[Question, ...]:
        """Every question that isn't used up, oldest first. What can't be read is left out."""
        if not self._is_there():
            return ()
        found = [
            question
            for path in sorted(self.folder.glob("*.json"))
            if (question := self.one(path.stem)) is not None
        ]
        return tuple(sorted(found, key=lambda question: question.asked_at))

    def one(self, question_id: str) -> Question | None:
        """The question of this id; ``None`` when there is none, or none that can be read."""
        if _ID.fullmatch(question_id) is None or not self._is_there():
            return None
        try:
            question = Question(**_read(self.folder / f"{question_id}.json"))
        except _UNREADABLE:
            return None
        if question.question_id != question_id or not _is_whole(question):
            return None
        return replace(question, answer=self._answer_to(question))

    def _answer_to(self, question: Question) -> Mapping[str, Any] | None:
        """The answer as it is kept; ``None`` for what is none."""
        try:
            found: Mapping[str, Any] = _read(self._file(question, "answer"))
            _read_answer(found)
        except _UNREADABLE:
            return None
        return found

    def _file(self, question: Question, kind: str) -> Path:
        return self.folder / f"{question.question_id}.{kind}"

    def _is_there(self) -> bool:
        """Whether questions were kept at all. Raises PermissionError for a folder that isn't safe."""
        for folder in (self.host, self.folder):
            try:
                found = folder.lstat()
            except FileNotFoundError:
                return False
            if not stat.S_ISDIR(found.st_mode) or not _is_own(found):
                raise PermissionError(f"{folder} is a link, another user's, or writable by others")
        return True


def pending_questions(run_dir: str | os.PathLike[str]) -> tuple[Question, ...]:
    """The questions of a run that nobody has answered, oldest first. ``run_dir`` is its run folder.

    Raises FileNotFoundError when there is no such folder, PermissionError when its questions could be
    another user's.
    """
    if not Path(run_dir).is_dir():
        raise FileNotFoundError(f"there is no run folder {run_dir}: give SessionPlan.run_dir")
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
    no answer; PermissionError when the question could be another user's.
    """
    if not isinstance(said, (Approved, Edited, Rejected)):
        raise TypeError("answer with approve(), edit(new_input) or reject(message)")
    if not isinstance(question_id, str) or _ID.fullmatch(question_id) is None:
        raise LookupError(f"{question_id!r} is no question's id")
    for store in _stores(question_id, run_dir):
        if (question := store.one(question_id)) is not None:
            return store.answer(question, said)
    raise LookupError(f"no question {question_id} waits; name its run_dir if it has one")


def _stores(question_id: str, run_dir: str | os.PathLike[str] | None) -> list[QuestionStore]:
    """Those in which a question of this id may be."""
    if run_dir is not None:
        return [QuestionStore(Path(run_dir) / "host")]
    import platformdirs  # here, not at import: it takes 18 ms

    every = platformdirs.user_state_path("agent-kit")
    found = every.glob(f"*/runs/*/host/{_FOLDER}/{question_id}.json")
    return [QuestionStore(path.parent.parent) for path in found]


def _fields(question: Question) -> dict[str, Any]:
    """What is kept of a question: all but its answer."""
    kept = {each.name: getattr(question, each.name) for each in fields(question)}
    del kept["answer"]
    return {**kept, "tool_input": dict(question.tool_input)}


def _call_of(question: Question) -> tuple[Any, ...]:
    """What makes two calls the same. Raises TypeError for an input that JSON can't hold."""
    tool_input = json.dumps(dict(question.tool_input), sort_keys=True)
    cwd = question.cwd if needs_folder(question.tool, question.tool_input) else None
    return question.session_id, question.agent, question.tool, tool_input, cwd


def _is_whole(question: Question) -> bool:
    """Whether its fields are of their types."""
    texts = (question.session_id, question.tool, question.reason, question.asked_at)
    others = (question.target, question.agent, question.rule, question.cwd)
    return (
        isinstance(question.tool_input, dict)
        and all(isinstance(text, str) for text in texts)
        and all(text is None or isinstance(text, str) for text in others)
    )


def _written(said: PersonsAnswer) -> dict[str, Any]:
    if isinstance(said, Rejected):
        return {"said": "reject", "message": said.message}
    if isinstance(said, Edited):
        return {"said": "edit", "tool_input": dict(said.tool_input)}
    return {"said": "approve"}  # nothing is remembered for a session that isn't there


def _read_answer(written: Any) -> PersonsAnswer:
    """Raises ValueError for what is no answer."""
    match written:
        case {"said": "approve"}:
            return Approved()
        case {"said": "edit", "tool_input": dict() as new_input}:
            return edit(new_input)
        case {"said": "reject", "message": str() as message}:
            return reject(message)
    raise ValueError("it is no answer")


def _is_own(found: os.stat_result) -> bool:
    """Whether it is this user's, and nobody else's to write."""
    return os.name == "nt" or (found.st_uid == os.getuid() and not found.st_mode & _OTHERS_WRITE)


def _read(path: Path) -> Any:
    """What is in a file, as JSON. Raises OSError for a link and what isn't this user's; ValueError."""
    handle = os.open(path, _READ)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or not _is_own(found):
            raise PermissionError(f"{path} is no file of this user's alone")
        with open(handle, encoding="utf-8", closefd=False) as file:
            return json.load(file)
    finally:
        os.close(handle)


def _create(path: Path, content: Mapping[str, Any]) -> None:
    """A new file that this user alone can read. Raises FileExistsError, and TypeError before it begins."""
    text = json.dumps(content)
    handle = os.open(path, _CREATE, 0o600)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
