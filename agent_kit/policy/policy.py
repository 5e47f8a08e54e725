"""What holds in one session inside its scope: mode, rules, questions, subagents, authorizers.

A call that the scope has let through is judged here. The answer is one of three: no objection, a
refusal, or a question to a person, which is somebody else's to ask.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

from agent_kit.policy import sentences
from agent_kit.policy.at_once import Chain, authorize_at_once
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import (
    READ_ONLY_TOOLS,
    STARTS_AGENTS,
    Mode,
    SessionMode,
    stays_narrow,
)
from agent_kit.policy.outcome import Answer, Messages, deny
from agent_kit.policy.rule_sets import RuleSets, Ruling
from agent_kit.policy.rules import RuleVerdict
from agent_kit.policy.run import (
    TIME_LIMIT,
    Authorized,
    authorize_mentions,
    authorize_targets,
    flat,
)
from agent_kit.policy.starts import DEFAULT_AGENT, Forks
from agent_kit.policy.target import AuthorizerContext, Target, plain_target, targets_of
from agent_kit.scope.disk import Located
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.judge import NamedPath
from agent_kit.scope.text import shown

__all__ = ["Call", "Heard", "Judgement", "Policy"]

_WORKFLOWS: Final = frozenset({"RunWorkflow", "Workflow"})  # start agents of a type of their own
_STARTS: Final = tuple(sorted(STARTS_AGENTS))
_ANSWER: Final = "answer"  # the part that asks for an answer, not for leave
_IN_A_HOOK: Final = 12.0  # seconds that a hook waits for all authorizers of a call

Heard = Callable[[str, bool | None], None]  # an authorizer's id, and the answer once there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool. ``agent`` is the type of the subagent that makes it, ``None`` for the main
    one. ``cwd`` is what its relative paths are relative to."""

    tool: str
    tool_input: Mapping[str, Any]
    cwd: str
    agent: str | None = None
    agent_id: str | None = None
    tool_use_id: str | None = None


class Judgement(NamedTuple):
    """``verdict`` with its ``message`` (for the model when denied, for the person when asked).

    ``part`` is what decided (``mode``, ``rules``, ``interrupt_on``, ``subagents``), ``rule`` names it,
    and is what a person may have remembered. ``code`` is stable.
    """

    verdict: RuleVerdict = RuleVerdict.ALLOW
    part: str = "rules"
    code: str | None = None
    rule: str | None = None
    path: str | None = None
    message: str = ""


