"""What is particular to the SDK: sizes, names, approvals, flags, start-up and units of time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from claude_agent_sdk import PermissionResultAllow, create_sdk_mcp_server, tool

from agent_kit import ConfigError, Contribution, FileScope, create_file_scope_gate, plan_session
from agent_kit.sdk.approval import approve_within
from agent_kit.sdk.gate import GATE_TIMEOUT, HOOK_TIMEOUT
from agent_kit.session.options import BUFFER_SIZE
from agent_kit.testing import Say, ScriptedModel, ToolCall, cli_env
from tests.flag_settings import settings_text


@pytest.mark.report(123)
def test_a_message_may_be_larger_than_the_sdk_has_it(world) -> None:
    assert BUFFER_SIZE == 64 * 1024 * 1024
    assert world.options().max_buffer_size == BUFFER_SIZE
    larger = {"options": {"max_buffer_size": 2 * BUFFER_SIZE}}
    assert world.options(spec=larger).max_buffer_size == 2 * BUFFER_SIZE
    assert world.options(spec={"options": {"max_buffer_size": None}}).max_buffer_size == BUFFER_SIZE


@pytest.mark.e2e
@pytest.mark.report(123)
def test_on_the_cli_a_line_over_a_mebibyte_does_not_end_the_session(world) -> None:
    world.has("project/open/long.txt=" + "found " * 250_000 + "\nend")
    run = world.run(
        world.options(extra_readable_dirs=["open"]),
        [
            ToolCall("Grep", {"pattern": "found", "path": "open", "output_mode": "content"}),
            ToolCall("Grep", {"pattern": "end", "path": "open", "output_mode": "content"}),
            Say("still here"),
        ],
    )
    assert run.text == "still here"
    assert [call.is_error for call in run.calls] == [False, False]


class Named:
    """An extension of any name, with a server of any name."""

    provides = requires = ()
    plugin_dir = None

    def __init__(self, name: Any, server: Any = "kb", tools: tuple[str, ...] = ()) -> None:
        self.name, self.server, self.tools = name, server, tools

    def missing(self, _context: object) -> None:
        return None

    def contribute(self, _context: object) -> Contribution:
        return Contribution(
            mcp_servers={self.server: {"type": "stdio", "command": "x"}}, read_only_tools=self.tools
        )


BAD_NAMES = ["my kb.x", "kb(1)", "kb/x", "", "é", "a" * 80, "kb\n", "kb.x", "a,b", 5]


@pytest.mark.report(124)
@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_a_name_that_the_api_refuses_is_a_fault(world, name: Any) -> None:
    for fields in (
        {"extensions": [Named(name)]},
        {"extensions": [Named("kb", server=name)]},
        {"mcp_servers": {name: {"type": "stdio", "command": "x"}}},
    ):
        with pytest.raises(ConfigError) as caught:
            world.plan(spec=fields)
        assert any(fault.value == name for fault in caught.value.faults)
        assert all(fault.remedy for fault in caught.value.faults)


@pytest.mark.report(124)
def test_a_tools_whole_name_stays_within_64_characters(world) -> None:
    longest = "a" * (64 - len("mcp____") - 1)
    world.plan(spec={"mcp_servers": {longest: {"type": "stdio", "command": "x"}}})
    with pytest.raises(ConfigError):
        world.plan(spec={"mcp_servers": {longest + "a": {"type": "stdio", "command": "x"}}})
    fits = f"mcp__kb__{'t' * (64 - len('mcp__kb__'))}"
    world.plan(spec={"extensions": [Named("kb", tools=(fits,))]})
    with pytest.raises(ConfigError):
        world.plan(spec={"extensions": [Named("kb", tools=(fits + "t",))]})


def echo_server() -> Any:
    @tool("echo", "Says it again.", {"text": str})
    async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"heard {arguments!r}"}]}

    return create_sdk_mcp_server("kb", tools=[echo])


@pytest.mark.report(125)
async def test_an_approval_says_nothing_of_the_input() -> None:
    can_use_tool = approve_within(FileScope(project_dir="/w", platform="posix"), cwd="/w")
    answer = await can_use_tool("mcp__kb__echo", {"text": "x"}, None)
    assert isinstance(answer, PermissionResultAllow)
    assert answer.updated_input is None
    assert answer.updated_permissions is None


@pytest.mark.e2e
@pytest.mark.report(125)
def test_on_the_cli_an_approved_mcp_call_keeps_its_arguments(world) -> None:
    options = world.options(spec={"mcp_servers": {"kb": echo_server}})
    run = world.run(options, [ToolCall("mcp__kb__echo", {"text": "hello"}), Say("x")])
    assert run.calls[0].result == "heard {'text': 'hello'}"


@pytest.mark.report(126)
def test_no_path_is_in_the_flags_that_are_split_at_commas(world) -> None:
    world.has("project/a, Bash/", "project/b, Read/", "project/skills, x/plugin/")
    options = world.options(
        denied_paths=["a, Bash/k", "/w/a, Bash", "x, mcp__kb__echo"],
        extra_readable_dirs=["b, Read"],
        extra_writable_dirs=["a, Bash"],
        spec={
            "disallowed_tools": ["WebSearch", "WebFetch(domain:a.example,b.example)"],
            "tools": ["WebFetch(domain:c, Bash)"],
        },
    )
    assert options.allowed_tools == []
    assert options.disallowed_tools == ["WebSearch"]
    settings = settings_text(options)
    assert "a, Bash/k" in settings
    assert "WebFetch(domain:a.example,b.example)" in settings


@pytest.mark.report(126)
@pytest.mark.parametrize(
    "rule", ["Read(//w/a, Bash/k)", "Edit(x)", "Write(/w/*)", "Glob(x)", "NotebookEdit(x)"]
)
def test_a_rule_with_a_path_is_a_fault_in_the_lists_of_tools(world, rule: str) -> None:
    for field in ("tools", "disallowed_tools"):
        with pytest.raises(ConfigError) as caught:
            world.spec(**{field: [rule]})
        assert [(fault.field, fault.value) for fault in caught.value.faults] == [(field, rule)]


@pytest.mark.report(126)
@pytest.mark.parametrize("name", ["a, Bash", "x)", "(x", "*", "", " x", "x\n", "all,Bash"])
def test_a_skill_can_not_smuggle_a_rule_in(world, name: str) -> None:
    with pytest.raises(ConfigError):
        world.spec(skills=[name])


@pytest.mark.e2e
@pytest.mark.report(127)
async def test_a_plain_query_reaches_the_servers_of_the_extensions(world) -> None:
    from claude_agent_sdk import ResultMessage, query

    from agent_kit_knowledge import knowledge

    world.has("project/knowledge/")
    spec = {"extensions": [knowledge()], "mcp_servers": {"kb": echo_server}}
    script = [
        (
            ToolCall("mcp__knowledge__knowledge_index", {}),
            ToolCall("mcp__kb__echo", {"text": "hello"}),
        ),
        Say("done"),
    ]
    with ScriptedModel(script) as model:
        options = world.options(spec=spec, env=cli_env(model, world.home))
        messages = [message async for message in query(prompt="Go.", options=options)]
    assert [message.result for message in messages if isinstance(message, ResultMessage)] == [
        "done"
    ]
    assert [model.results[call.call_id].is_error for call in model.issued] == [False, False]


@pytest.mark.report(128)
def test_time_limits_are_seconds_and_below_a_minute(world) -> None:
    assert 1 <= GATE_TIMEOUT < HOOK_TIMEOUT <= 60
    options = world.options()
    for matchers in options.hooks.values():
        for matcher in matchers:
            assert matcher.timeout is not None
            assert 1 <= matcher.timeout <= 60
    assert (
        create_file_scope_gate(plan_session(world.spec(), world.config()).scope).timeout
        == HOOK_TIMEOUT
    )


@pytest.mark.report(127)
def test_the_least_sdk_is_a_number_and_no_newer_than_the_one_here() -> None:
    from importlib.metadata import requires, version
    from pathlib import Path

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    (least,) = re.findall(r'"claude-agent-sdk>=([\d.]+)"', text)
    here = tuple(map(int, version("claude-agent-sdk").split(".")))
    assert tuple(map(int, least.split("."))) <= here
    assert requires("claude-agent-sdk")
