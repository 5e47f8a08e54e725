"""What the options hold, and that the SDK has nothing to say against them."""

from __future__ import annotations

import json
import uuid
import warnings
from datetime import timedelta
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from agent_kit import (
    AgentSpec,
    ConfigError,
    SessionConfig,
    Subagent,
    build_session_options,
    open_session,
    plan_session,
)
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk.gate import GateLog
from agent_kit.session.options import BUFFER_SIZE, options_from_plan
from agent_kit.testing import Say, ScriptedModel, ToolCall, cli_env, run_session
from tests.flag_settings import settings_text

HELPER = Subagent(
    description="d", prompt="p", tools=["Read", "WebFetch(domain:a.example)"], model="haiku"
)


@pytest.fixture
def full(world, part) -> ClaudeAgentOptions:
    """A session with something of everything."""
    world.has("plugin/skills/s/SKILL.md=x")
    return world.options(
        spec={
            "system_prompt": "You help.",
            "extensions": [part(plugin_dir=world.root / "plugin", file_tools=("NotebookEdit",))],
            "subagents": {"helper": HELPER},
            "tools": ["Bash(git status:*)", "WebSearch", "ToolSearch", "Read"],
            "disallowed_tools": ["TaskStop", "Bash(git push:*)"],
            "skills": ["simplify"],
            "model": "opus",
            "options": {"max_budget_usd": 2.5, "include_partial_messages": True},
        },
        extra_writable_dirs=["drafts"],
        denied_paths=["secret"],
        allow_unconfined_commands=True,
        max_turns=7,
        permission_mode="acceptEdits",
    )


def test_each_option_of_the_table_has_its_value(world, full) -> None:
    assert full.tools == [
        "Read",
        "Glob",
        "Grep",
        "Write",
        "Edit",
        "Skill",
        "Agent",
        "NotebookEdit",
        "Bash",
        "WebSearch",
        "ToolSearch",
        "WebFetch",
    ]
    assert full.disallowed_tools == ["TaskStop"]
    assert full.cwd == str(world.project)
    assert full.plugins == [{"type": "local", "path": str(world.root / "plugin")}]
    assert full.skills == ["plugin:s", "simplify"]
    assert full.setting_sources == ["project"]
    assert full.max_buffer_size == BUFFER_SIZE
    assert uuid.UUID(full.session_id)
    assert str(full.cli_path).endswith(f"/host/{full.session_id}.cli")
    assert (full.model, full.max_turns, full.permission_mode) == ("opus", 7, "acceptEdits")
    assert (full.max_budget_usd, full.include_partial_messages) == (2.5, True)
    assert full.verbatim_prompts is False
    assert full.env["HOME"] == str(world.home)
    assert set(full.hooks) == {"PreToolUse", "UserPromptExpansion", "UserPromptSubmit"}
    assert full.can_use_tool is not None
    helper = full.agents["helper"]
    assert (helper.description, helper.prompt, helper.model) == ("d", "p", "haiku")
    assert helper.tools == ["Read", "WebFetch(domain:a.example)"]


def test_a_file_tool_is_never_allowed_as_a_whole(full) -> None:
    assert full.allowed_tools == []
    allow = json.loads(settings_text(full))["permissions"]["allow"]
    assert not [rule for rule in allow if rule in FILE_TOOLS]
    assert {
        "Agent",
        "WebSearch",
        "ToolSearch",
        "Bash(git status:*)",
        "WebFetch(domain:a.example)",
    } <= set(allow)
    for narrowed in ("Bash", "WebFetch"):
        assert narrowed not in allow


def test_a_rule_that_closes_part_of_a_tool_stands_in_the_settings(full) -> None:
    assert "Bash(git push:*)" in json.loads(settings_text(full))["permissions"]["deny"]


def test_unsaid_options_are_left_to_the_sdk(world) -> None:
    options = world.options()
    default = ClaudeAgentOptions()
    for name in (
        "model",
        "max_turns",
        "permission_mode",
        "resume",
        "agents",
        "max_budget_usd",
        "user",
        "add_dirs",
        "sandbox",
        "fork_session",
        "extra_args",
        "strict_mcp_config",
    ):
        assert getattr(options, name) == getattr(default, name), name


@pytest.mark.parametrize(
    ("config", "spec", "model"),
    [(None, None, None), ("a", None, "a"), (None, "b", "b"), ("a", "b", "a")],
)
def test_the_configs_model_wins_over_the_specs(world, config: Any, spec: Any, model: Any) -> None:
    assert world.options(model=config, spec={"model": spec}).model == model