_NO_OBJECTION: Final = Judgement()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """One session's. ``mode`` may be switched; ``state`` is the authorizers' memory, ``remembered``
    the rules that ask no more.

    ``read_only`` are tools that change nothing, beside :data:`READ_ONLY_TOOLS`. ``startable`` are the
    agent types that may be started (``None``: all), ``forks`` the skills that start one. ``has_ask``
    says that a person can be reached.
    """

    scope: FileScope
    scopes: Mapping[str, FileScope] = field(default_factory=dict)  # of narrower subagents
    rules: RuleSets | None = None
    authorizers: tuple[Any, ...] = ()
    interrupt_on: Mapping[str, bool] = field(default_factory=dict)
    asked_files: Mapping[str, Callable[[Mapping[str, Any]], Sequence[Path]]] = field(
        default_factory=dict
    )  # of tools that open files themselves: those that a question is about
    read_only: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()  # tools that run commands: closed to a narrower subagent
    startable: frozenset[str] | None = None
    forks: Forks = field(default_factory=Forks)
    answered: frozenset[str] = (
        frozenset()
    )  # tools whose calls are questions to the person who is asked
    mode: SessionMode
    has_ask: bool = False
    config: Any = None
    session_id: str | None = None
    messages: Messages = field(default_factory=Messages)
    unfiltered: frozenset[str] = frozenset()  # see AuthorizerContext
    state: dict[Any, Any] = field(default_factory=dict)
    remembered: set[str] = field(default_factory=set)
    hinted: set[str] = field(default_factory=set)  # tools that say themselves that they only read
    copying: set[str] = field(
        default_factory=set
    )  # agents whose own files ask for a copy to work in
    _chain: Chain = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_chain", Chain(self.authorizers))

    @property
    def steps(self) -> bool:
        """Whether it counts, in the current mode, what a tool changes."""
        return self.mode.current in _STEPS

    def scope_of(self, agent: str | None) -> FileScope:
        return self.scope if agent is None else self.scopes.get(agent, self.scope)

    def about(self, call: Call) -> Sequence[str]:
        """Files that a question about a call is about, beside those that it names to the gate. Raises what an
        extension's function raises."""
        told = self.asked_files.get(call.tool)
        files = () if told is None else tuple(map(str, told(call.tool_input)))
        if not all(map(os.path.isabs, files)):
            raise ValueError(f"asked_files of {call.tool} must give absolute paths")
        return files

    def is_plain(self, tool: str, tool_input: Mapping[str, Any], agent: str | None) -> bool:
        """Whether nothing objects to a call that the scope plainly allows. It looks at no disk."""
        return not self.authorizers and self.judge_plainly(tool, tool_input, agent) is _NO_OBJECTION

    def judge_plainly(
        self, tool: str, tool_input: Mapping[str, Any], agent: str | None
    ) -> Judgement | None:
        """As :meth:`judge`, of a call that the scope plainly allows: a refusal, or no objection.

        It looks at no disk. ``None`` says: ask :meth:`judge`. Authorizers are not asked.
        """
        if tool in self.interrupt_on or (self.steps and not self._reads_only(tool, tool_input)):
            return None
        if self.rules is None:
            return _NO_OBJECTION
        found = self.rules.rule_plainly(tool, tool_input, agent)
        return None if found is None else _judgement(found)

    def authorize_plainly(
        self,
        tool: str,
        tool_input: Mapping[str, Any],
        file: Located,
        agent: str | None,
        use_id: str | None,
    ) -> Authorized | None:
        """As :meth:`authorize`, of a call that the scope plainly allows, when nobody need be waited for.

        ``file`` is that of ``plain_file``. ``None`` says: ask :meth:`authorize`; no authorizer was asked.
        """
        scope = self.scope_of(agent)
        target = plain_target(scope, tool, tool_input, file, agent)
        context = self._context(scope, agent, use_id)
        try:
            return authorize_at_once(self._chain, (target,), context)
        finally:
            context.abort.set()

    def judge(
        self,
        call: Call,
        named: Iterable[NamedPath],
        agreed: frozenset[str] = frozenset(),
        question: str | None = None,
    ) -> Judgement:
        """What mode, rules and questions say of a call whose paths are ``named``.

        ``agreed`` are rules whose question has been answered for this call, ``question`` is that of a
        hook, if it wasn't: asked where no rule asks, and remembered by nobody.
        """
        silent = self.remembered | agreed
        if (refused := self._startable(call)) is not None:
            return refused
        mode = self.mode.current
        if mode is Mode.PLAN and not self._reads_only(call.tool, call.tool_input):
            return Judgement(
                verdict=RuleVerdict.DENY,
                part="mode",
                code="plan-mode",
                message=sentences.plan_mode(shown(call.tool)),
            )
        found = self._ruled(call, named, silent)
        if found.verdict is RuleVerdict.ALLOW:
            found = self._asked(call, mode, agreed)
        if found.verdict is RuleVerdict.ALLOW and question is not None:
            found = Judgement(
                verdict=RuleVerdict.INTERRUPT, part="hook", code="interrupt", message=question
            )
        asks = found.rule not in silent or found.part == _ANSWER  # which nobody can remember
        if found.verdict is RuleVerdict.INTERRUPT and asks:
            return found if self._can_ask(mode) else _nobody(found, mode)
        return found if found.verdict is RuleVerdict.DENY else _NO_OBJECTION

    @property
    def is_patient(self) -> bool:
        """Whether the authorizers may take longer than a hook waits: a person's answer, for one."""
        limits = [
            getattr(each, "timeout", TIME_LIMIT)
            for each in flat(self.authorizers)
            if getattr(each, "inline", False) is not True  # which takes no time
        ]
        return None in limits or sum(limits) > _IN_A_HOOK

    async def authorize(
        self,
        call: Call,
        named: tuple[NamedPath, ...],
        *,
        deletes: bool = False,
        authorizers: tuple[Any, ...] | None = None,
        heard: Heard | None = None,
    ) -> Authorized:
        """What the authorizers make of it; in a session where nobody is there, nobody is asked.

        ``deletes``: what is written is deleted. ``authorizers`` are some of the session's. ``heard`` is
        told which of them asks a person, and then what they said.
        """
        scope = self.scope_of(call.agent)
        context = self._context(scope, call.agent, call.tool_use_id)
        try:
            if call.tool == "Skill":  # its paths are what it mentions
                chain = self._as_heard(authorizers, heard)
                return await authorize_mentions(chain, scope, call.tool_input, context, named)
            targets = targets_of(
                scope,
                call.tool,
                call.tool_input,
                cwd=call.cwd,
                agent=call.agent,
                deletes=deletes,
                named=named,
            )
            quick = self._chain if authorizers is None else Chain(authorizers)
            if targets and (done := authorize_at_once(quick, targets, context)) is not None:
                return done
            return await authorize_targets(
                self._as_heard(authorizers, heard),
                targets,
                call.tool,
                call.tool_input,
                context,
                deletes=deletes,
            )
        finally:
            context.abort.set()

    def _as_heard(
        self, authorizers: tuple[Any, ...] | None, heard: Heard | None
    ) -> tuple[Any, ...]:
        authorizers = self.authorizers if authorizers is None else authorizers
        if self.mode.current is Mode.AUTONOMOUS:
            return tuple(map(_without_person, flat(authorizers)))
        if heard is not None:
            return tuple(_with_ear(each, heard) for each in flat(authorizers))
        return authorizers

    def _context(
        self, scope: FileScope, agent: str | None, use_id: str | None
    ) -> AuthorizerContext:
        return AuthorizerContext(
            project_dir=scope.project_dir,
            config=self.config,
            session_id=self.session_id,
            agent=agent,
            tool_use_id=use_id,
            home=scope.home,
            state=self.state,
            messages=self.messages,
            unfiltered=self.unfiltered,
        )

    def judged(self, call: Call, *, started: float, **found: Any) -> Judged:
        """A call as the trail records it; ``found`` are the fields that say what became of it.

        ``started`` is when the judgement began (``time.perf_counter``).
        """
        about: dict[str, Any] = {"tool_input": call.tool_input, **found}
        return Judged(
            session_id=self.session_id or "",
            agent=call.agent,
            agent_id=call.agent_id,
            tool=call.tool,
            tool_use_id=call.tool_use_id,
            milliseconds=(perf_counter() - started) * 1e3,
            **about,
        )

    def _reads_only(self, tool: str, tool_input: Mapping[str, Any]) -> bool:
        if tool in STARTS_AGENTS and self._copies(tool_input):
            return False
        return tool in READ_ONLY_TOOLS or tool in self.read_only or tool in self.hinted

    def _copies(self, tool_input: Mapping[str, Any]) -> bool:
        """Whether a call that starts an agent makes a copy of the repository for it."""
        agent = str(tool_input.get("subagent_type") or DEFAULT_AGENT)
        return bool(tool_input.get("isolation")) or agent in self.copying

    def _startable(self, call: Call) -> Judgement | None:
        around = not stays_narrow(call.tool) or call.tool in self.commands
        if call.agent in self.scopes and around:
            return Judgement(
                verdict=RuleVerdict.DENY,
                part="subagents",
                code="narrower-agent",
                rule=f"subagents[{call.agent!r}].writable_dirs",
                message=sentences.narrower(shown(call.tool)),
            )
        for kind in self.forks.started_by(call.tool, call.tool_input):
            if (rule := self.forks.closed_by(kind, self.startable)) is not None:
                skill = shown(str(call.tool_input.get("skill")))
                return Judgement(
                    verdict=RuleVerdict.DENY,
                    part="subagents",
                    code="agent-not-allowed",
                    rule=rule,
                    message=sentences.fork_closed(skill, None if kind is None else shown(kind)),
                )
        if call.tool not in STARTS_AGENTS | _WORKFLOWS:
            return None
        named = call.tool_input.get("subagent_type", DEFAULT_AGENT)
        only = self.forks.only  # those that the spec's tools narrow Agent to
        if only is not None and call.tool in STARTS_AGENTS and not _is_one_of(named, only):
            return _not_startable("AgentSpec.tools", named, only)
        if self.startable is None:
            return None
        wanted = call.tool if call.tool in _WORKFLOWS else named
        if _is_one_of(wanted, self.startable):
            return None
        return _not_startable("SessionConfig.allowed_subagents", wanted, self.startable)

    def _ruled(self, call: Call, named: Iterable[NamedPath], silent: set[str]) -> Judgement:
        if self.rules is None:
            return _NO_OBJECTION
        return _judgement(self.rules.judge_named(named, call.agent, silent))

    def _asked(self, call: Call, mode: Mode, agreed: frozenset[str]) -> Judgement:
        """Whether somebody must be asked although no rule says so. Where one question is remembered the
        other is asked; who has edited the call in answer to the first has seen what the mode asks."""
        told, rule = self.interrupt_on.get(call.tool), f"interrupt_on[{call.tool}]"
        if told and rule not in self.remembered | agreed:
            return _question("interrupt_on", rule, sentences.tool_asks(shown(call.tool)))
        if (asked := self._asked_beside(call, agreed)) is not None:
            return asked
        if (
            told is not False
            and rule not in agreed
            and mode is Mode.INTERACTIVE
            and not self._reads_only(call.tool, call.tool_input)
        ):
            rule = f"mode[{call.tool}]"
            return _question("mode", rule, sentences.step_asks(shown(call.tool)))
        return _NO_OBJECTION

    def _asked_beside(self, call: Call, agreed: frozenset[str]) -> Judgement | None:
        """The question about an agent that a skill starts, and one that a person alone can answer."""
        forks = self.forks.started_by(call.tool, call.tool_input)
        for rule in (f"interrupt_on[{name}]" for name in _STARTS if self.interrupt_on.get(name)):
            if forks and rule in agreed:
                return _NO_OBJECTION
            if forks and rule not in self.remembered:
                skill = shown(str(call.tool_input.get("skill")))
                return _question("interrupt_on", rule, sentences.fork_asks(skill))
        if call.tool not in self.answered:
            return None
        if (rule := f"answer[{call.tool}]") in agreed:
            return _NO_OBJECTION
        return _question(_ANSWER, rule, sentences.answer_asks(shown(call.tool)))

    def _can_ask(self, mode: Mode) -> bool:
        return self.has_ask and mode is not Mode.AUTONOMOUS


