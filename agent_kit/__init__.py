"""agent-kit: name once what an agent may touch, and hold it with independent locks.

Importing this package loads neither the SDK nor MCP: names are fetched when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_kit.confine.backend import ConfinementUnavailableError
    from agent_kit.extension import Contribution, Extension, ExtensionContext
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

__all__ = [
    "Access",
    "AgentSpec",
    "Code",
    "ConfigError",
    "ConfinementUnavailableError",
    "Contribution",
    "Decision",
    "Extension",
    "ExtensionContext",
    "Fault",
    "FileScope",
    "GateLog",
    "Lock",
    "LockLostError",
    "Session",
    "SessionConfig",
    "SessionPlan",
    "Subagent",
    "ToolOnlyDir",
    "UnjudgedCallError",
    "Verdict",
    "__version__",
    "build_session_options",
    "check_calls",
    "check_file_scope",
    "check_options",
    "create_file_scope_gate",
    "create_prompt_gate",
    "explain_file_scope",
    "guard_options",
    "open_session",
    "options_from_plan",
    "plan_session",
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
    # These load the SDK.
    "agent_kit.session.options": (
        "Session",
        "build_session_options",
        "open_session",
        "options_from_plan",
    ),
    "agent_kit.session.check": ("LockLostError", "check_options"),
    "agent_kit.session.guard": ("guard_options",),
    "agent_kit.sdk.gate": ("GateLog", "create_file_scope_gate"),
    "agent_kit.sdk.prompt_gate": ("create_prompt_gate",),
    "agent_kit.sdk.audit": ("UnjudgedCallError", "check_calls"),
    "agent_kit.extension": ("Contribution", "Extension", "ExtensionContext"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if (module := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
