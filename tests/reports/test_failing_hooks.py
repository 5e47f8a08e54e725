"""Hooks that are late, wrong, missing or overruled never open what the gate closes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from claude_agent_sdk import HookMatcher, PermissionResultAllow, PermissionResultDeny

from agent_kit import (
    FileScope,
    UnjudgedCallError,
    build_session_options,
    check_calls,
    create_file_scope_gate,
    plan_session,
)
from agent_kit.sdk.approval import approve_within
from agent_kit.sdk.gate import GATE_TIMEOUT, HOOK_TIMEOUT, GateLog
from agent_kit.sdk.hooks import EVENTS, chain
from agent_kit.session.options import options_from_plan
from agent_kit.testing import AnsweredBy, Say, ToolCall

SCOPE = FileScope(
    project_dir="/w", searchable_dirs=["open"], denied_paths=["/w/.env"], platform="posix"
)
CLOSED_CALL = ("Read", {"file_path": "/w/.env"})
OPEN_CALL = ("Read", {"file_path": "/w/open/a"})


def payload(tool: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": fields,
        "cwd": "/w",
        **more,
    }


async def answer(
    tool: str, fields: dict[str, Any], *before: Any, more: dict[str, Any] | None = None, **gate: Any
) -> Any:
    matcher = create_file_scope_gate(SCOPE, before=chain(before), **gate)
    return await matcher.hooks[0](payload(tool, fields, **(more or {})), "id", None)


def decision(answered: dict[str, Any]) -> str | None:
    return answered.get("hookSpecificOutput", {}).get("permissionDecision")


def pre(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


@pytest.mark.report(69)
async def test_a_late_callback_is_refused_by_the_gate_before_the_cli_gives_up() -> None:
    assert 0 < GATE_TIMEOUT < HOOK_TIMEOUT

    async def late(*_: Any) -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    answered = await answer(*OPEN_CALL, late, timeout=0.01)
    assert decision(answered) == "deny"
    assert "too long" in answered["hookSpecificOutput"]["permissionDecisionReason"]
    for timeout in (0.01, 5, GATE_TIMEOUT, 40):
        matcher = create_file_scope_gate(SCOPE, timeout=timeout)
        assert matcher.timeout is not None
        assert matcher.timeout > timeout
        assert matcher.on_failure == "block"


@pytest.mark.e2e
@pytest.mark.report(69, 73, 74, 75, 76, 77, 78, 79)
def test_on_the_cli_no_callback_and_no_subagent_gets_past_the_gate(world) -> None:
    from agent_kit import Subagent

    world.has(
        "project/open/a.md=canary-open",
        "project/open/late.md=canary-late",
        "project/open/rewritten.md=canary-rewritten",
        "project/open/asked.md=canary-asked",
        "project/closed.md=canary-closed",
        "out/there.md=canary-out",
    )

    async def callback(data: Any, *_: Any) -> dict[str, Any]:
        path = data["tool_input"].get("file_path", "")
        if path.endswith("late.md"):
            await asyncio.sleep(60)
        if path.endswith("rewritten.md"):
            return pre(updatedInput={"file_path": str(world.project / "closed.md")})
        if path.endswith("asked.md"):
            return pre(permissionDecision="ask", permissionDecisionReason="may it?")
        return pre(permissionDecision="allow", permissionDecisionReason="fine")

    def read(name: str) -> ToolCall:
        return ToolCall("Read", {"file_path": str(world.project / name)})

    def agent(prompt: str, *, background: bool) -> ToolCall:
        fields = {"description": "d", "subagent_type": "helper", "run_in_background": background}
        steps = (read("closed.md"), read("open/a.md"), read("../out/there.md"))
        return ToolCall("Agent", {**fields, "prompt": prompt}, script=[steps, Say("done")])

    plan = plan_session(
        world.spec(subagents={"helper": Subagent(description="d", prompt="p")}),
        world.config(extra_readable_dirs=["open"], hooks={"PreToolUse": [callback]}),
    )
    log = GateLog()
    options = options_from_plan(plan, log=log)
    gate = create_file_scope_gate(plan.scope, before=chain([callback]), log=log, timeout=0.5)
    options.hooks["PreToolUse"] = [gate]
    run = world.run(
        options,
        [
            (read("closed.md"), read("missing.md"), read("../out/there.md"), read("open/a.md")),
            (read("open/late.md"), read("open/rewritten.md"), read("open/asked.md")),
            agent("in the foreground", background=False),
            agent("in the background", background=True),
            read("closed.md"),
            Say("x"),
        ],
        wait_for_background=True,
    )
    check_calls(run.messages, log)
    reads = [call for call in run.calls if call.tool == "Read"]
    let_through = [call.input["file_path"] for call in reads if not call.is_error]
    assert let_through == [str(world.project / "open/a.md")] * 3
    assert {call.agent for call in reads} == {None, "helper"}
    present, missing = reads[0], reads[1]
    assert present.result.replace("closed.md", "missing.md") == missing.result
    late = next(call for call in reads if call.input["file_path"].endswith("late.md"))
    assert late.lock is AnsweredBy.GATE
    assert "too long" in late.result
    for canary in ("closed", "late", "rewritten", "asked", "out"):
        assert not run.saw(f"canary-{canary}")
    assert run.saw("canary-open")


@pytest.mark.report(71)
async def test_the_gate_sees_every_tool_whatever_its_name() -> None:
    names = [
        "Read",
        "read",
        "Rea",
        "mcp__kb__x",
        "mcp__my-kb__x",
        "Bash",
        "FutureTool",
        "",
        " ",
        "日本",
    ]
    log = GateLog()
    matcher = create_file_scope_gate(SCOPE, log=log)
    assert matcher.matcher is None
    for at, name in enumerate(names):
        answered = await matcher.hooks[0](payload(name, {"path": "/etc/x"}), str(at), None)
        assert decision(answered) in (None, "deny")
    assert log.seen == {str(at) for at in range(len(names))}


MATCHERS = {
    # as the CLI reads it: plain names exactly, and anything else as an expression found anywhere
    "Read": True,
    "Rea": False,
    "read": False,
    "Read|Write": True,
    "Write, Read": True,
    "Read|": True,
    " Read": True,
    "Read-x": False,
    "ead$": True,
    "^Rea": True,
    "Re.": True,
    "R.*d": True,
    "Write.*": False,
    "*": True,
    "": True,
    None: True,
}


@pytest.mark.report(71)
@pytest.mark.parametrize(("matcher", "called"), MATCHERS.items(), ids=repr)
async def test_a_hosts_matcher_means_inside_the_gate_what_it_means_to_the_cli(
    matcher: str | None, called: bool
) -> None:
    seen = []

    async def callback(data: Any, *_: Any) -> dict[str, Any]:
        seen.append(data["tool_name"])
        return {}

    await answer(*OPEN_CALL, HookMatcher(matcher=matcher, hooks=[callback]))
    assert bool(seen) is called


@pytest.mark.e2e
@pytest.mark.report(71)
def test_the_cli_reads_those_matchers_so(world) -> None:
    from claude_agent_sdk import ClaudeAgentOptions

    world.has("project/a=x")
    seen: set[str | None] = set()

    def noting(matcher: str | None) -> HookMatcher:
        async def callback(*_: Any) -> dict[str, Any]:
            seen.add(matcher)
            return {}

        return HookMatcher(matcher=matcher, hooks=[callback])

    options = ClaudeAgentOptions(
        cwd=str(world.project),
        tools=["Read"],
        setting_sources=[],
        hooks={"PreToolUse": [noting(m) for m in MATCHERS]},
    )
    world.run(options, [ToolCall("Read", {"file_path": "a"}), Say("x")])
    assert seen == {matcher for matcher, called in MATCHERS.items() if called}


@pytest.mark.report(72)
@pytest.mark.parametrize(
    "tool", ["mcp__kb__write", "mcp__plugin_p_kb__write", "mcp__plugin_my-plugin_kb__write"]
)
def test_a_plugins_server_is_known_by_both_of_its_names(tool: str) -> None:
    from agent_kit import check_file_scope

    scope = FileScope(
        project_dir="/w",
        writable_dirs=["d"],
        platform="posix",
        mcp_file_tools={"mcp__kb__write": {"path": "write"}},
    )
    assert check_file_scope(scope, tool, {"path": "/w/x"}) is not None
    assert check_file_scope(scope, tool, {"path": "/w/d/x"}) is None
    assert check_file_scope(scope, "mcp__plugin_p_other__write", {"path": "/w/x"}) is None


@pytest.mark.report(73)
@pytest.mark.parametrize("call", [CLOSED_CALL, OPEN_CALL])
async def test_a_subagents_call_is_judged_as_the_main_agents(
    call: tuple[str, dict[str, Any]],
) -> None:
    # Rules of a Subagent's own come with the rules; the scope is the same for all.
    main = await answer(*call)
    for more in ({"agent_id": "a1", "agent_type": "helper"}, {"agent_id": None}, {"agent_id": ""}):
        assert await answer(*call, more=more) == main
    assert decision(main) == ("deny" if call is CLOSED_CALL else None)


@pytest.mark.report(74)
def test_the_needed_sdk_is_named_as_a_lower_bound_and_the_deny_rules_stay_beside_the_gate(
    world,
) -> None:
    import tomllib
    from pathlib import Path

    project = tomllib.loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )
    (bound,) = [
        line for line in project["project"]["dependencies"] if line.startswith("claude-agent-sdk")
    ]
    least = tuple(map(int, bound.partition(">=")[2].split(".")))
    assert least >= (0, 2, 177)  # the first release with HookMatcher(on_failure=…)
    plan = world.plan(denied_paths=["/w/.env"])
    assert "Read(//w/.env)" in plan.settings["permissions"]["deny"]


@pytest.mark.report(75)
def test_an_answer_does_not_tell_whether_a_file_exists(tmp_path) -> None:
    from agent_kit import check_file_scope
    from agent_kit.testing import tree

    tree(tmp_path, ["project/", "out/there", "project/secret/there", "project/closed/there"])
    scope = FileScope(
        project_dir=str(tmp_path / "project"), searchable_dirs=["open"], denied_paths=["closed"]
    )
    for tool, field in (
        ("Read", "file_path"),
        ("Write", "file_path"),
        ("Grep", "path"),
        ("Glob", "path"),
    ):
        for folder in ("../out", "secret", "closed", str(tmp_path / "out")):
            answers = {
                check_file_scope(scope, tool, {field: f"{folder}/{name}", "pattern": "*"})
                for name in ("there", "gone_")
            }
            assert len({text.replace("gone_", "there") for text in answers if text}) == 1
            assert None not in answers


@pytest.mark.report(76, 78)
async def test_the_gate_answers_deny_or_nothing() -> None:
    async def allowing(*_: Any) -> dict[str, Any]:
        return pre(permissionDecision="allow", permissionDecisionReason="fine")

    async def asking(*_: Any) -> dict[str, Any]:
        return pre(permissionDecision="ask", permissionDecisionReason="may it?")

    assert await answer(*OPEN_CALL) == {}
    assert await answer(*OPEN_CALL, allowing) == {}
    for before in ((), (allowing,), (asking,), (allowing, asking)):
        assert decision(await answer(*CLOSED_CALL, *before)) == "deny"
    asked = await answer(*OPEN_CALL, asking)
    assert asked["hookSpecificOutput"]["permissionDecisionReason"] == "may it?"
    assert decision(asked) == "deny"  # nobody is asked here; rules and modes are another hook


@pytest.mark.report(77)
async def test_the_gate_rewrites_nothing_and_judges_what_another_hook_rewrote() -> None:
    def to(path: str, **more: Any) -> Any:
        async def rewriting(*_: Any) -> dict[str, Any]:
            return pre(updatedInput={"file_path": path}, **more)

        return rewriting

    assert await answer(*OPEN_CALL) == {}
    assert decision(await answer(*OPEN_CALL, to("/w/.env"))) == "deny"
    assert decision(await answer(*OPEN_CALL, to("/w/.env", permissionDecision="allow"))) == "deny"
    assert decision(await answer(*OPEN_CALL, to("/w/.env"), to("/etc/passwd"))) == "deny"
    answered = await answer(*CLOSED_CALL, to("/w/.env"), to("/w/open/b"))
    assert answered == pre(updatedInput={"file_path": "/w/open/b"})  # passed on, with no "allow"


@pytest.mark.report(77)
def test_no_hook_beside_the_gate_can_rewrite_a_call(world) -> None:
    # Measured: a PermissionRequest hook's updatedInput runs, when it answers before can_use_tool.
    from agent_kit import ConfigError

    async def callback(*_: Any) -> dict[str, Any]:
        return {}

    for event in ("PermissionRequest", "PreToolUSe", "SessionStart"):
        with pytest.raises(ConfigError) as caught:
            world.config(hooks={event: [callback]})
        assert [(fault.field, fault.value) for fault in caught.value.faults] == [("hooks", event)]
    options = world.options(hooks={event: [callback] for event in EVENTS})
    assert len(options.hooks["PreToolUse"]) == 1
    assert callback not in options.hooks["PreToolUse"][0].hooks
    for event in set(EVENTS) - {"PreToolUse"}:
        assert any(callback in matcher.hooks for matcher in options.hooks[event])


@pytest.mark.report(78)
async def test_what_the_cli_asks_is_answered_by_the_scope_and_by_nobody_else() -> None:
    can_use_tool = approve_within(SCOPE, cwd="/w")
    assert isinstance(await can_use_tool(*OPEN_CALL, None), PermissionResultAllow)
    for tool, fields in (
        CLOSED_CALL,
        ("Bash", {"command": "ls"}),
        ("Write", {"file_path": "/w/open/a"}),
        ("", {}),
    ):
        assert isinstance(await can_use_tool(tool, fields, None), PermissionResultDeny)
    broken: Any = object()
    assert isinstance(await can_use_tool("Read", broken, None), PermissionResultDeny)


@pytest.mark.e2e
@pytest.mark.report(79)
def test_a_run_whose_hooks_were_lost_is_found_out(world) -> None:
    world.has("project/open/a.md=x", "project/open/.env=y")
    spec, config = (
        world.spec(),
        world.config(extra_readable_dirs=["open"], denied_paths=["**/.env"]),
    )
    script = [
        (
            ToolCall("Read", {"file_path": str(world.project / "open/a.md")}),
            ToolCall("Read", {"file_path": str(world.project / "open/.env")}),
        ),
        Say("x"),
    ]
    log = GateLog()
    whole = world.run(build_session_options(spec, config, log=log), script)
    assert [call.is_error for call in whole.calls] == [False, True]
    check_calls(whole.messages, log)

    lost = GateLog()
    options = build_session_options(spec, config, log=lost)
    options.hooks.clear()
    broken = world.run(options, script)
    assert [call.is_error for call in broken.calls] == [False, True]  # lock 2 stands alone
    with pytest.raises(UnjudgedCallError, match=rf"Read \({broken.calls[0].call_id}\)$"):
        check_calls(broken.messages, lost)


@pytest.mark.report(80)
async def test_mcp_tools_are_approved_by_their_whole_name_and_by_no_wildcard(world) -> None:
    can_use_tool = approve_within(SCOPE, cwd="/w")
    for name in ("mcp__kb__read", "mcp__my-kb__a_b", "mcp__plugin_p_kb__x"):
        assert isinstance(await can_use_tool(name, {"any": "thing"}, None), PermissionResultAllow)
    for name in (
        "mcp__*",
        "mcp__kb",
        "mcp__kb__",
        "mcp____x",
        "mcp__",
        "mcp",
        "xmcp__kb__read",
        "MCP__kb__read",
    ):
        assert isinstance(await can_use_tool(name, {}, None), PermissionResultDeny), name
    plan = world.plan(spec={"mcp_servers": {"kb": {"type": "stdio", "command": "x"}}})
    allowed = [*plan.tools.allowed, *plan.settings["permissions"]["allow"]]
    assert not [rule for rule in allowed if "mcp__" in rule]