def test_a_prompt_is_text_or_is_appended_to_the_preset(world) -> None:
    assert world.options(spec={"system_prompt": "You help."}).system_prompt == "You help."
    assert world.options(
        spec={"system_prompt": "You help.", "preset": "claude_code"}
    ).system_prompt == {
        "type": "preset",
        "preset": "claude_code",
        "append": "You help.",
    }
    assert world.options().system_prompt == ""


@pytest.mark.parametrize(
    ("mentions", "judged", "verbatim"),
    [("scope", True, False), ("off", None, True), ("any", False, False)],
)
async def test_mentions_are_judged_taken_as_text_or_let_through(
    world, mentions: str, judged: bool | None, verbatim: bool
) -> None:
    world.has("project/closed.txt=x")
    options = world.options(prompt_mentions=mentions)
    assert ("UserPromptSubmit" in options.hooks) is (judged is not None)
    if judged is not None:
        [gate] = options.hooks["UserPromptSubmit"]
        answer = await gate.hooks[0]({"prompt": "@closed.txt"}, None, None)
        assert bool(answer) is judged
        command = await gate.hooks[0]({"prompt": "/config theme=dark"}, None, None)
        assert command["decision"] == "block"
    assert (options.cli_path is None) is verbatim
    assert options.verbatim_prompts is verbatim
    assert world.plan(prompt_mentions=mentions).locks["prompts"].on is (mentions != "any")


def test_an_option_that_the_sdk_does_not_have_is_a_fault_and_makes_no_folder(world) -> None:
    with pytest.raises(ConfigError) as caught:
        world.options(spec={"options": {"max_budget": 5, "foo": 1}})
    assert [(f.field, f.value) for f in caught.value.faults] == [
        ("options['max_budget']", 5),
        ("options['foo']", 1),
    ]
    assert not world.run.exists()


def test_a_resumed_session_keeps_its_id_and_its_results_folder(world) -> None:
    session = str(uuid.uuid4())
    new = world.plan(session_id=session)
    resumed = world.plan(resume=session)
    assert new.scope.tool_results_dir == resumed.scope.tool_results_dir
    assert session in (new.scope.tool_results_dir or "")
    assert (new.session_id, resumed.session_id) == (session, session)
    assert (
        world.options(session_id=session).session_id,
        world.options(session_id=session).resume,
    ) == (session, None)
    assert (world.options(resume=session).session_id, world.options(resume=session).resume) == (
        None,
        session,
    )


def test_a_resume_from_a_store_would_leave_the_folders_of_the_plan(world) -> None:
    session = str(uuid.uuid4())
    store = {"options": {"session_store": object()}}
    assert world.faults(resume=session, spec=store) == [("resume", session)]
    world.plan(session_id=session, spec=store)


def test_two_sessions_have_two_ids_and_no_results_in_common(world) -> None:
    from agent_kit import check_file_scope

    one, two = world.plan(), world.plan()
    assert one.session_id != two.session_id
    results = f"{two.scope.tool_results_dir}/x.txt"
    assert check_file_scope(two.scope, "Read", {"file_path": results}) is None
    assert check_file_scope(one.scope, "Read", {"file_path": results}) is not None


def test_a_session_can_be_built_again_from_its_plan(world) -> None:
    plan = world.plan(denied_paths=["x"])
    one, two = options_from_plan(plan), options_from_plan(plan)
    assert (one.settings, one.tools, one.session_id) == (two.settings, two.tools, two.session_id)


async def test_the_log_holds_what_the_gate_has_seen(world) -> None:
    log = GateLog()
    options = build_session_options(world.spec(), world.config(), log=log)
    await options.hooks["PreToolUse"][0].hooks[0](
        {"tool_name": "Read", "tool_input": {}, "cwd": "/"}, "id-1", None
    )
    assert log.seen == {"id-1"}


def test_other_hooks_stand_beside_each_other_as_they_were_given(world, part) -> None:
    async def callback(*_: Any) -> dict[str, Any]:
        return {}

    given = HookMatcher(matcher="Bash", hooks=[callback], timeout=5)
    options = world.options(
        spec={
            "extensions": [part(hooks={"Stop": (callback,)})],
            "options": {"hooks": {"Stop": [given]}},
        },
        hooks={"Stop": [callback], "UserPromptSubmit": [callback]},
    )
    bare = HookMatcher(hooks=[callback])
    assert options.hooks["Stop"] == [bare, given, bare]
    assert options.hooks["UserPromptSubmit"][1:] == [bare]  # the first is the kit's
    assert options.hooks["UserPromptSubmit"][0].on_failure == "block"


