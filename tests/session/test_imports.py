"""What an import loads, and the names that are public."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import agent_kit

HEAVY = ("claude_agent_sdk", "mcp", "anyio", "pydantic", "starlette", "typer", "rich")
# Slow to load, and needed by few sessions: imported where they are used.
LATE = ("platformdirs", "pathspec", "bracex", "frontmatter", "yaml")


def loaded_by(code: str, *arguments: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after ``code``."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys, json\n{code}\nprint(json.dumps([*sys.modules]))",
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize(
    "module",
    [
        "agent_kit",
        "agent_kit.scope",
        "agent_kit.extension",
        "agent_kit.session",
        "agent_kit.confine",
    ],
)
def test_an_import_loads_neither_the_sdk_nor_mcp_nor_what_is_slow(module: str) -> None:
    assert loaded_by(f"import {module}") & {*HEAVY, *LATE} == set()


def test_planning_loads_neither_the_sdk_nor_mcp(tmp_path: Path) -> None:
    (tmp_path / "project" / "sources").mkdir(parents=True)
    code = """
from agent_kit import AgentSpec, SessionConfig, Subagent, plan_session, check_file_scope
from agent_kit_sources import sources
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
root = sys.argv[1]
spec = AgentSpec(name="a", extensions=[sources(), knowledge(), memory(dir="memory")],
                 subagents={"h": Subagent(description="d", prompt="p")}, tools=["WebFetch"])
config = SessionConfig(project_dir=root + "/project", run_dir=root + "/run", denied_paths=["**/.env", "x/{a,b}*"],
                       settings={"language": "Latin"})
plan = plan_session(spec, config)
assert plan.locks["gate"].on and plan.settings["permissions"]["deny"]
assert check_file_scope(plan.scope, "Read", {"file_path": "x"})
"""
    assert loaded_by(code, str(tmp_path)) & set(HEAVY) == set()


def test_the_public_names_are_these() -> None:
    assert sorted(agent_kit.__all__) == [
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


def test_every_public_name_is_there_and_stays_the_same() -> None:
    for name in agent_kit.__all__:
        assert getattr(agent_kit, name) is getattr(agent_kit, name)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        agent_kit.nothing_of_this_name  # noqa: B018


def test_the_version_is_the_distributions() -> None:
    import tomllib

    project = Path(agent_kit.__file__).parents[1] / "pyproject.toml"
    assert (
        tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
        == agent_kit.__version__
    )


def test_a_session_is_planned_where_there_are_no_posix_modules() -> None:
    """As on Windows, where nothing confines a session."""
    missing = ("fcntl", "grp", "pwd", "resource", "termios")
    code = f"""
for name in {missing!r}:
    sys.modules[name] = None
import agent_kit
agent_kit.plan_session, agent_kit.SessionPlan
import agent_kit.confine.choice
"""
    assert "agent_kit" in loaded_by(code)
