"""``AgentSpec`` and ``Subagent``: what is wrong with them is said at once, and before the disk."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, ConfigError, Subagent
from agent_kit.session.tool_names import COMMAND_TOOLS, KNOWN_TOOLS, meant

GOOD = Subagent(description="d", prompt="p")

BAD: dict[str, list[Any]] = {
    "name": ["", "a b", "ä", "a/b", "..", "a\n", None, 5, ["a"]],
    "version": [1, None],
    "description": [5, None],
    "system_prompt": [None, 5, ["x"], b"x"],
    "preset": ["claude", "", 5, True],
    "model": ["", 5, []],
    "extensions": ["sources", 5, None],
    "plugins": ["plugin", 5, None],
    "tools": ["Read", None, {"Read"}],
    "disallowed_tools": ["Read", None],
    "setting_sources": ["project", None, "all"],
    "skills": ["all", None],
    "subagents": [[], None, "a"],
    "mcp_servers": [[], None, "servers.json"],
    "options": [[], None, "x"],
}
BAD_ITEMS: dict[str, list[Any]] = {
    "extensions": ["sources", None, 5, 0j, dict],
    "plugins": ["", None, 5],
    "tools": [
        "",
        "Read,Bash",
        "default",
        "DEFAULT",
        "Bash(",
        "Bash)",
        "Bash()",
        " Bash",
        "Bash ",
        "1x",
        None,
        "*",
        "Read(//x)",
        "Write(x)",
    ],
    "disallowed_tools": ["", "Read(//x)", "Edit(/x/**)", "*", "default"],
    "setting_sources": ["Project", "managed", "", None, 5, []],
    "skills": ["", "a,b", "a(b)", "*", " a", "a ", "a\n", None],
}


@pytest.mark.parametrize(
    ("field", "value"), [(f, v) for f, vs in BAD.items() for v in vs], ids=repr
)
def test_a_wrong_value_is_a_fault_with_its_field_and_value(field: str, value: Any, faults) -> None:
    assert faults(lambda: AgentSpec(**{"name": "a", field: value})) == [(field, value)]


@pytest.mark.parametrize(
    ("field", "item"), [(f, v) for f, vs in BAD_ITEMS.items() for v in vs], ids=repr
)
def test_a_wrong_item_is_a_fault_and_its_neighbours_are_none(field: str, item: Any, faults) -> None:
    good = {
        "tools": "WebFetch",
        "disallowed_tools": "Agent",
        "setting_sources": "user",
        "skills": "s",
        "plugins": "p",
    }
    items = [good[field], item] if field in good else [item]
    assert faults(lambda: AgentSpec(name="a", **{field: items})) == [(field, item)]


@pytest.mark.parametrize(
    "tool",
    [
        "Bash",
        "Bash(git status:*)",
        "WebFetch(domain:example.org)",
        "mcp__kb__read",
        "Agent(Explore)",
        "Bash(a (b) c)",
        "Read",
    ],
)
def test_a_tools_name_and_a_rule_that_narrows_are_none(tool: str) -> None:
    assert AgentSpec(name="a", tools=[tool], disallowed_tools=[tool]).tools == (tool,)


MISSPELT = {
    "Bsh": "Bash",
    "bash": "Bash",
    "BASH(git *)": "Bash",
    "WebFetsh": "WebFetch",
    "webfetch(domain:a.example)": "WebFetch",
    "Reed": "Read",
    "Raed": "Read",
    "Grpe": "Grep",
    "powershell": "PowerShell",
    "NotebokEdit": "NotebookEdit",
}


@pytest.mark.parametrize("tool", MISSPELT)
def test_a_tool_that_is_misspelt_is_a_fault_that_says_what_may_be_meant(tool: str, faults) -> None:
    for field in ("tools", "disallowed_tools"):
        make = lambda: AgentSpec(name="a", **{field: ["WebSearch", tool]})  # noqa: B023, E731
        assert faults(make) == [(field, tool)]
        with pytest.raises(ConfigError, match=rf"did you mean {MISSPELT[tool]}\?"):
            make()
    assert faults(lambda: Subagent(description="d", prompt="p", tools=[tool])) == [("tools", tool)]


@pytest.mark.parametrize(
    "tool",
    [
        "a_tool_of_a_later_CLI",
        "TeamCreate",
        "LSP",
        "REPL",
        "Delete",
        "Search",
        "TaskRun",
        "self_hosted_runner_x",
        "mcp__web__webfetch",
        "mcp__b__bash",
    ],
)
def test_a_tool_that_resembles_none_is_taken_as_it_is(tool: str) -> None:
    assert AgentSpec(name="a", tools=[tool], disallowed_tools=[tool]).tools == (tool,)
    Subagent(description="d", prompt="p", tools=[tool])


def test_no_tool_that_the_kit_knows_passes_for_another() -> None:
    for tool in KNOWN_TOOLS | COMMAND_TOOLS:
        assert meant(tool) is None


@pytest.mark.parametrize("name", ["a b", "", "ä", 5, "a/b"], ids=repr)
def test_a_subagents_name_is_letters_digits_and_dashes(name: Any, faults) -> None:
    assert faults(lambda: AgentSpec(name="a", subagents={name: GOOD})) == [
        ("subagents", {name: GOOD})
    ]


def test_a_subagent_is_a_subagent(faults) -> None:
    definition = {"description": "d", "prompt": "p"}
    assert faults(lambda: AgentSpec(name="a", subagents={"x": definition})) == [
        ("subagents", {"x": definition})
    ]


@pytest.mark.parametrize("server", ["x", None, 5, ["x"]], ids=repr)
def test_a_server_is_a_configuration_or_makes_one(server: Any, faults) -> None:
    assert faults(lambda: AgentSpec(name="a", mcp_servers={"kb": server})) == [
        ("mcp_servers['kb']", server)
    ]
    AgentSpec(name="a", mcp_servers={"kb": {"type": "stdio"}, "other": lambda: {}})


@pytest.mark.parametrize(
    ("server", "value", "says"),
    [
        ({"comand": "x"}, "comand", "did you mean 'command'"),
        ({"command": "x", "arg": ["a"]}, "arg", "did you mean 'args'"),
        ({"type": "http", "header": {}, "ulr": "x"}, "header", "did you mean 'headers'"),
        ({"cmd": "x", "args": ["sk-key"]}, "cmd, args", "give a 'command', a 'url', or"),
    ],
)
def test_a_servers_misspelt_name_is_a_fault_that_shows_no_value(
    server: dict[str, Any], value: str, says: str, faults
) -> None:
    make = lambda: AgentSpec(name="a", mcp_servers={"kb": server})  # noqa: E731
    assert faults(make) == [("mcp_servers['kb']", value)]
    with pytest.raises(ConfigError, match=says) as error:
        make()
    assert "sk-key" not in str(error.value)


@pytest.mark.parametrize(
    "server",
    [
        {},
        {"command": "x", "timeout": 5},
        {"type": "http", "url": "u", "headers": {}, "headersHelper": "h"},
        {"url": "u", "header": {}, "headers": {}},
    ],
    ids=repr,
)
def test_a_servers_other_names_are_the_clis_business(server: dict[str, Any]) -> None:
    AgentSpec(name="a", mcp_servers={"kb": server})


def test_a_fault_of_a_subagent_says_which_one_it_is() -> None:
    said = r'did you mean Read\? \(the subagent with the description "Audits\."\)'
    with pytest.raises(ConfigError, match=said):
        Subagent(description="Audits.", prompt="p", tools=["Raed"])
    with pytest.raises(ConfigError, match=r"give a list\.$"):
        Subagent(description=7, prompt="p", tools="Raed")  # type: ignore[arg-type]


def test_every_fault_of_a_subagent_comes_at_once(faults) -> None:
    found = faults(lambda: Subagent(description="", prompt=5, tools=["default", "Read(x)"]))  # type: ignore[arg-type]
    assert found == [("description", ""), ("prompt", 5), ("tools", "default"), ("tools", "Read(x)")]


def test_every_fault_of_a_spec_comes_at_once(faults) -> None:
    found = faults(
        lambda: AgentSpec(  # type: ignore[call-arg]
            name="a b",
            tool=["Bash"],
            preset="x",  # type: ignore[arg-type]
            tools=["default", "Read(x)"],
            options={"cwd": "/", "hooks": {"PreToolUSe": []}},
            subagents={"x y": GOOD},
        )
    )
    assert [field for field, _ in found] == [
        "tool",
        "name",
        "preset",
        "tools",
        "tools",
        "options['cwd']",
        "options['hooks']",
        "subagents",
    ]


def test_an_unknown_field_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError, match="did you mean 'extensions'"):
        AgentSpec(name="a", extension=[])  # type: ignore[call-arg]


def test_a_missing_name_is_a_fault(faults) -> None:
    assert faults(lambda: AgentSpec()) == [("name", None)]  # type: ignore[call-arg]


# --- options of the SDK -----------------------------------------------------------------------

# What may be said as AgentSpec.options. Everything else is the plan's, or would undo a lock.
PASSED = {
    "betas",
    "client_app",
    "debug_stderr",
    "effort",
    "enable_file_checkpointing",
    "fallback_model",
    "forward_subagent_text",
    "hooks",
    "include_hook_events",
    "include_partial_messages",
    "load_timeout_ms",
    "max_budget_usd",
    "max_buffer_size",
    "max_thinking_tokens",
    "output_format",
    "resume_drops_turn",
    "resume_session_at",
    "session_store",
    "session_store_flush",
    "settings",
    "stderr",
    "task_budget",
    "thinking",
    "user",
}


def test_every_option_of_the_sdk_is_passed_on_or_refused_with_a_remedy() -> None:
    from claude_agent_sdk import ClaudeAgentOptions

    names = {
        field.name
        for field in dataclasses.fields(ClaudeAgentOptions)
        if not field.name.startswith("_")
    }
    refused = set()
    for name in names:
        try:
            AgentSpec(name="a", options={name: {}})
        except ConfigError as error:
            (fault,) = error.faults
            assert fault.field == f"options[{name!r}]"
            refused.add(name)
    assert names - refused == PASSED & names


@pytest.mark.parametrize(
    "name",
    [
        "can_use_tool",
        "allowed_tools",
        "permission_mode",
        "add_dirs",
        "sandbox",
        "extra_args",
        "cwd",
        "env",
        "tools",
        "agents",
        "verbatim_prompts",
        "permission_prompt_tool_name",
        "fork_session",
        "setting_sources",
        "cli_path",
    ],
)
def test_an_option_that_would_undo_a_lock_is_a_fault(name: str, faults) -> None:
    assert faults(lambda: AgentSpec(name="a", options={name: None})) == [
        (f"options[{name!r}]", None)
    ]


# --- where it was defined ---------------------------------------------------------------------


def test_a_spec_knows_the_file_that_defines_it() -> None:
    assert AgentSpec(name="a")._defined_in == __file__


def test_a_changed_spec_is_defined_where_it_was_changed() -> None:
    spec = AgentSpec(name="a")
    assert dataclasses.replace(spec, name="b")._defined_in == __file__
    assert copy.deepcopy(spec)._defined_in == __file__


@pytest.mark.parametrize("folder", ["agent_kit_mine", "my"])
def test_a_module_beside_the_kit_is_not_taken_for_the_kit(folder: str, tmp_path: Path) -> None:
    package = tmp_path / folder
    package.mkdir()
    (package / "__init__.py").write_text(
        "from agent_kit import AgentSpec\nspec = AgentSpec(name='a')\n"
    )
    kit = Path(sys.modules["agent_kit"].__file__ or "").parent
    (tmp_path / "agent_kit").symlink_to(kit)
    code = f"import {folder}; print({folder}.spec._defined_in)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(package / "__init__.py")


def test_a_script_that_is_run_knows_itself(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "from agent_kit import AgentSpec\nprint(AgentSpec(name='a')._defined_in)\n"
    )
    kit = Path(sys.modules["agent_kit"].__file__ or "").parents[1]
    done = subprocess.run(
        [sys.executable, "agent.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(kit)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(tmp_path / "agent.py")


# --- values -----------------------------------------------------------------------------------


def test_a_spec_is_frozen_and_its_lists_are_tuples() -> None:
    spec = AgentSpec(
        name="a", tools=["WebFetch"], plugins=[Path("p")], skills=["s"], setting_sources=["user"]
    )
    assert (spec.tools, spec.plugins, spec.skills, spec.setting_sources) == (
        ("WebFetch",),
        ("p",),
        ("s",),
        ("user",),
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.name = "b"  # type: ignore[misc]
    assert AgentSpec(name="a").setting_sources == ("project",)
