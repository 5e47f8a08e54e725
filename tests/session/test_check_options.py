"""``check_options``: each way to lose a lock, with the field that it went by."""

from __future__ import annotations

import dataclasses
import functools
import gc
import json
import uuid
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
)

import agent_kit.session.options as options_module
from agent_kit import (
    AgentSpec,
    LockLostError,
    SessionConfig,
    check_options,
    create_file_scope_gate,
    create_prompt_gate,
    guard_options,
    open_session,
)
from agent_kit.session import promise as promises

ALL = ("gate", "rules", "prompts")


async def hook(*_: Any) -> dict[str, Any]:
    return {}


async def yes(*_: Any) -> PermissionResultAllow:
    return PermissionResultAllow()


def lost(options: ClaudeAgentOptions) -> set[tuple[str, str]]:
    """The locks that are gone, each with the field; the message names both."""
    with pytest.raises(LockLostError) as caught:
        check_options(options)
    for one in caught.value.lost:
        assert f"{one.lock}, by {one.field}: " in str(caught.value)
        assert len(one.reason) > 10
    return {(one.lock, one.field) for one in caught.value.lost}


@pytest.fixture
def built(world) -> ClaudeAgentOptions:
    world.has("project/secret.txt=x")
    return world.options(
        extra_writable_dirs=["drafts"],
        denied_paths=["**/.env", "secret.txt"],
        confinement="off",
    )


def settings(options: ClaudeAgentOptions) -> dict[str, Any]:
    return promises.read_settings(options)


# --- what holds -------------------------------------------------------------------------------


@pytest.mark.parametrize("mentions", ["scope", "off", "any"])
@pytest.mark.parametrize("mode", [None, "bypassPermissions", "acceptEdits", "plan"])
def test_what_was_just_built_holds_what_the_plan_says(world, mentions: str, mode: Any) -> None:
    config = {"prompt_mentions": mentions, "permission_mode": mode}
    plan = world.plan(**config)
    assert check_options(world.options(**config)) == plan.locks


def test_settings_in_a_file_are_read(world) -> None:
    options = world.options(settings={"env": {"T": "secret"}})
    assert not str(options.settings).startswith("{")
    assert check_options(options)["rules"].on
    Path(str(options.settings)).write_text("{}")
    assert lost(options) == {("rules", "settings")}
    Path(str(options.settings)).unlink()
    assert lost(options) == {("rules", "settings")}


@pytest.mark.parametrize(
    "change",
    [
        {"model": "opus", "max_turns": 5, "fallback_model": "haiku"},
        {"permission_mode": "plan"},
        {"permission_mode": "dontAsk"},
        {"extra_args": {"debug": None, "replay-user-messages": None}},
        {"setting_sources": []},
        {"tools": ["Read"]},
        {"tools": ["Read", "Write", "WebFetch"]},
        {"disallowed_tools": ["WebFetch"]},
        {"allowed_tools": ["mcp__kb__read", "WebFetch(domain:a.example)"]},
        {"agents": {"a": AgentDefinition(description="d", prompt="p")}},
        {"strict_mcp_config": True},
        {"system_prompt": "Another."},
        {"max_buffer_size": 5},
        {"verbatim_prompts": True},
    ],
    ids=str,
)
def test_what_opens_nothing_is_no_loss(built, change: dict[str, Any]) -> None:
    assert all(check_options(dataclasses.replace(built, **change))[name].on for name in ALL)


def test_other_hooks_beside_the_kits_are_no_loss(built) -> None:
    hooks = {**built.hooks, "Stop": [HookMatcher(hooks=[hook])]}
    hooks["UserPromptSubmit"] = [*hooks["UserPromptSubmit"], HookMatcher(hooks=[hook])]
    assert check_options(dataclasses.replace(built, hooks=hooks))["gate"].on


def test_more_settings_are_no_loss(built) -> None:
    more = settings(built)
    more["language"] = "Latin"
    more["permissions"]["deny"].append("WebFetch")
    more["claudeMdExcludes"].append("/x")
    more["env"]["MINE"] = "1"
    assert check_options(dataclasses.replace(built, settings=json.dumps(more)))["rules"].on


