"""``Guard``: what the gate checks, for a tool that opens files itself.

The gate judges a call before its tool runs, by the fields that it knows to name paths. Which file an
MCP tool opens only the tool knows: it asks here, with the path, and hears what a file tool of the
session would hear. It doesn't stop a tool that doesn't ask, nor one that opens another file than the
one that it asked about: open the path that :meth:`Guard.require` returns, and not one that the
agent may have put a link in the way of meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_kit.policy.approval import Approval, PersonsAnswer
from agent_kit.policy.compiled import compile_rules
from agent_kit.policy.guard_check import Checking
from agent_kit.policy.guard_judge import Found, GuardJudge, Question
from agent_kit.policy.guard_scope import OwnFolder
from agent_kit.policy.inquiry import Inquiry
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import Mode, SessionMode
from agent_kit.policy.outcome import Action
from agent_kit.policy.policy import Call, Policy
from agent_kit.policy.rule_sets import RuleSets
from agent_kit.policy.rules import FilePermission, RuleVerdict
from agent_kit.policy.run import authorizer_faults
from agent_kit.policy.running import RUNNING
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.file_scope import FileScope

__all__ = ["Guard", "Refused", "RefusedError", "guard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What was refused, and why. ``str()`` is the sentence for the model.

    ``code`` is stable: the scope's (``outside-writable``), ``denied``, ``interrupt`` (a person has to
    agree first), ``plan-mode``, ``nobody-to-ask``, ``rejected``, ``changed``, an authorizer's. ``part``
    is what refused (``scope``, ``rules``, ``authorizers``, ``mode``, ``person``, ``subagents``), and
    ``rule`` names the rule or authorizer, for the operator. ``path`` is as the model knows it.
    """

    operation: Action
    path: str
    code: str
    message: str
    part: str
    rule: str | None = None

    def __str__(self) -> str:
        return self.message


