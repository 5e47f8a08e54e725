"""agent-kit: name once what an agent may touch, and hold it with independent locks.

Importing this package loads neither the SDK nor MCP: names are fetched when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_kit.confine.backend import ConfinementUnavailableError
    from agent_kit.extension import Contribution, Extension, ExtensionContext
    from agent_kit.policy import (
        Action,
        AuthorizerContext,
        FilePermission,
        Messages,
        RuleVerdict,
        Target,
        allow,
        ask_user,
        check_delete,
        check_permissions,
        check_search,
        content_check,
        deny,
        deny_paths,
        rate_limit,
        read_authorizers,
        read_limit,
        size_ceiling,
    )
    from agent_kit.policy.approval import Approval, approve, edit, reject
    from agent_kit.policy.deferred import Question, answer, pending_questions
    from agent_kit.policy.guard import Guard, Refused, RefusedError, guard
    from agent_kit.policy.modes import Mode, SessionMode
    from agent_kit.scope import (
        Access,
        Code,
        ConfigError,
        Decision,
        Fault,
        FileScope,
        ToolOnlyDir,
        Verdict,
        check_file_scope,
        explain_file_scope,
    )
    from agent_kit.sdk.audit import UnjudgedCallError, check_calls
    from agent_kit.sdk.gate import GateLog, create_file_scope_gate
    from agent_kit.sdk.prompt_gate import create_prompt_gate
    from agent_kit.session import (
        AgentSpec,
        Lock,
        SessionConfig,
        SessionPlan,
        Subagent,
        plan_session,
    )
    from agent_kit.session.check import LockLostError, check_options
    from agent_kit.session.guard import guard_options
    from agent_kit.session.options import (
        Session,
        build_session_options,
        open_session,
        options_from_plan,
    )
    from agent_kit.session.promise import session_mode
    from agent_kit.session.trail import read_trail
    from agent_kit.terminal import ask_in_terminal

__all__ = [
    "Access",
    "Action",
    "AgentSpec",
    "Approval",
    "AuthorizerContext",
    "Code",
    "ConfigError",
    "ConfinementUnavailableError",
    "Contribution",
    "Decision",
    "Extension",
    "ExtensionContext",
    "Fault",
    "FilePermission",
    "FileScope",
    "GateLog",
    "Guard",
    "Lock",
    "LockLostError",
    "Messages",
    "Mode",
    "Question",
    "Refused",
    "RefusedError",
    "RuleVerdict",
    "Session",
    "SessionConfig",
    "SessionMode",
    "SessionPlan",
    "Subagent",
    "Target",
    "ToolOnlyDir",
    "UnjudgedCallError",
    "Verdict",
    "__version__",
    "allow",
    "answer",
    "approve",
    "ask_in_terminal",
    "ask_user",
    "build_session_options",
    "check_calls",
    "check_delete",
    "check_file_scope",
    "check_options",
    "check_permissions",
    "check_search",
    "content_check",
    "create_file_scope_gate",
    "create_prompt_gate",
    "deny",
    "deny_paths",
    "edit",
    "explain_file_scope",
    "guard",
    "guard_options",
    "open_session",
    "options_from_plan",
    "pending_questions",
    "plan_session",
    "rate_limit",
    "read_authorizers",
    "read_limit",
    "read_trail",
    "reject",
    "session_mode",
    "size_ceiling",
]

__version__ = "0.1.0"

_HOMES = {
    "agent_kit.scope": (
        "Access",
        "Code",
        "ConfigError",
        "Decision",
        "Fault",
        "FileScope",
        "ToolOnlyDir",
        "Verdict",
        "check_file_scope",
        "explain_file_scope",
    ),
    "agent_kit.confine.backend": ("ConfinementUnavailableError",),
    "agent_kit.session": (
        "AgentSpec",
        "Lock",
        "SessionConfig",
        "SessionPlan",
        "Subagent",
        "plan_session",
    ),
    "agent_kit.policy.approval": (
        "Approval",
        "approve",
        "edit",
        "reject",
    ),
    "agent_kit.policy.deferred": (
        "Question",
        "answer",
        "pending_questions",
    ),
    "agent_kit.policy.guard": (
        "Guard",
        "Refused",
        "RefusedError",
        "guard",
    ),
    "agent_kit.policy": (
        "Action",
        "AuthorizerContext",
        "FilePermission",
        "Messages",
        "RuleVerdict",
        "Target",
        "allow",
        "ask_user",
        "check_delete",
        "check_permissions",
        "check_search",
        "content_check",
        "deny",
        "deny_paths",
        "rate_limit",
        "read_authorizers",
        "read_limit",
        "size_ceiling",
    ),
    "agent_kit.policy.modes": (
        "Mode",
        "SessionMode",
    ),
    "agent_kit.session.trail": ("read_trail",),
    "agent_kit.terminal": ("ask_in_terminal",),
    # These load the SDK.
    "agent_kit.session.options": (
        "Session",
        "build_session_options",
        "open_session",
        "options_from_plan",
    ),
    "agent_kit.session.promise": ("session_mode",),
    "agent_kit.session.check": ("LockLostError", "check_options"),
    "agent_kit.session.guard": ("guard_options",),
    "agent_kit.sdk.gate": ("GateLog", "create_file_scope_gate"),
    "agent_kit.sdk.prompt_gate": ("create_prompt_gate",),
    "agent_kit.sdk.audit": ("UnjudgedCallError", "check_calls"),
    "agent_kit.extension": ("Contribution", "Extension", "ExtensionContext"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if (module := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