def test_prompts_taken_word_for_word_need_no_prompt_gate(built) -> None:
    hooks = {"PreToolUse": built.hooks["PreToolUse"]}
    assert lost(dataclasses.replace(built, hooks=hooks)) == {("prompts", "hooks")}
    literal = dataclasses.replace(built, hooks=hooks, verbatim_prompts=True)
    assert check_options(literal)["prompts"].on


# --- hooks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("hooks", [None, {}, {"Stop": []}, {"PreToolUse": []}], ids=repr)
def test_hooks_that_were_overwritten(built, hooks: Any) -> None:
    assert lost(dataclasses.replace(built, hooks=hooks)) == {
        ("gate", "hooks"),
        ("prompts", "hooks"),
    }


def gate_of(options: ClaudeAgentOptions) -> HookMatcher:
    return options.hooks["PreToolUse"][0]  # type: ignore[index]


def wrapped(gate: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(gate)
    async def around(*arguments: Any) -> dict[str, Any]:
        await gate(*arguments)
        return {}

    return around


@pytest.mark.parametrize(
    "change",
    [
        lambda m: [m, HookMatcher(hooks=[hook])],
        lambda m: [HookMatcher(matcher="Read", hooks=[hook]), m],
        lambda m: [dataclasses.replace(m, hooks=[*m.hooks, hook])],
        lambda m: [dataclasses.replace(m, hooks=[wrapped(m.hooks[0])])],
        lambda m: [dataclasses.replace(m, matcher="Read")],
        lambda m: [dataclasses.replace(m, on_failure=None)],
        lambda m: [dataclasses.replace(m, hooks=[])],
    ],
    ids=["second", "before", "in it", "wrapped", "some tools", "on_failure", "emptied"],
)
def test_a_gate_that_is_not_alone_or_not_whole(built, change: Callable[..., Any]) -> None:
    hooks = {**built.hooks, "PreToolUse": change(gate_of(built))}
    assert lost(dataclasses.replace(built, hooks=hooks)) == {("gate", "hooks")}


def test_a_gate_of_another_session_is_none(world, built) -> None:
    other = world.options(extra_readable_dirs=["."])
    assert ("gate", "hooks") in lost(dataclasses.replace(built, hooks=other.hooks))
    gate = create_file_scope_gate(world.plan().scope)
    hooks = {**built.hooks, "PreToolUse": [gate]}
    assert lost(dataclasses.replace(built, hooks=hooks)) == {("gate", "hooks")}


def test_a_gate_of_the_same_session_with_another_scope_is_none(world) -> None:
    session = str(uuid.uuid4())
    narrow = world.options(session_id=session, confinement="off")
    wide = world.options(session_id=session, confinement="off", extra_readable_dirs=["."])
    mixed = dataclasses.replace(narrow, hooks=wide.hooks)
    assert lost(mixed) == {("gate", "hooks"), ("prompts", "hooks")}


def test_a_hook_that_answers_in_place_of_the_kit(built) -> None:
    hooks = {**built.hooks, "PermissionRequest": [HookMatcher(hooks=[hook])]}
    assert lost(dataclasses.replace(built, hooks=hooks)) == {("rules", "hooks")}


@pytest.mark.parametrize("field", ["on_failure", "matcher"])
def test_a_prompt_gate_that_is_not_whole(built, field: str) -> None:
    gate = dataclasses.replace(built.hooks["UserPromptSubmit"][0], **{field: None})
    if field == "matcher":
        gate = dataclasses.replace(gate, matcher="x")
    hooks = {**built.hooks, "UserPromptSubmit": [gate]}
    assert lost(dataclasses.replace(built, hooks=hooks)) == {("prompts", "hooks")}


# --- single fields ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"can_use_tool": None}, {("rules", "can_use_tool")}),
        ({"can_use_tool": yes}, {("rules", "can_use_tool")}),
        ({"allowed_tools": ["Read"]}, {("rules", "allowed_tools")}),
        ({"allowed_tools": ["Read(*)"]}, {("rules", "allowed_tools")}),
        ({"allowed_tools": ["Edit(//srv/**)"]}, {("rules", "allowed_tools")}),
        ({"allowed_tools": ["WebFetch,Write"]}, {("rules", "allowed_tools")}),
        ({"allowed_tools": ["Bash(a) Read"]}, {("rules", "allowed_tools")}),
        ({"allowed_tools": ["*"]}, {("rules", "allowed_tools")}),
        ({"permission_mode": "bypassPermissions"}, {("rules", "permission_mode")}),
        ({"permission_mode": "acceptEdits"}, {("rules", "permission_mode")}),
        ({"permission_mode": "auto"}, {("rules", "permission_mode")}),
        ({"permission_prompt_tool_name": "x"}, {("rules", "permission_prompt_tool_name")}),
        ({"add_dirs": ["/srv"]}, {("rules", "add_dirs")}),
        ({"sandbox": {"enabled": True}}, {("rules", "sandbox")}),
        ({"setting_sources": None}, {("rules", "setting_sources")}),
        ({"setting_sources": ["user", "project"]}, {("rules", "setting_sources")}),
        ({"skills": "all"}, {("rules", "skills")}),
        ({"skills": None}, {("rules", "skills")}),
        ({"skills": ["other"]}, {("rules", "skills")}),
        ({"cwd": "/"}, {("gate", "cwd"), ("rules", "cwd")}),
        ({"tools": None}, {("gate", "tools"), ("rules", "tools")}),
        ({"tools": ["Read", "Bash"]}, {("gate", "tools"), ("rules", "tools")}),
        ({"tools": ["Read,Monitor"]}, {("gate", "tools"), ("rules", "tools")}),
        ({"tools": ["Read", "BrandNew"]}, {("gate", "tools"), ("rules", "tools")}),
        ({"tools": ["Default"]}, {("gate", "tools"), ("rules", "tools")}),
        (
            {"tools": {"type": "preset", "preset": "claude_code"}},
            {("gate", "tools"), ("rules", "tools")},
        ),
        (
            {"agents": {"a": AgentDefinition(description="d", prompt="p", memory="user")}},
            {("rules", "agents")},
        ),
        (
            {"agents": {"a": AgentDefinition(description="d", prompt="p", initialPrompt="@x")}},
            {("prompts", "agents")},
        ),
        (
            {"plugins": [{"type": "local", "path": "/srv/plugin"}]},
            {("gate", "plugins"), ("rules", "plugins")},
        ),
        (
            {"mcp_servers": {"kb": {"type": "stdio", "command": "server"}}},
            {("gate", "mcp_servers"), ("rules", "mcp_servers")},
        ),
        (
            {"mcp_servers": "servers.json"},
            {("gate", "mcp_servers"), ("rules", "mcp_servers")},
        ),
        ({"cli_path": "/bin/claude"}, {(name, "cli_path") for name in ALL}),
        ({"extra_args": {"settings": "{}"}}, {(name, "extra_args") for name in ALL}),
        (
            {"extra_args": {"dangerously-skip-permissions": None}},
            {(name, "extra_args") for name in ALL},
        ),
        ({"extra_args": {"bare": None}}, {(name, "extra_args") for name in ALL}),
        ({"extra_args": {"verbose": "words"}}, {(name, "extra_args") for name in ALL}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value).partition(" at 0x")[
        0
    ][:50],
)
def test_a_field_that_opens_a_lock(built, change: dict[str, Any], found: set[Any]) -> None:
    assert lost(dataclasses.replace(built, **change)) == found


