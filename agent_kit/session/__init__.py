"""The builder: a spec and a config become a plan, and the plan becomes options.

Planning needs no SDK; ``agent_kit.session.options`` is where it is loaded.
"""

from agent_kit.session.config import SessionConfig
from agent_kit.session.locks import Lock
from agent_kit.session.plan import SessionPlan, plan_session
from agent_kit.session.spec import AgentSpec, Subagent

__all__ = ["AgentSpec", "Lock", "SessionConfig", "SessionPlan", "Subagent", "plan_session"]
