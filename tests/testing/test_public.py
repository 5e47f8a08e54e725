"""The public face of agent_kit.testing."""

from __future__ import annotations

import agent_kit.testing


def test_the_public_names_are_these() -> None:
    assert agent_kit.testing.__all__ == [
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


def test_every_public_name_is_there() -> None:
    missing = [n for n in agent_kit.testing.__all__ if not hasattr(agent_kit.testing, n)]
    assert missing == []