def test_tools_that_are_known_or_none_take_no_lock(built) -> None:
    for tools in ([], [""], ["Read", "WebFetch", "mcp__kb__read"]):
        assert check_options(dataclasses.replace(built, tools=tools))["gate"].on


class Server:
    """Stands for a server of this process."""


def test_servers_and_plugins_are_those_that_were_planned(world) -> None:
    """By their names and configurations, one of this process by identity."""
    world.has('project/p/.claude-plugin/plugin.json={"name": "p"}')
    command = {"type": "stdio", "command": "server", "env": {"T": "sk-secret"}}
    own = {"type": "sdk", "name": "kb", "instance": Server()}
    planned = {"kb": own, "far": command}
    options = world.options(spec={"mcp_servers": planned, "plugins": ["p"]})
    assert check_options(options)["gate"].on
    assert check_options(dataclasses.replace(options, mcp_servers={}, plugins=[]))["gate"].on
    same = [{"type": "local", "path": "p"}]  # relative to the same folder
    again = dataclasses.replace(options, mcp_servers={"kb": dict(own)}, plugins=same)
    assert check_options(again)["gate"].on
    servers = {("gate", "mcp_servers"), ("rules", "mcp_servers")}
    for changed in (
        {"kb": {**own, "instance": Server()}},
        {"kb": command},
        {"other": own},
        {**options.mcp_servers, "more": command},
    ):
        assert lost(dataclasses.replace(options, mcp_servers=changed)) == servers
    other = {**options.extra_args, "mcp-config": "/srv/other.json"}
    assert {by for _, by in lost(dataclasses.replace(options, extra_args=other))} == {"extra_args"}
    assert "sk-secret" not in repr(promises.promise_of(options))
    options.mcp_servers["kb"]["name"] = "changed in its place"
    assert lost(options) == servers


