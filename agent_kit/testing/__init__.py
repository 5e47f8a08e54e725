"""Test your own agent on the real Claude Code CLI, without an account and without a network.

``run_session`` runs ``ClaudeAgentOptions`` on the CLI that the SDK bundles while a script plays the
model, and returns the calls, their results, which lock answered each, and everything that the model
was told. A canary in a closed file that ``SessionRun.saw`` doesn't find was never leaked.
``ScriptedModel`` and ``cli_env`` are the same thing in parts, for a program that connects by itself.
"""

from __future__ import annotations

from agent_kit.testing._calls import AnsweredBy, CallRecord
from agent_kit.testing._env import cli_env
from agent_kit.testing._model import ScriptedModel
from agent_kit.testing._plays import IssuedCall
from agent_kit.testing._requests import Request
from agent_kit.testing._run import PromptRecord, SessionRun
from agent_kit.testing._session import SessionTimeoutError, run_session
from agent_kit.testing._steps import Say, Script, Step, ToolCall, ToolResult, Turn
from agent_kit.testing._stores import check_document_store, document_store_claims
from agent_kit.testing._tree import tree

__all__ = [
    "AnsweredBy",
    "CallRecord",
    "IssuedCall",
    "PromptRecord",
    "Request",
    "Say",
    "Script",
    "ScriptedModel",
    "SessionRun",
    "SessionTimeoutError",
    "Step",
    "ToolCall",
    "ToolResult",
    "Turn",
    "check_document_store",
    "cli_env",
    "document_store_claims",
    "run_session",
    "tree",
]