class RefusedError(Exception):
    """A path that a tool may not touch. ``str()`` is the sentence for the model, ``refused`` the rest."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused))
        self.refused = refused


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guard:
    """Judges paths for a tool: by scope and mode, rules, a person where a rule asks, and authorizers.

    Paths are relative to the project, ``~`` is the session's home. ``operation`` is ``"read"``,
    ``"list"``, ``"search"``, ``"write"`` or ``"delete"``, which of a folder means all that is in it.
    Inside a session it knows which call of the agent is running; where it can't tell the agent, what
    holds for any of them holds.

    Made by :func:`guard`, or by a session: ``ExtensionContext.guard()`` and ``SessionPlan.guard()``.
    """

    policy: Policy
    ask: Callable[[Approval], Any] | None = None
    note: Callable[[Judged], None] | None = None
    caller: Callable[[str], Call | None] | None = None  # by tool use id
    own: OwnFolder | None = None
    _judge: GuardJudge = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_judge", GuardJudge(policy=self.policy, own=self.own))

    @property
    def narrows(self) -> bool:
        """Whether anything but the scope has a say: rules, authorizers, a mode, a narrower subagent."""
        policy = self.policy
        return bool(policy.rules or policy.authorizers or policy.scopes or policy.steps)

    def inside(self, folder: str | os.PathLike[str], *, writable: bool = False) -> Guard:
        """The guard of a tool that keeps this folder (absolute), which the file tools may not enter.

        What is closed inside stays closed, and rules and authorizers hold there. ``writable``: the tool
        also writes there; on behalf of a subagent that may write less than others it doesn't. Raises ValueError.
        """
        own = OwnFolder(dir=os.fspath(folder), writable=writable)
        if not os.path.isabs(own.dir):
            raise ValueError(f"a tool's folder is an absolute path, not {own.dir!r}")
        return replace(self, own=own)

    async def check(
        self,
        operation: str,
        path: str | os.PathLike[str],
        *,
        tool_input: Mapping[str, Any] | None = None,
        label: str | None = None,
        filtered: bool = False,
    ) -> Refused | None:
        """Why ``operation`` on ``path`` is refused, else ``None``. It waits for a person where one is asked.

        ``tool_input`` is what authorizers and the person see of the call (default: that of the running
        call). ``label`` is what the model knows the path by, in place of the path itself.
        ``filtered``: the tool lists or searches, and leaves out itself what :meth:`leaves_out` names, so
        that a folder isn't refused for something in it.

        Raises ValueError for another operation.
        """
        question = self._question(operation, path, tool_input, label, filtered)
        return _refused(question, await self._checked(question))

    async def require(
        self,
        operation: str,
        path: str | os.PathLike[str],
        *,
        tool_input: Mapping[str, Any] | None = None,
        label: str | None = None,
        filtered: bool = False,
    ) -> str:
        """As :meth:`check`; raises RefusedError, and returns the real path, absolute: the one to open."""
        question = self._question(operation, path, tool_input, label, filtered)
        found = await self._checked(question)
        if (refused := _refused(question, found)) is not None:
            raise RefusedError(refused)
        return self.policy.scope._compiled.flavour.display(found.named[0].targets[0].path)

    async def inquire(
        self, reason: str, *, tool_input: Mapping[str, Any], asks_for: str
    ) -> PersonsAnswer:
        """What a person says to a question of the tool's own, as long as they take.

        They get an :class:`~agent_kit.Approval` of the running call with ``reason`` and ``tool_input``,
        in which ``asks_for`` is the field for them to fill in: ``edit`` is an answer, ``reject`` is
        none, and ``approve`` leaves the field as it is. Where nobody can be asked, and where their
        answer can't be read, the answer is an ``Unasked`` whose message is a sentence for the model.
        What they give is not judged: that is the tool's. Raises CancelledError when the call is stopped.
        """
        call = replace(self.calling() or self._of_nobody(), tool_input=tool_input)
        return await Inquiry(policy=self.policy, ask=self.ask, note=self.note, call=call).answer(
            reason, asks_for
        )

    def calling(self) -> Call | None:
        """The agent's call that a tool runs for, with its arguments; ``None`` where it can't be told."""
        running = RUNNING.get()
        if running is None or self.caller is None:
            return None
        known = self.caller(running.use_id)
        return None if known is None else replace(known, tool_input=running.arguments)

    def check_scope_and_rules(
        self, operation: str, path: str | os.PathLike[str], *, label: str | None = None
    ) -> Refused | None:
        """The part of :meth:`check` that waits for nobody: scope, mode and rules.

        A rule that asks refuses, with the code ``interrupt``, unless a person has agreed in this call.
        It may look at the disk. Raises ValueError for another operation.
        """
        question = self._question(operation, path, None, label, False)
        return _refused(question, self._judge.judge(question, self._judge.agreed(question)))

    def leaves_out(self, path: str | os.PathLike[str], *, asks: bool = True) -> bool:
        """Whether a tool that lists or searches must leave this file out.

        So it is with what may not be read, by the scope, a rule or ``deny_paths``; and with what a rule
        asks about, unless a person has agreed in this call (with ``asks=False`` that one stays in).
        """
        question = self._question(Action.READ, path, None, None, False)
        found = self._judge.judge(question, self._judge.agreed(question))
        if found.verdict is RuleVerdict.INTERRUPT and asks:
            return True
        return found.verdict is RuleVerdict.DENY or self._judge.is_denied(found.named)

    # --- the question ------------------------------------------------------------------------

    def _question(
        self,
        operation: str,
        path: str | os.PathLike[str],
        tool_input: Mapping[str, Any] | None,
        label: str | None,
        filtered: bool,
    ) -> Question:
        action = _action(operation)
        known = self.calling()
        call = known or self._of_nobody()
        if tool_input is not None:
            call = replace(call, tool_input=tool_input)
        return Question(
            operation=action,
            path=os.fspath(path) if isinstance(path, os.PathLike) else path,
            label=label,
            filtered=filtered,
            call=replace(call, cwd=self.policy.scope.project_dir),
            agents=self._judge.everybody() if known is None else (known.agent,),
            running=RUNNING.get() if known is not None else None,
        )

    def _of_nobody(self) -> Call:
        return Call(tool="guard", tool_input={}, cwd=self.policy.scope.project_dir)

    async def _checked(self, question: Question) -> Found:
        return await Checking(
            policy=self.policy,
            judge=self._judge,
            ask=self.ask,
            note=self.note,
            question=question,
        ).found()


def _action(operation: str) -> Action:
    if operation not in tuple(Action):
        known = ", ".join(repr(str(each)) for each in Action)
        raise ValueError(f"{operation!r} is no operation: choose from {known}")
    return Action(operation)


def _refused(question: Question, found: Found) -> Refused | None:
    if found.verdict is RuleVerdict.ALLOW:
        return None
    return Refused(
        operation=question.operation,
        path=question.shown,
        code=found.code,
        message=found.message,
        part=found.part,
        rule=found.rule,
    )


def guard(
    scope: FileScope,
    *,
    rules: Sequence[FilePermission] = (),
    authorizers: Sequence[Any] = (),
    ask: Callable[[Approval], Any] | None = None,
    mode: str = "guided",
) -> Guard:
    """A guard of one's own, for a tool outside a session: a server in another process, or a script.

    ``rules`` are as in ``SessionConfig.permissions``, ``ask`` is asked where one of them interrupts
    (without it that refuses). Raises ConfigError with every fault.

    >>> own = guard(FileScope(project_dir="/work", writable_dirs=["notes"]))
    >>> str(own.check_scope_and_rules("write", "plans/a.md"))
    '"plans/a.md" can\\'t be written: writing is only allowed inside notes/.'
    """
    faults = authorizer_faults(authorizers)
    if not isinstance(mode, str) or mode not in tuple(Mode):
        remedy = f"choose from {', '.join(map(repr, map(str, Mode)))}."
        faults.append(Fault(field="mode", value=mode, remedy=remedy))
    if ask is not None and not callable(ask):
        remedy = "give a function of an Approval, or None."
        faults.append(Fault(field="ask", value=ask, remedy=remedy))
    if not isinstance(scope, FileScope):
        raise ConfigError([Fault(field="scope", value=scope, remedy="give a FileScope."), *faults])
    project, home = scope.project_dir, scope.home
    try:
        listed = compile_rules(rules, project_dir=project, home=home, field="rules")
    except ConfigError as error:
        raise ConfigError([*error.faults, *faults]) from None
    if faults:
        raise ConfigError(faults)
    policy = Policy(
        scope=scope,
        rules=RuleSets(
            session=listed, agent=compile_rules([], project_dir=project, home=home, field="rules")
        ),
        authorizers=tuple(authorizers),
        mode=SessionMode(mode),
        has_ask=ask is not None,
    )
    return Guard(policy=policy, ask=ask)
