"""Whether a prompt may attach what it mentions. Nobody can be asked then: it is the person who writes it."""

from __future__ import annotations

from agent_kit.policy import sentences
from agent_kit.policy.at_once import Chain, authorize_at_once
from agent_kit.policy.authorizers import denying
from agent_kit.policy.policy import Policy
from agent_kit.policy.rules import RuleVerdict
from agent_kit.policy.target import targets_of
from agent_kit.scope.judge import NamedPath

__all__ = ["refused_in_prompt"]


def refused_in_prompt(
    policy: Policy, named: tuple[NamedPath, ...], brought: tuple[NamedPath, ...] = ()
) -> str | None:
    """Why a prompt may not attach these files, or ``None``.

    ``named`` are those that it mentions itself, ``brought`` those that the file of its command does. A
    rule that denies, and ``deny_paths``, refuse both. A rule that asks refuses what is brought: whoever
    names a file in a prompt has agreed to that one alone. Other authorizers are not asked.
    """
    every = (*named, *brought)
    if policy.rules is not None:
        found = policy.rules.judge_named(every)
        if found.verdict is RuleVerdict.DENY:
            return found.message
        found = policy.rules.judge_named(brought, None, policy.remembered)
        if found.verdict is not RuleVerdict.ALLOW:
            return f"{found.message} {sentences.name_it}"
    if closing := denying(policy.authorizers):
        chain = Chain(closing)
        context = policy._context(policy.scope, None, None)
        for target in targets_of(policy.scope, "Read", {}, named=every) or ():
            done = authorize_at_once(chain, (target,), context)
            if done is None or done.refusal is not None:
                return sentences.off_limits(target.display_path)
    return None