def test_a_server_of_this_process_is_not_kept_alive(world) -> None:
    server = Server()
    seen = weakref.ref(server)
    own = {"kb": {"type": "sdk", "name": "kb", "instance": server}}
    world.options(spec={"mcp_servers": own})
    del server, own
    gc.collect()
    assert seen() is None


def test_what_is_no_options_is_named_in_a_sentence(world) -> None:
    for given in (world.config(), None, {}):
        with pytest.raises(TypeError, match=f"ClaudeAgentOptions, not {type(given).__name__}"):
            check_options(given)  # type: ignore[arg-type]


def test_no_loss_shows_a_value_that_may_be_a_key(world) -> None:
    options = world.options(settings={"apiKeyHelper": "echo sk-secret"})
    for changed in ('{"env": {"T": "sk-secret"}, }', '{"env": {"T": "sk-secret"', "{}"):
        for name in ("settings", "mcp_servers"):
            with pytest.raises(LockLostError) as caught:
                check_options(dataclasses.replace(options, **{name: changed}))
            assert "sk-secret" not in str(caught.value)
    found = {**settings(options), "apiKeyHelper": "other"}
    with pytest.raises(LockLostError, match="apiKeyHelper") as caught:
        check_options(dataclasses.replace(options, settings=found))
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "locks"),
    [
        ("HOME", "/elsewhere", {"gate", "rules"}),
        ("CLAUDE_CONFIG_DIR", "/elsewhere", {"gate", "rules"}),
        ("CLAUDE_CONFIG_DIR", "", {"gate", "rules"}),
        ("CLAUDE_CODE_TMPDIR", "/elsewhere", {"gate", "rules"}),
        ("CLAUDE_CODE_SIMPLE", "1", {"gate", "prompts"}),
        ("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "1", {"prompts"}),
        ("CLAUDE_CODE_DISABLE_CRON", "", {"prompts"}),
        ("CLAUDE_CODE_HARBOR_KITE", "1", {"prompts"}),
    ],
)
def test_a_variable_that_opens_a_lock(built, name: str, value: str, locks: set[str]) -> None:
    env = {**built.env, name: value}
    assert lost(dataclasses.replace(built, env=env)) == {(lock, "env") for lock in locks}


