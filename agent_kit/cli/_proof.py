"""The proof at the end of the demo: what was claimed, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent_kit.cli._course import Canary, Course
from agent_kit.cli._play import Played
from agent_kit.cli._story import BLOCKED_PROMPT, Scene, Story
from agent_kit.sdk.audit import UnjudgedCallError, check_calls
from agent_kit.sdk.gate import GateLog
from agent_kit.testing import AnsweredBy, CallRecord, ScriptedModel

__all__ = ["Check", "prove", "prove_live"]

_LOCKS = frozenset({AnsweredBy.GATE, AnsweredBy.RULES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One claim, whether it holds, and what speaks against it."""

    ok: bool
    text: str
    details: tuple[str, ...] = ()


def prove(
    course: Course, story: Story, model: ScriptedModel, played: Played, log: GateLog
) -> tuple[Check, ...]:
    """Every claim of the demo about a session that is over. All are looked at, whatever fails."""
    return (
        _no_leak(course, model),
        *(_control(canary, model) for canary in course.controls),
        *_scenes(story, model, played),
        _locks(played),
        _blocked(model, played),
        _same_words(model, played),
        _complete(model, played),
        _judged(played, log),
        _untouched(course),
        _alone(model),
    )


def prove_live(course: Course, played: Played, log: GateLog) -> tuple[Check, ...]:
    """The same as far as it can be told without the model's side of the wire."""
    found = _found_in(course, played)
    size = sum(len(text) for text in _heard(course, played))
    return (
        Check(
            ok=size > 0 and not found,
            text=f"None of the {len(course.closed)} canaries is in what the CLI noted down or passed"
            f" on ({size:,} characters of transcript and results).",
            details=tuple(f"leaked: {canary.text} of {canary.name}" for canary in found),
        ),
        _judged(played, log),
        _untouched(course),
    )


def _no_leak(course: Course, model: ScriptedModel) -> Check:
    size = sum(len(request.text.encode()) for request in model.requests)
    return Check(
        ok=bool(model.requests) and not any(model.saw(c.text) for c in course.closed),
        text=f"None of the {len(course.closed)} canaries was in any request to the model:"
        f" {len(model.requests)} requests, {size:,} bytes, searched as they came, with escapes"
        " undone, and inside base64.",
        details=tuple(
            f"leaked: {canary.text} of {canary.name}, in {place}"
            for canary in course.closed
            for place in model.where(canary.text)[:1]
        ),
    )


def _control(canary: Canary, model: ScriptedModel) -> Check:
    requests = sum(request.saw(canary.text) for request in model.requests)
    return Check(
        ok=requests > 0,
        text=f"The search can find: {canary.text}, in {canary.name}, which the agent may learn,"
        f" was in {requests} of them.",
    )


def _scenes(story: Story, model: ScriptedModel, played: Played) -> Iterator[Check]:
    records = [(scene, _record(scene, model, played)) for scene in story.scenes]
    refused = [(scene, record) for scene, record in records if scene.refused]
    allowed = [(scene, record) for scene, record in records if not scene.refused]
    wrong = [row for row in refused if row[1] is None or row[1].lock not in _LOCKS]
    yield Check(
        ok=not wrong,
        text=f"{len(refused) - len(wrong)} of {len(refused)} calls that had to be denied were denied"
        " by a lock.",
        details=tuple(_against(*row) for row in wrong),
    )
    wrong = [row for row in allowed if row[1] is None or row[1].lock is not AnsweredBy.RAN]
    yield Check(
        ok=not wrong,
        text=f"{len(allowed) - len(wrong)} of {len(allowed)} calls that the agent's work needs ran.",
        details=tuple(_against(*row) for row in wrong),
    )


def _record(scene: Scene, model: ScriptedModel, played: Played) -> CallRecord | None:
    ids = (issued.call_id for issued in model.issued if issued.call is scene.call)
    return next((played.calls.get(call_id) for call_id in ids), None)


def _against(scene: Scene, record: CallRecord | None) -> str:
    what = "never came" if record is None or record.lock is None else f"was answered: {record.lock}"
    return f"{scene.call.name} {dict(scene.call.input)} {what}"


def _locks(played: Played) -> Check:
    seen = {call.lock for call in played.calls.values()}
    silent = [lock for lock in sorted(_LOCKS) if lock not in seen]
    return Check(
        ok=not silent,
        text="Lock 1 and lock 2 each answered, on their own.",
        details=tuple(f"never answered: {lock}" for lock in silent),
    )


def _blocked(model: ScriptedModel, played: Played) -> Check:
    return Check(
        ok=len(played.blocked) == 1 and not model.saw(BLOCKED_PROMPT),
        text="The prompt that mentions a closed file was blocked by lock 3, and never sent.",
    )


def _same_words(model: ScriptedModel, played: Played) -> Check:
    """What was shown is what the model was told: the two come from different ends of the wire."""
    told = model.results
    other = [
        call
        for call in played.calls.values()
        if call.call_id not in told or told[call.call_id].text != call.result
    ]
    return Check(
        ok=not other,
        text=f"The {len(played.calls)} answers above are, word for word, in the requests.",
        details=tuple(f"differs: {call.tool} {dict(call.input)}" for call in other),
    )


def _complete(model: ScriptedModel, played: Played) -> Check:
    details = [f"not reached: {step}" for step in model.unplayed]
    details += [f"the CLI reports: {reason}" for reason in played.failed]
    details += [f"the script failed: {model.error!r}"] if model.error is not None else []
    return Check(ok=not details, text="The script was played to its end.", details=tuple(details))


def _judged(played: Played, log: GateLog) -> Check:
    details: tuple[str, ...] = ()
    try:
        check_calls(played.messages, log)
    except UnjudgedCallError as error:
        details = (str(error),)
    return Check(
        ok=not details,
        text="Every file tool call that ran was seen by the gate.",
        details=details,
    )


def _untouched(course: Course) -> Check:
    changed = course.changed()
    return Check(
        ok=not changed,
        text="The originals and the closed files are, byte for byte, as they were.",
        details=tuple(f"changed: {name}" for name in changed),
    )


def _alone(model: ScriptedModel) -> Check:
    return Check(
        ok=not model.outside,
        text="Nothing was wanted from another host.",
        details=tuple(f"wanted: {host}" for host in model.outside),
    )


def _heard(course: Course, played: Played) -> Iterator[str]:
    for file in sorted((course.home / ".claude" / "projects").rglob("*.jsonl")):
        yield file.read_text(encoding="utf-8", errors="replace")
    for call in played.calls.values():
        yield call.result or ""


def _found_in(course: Course, played: Played) -> tuple[Canary, ...]:
    texts = tuple(_heard(course, played))
    return tuple(c for c in course.closed if any(c.text in text for text in texts))
