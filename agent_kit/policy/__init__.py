"""Rules and authorizers inside a scope: they refuse or ask, and never widen it.

Nothing here imports the SDK or MCP. Names are fetched when they are first used: a session without
rules loads none of this.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_kit.policy.authorizers import (
        ask_user,
        deny_paths,
        rate_limit,
        read_authorizers,
        size_ceiling,
    )
    from agent_kit.policy.compiled import RuleList, compile_rules
    from agent_kit.policy.contents import content_check, read_limit
    from agent_kit.policy.delete import check_delete
    from agent_kit.policy.evaluate import check_permissions, check_search
    from agent_kit.policy.outcome import Action, Answer, Messages, Refusal, RefusalCode, allow, deny
    from agent_kit.policy.rule_sets import RuleSets, Ruling, compile_rule_sets, own_rules
    from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict, read_rules
    from agent_kit.policy.run import (
        Authorized,
        Authorizer,
        authorize_call,
        authorizer_faults,
        run_authorizers,
    )
    from agent_kit.policy.shadows import Shadow
    from agent_kit.policy.target import AuthorizerContext, Target, targets_of

__all__ = [
    "Action",
    "Answer",
    "Authorized",
    "Authorizer",
    "AuthorizerContext",
    "FilePermission",
    "Messages",
    "Operation",
    "Refusal",
    "RefusalCode",
    "RuleList",
    "RuleSets",
    "RuleVerdict",
    "Ruling",
    "Shadow",
    "Target",
    "allow",
    "ask_user",
    "authorize_call",
    "authorizer_faults",
    "check_delete",
    "check_permissions",
    "check_search",
    "compile_rule_sets",
    "compile_rules",
    "content_check",
    "deny",
    "deny_paths",
    "own_rules",
    "rate_limit",
    "read_authorizers",
    "read_limit",
    "read_rules",
    "run_authorizers",
    "size_ceiling",
    "targets_of",
]

_HOMES = {
    "authorizers": ("ask_user", "deny_paths", "rate_limit", "read_authorizers", "size_ceiling"),
    "compiled": ("RuleList", "compile_rules"),
    "contents": ("content_check", "read_limit"),
    "delete": ("check_delete",),
    "evaluate": ("check_permissions", "check_search"),
    "outcome": ("Action", "Answer", "Messages", "Refusal", "RefusalCode", "allow", "deny"),
    "rule_sets": ("RuleSets", "Ruling", "compile_rule_sets", "own_rules"),
    "rules": ("FilePermission", "Operation", "RuleVerdict", "read_rules"),
    "run": ("Authorized", "Authorizer", "authorize_call", "authorizer_faults", "run_authorizers"),
    "shadows": ("Shadow",),
    "target": ("AuthorizerContext", "Target", "targets_of"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if (module := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