def test_a_variable_of_the_process_counts_as_well(built, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_TMPDIR", "/elsewhere")
    assert lost(built) == {("gate", "env"), ("rules", "env")}
    assert lost(dataclasses.replace(built, env={})) >= {("gate", "env")}


def test_prompts_that_are_taken_as_they_are_stay_so(world) -> None:
    options = world.options(prompt_mentions="off")
    assert lost(dataclasses.replace(options, verbatim_prompts=False)) == {
        ("prompts", "verbatim_prompts")
    }


def test_the_projects_servers_stay_out(world) -> None:
    options = world.options(strict_mcp_config=True)
    assert lost(dataclasses.replace(options, strict_mcp_config=False)) == {
        ("rules", "strict_mcp_config")
    }


def test_a_kernel_that_was_promised_is_lost_with_its_launcher(world) -> None:
    plan = world.plan(confinement="off")
    on = dataclasses.replace(plan.locks["kernel"], on=True)
    plan = dataclasses.replace(plan, locks={**plan.locks, "kernel": on})
    options = promises.keep_promise(plan, options_module.options_from_plan(plan))
    assert check_options(options)["kernel"].on
    assert ("kernel", "cli_path") in lost(dataclasses.replace(options, cli_path=None))


def test_a_lock_that_was_off_can_not_be_lost(world) -> None:
    options = world.options(prompt_mentions="any")
    hooks = {"PreToolUse": options.hooks["PreToolUse"]}
    locks = check_options(dataclasses.replace(options, hooks=hooks))
    assert not locks["prompts"].on


# --- settings ---------------------------------------------------------------------------------


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda found: found.pop(name)


def rules(kind: str, change: Callable[[list[str]], Any]) -> Callable[[dict[str, Any]], None]:
    return lambda found: change(found["permissions"].setdefault(kind, []))


@pytest.mark.parametrize(
    "change",
    [
        without("permissions"),
        without("disableAllHooks"),
        without("claudeMdExcludes"),
        without("apiKeyHelper"),
        without("env"),
        rules("deny", lambda deny: deny.pop()),
        rules("deny", lambda deny: deny.clear()),
        rules("allow", lambda allow: allow.append("Read")),
        rules("allow", lambda allow: allow.append("Edit(//**)")),
        lambda found: found.update(disableAllHooks=False),
        lambda found: found.update(autoMemoryEnabled=True),
        lambda found: found.update(apiKeyHelper="/bin/evil"),
        lambda found: found.update(hooks={}),
        lambda found: found.update(sandbox={}),
        lambda found: found.update(language=5),
        lambda found: found.update(unheard_of=5),
        lambda found: found["env"].update(ANTHROPIC_BASE_URL="http://127.0.0.1:1"),
        lambda found: found["env"].update(HOME="/elsewhere"),
        lambda found: found["claudeMdExcludes"].pop(),
        lambda found: found["permissions"].update(defaultMode="bypassPermissions"),
        lambda found: found["permissions"].update(additionalDirectories=["/srv"]),
    ],
)
def test_settings_that_were_changed(built, change: Callable[[dict[str, Any]], Any]) -> None:
    found = settings(built)
    change(found)
    assert lost(dataclasses.replace(built, settings=json.dumps(found))) == {("rules", "settings")}


@pytest.mark.parametrize(
    "value", [None, "", "{}", "[]", "{", "missing.json", '{"a": NaN}', "nul\0"], ids=repr
)
def test_settings_that_were_replaced(built, value: Any) -> None:
    assert lost(dataclasses.replace(built, settings=value)) == {("rules", "settings")}


def test_settings_that_the_cli_can_not_read_are_none(built) -> None:
    text = json.dumps({**settings(built), "cleanupPeriodDays": 5})
    assert check_options(dataclasses.replace(built, settings=text))["rules"].on
    broken = text.replace('"cleanupPeriodDays": 5', '"permissions": NaN, "cleanupPeriodDays": 5')
    assert lost(dataclasses.replace(built, settings=broken)) == {("rules", "settings")}
    later = text.removesuffix("}") + ', "language": NaN, "language": "Latin"}'
    assert lost(dataclasses.replace(built, settings=later)) == {("rules", "settings")}


def test_the_message_counts_the_rules_that_are_gone(built) -> None:
    found = settings(built)
    first = found["permissions"]["deny"].pop(0)
    with pytest.raises(LockLostError, match="1 of its deny rules") as caught:
        check_options(dataclasses.replace(built, settings=json.dumps(found)))
    assert first in str(caught.value)


# --- finding the promise ----------------------------------------------------------------------


def test_every_loss_comes_at_once_when_nothing_of_the_kit_is_left_but_the_session(built) -> None:
    bare = ClaudeAgentOptions(session_id=built.session_id)
    found = lost(bare)
    assert {lock for lock, _ in found} == {*ALL}
    assert {"hooks", "can_use_tool", "settings", "setting_sources", "cwd", "tools"} <= {
        field for _, field in found
    }
    assert lost(ClaudeAgentOptions(resume=built.session_id)) == found


@pytest.mark.parametrize("kept", ["hooks", "can_use_tool"])
def test_one_callback_is_enough_to_know_the_session(built, kept: str) -> None:
    bare = ClaudeAgentOptions(**{kept: getattr(built, kept)})
    assert ("rules", "settings") in lost(bare)


def test_the_promise_of_one_session_is_not_anothers(world) -> None:
    one, two = world.options(extra_writable_dirs=["drafts"]), world.options()
    assert check_options(one)["gate"].on
    assert check_options(two)["gate"].on
    assert ("rules", "can_use_tool") in lost(
        dataclasses.replace(one, can_use_tool=two.can_use_tool)
    )


def test_the_table_of_sessions_is_bounded_and_callbacks_are_not_kept_alive(
    world, monkeypatch
) -> None:
    monkeypatch.setattr(promises, "_MAX_SESSIONS", 2)
    before = len(promises._by_callback)
    for _ in range(4):
        world.options()
    gc.collect()
    assert len(promises._by_session) == 2
    assert len(promises._by_callback) <= before


def test_a_promise_shows_no_secret(world) -> None:
    options = world.options(
        settings={"env": {"T": "sk-secret"}}, env={"ANTHROPIC_API_KEY": "sk-secret-key"}
    )
    assert "sk-secret" not in repr(promises.promise_of(options))


# --- options that the kit never touched -------------------------------------------------------


def test_bare_options_hold_no_lock_and_each_says_why() -> None:
    locks = check_options(ClaudeAgentOptions(hooks={"PreToolUse": [HookMatcher(hooks=[hook])]}))
    assert {*locks} == {"gate", "rules", "prompts", "kernel"}
    for lock in locks.values():
        assert not lock.on
        assert len(lock.reason) > 10


def test_a_gate_that_somebody_put_there_is_found(world) -> None:
    scope = world.plan().scope
    gates = {
        "PreToolUse": [create_file_scope_gate(scope)],
        "UserPromptSubmit": [create_prompt_gate(scope)],
    }
    bare = ClaudeAgentOptions(hooks=gates)
    (gate,) = gates["PreToolUse"]
    around = dataclasses.replace(gate, hooks=[wrapped(gate.hooks[0])])
    assert [name for name, lock in check_options(bare).items() if lock.on] == ["gate", "prompts"]
    for change in (
        {"env": {"CLAUDE_CODE_SIMPLE": "1"}},
        {"extra_args": {"bare": None}},
        {"hooks": {"PreToolUse": [*gates["PreToolUse"], HookMatcher(hooks=[hook])]}},
        {"hooks": {"PreToolUse": [around]}},
    ):
        assert not check_options(dataclasses.replace(bare, **change))["gate"].on
    assert check_options(ClaudeAgentOptions(verbatim_prompts=True))["prompts"].on


# --- the kit's own ----------------------------------------------------------------------------


async def test_a_session_whose_options_lost_a_lock_is_not_connected(world, monkeypatch) -> None:
    real = options_module.options_from_plan

    def broken(*arguments: Any, **named: Any) -> ClaudeAgentOptions:
        return dataclasses.replace(real(*arguments, **named), hooks={})

    monkeypatch.setattr(options_module, "options_from_plan", broken)
    with pytest.raises(LockLostError, match="gate, by hooks"):
        async with open_session(AgentSpec(name="a"), world.config()):
            raise AssertionError
    assert list((world.run / "host").iterdir()) == []


def test_guarded_options_are_checked_alike(world) -> None:
    options = ClaudeAgentOptions(
        can_use_tool=yes, hooks={"PreToolUse": [HookMatcher(hooks=[hook])]}, allowed_tools=["Read"]
    )
    config = SessionConfig(workspace=world.project, run_dir=world.run, confinement="off")
    guarded = guard_options(options, config)
    assert all(check_options(guarded)[name].on for name in ALL)
    for field in ("can_use_tool", "hooks", "allowed_tools", "settings"):
        undone = dataclasses.replace(guarded, **{field: getattr(options, field)})
        assert {by for _, by in lost(undone)} == {field}


def test_the_error_is_a_runtime_error() -> None:
    assert issubclass(LockLostError, RuntimeError)