_STEPS: Final = frozenset({Mode.INTERACTIVE, Mode.PLAN})


def _is_one_of(wanted: object, kinds: frozenset[str]) -> bool:
    return isinstance(wanted, str) and wanted in kinds


def _not_startable(rule: str, wanted: object, startable: frozenset[str]) -> Judgement:
    return Judgement(
        verdict=RuleVerdict.DENY,
        part="subagents",
        code="agent-not-allowed",
        rule=rule,
        message=sentences.not_startable(shown(str(wanted)), sorted(startable)),
    )


def _judgement(found: Ruling) -> Judgement:
    if found.verdict is RuleVerdict.ALLOW:
        return _NO_OBJECTION
    code = "denied" if found.verdict is RuleVerdict.DENY else "interrupt"
    return Judgement(found.verdict, "rules", code, found.name, found.path, found.message or "")


def _question(part: str, rule: str, message: str) -> Judgement:
    return Judgement(
        verdict=RuleVerdict.INTERRUPT, part=part, code="interrupt", rule=rule, message=message
    )


def _nobody(asked: Judgement, mode: Mode) -> Judgement:
    because = sentences.nobody_there if mode is Mode.AUTONOMOUS else sentences.nobody_to_ask
    message = f"{asked.message} {because}"
    return asked._replace(verdict=RuleVerdict.DENY, code="nobody-to-ask", message=message)


