"""The names of the SDK's options are known to a plan, which doesn't import the SDK."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import AgentSpec, ConfigError, plan_session
from agent_kit.session import sdk_options


def test_the_names_are_those_of_the_installed_sdk() -> None:
    names = {field.name for field in dataclasses.fields(ClaudeAgentOptions)}
    assert sdk_options.option_names() == names


def test_an_unknown_option_comes_with_every_other_fault_of_a_plan(world) -> None:
    assert world.faults(
        spec={"options": {"max_budget": 5, "foo": 1, "settings": {"hooks": {}}}},
        extra_readable_dirs=["missing"],
    ) == [
        ("extra_readable_dirs", "missing"),
        ("options['max_budget']", 5),
        ("options['foo']", 1),
        ("options['settings']['hooks']", {}),
    ]


def test_the_option_that_was_meant_is_named(world) -> None:
    with pytest.raises(ConfigError, match="did you mean 'max_budget_usd'"):
        plan_session(world.spec(options={"max_budget_used": 5}), world.config())


def test_planning_with_options_does_not_load_the_sdk(tmp_path: Path) -> None:
    code = """
import sys
from agent_kit import AgentSpec, ConfigError, SessionConfig, plan_session
try:
    plan_session(AgentSpec(name="a", options={"foo": 1}), SessionConfig(workspace=sys.argv[1]))
except ConfigError as error:
    print(error)
print("claude_agent_sdk" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    fault, loaded = done.stdout.splitlines()
    assert fault.startswith("options['foo']=1: ")
    assert loaded == "False"


@pytest.mark.parametrize(
    "source", ["", "class Other: pass\n", "class ClaudeAgentOptions\n\nx = 1\n"]
)
def test_a_source_that_can_not_be_read_leaves_it_to_the_building(
    world, monkeypatch, tmp_path: Path, source: str
) -> None:
    (tmp_path / "claude_agent_sdk").mkdir()
    (tmp_path / "claude_agent_sdk/__init__.py").write_text("")
    (tmp_path / "claude_agent_sdk/types.py").write_text(source)
    spec = sdk_options.importlib.util.spec_from_file_location(
        "claude_agent_sdk", tmp_path / "claude_agent_sdk/__init__.py"
    )
    sdk_options.option_names.cache_clear()
    monkeypatch.setattr(sdk_options.importlib.util, "find_spec", lambda _: spec)
    assert sdk_options.option_names() is None
    assert world.plan(spec={"options": {"foo": 1}})
    sdk_options.option_names.cache_clear()


def test_options_that_would_drop_the_gate_are_faults_at_once(faults) -> None:
    assert faults(
        lambda: AgentSpec(
            name="a",
            options={"can_use_tool": print, "hooks": {"PermissionRequest": []}, "sandbox": {}},
        )
    ) == [
        ("options['can_use_tool']", print),
        ("options['sandbox']", {}),
        ("options['hooks']", "PermissionRequest"),
    ]
