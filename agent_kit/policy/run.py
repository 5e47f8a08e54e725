"""Authorizers, one after the other: the first refusal wins, and what goes wrong is a refusal."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from agent_kit.policy import sentences
from agent_kit.policy.outcome import Action, Answer, Narrowed, Refusal, RefusalCode
from agent_kit.policy.target import AuthorizerContext, Target, print_of, targets_of
from agent_kit.policy.waiting import Aborted, Overdue, run_host_code
from agent_kit.scope.decision import Access
from agent_kit.scope.errors import Fault
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.judge import NamedPath
from agent_kit.scope.text import shown

__all__ = [
    "TIME_LIMIT",
    "Asked",
    "Authorized",
    "Authorizer",
    "Several",
    "asks_person",
    "authorize_call",
    "authorize_mentions",
    "authorize_targets",
    "authorizer_faults",
    "flat",
    "heard",
    "is_inline",
    "judges",
    "narrowed",
    "run_authorizers",
    "thrown",
]

_log = logging.getLogger("agent_kit.policy")

TIME_LIMIT: Final = 5.0  # seconds


@runtime_checkable
class Authorizer(Protocol):
    """What judges a target: ``id`` for logs, ``authorize`` for the answer (:func:`allow`, :func:`deny`).

    It may be sync (run in a thread) or async, and may also have: ``actions``, those that it judges
    (default: all); ``timeout``, in seconds (default 5, ``None``: as long as it takes);
    ``asks_person=True``, so that the call is refused when the file changes meanwhile; and
    ``inline``, ``True`` or a frozenset of actions, for a sync one that is quick and waits for
    nothing: it is run on the spot.
    """

    @property
    def id(self) -> str: ...

    def authorize(self, target: Target, context: AuthorizerContext) -> Any: ...


class Authorized(NamedTuple):
    """What became of a call: a refusal, or else the input to run it with (a new one when narrowed)."""

    refusal: Refusal | None
    tool_input: Mapping[str, Any]

    @property
    def allowed(self) -> bool:
        return self.refusal is None


async def run_authorizers(
    authorizers: Iterable[Any], targets: Sequence[Target], context: AuthorizerContext
) -> Authorized:
    """Ask each authorizer about each target of one call, from left to right.

    A throw, a timeout and any other answer are refusals whose cause is logged and hidden from the
    model. Raises nothing but ``CancelledError``, when the caller itself is cancelled.
    """
    chain = tuple(flat(authorizers))
    tool_input: Mapping[str, Any] = targets[0].tool_input if targets else {}
    for target in targets:
        for authorizer in chain:
            if target.tool_input is not tool_input:
                target = target._replace(tool_input=tool_input)  # noqa: PLW2901 - narrowed
            found = await _ask(Asked(authorizer, target, context))
            if isinstance(found, Refusal):
                return Authorized(found, tool_input)
            if found is not None:
                tool_input = narrowed(tool_input, found)
    return Authorized(None, tool_input)


def narrowed(tool_input: Mapping[str, Any], found: Narrowed) -> Mapping[str, Any]:
    return {**tool_input, "offset": found.offset, "limit": found.limit}


async def authorize_call(
    authorizers: Iterable[Any],
    scope: FileScope,
    tool_name: str,
    tool_input: Mapping[str, Any],
    context: AuthorizerContext,
    *,
    cwd: str | None = None,
    deletes: bool = False,
    named: tuple[NamedPath, ...] | None = None,
) -> Authorized:
    """As :func:`run_authorizers`, over the targets of a call (see :func:`targets_of`).

    A call that can't be judged is refused; one of a tool without a path is none of theirs.
    """
    targets = targets_of(
        scope, tool_name, tool_input, cwd=cwd, agent=context.agent, deletes=deletes, named=named
    )
    return await authorize_targets(
        authorizers, targets, tool_name, tool_input, context, deletes=deletes
    )


async def authorize_targets(
    authorizers: Iterable[Any],
    targets: Sequence[Target] | None,
    tool_name: str,
    tool_input: Mapping[str, Any],
    context: AuthorizerContext,
    *,
    deletes: bool = False,
) -> Authorized:
    """As :func:`authorize_call`, of a call whose ``targets`` are known (``None``: it can't be judged)."""
    if targets is None:
        refusal = Refusal(
            action=Action.DELETE if deletes else Action.READ,
            code=RefusalCode.FAILED,
            message=context.messages.say("failed", shown(tool_name)),
            display_path=shown(tool_name),
        )
        return Authorized(refusal, tool_input)
    if not targets:
        return Authorized(None, tool_input)
    return await run_authorizers(authorizers, targets, context)


async def authorize_mentions(
    authorizers: Iterable[Any],
    scope: FileScope,
    tool_input: Mapping[str, Any],
    context: AuthorizerContext,
    named: Iterable[NamedPath],
) -> Authorized:
    """As :func:`authorize_call`, of a call that attaches the ``named`` files: each is asked about as a
    Read of the whole file, or the listing of a folder. What may be read in part only is refused."""
    chain = tuple(flat(authorizers))
    for path in named:
        tool, field = ("LS", "path") if path.access is Access.LIST else ("Read", "file_path")
        given = {field: path.text}
        done = await authorize_call(chain, scope, tool, given, context, named=(path,))
        refusal = done.refusal
        if refusal is None and done.tool_input is not given:
            display = shown(path.text)
            refusal = Refusal(
                action=Action.READ,
                code=RefusalCode.DENIED,
                message=context.messages.say("denied", display, sentences.part_of_mention),
                display_path=display,
            )
        if refusal is not None:
            return Authorized(refusal, tool_input)
    return Authorized(None, tool_input)


def flat(authorizers: Iterable[Any]) -> Iterator[Any]:
    """The authorizers, with those of ``read_authorizers`` in its place."""
    for authorizer in authorizers:
        if type(authorizer) is Several:
            yield from flat(authorizer.members)
        else:
            yield authorizer


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """What ``read_authorizers`` makes: its members are asked one by one, each with its own time limit."""

    members: tuple[Any, ...]

    @property
    def id(self) -> str:
        return "+".join(member.id for member in self.members)

    def authorize(self, _target: Target, _context: AuthorizerContext) -> Answer:
        raise TypeError("its members are asked, one by one")


class Asked(NamedTuple):
    """One authorizer, asked about one target."""

    authorizer: Any
    target: Target
    context: AuthorizerContext

    def refusal(self, code: RefusalCode, message: str, note: str = "") -> Refusal:
        path = self.target.display_path
        return Refusal(
            action=self.target.action,
            code=code,
            message=self.context.messages.say(message, path, note),
            display_path=path,
            authorizer=_id(self.authorizer),
        )

    def failed(self, how: str, *, trace: bool = False) -> Refusal:
        """A refusal that hides the cause from the model; the operator's log has it."""
        name, path = _id(self.authorizer), self.target.requested
        _log.error("authorizer %s, asked about %r: %s", name, path, how, exc_info=trace)
        return self.refusal(RefusalCode.FAILED, "failed")

    async def answer(self) -> Any:
        """What the authorizer answers, within its time; raises what it raises, Overdue or Aborted."""
        authorize = self.authorizer.authorize
        if is_inline(self.authorizer, self.target.action):
            return authorize(self.target, self.context)
        limit = getattr(self.authorizer, "timeout", TIME_LIMIT)
        return await run_host_code(
            authorize, self.target, self.context, limit=limit, abort=self.context.abort
        )


async def _ask(asked: Asked) -> Refusal | Narrowed | None:
    """A refusal, a narrower range, or ``None`` to go on."""
    if asked.context.abort.is_set():
        return asked.refusal(RefusalCode.ABORTED, "aborted")
    try:
        waits = asks_person(asked.authorizer)
        if not judges(asked.authorizer, asked.target.action):
            return None
        before = print_of(asked.target) if waits else None
        answer = await asked.answer()
    except Exception as error:  # noqa: BLE001 - whatever it is, the call must not run
        return thrown(asked, error)
    found = heard(asked, answer)
    if (
        waits
        and not isinstance(found, Refusal)
        and (before is None or print_of(asked.target) != before)
    ):
        return asked.refusal(RefusalCode.CHANGED, "changed")
    return found


def thrown(asked: Asked, error: Exception) -> Refusal:
    """The refusal by an authorizer that gave no answer; ``error`` is being handled."""
    if isinstance(error, Aborted):
        return asked.refusal(RefusalCode.ABORTED, "aborted")
    if isinstance(error, Overdue):
        return asked.failed("it took too long")
    return asked.failed("it failed", trace=True)


def heard(asked: Asked, answer: Any) -> Refusal | Narrowed | None:
    """What an answer means: a refusal, a narrower range, or ``None`` to go on."""
    if type(answer) is Answer and answer.allowed is False:
        message = "denied" if answer.note else "denied_without_note"
        return asked.refusal(RefusalCode.DENIED, message, answer.note)
    if type(answer) is not Narrowed and (type(answer) is not Answer or answer.allowed is not True):
        return asked.failed(f"it answered {type(answer).__name__}, neither allow() nor deny()")
    return answer if type(answer) is Narrowed else None


def judges(authorizer: Any, action: Action) -> bool:
    actions = getattr(authorizer, "actions", None)
    return actions is None or action in actions


def is_inline(authorizer: Any, action: Action) -> bool:
    inline = getattr(authorizer, "inline", False)
    return inline is True or (isinstance(inline, frozenset) and action in inline)


def asks_person(authorizer: Any) -> bool:
    return getattr(authorizer, "asks_person", False) is True


def _id(authorizer: Any) -> str:
    try:
        return str(authorizer.id)
    except Exception:  # noqa: BLE001 - it is only for the log
        return type(authorizer).__name__


def authorizer_faults(authorizers: Any, field: str = "authorizers") -> list[Fault]:
    """What is wrong with a list of authorizers, each with its index."""
    if not isinstance(authorizers, (list, tuple)):
        return [Fault(field=field, value=authorizers, remedy="give a list of authorizers.")]
    return [
        Fault(field=f"{field}[{at}]", value=authorizer, remedy=remedy)
        for at, authorizer in enumerate(authorizers)
        for remedy in _remedies(authorizer)
    ]


def _remedies(authorizer: Any) -> Iterator[str]:
    if isinstance(authorizer, type) or not callable(getattr(authorizer, "authorize", None)):
        yield "give an object with an id and authorize(target, context)."
        return
    name = getattr(authorizer, "id", None)
    if not isinstance(name, str) or not name:
        yield "give it an id, a text that names it in the log."
    actions = getattr(authorizer, "actions", None)
    if actions is not None and (isinstance(actions, str) or not _are_actions(actions)):
        yield f"its actions are some of {', '.join(Action)}."
    timeout = getattr(authorizer, "timeout", None)
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0
    ):
        yield "its timeout is in seconds, more than 0, or None for no limit."


def _are_actions(actions: Any) -> bool:
    try:
        return set(actions) <= set(Action)
    except TypeError:
        return False