@dataclass(frozen=True, slots=True)
class _Nobody:
    """In the place of an authorizer that would ask a person."""

    id: str
    actions: Any
    inline: bool = True

    def authorize(self, _target: Target, _context: AuthorizerContext) -> Answer:
        return deny("it needs a person's approval, and nobody is there in this session")


@dataclass(frozen=True, slots=True)
class _Overheard:
    """An authorizer that asks a person; ``heard`` is told of it."""

    authorizer: Any
    heard: Heard
    id: str
    actions: Any
    timeout: Any
    inline: Any
    asks_person: bool = True

    def authorize(self, target: Target, context: AuthorizerContext) -> Any:
        self.heard(self.id, None)
        answer = self.authorizer.authorize(target, context)
        return self._later(answer) if isawaitable(answer) else self._told(answer)

    async def _later(self, answer: Awaitable[Any]) -> Any:
        return self._told(await answer)

    def _told(self, answer: Any) -> Any:
        if type(answer) is Answer:
            self.heard(self.id, answer.allowed is True)
        return answer


def _with_ear(authorizer: Any, heard: Heard) -> Any:
    if getattr(authorizer, "asks_person", False) is not True:
        return authorizer
    return _Overheard(
        authorizer,
        heard,
        id=str(authorizer.id),
        actions=getattr(authorizer, "actions", None),
        timeout=getattr(authorizer, "timeout", TIME_LIMIT),
        inline=getattr(authorizer, "inline", False),
    )


def _without_person(authorizer: Any) -> Any:
    if getattr(authorizer, "asks_person", False) is not True:
        return authorizer
    return _Nobody(str(authorizer.id), getattr(authorizer, "actions", None))