@pytest.mark.parametrize("mode", [None, "bypassPermissions", "acceptEdits", "dontAsk"])
def test_the_sdk_warns_of_nothing(world, part, mode: str | None) -> None:
    from claude_agent_sdk.types import _warn_if_can_use_tool_shadowed

    options = world.options(
        spec={
            "tools": ["Bash", "WebFetch", "Skill", "TaskStop"],
            "subagents": {"helper": HELPER},
            "skills": ["dataviz"],
        },
        allow_unconfined_commands=True,
        permission_mode=mode,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn_if_can_use_tool_shadowed(options)


@pytest.mark.e2e
@pytest.mark.parametrize("mode", [None, "bypassPermissions"])
async def test_on_the_cli_a_session_with_every_kind_of_tool_starts_without_a_warning(
    world, part, mode: str | None
) -> None:
    world.has(
        "plugin/skills/s/SKILL.md=---\nname: s\ndescription: canary-skill\n---\nbody",
        "project/closed.txt=canary-closed",
        "project/drafts/a.txt=canary-open",
    )
    options = world.options(
        spec={
            "extensions": [part(plugin_dir=world.root / "plugin")],
            "subagents": {"helper": HELPER},
            "tools": ["Bash", "ToolSearch"],
        },
        extra_writable_dirs=["drafts"],
        allow_unconfined_commands=True,
        permission_mode=mode,
        env={"IS_SANDBOX": "1"},
    )
    closed = str(world.project / "closed.txt")
    script = [
        ToolCall("Bash", {"command": "echo hello"}),
        ToolCall("Read", {"file_path": closed}),
        ToolCall("Read", {"file_path": str(world.project / "drafts" / "a.txt")}),
        ToolCall("Write", {"file_path": str(world.root / "new.txt"), "content": "x"}),
        ToolCall("Skill", {"skill": "plugin:s"}),
        ToolCall(
            "Agent",
            {
                "description": "d",
                "prompt": "do it",
                "subagent_type": "helper",
                "run_in_background": False,
            },
            script=[ToolCall("Read", {"file_path": closed}), Say("done")],
        ),
        Say("x"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = await run_session(options, script, home=world.home)
    assert run.unplayed == ()
    errors = {(call.tool, call.agent): call.is_error for call in run.calls if call.tool != "Read"}
    assert errors == {
        ("Bash", None): False,
        ("Write", None): True,
        ("Skill", None): False,
        ("Agent", None): False,
    }
    reads = [call.is_error for call in run.calls if call.tool == "Read"]
    assert reads == [True, False, True]
    assert run.saw("canary-open")
    assert run.saw("canary-skill")
    assert not run.saw("canary-closed")
    assert not (world.root / "new.txt").exists()
    init = next(m for m in run.messages if getattr(m, "subtype", "") == "init")
    assert init.data["permissionMode"] == (mode or "default")
    assert init.data["session_id"] == options.session_id


@pytest.mark.e2e
async def test_an_open_session_has_its_plan_its_options_and_its_log_and_leaves_no_secret_behind(
    world,
) -> None:
    world.has("project/drafts/a.txt=canary-open")
    with ScriptedModel(
        [ToolCall("Read", {"file_path": str(world.project / "drafts/a.txt")}), Say("done")]
    ) as model:
        env = cli_env(model, world.home)
        config = world.config(
            extra_readable_dirs=["drafts"],
            env=env,
            settings={"env": {"T": "secret"}},
            mode="guided",
        )
        async with open_session(AgentSpec(name="a"), config) as session:
            assert [path.name for path in session.plan.host_dir.iterdir()] != []
            await session.client.query("Go.")
            async for _ in session.client.receive_response():
                pass
            assert len(session.log.seen) == 1
            assert session.options.session_id == session.plan.session_id
        (left,) = session.plan.host_dir.iterdir()
        assert left.name == f"{session.plan.session_id}.decisions.jsonl"
        assert "secret" not in left.read_text()


@pytest.mark.e2e
@pytest.mark.parametrize("keep", [0, 1, timedelta(days=1)], ids=str)
async def test_a_session_that_is_over_leaves_a_run_folder_only_if_it_is_to_be_kept(
    world, keep: Any
) -> None:
    with ScriptedModel() as model:
        env = cli_env(model, world.home)
        config = SessionConfig(project_dir=world.project, env=env, keep_runs=keep)
        async with open_session(AgentSpec(name="a"), config) as session:
            assert session.plan.host_dir.is_dir()
    assert session.plan.run_dir.exists() is (keep != 0)


def test_a_plan_says_which_locks_are_on(world) -> None:
    plan = world.plan()
    assert {name: lock.on for name, lock in plan.locks.items()} == {
        "gate": True,
        "rules": True,
        "prompts": True,
        "kernel": False,
    }
    assert all(lock.reason for lock in plan.locks.values())
    assert (
        plan_session(world.spec(), world.config(confinement="off")).locks["kernel"].reason
        == "confinement='off': the operating system doesn't hold the scope."
    )
