"""``guard_options``: what is kept of a host's own options, what becomes of it, and what is a fault."""

from __future__ import annotations

import dataclasses
import json
import uuid
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from agent_kit import (
    AgentSpec,
    ConfigError,
    ConfinementUnavailableError,
    GateLog,
    SessionConfig,
    build_session_options,
    check_options,
    guard_options,
)
from agent_kit.session.options import BUFFER_SIZE

ASKED = ToolPermissionContext(signal=None, suggestions=[])


async def hook(*_: Any) -> dict[str, Any]:
    return {}


async def yes(*_: Any) -> PermissionResultAllow:
    return PermissionResultAllow()


@pytest.fixture
def guard(world):
    """Guards options in the world, with a writable folder."""

    def make(config: dict[str, Any] = {}, **fields: Any) -> ClaudeAgentOptions:
        env = {"HOME": str(world.home), **fields.pop("env", {})}
        options = ClaudeAgentOptions(**{"cwd": world.project, "env": env, **fields})
        before = dataclasses.replace(options)
        given = {"extra_writable_dirs": ["drafts"], **config}
        guarded = guard_options(options, world.config(**given))
        assert options == before
        return guarded

    return make


@pytest.fixture
def at_fault(guard, faults):
    return lambda *a, **k: faults(lambda: guard(*a, **k))


def permissions(options: ClaudeAgentOptions) -> dict[str, list[str]]:
    return settings(options)["permissions"]


def settings(options: ClaudeAgentOptions) -> dict[str, Any]:
    text = str(options.settings)
    if not text.startswith("{"):
        with open(text, encoding="utf-8") as file:
            text = file.read()
    return json.loads(text)


# --- what is kept -----------------------------------------------------------------------------

# Options that the kit doesn't look into, with a value each.
PASSED = {
    "max_budget_usd": 2.5,
    "fallback_model": "haiku",
    "betas": ["context-1m-2025-08-07"],
    "stderr": print,
    "user": "nobody",
    "include_partial_messages": True,
    "include_hook_events": True,
    "forward_subagent_text": True,
    "max_thinking_tokens": 5,
    "thinking": {"type": "disabled"},
    "effort": "high",
    "output_format": {"type": "json_schema", "schema": {}},
    "enable_file_checkpointing": True,
    "load_timeout_ms": 5,
    "task_budget": {"total": 5},
    "max_buffer_size": 5000,
    "resume_session_at": str(uuid.uuid4()),
    "resume_drops_turn": str(uuid.uuid4()),
    "session_store_flush": "eager",
    "debug_stderr": None,
    "client_app": "mine/1",
}
CARRIED = {
    "model": "opus",
    "max_turns": 7,
    "permission_mode": "acceptEdits",
    "session_id": str(uuid.uuid4()),
    "strict_mcp_config": True,
    "setting_sources": [],
    "verbatim_prompts": True,
    "extra_args": {"debug": None, "replay-user-messages": None},
}
HAS = {field.name for field in dataclasses.fields(ClaudeAgentOptions)}


@pytest.mark.parametrize("name", sorted({*PASSED, *CARRIED} & HAS))
def test_an_option_keeps_its_value(guard, name: str) -> None:
    value = {**PASSED, **CARRIED}[name]
    assert getattr(guard(**{name: value}), name) == value


def test_every_option_of_the_sdk_is_kept_read_or_refused() -> None:
    from agent_kit.session.host_rules import REFUSED
    from agent_kit.session.reading import _READ

    assert {*PASSED, *CARRIED, *_READ, *REFUSED, "session_store"} >= HAS


def test_an_option_that_the_sdk_grows_later_is_passed_on() -> None:
    from agent_kit.session.reading import Reading

    later = dataclasses.make_dataclass(
        "Later", [("brand_new", int, 0)], bases=(ClaudeAgentOptions,)
    )
    read = Reading(later(brand_new=5), SessionConfig(project_dir="."))  # type: ignore[call-arg]
    assert read._passed_on() == {"brand_new": 5}


def test_a_resumed_session_stays_resumed(guard) -> None:
    session = str(uuid.uuid4())
    assert (guard(resume=session).resume, guard(resume=session).session_id) == (session, None)
    assert guard(config={"resume": session}).resume == session


def test_nothing_said_is_left_to_the_kit(guard, world) -> None:
    guarded = guard()
    assert guarded.setting_sources == ["project"]
    assert guarded.max_buffer_size == BUFFER_SIZE
    assert guarded.cwd == str(world.project)
    assert guarded.tools == ["Read", "Glob", "Grep", "Write", "Edit"]
    assert guarded.allowed_tools == []
    assert guarded.model is None


@pytest.mark.parametrize(
    ("given", "own"),
    [
        ("You help.", "You help."),
        ({"type": "custom", "prompt": "You help."}, "You help."),
        ({"type": "file", "path": "prompt.md"}, "From a file."),
        (None, "# Folders"),
    ],
    ids=["text", "custom", "file", "none"],
)
def test_the_prompt_is_kept_and_the_folders_are_added(guard, world, given: Any, own: str) -> None:
    world.has("project/prompt.md=From a file.")
    prompt = guard(system_prompt=given).system_prompt
    assert prompt.startswith(own)
    assert "`drafts/`" in prompt


def test_a_preset_keeps_its_switches(guard) -> None:
    given = {"type": "preset", "preset": "claude_code", "exclude_dynamic_sections": True}
    prompt = guard(system_prompt={**given, "append": "You help."}).system_prompt
    assert prompt.pop("append").startswith("You help.")
    assert prompt == given
    custom = guard(system_prompt={"type": "custom", "prompt": "x", "snapshot": True}).system_prompt
    assert (custom["type"], custom["snapshot"]) == ("custom", True)


def test_servers_are_kept_as_a_dict_a_text_or_a_file(guard, world) -> None:
    server = {"type": "stdio", "command": "server", "env": {"T": "secret"}}
    text = json.dumps({"mcpServers": {"kb": server}})
    world.has(f"project/servers.json={text}")
    for given in ({"kb": server}, text, "servers.json", world.project / "servers.json"):
        file = guard(mcp_servers=given).extra_args["mcp-config"]
        with open(file, encoding="utf-8") as opened:
            assert json.load(opened) == {"mcpServers": {"kb": server}}
    in_process = {"type": "sdk", "name": "kb", "instance": object()}
    assert guard(mcp_servers={"kb": in_process}).mcp_servers == {"kb": in_process}


def test_agents_are_kept_whole(guard) -> None:
    agent = AgentDefinition(
        description="d",
        prompt="p",
        tools=["Read"],
        disallowedTools=["Grep"],
        model="haiku",
        maxTurns=3,
        background=False,
    )
    guarded = guard(agents={"helper": agent})
    assert guarded.agents == {"helper": agent}
    assert "Agent" in guarded.tools


def test_plugins_and_skills_are_kept_and_no_skill_is_added(guard, world) -> None:
    world.has(
        'plugin/.claude-plugin/plugin.json={"name": "p"}',
        "plugin/skills/one/SKILL.md=---\nname: one\ndescription: d\n---\nx",
        "plugin/skills/two/SKILL.md=---\nname: two\ndescription: d\n---\nx",
    )
    plugins = [{"type": "local", "path": str(world.root / "plugin")}]
    assert guard(plugins=plugins).plugins == plugins
    assert guard(plugins=plugins).skills == ["p:one", "p:two"]
    assert guard(plugins=plugins, skills=["p:one"]).skills == ["p:one"]
    assert guard(plugins=plugins, skills=[], allowed_tools=["Skill(p:two)"]).skills == ["p:two"]


def test_env_of_the_options_and_of_the_config_come_together(guard) -> None:
    env = guard(config={"env": {"B": "2"}}, env={"A": "1"}).env
    assert (env["A"], env["B"]) == ("1", "2")


@pytest.mark.parametrize("form", ["text", "file", "path", "dict"])
def test_settings_are_merged_and_the_kits_win(guard, world, form: str) -> None:
    given = {
        "language": "Latin",
        "disableAllHooks": False,
        "permissions": {"deny": ["WebFetch"], "ask": ["Bash"], "allow": ["Read", "WebSearch"]},
    }
    world.has(f"project/mine.json={json.dumps(given)}")
    forms = {
        "text": json.dumps(given),
        "file": "mine.json",
        "path": world.project / "mine.json",
        "dict": given,
    }
    found = settings(guard(settings=forms[form]))
    assert found["language"] == "Latin"
    assert found["disableAllHooks"] is True
    rules = found["permissions"]
    assert "WebFetch" in rules["deny"]
    assert rules["ask"] == ["Bash"]
    assert "WebSearch" in rules["allow"]
    assert "Read" not in rules["allow"]


# --- tools ------------------------------------------------------------------------------------


def test_no_tool_is_added_to_a_list(guard) -> None:
    guarded = guard(tools=["Read", "WebFetch"])
    assert guarded.tools == ["Read", "WebFetch"]
    assert guard(tools=[]).tools == []
    agent = AgentDefinition(description="d", prompt="p", tools=["Read", "WebSearch"])
    assert guard(tools=["Read", "Agent"], agents={"a": agent}).tools == ["Read", "Agent"]
    assert "Agent" in guard(tools=["Task"], agents={"a": agent}).tools


def test_tools_left_open_are_those_of_the_folders_and_of_what_is_allowed(guard) -> None:
    guarded = guard(allowed_tools=["Read", "WebFetch(domain:a.example)", "mcp__kb__read"])
    assert guarded.tools == ["Read", "Glob", "Grep", "Write", "Edit", "WebFetch"]
    assert {"WebFetch(domain:a.example)", "mcp__kb__read"} <= {*permissions(guarded)["allow"]}


@pytest.mark.parametrize("whole", ["Read", "Read()", "Read(*)"])
def test_a_whole_tool_becomes_the_scopes_rules(guard, world, whole: str) -> None:
    guarded = guard(allowed_tools=[whole, "Write", "mcp__kb__*"])
    assert guarded.allowed_tools == []
    allow = permissions(guarded)["allow"]
    assert not [
        rule for rule in allow if rule.partition("(")[0] == rule and rule in ("Read", "Write")
    ]
    assert f"Edit(/{world.project}/drafts/**)" in allow
    assert "mcp__kb__*" in allow


def test_a_tool_that_the_host_did_not_allow_is_not_allowed(guard) -> None:
    assert "WebFetch" not in permissions(guard(tools=["WebFetch"]))["allow"]
    assert "WebFetch" in permissions(guard(tools=["WebFetch"], allowed_tools=["WebFetch"]))["allow"]


def test_disallowed_tools_and_path_rules_stay(guard) -> None:
    given = ["WebFetch", "Read(./.env)", "mcp__kb__*"]
    guarded = guard(disallowed_tools=given, allowed_tools=["WebFetch"])
    assert {*given} <= {*guarded.disallowed_tools}
    assert "WebFetch" not in guarded.tools


def test_commands_are_refused_as_ever(guard) -> None:
    with pytest.raises(ConfinementUnavailableError, match="Bash"):
        guard(config={"confinement": "off"}, allowed_tools=["Bash"])


def test_the_sdk_warns_of_nothing(guard) -> None:
    from claude_agent_sdk.types import _warn_if_can_use_tool_shadowed

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn_if_can_use_tool_shadowed(guard(allowed_tools=["Read", "Skill"], can_use_tool=yes))


# --- hooks ------------------------------------------------------------------------------------


async def call(options: ClaudeAgentOptions, tool: str, **given: Any) -> dict[str, Any]:
    (matcher,) = options.hooks["PreToolUse"]
    (gate,) = matcher.hooks
    payload = {"tool_name": tool, "tool_input": given, "cwd": str(options.cwd)}
    return await gate(payload, "id", None)


def reason(answer: dict[str, Any]) -> str:
    return answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", "")


async def test_the_hosts_hooks_run_inside_the_gate_and_beside_it(guard) -> None:
    seen: list[str] = []

    async def reads(payload: Any, *_: Any) -> dict[str, Any]:
        seen.append(payload["tool_name"])
        specific = {"hookEventName": "PreToolUse", "updatedInput": {"file_path": "/etc/hosts"}}
        return {"hookSpecificOutput": specific}

    stop = HookMatcher(hooks=[hook])
    guarded = guard(
        hooks={"PreToolUse": [HookMatcher(matcher="Read", hooks=[reads])], "Stop": [stop]},
        config={"hooks": {"Stop": [hook]}},
    )
    assert "can't be read" in reason(await call(guarded, "Read", file_path="drafts/a.md"))
    assert await call(guarded, "Write", file_path="drafts/a.md", content="x") == {}
    assert seen == ["Read"]
    assert guarded.hooks["Stop"][0] == stop
    assert len(guarded.hooks["Stop"]) == 2


async def test_the_log_notes_what_the_gate_sees(world) -> None:
    log = GateLog()
    guarded = guard_options(ClaudeAgentOptions(), world.config(), log=log)
    await call(guarded, "Read", file_path="x")
    assert log.seen == {"id"}


# --- can_use_tool -----------------------------------------------------------------------------


async def ask(options: ClaudeAgentOptions, tool: str, **given: Any) -> Any:
    assert options.can_use_tool is not None
    return await options.can_use_tool(tool, given, ASKED)


OUT = {"file_path": "/etc/hosts"}
IN = {"file_path": "drafts/a.md"}


async def test_without_a_callback_file_tools_are_the_scopes_and_nothing_else_runs(guard) -> None:
    guarded = guard()
    assert isinstance(await ask(guarded, "Read", **IN), PermissionResultAllow)
    assert isinstance(await ask(guarded, "Read", **OUT), PermissionResultDeny)
    for tool in ("WebFetch", "mcp__kb__read", "Bash"):
        assert isinstance(await ask(guarded, tool), PermissionResultDeny)


async def test_the_host_is_not_asked_about_what_the_scope_refuses(guard) -> None:
    asked: list[str] = []

    async def host(tool: str, *_: Any) -> PermissionResultAllow:
        asked.append(tool)
        return PermissionResultAllow()

    guarded = guard(can_use_tool=host)
    assert isinstance(await ask(guarded, "Read", **OUT), PermissionResultDeny)
    assert asked == []
    for tool, given in (("Read", IN), ("WebFetch", {}), ("mcp__kb__read", {})):
        assert isinstance(await ask(guarded, tool, **given), PermissionResultAllow)
    assert asked == ["Read", "WebFetch", "mcp__kb__read"]


async def test_the_host_may_refuse_more(guard) -> None:
    async def no(*_: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="Not today.", interrupt=True)

    answer = await ask(guard(can_use_tool=no), "Write", **IN)
    assert (answer.message, answer.interrupt) == ("Not today.", True)


@pytest.mark.parametrize(
    ("tool", "changed"),
    [
        ("Read", OUT),
        ("Write", {**OUT, "content": "x"}),
        ("TheirTool", {"file_path": "/etc/hosts"}),
        ("Skill", {"skill": "other"}),
        ("Agent", {"isolation": "worktree"}),
        ("Read", ["no", "dict"]),
    ],
)
async def test_what_the_host_changes_is_judged_again(guard, tool: str, changed: Any) -> None:
    async def host(*_: Any) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input=changed)

    assert isinstance(await ask(guard(can_use_tool=host), tool, **IN), PermissionResultDeny)


async def test_a_change_within_the_scope_is_taken(guard) -> None:
    changed = {"file_path": "drafts/b.md"}

    async def host(*_: Any) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input=changed)

    assert (await ask(guard(can_use_tool=host), "Read", **IN)).updated_input == changed


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Agent", {"description": "d", "prompt": "p", "subagent_type": "a"}),
        ("Skill", {"skill": "one"}),
        ("Read", IN),
        ("WebFetch", {"url": "https://a.example"}),
    ],
)
async def test_an_input_that_the_host_gives_back_is_unchanged(guard, tool: str, given: Any) -> None:
    async def host(_: str, tool_input: dict[str, Any], __: Any) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input=tool_input)

    answer = await ask(guard(can_use_tool=host), tool, **given)
    assert answer == PermissionResultAllow()


async def test_a_copy_that_the_host_changed_and_gave_back_is_judged(guard) -> None:
    async def host(_: str, tool_input: dict[str, Any], __: Any) -> PermissionResultAllow:
        tool_input["skill"] = "other"
        return PermissionResultAllow(updated_input=tool_input)

    answer = await ask(guard(can_use_tool=host), "Skill", skill="one")
    assert isinstance(answer, PermissionResultDeny)


async def test_the_host_changes_no_rules_and_no_input_behind_the_scopes_back(guard) -> None:
    async def host(_: str, given: dict[str, Any], __: Any) -> PermissionResultAllow:
        given.update(OUT)
        return PermissionResultAllow(updated_permissions=[object()])  # type: ignore[list-item]

    given = dict(IN)
    answer = await guard(can_use_tool=host).can_use_tool("Read", given, ASKED)
    assert (answer.updated_input, answer.updated_permissions) == (None, None)
    assert given == IN


@pytest.mark.parametrize(
    "answer",
    [None, True, {"behavior": "allow"}, "allow", SimpleNamespace(updated_input=None)],
    ids=repr,
)
async def test_an_answer_that_is_none_refuses(guard, answer: Any) -> None:
    async def host(*_: Any) -> Any:
        return answer

    assert isinstance(await ask(guard(can_use_tool=host), "WebFetch"), PermissionResultDeny)


async def test_a_callback_that_raises_refuses(guard) -> None:
    async def host(*_: Any) -> Any:
        raise RuntimeError("secret")

    refusal = await ask(guard(can_use_tool=host), "WebFetch")
    assert "secret" not in refusal.message


async def test_the_host_is_asked_about_what_it_was_asked_about(guard) -> None:
    """With a callback and no whole-tool allow, a Write in the scope was its question."""
    asked: list[str] = []

    async def host(tool: str, *_: Any) -> PermissionResultAllow:
        asked.append(tool)
        return PermissionResultAllow()

    open_ = guard(can_use_tool=host)
    assert not [rule for rule in permissions(open_)["allow"] if rule.startswith("Edit(")]
    allowed = guard(can_use_tool=host, allowed_tools=["Write"])
    assert not [rule for rule in permissions(allowed)["allow"] if rule.startswith("Edit(")]
    for tool in ("Write", "Edit"):
        assert isinstance(await ask(allowed, tool, **IN), PermissionResultAllow)
    assert asked == ["Edit"]
    whole = guard(can_use_tool=host, settings='{"permissions": {"allow": ["Write", "Edit"]}}')
    assert [rule for rule in permissions(whole)["allow"] if rule.startswith("Edit(")]


# --- faults -----------------------------------------------------------------------------------

ELSEWHERE = ClaudeAgentOptions().cwd or "/"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"add_dirs": ["/srv"]}, ("options.add_dirs", ["/srv"])),
        (
            {"permission_prompt_tool_name": "mcp__a__b"},
            ("options.permission_prompt_tool_name", "mcp__a__b"),
        ),
        ({"sandbox": {"enabled": True}}, ("options.sandbox", {"enabled": True})),
        ({"continue_conversation": True}, ("options.continue_conversation", True)),
        ({"fork_session": True}, ("options.fork_session", True)),
        ({"cwd": "/"}, ("options.cwd", "/")),
        ({"skills": "all"}, ("options.skills", "all")),
        ({"permission_mode": "auto"}, ("options.permission_mode", "auto")),
        ({"allowed_tools": ["Read(//srv/**)"]}, ("options.allowed_tools", "Read(//srv/**)")),
        ({"allowed_tools": ["WebFetch,Read"]}, ("options.allowed_tools", "WebFetch,Read")),
        ({"allowed_tools": ["WebFetch Read"]}, ("options.allowed_tools", "WebFetch Read")),
        ({"extra_args": {"settings": "x"}}, ("options.extra_args", "settings")),
        ({"extra_args": {"bare": None}}, ("options.extra_args", "bare")),
        ({"extra_args": {"verbose": "a prompt"}}, ("options.extra_args", "verbose")),
        ({"tools": ["Bash(ls)"]}, ("options.tools", "Bash(ls)")),
        ({"tools": ["default"]}, ("options.tools", "default")),
        ({"hooks": {"PermissionRequest": []}}, ("options.hooks", "PermissionRequest")),
        ({"hooks": {"PreToolUse": ["x"]}}, ("options.hooks['PreToolUse']", "x")),
        ({"settings": "{"}, ("options.settings", "…")),
        ({"settings": "missing.json"}, ("options.settings", "missing.json")),
        ({"settings": '{"hooks": {}}'}, ("options.settings['hooks']", {})),
        ({"settings": '{"sandbox": {}}'}, ("options.settings['sandbox']", {})),
        ({"settings": '{"mine": 5}'}, ("options.settings['mine']", 5)),
        (
            {"settings": '{"permissions": {"allow": ["Read(//srv/**)"]}}'},
            ("options.settings['permissions']['allow']", "Read(//srv/**)"),
        ),
        (
            {"settings": '{"permissions": {"deny": ["Read(/secret)"]}}'},
            ("options.settings['permissions']['deny']", "Read(/secret)"),
        ),
        ({"mcp_servers": "missing.json"}, ("options.mcp_servers", "missing.json")),
        ({"mcp_servers": {"a b": {}}}, ("options.mcp_servers", "a b")),
        ({"plugins": [{"type": "local", "path": "missing"}]}, ("options.plugins", "missing")),
        ({"plugins": [{"type": "other"}]}, ("options.plugins", {"type": "other"})),
        ({"system_prompt": {"type": "file", "path": "no.md"}}, ("options.system_prompt", "no.md")),
        ({"system_prompt": 5}, ("options.system_prompt", 5)),
        ({"model": "a", "config": {"model": "b"}}, ("options.model", "a")),
        ({"env": {"A": "1"}, "config": {"env": {"A": "2"}}}, ("options.env", "A")),
        (
            {"verbatim_prompts": True, "config": {"prompt_mentions": "any"}},
            ("options.verbatim_prompts", True),
        ),
        (
            {"agents": {"x": AgentDefinition(description="d", prompt="p", memory="user")}},
            ("options.agents['x'].memory", "user"),
        ),
        (
            {"agents": {"x": AgentDefinition(description="d", prompt="p", initialPrompt="go")}},
            ("options.agents['x'].initialPrompt", "go"),
        ),
        (
            {"agents": {"x": AgentDefinition(description="", prompt="p")}},
            ("options.agents['x'].description", ""),
        ),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_would_undo_a_lock_is_a_fault(at_fault, fields: dict[str, Any], fault: Any) -> None:
    assert at_fault(**fields) == [fault]


def test_a_preset_of_all_tools_is_a_fault(at_fault) -> None:
    preset = {"type": "preset", "preset": "claude_code"}
    assert at_fault(tools=preset) == [("options.tools", preset)]


def test_every_fault_comes_at_once_with_those_of_the_config_and_the_disk(at_fault) -> None:
    found = at_fault(
        config={"extra_readable_dirs": ["missing"], "settings": {"hooks": {}}},
        add_dirs=["/srv"],
        sandbox={"enabled": True},
        continue_conversation=True,
        extra_args={"settings": "x"},
        allowed_tools=["Read(x)"],
        skills="all",
        settings='{"sandbox": {}}',
        hooks={"PermissionRequest": []},
        max_turns="many",
        cwd="/",
    )
    assert {field for field, _ in found} == {
        "options.add_dirs",
        "options.sandbox",
        "options.continue_conversation",
        "options.extra_args",
        "options.allowed_tools",
        "options.skills",
        "options.settings['sandbox']",
        "options.hooks",
        "options.max_turns",
        "options.cwd",
        "extra_readable_dirs",
        "settings['hooks']",
    }


KEY = "sk-ant-secret"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (
            {"env": {"ANTHROPIC_API_KEY": KEY}, "config": {"env": {"ANTHROPIC_API_KEY": "x"}}},
            "ANTHROPIC_API_KEY",
        ),
        ({"env": {"ANTHROPIC_API_KEY": f"{KEY}\0"}}, "ANTHROPIC_API_KEY"),
        ({"extra_args": {"unheard-of": KEY}}, "unheard-of"),
        ({"mcp_servers": json.dumps({"kb": {"headers": {"Authorization": KEY}}})}, "mcp_servers"),
        ({"mcp_servers": f'{{"mcpServers": {{"kb": "{KEY}"'}, "mcp_servers"),
        ({"mcp_servers": {"kb": [KEY]}}, "mcp_servers['kb']"),
        ({"settings": f'{{"env": {{"T": "{KEY}"}}, }}'}, "options.settings"),
        ({"settings": f'{{"env": {{"T": "{KEY}"'}, "options.settings"),
        ({"settings": {"env": {"T": KEY, "N": 5}}}, "options.settings['env']"),
        ({"settings": {"env": {"HOME": KEY}}}, "options.settings['env']['HOME']"),
        ({"settings": {"unheardOf": KEY}}, "options.settings['unheardOf']"),
        ({"settings": {"unheardOf": {"a": KEY}}}, "options.settings['unheardOf']"),
        ({"settings": {"permissions": {"other": [KEY]}}}, "options.settings['permissions']"),
        ({"config": {"settings": {"unheardOf": KEY}}}, "settings['unheardOf']"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_no_fault_shows_a_value_that_may_be_a_key(guard, fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        guard(**fields)
    assert name in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.faults)


def test_of_options_that_the_kit_made_that_alone_is_said(world) -> None:
    config = world.config()
    built = build_session_options(AgentSpec(name="a"), config)
    for options in (built, guard_options(ClaudeAgentOptions(), config)):
        with pytest.raises(ConfigError, match="already") as caught:
            guard_options(options, config)
        assert [fault.field for fault in caught.value.faults] == ["options"]


def test_arguments_of_another_type_are_named_each_in_a_sentence(world) -> None:
    options, config = ClaudeAgentOptions(), world.config()
    for given, fields in (
        ((config, options), ["options", "config"]),
        (({}, config), ["options"]),
        ((options, None), ["config"]),
        ((AgentSpec(name="a"), config), ["options"]),
    ):
        with pytest.raises(ConfigError) as caught:
            guard_options(*given)
        assert [fault.field for fault in caught.value.faults] == fields
        assert len(str(caught.value).splitlines()) == len(fields)
    with pytest.raises(ConfigError, match="give an AgentSpec"):
        build_session_options(options, config)  # type: ignore[arg-type]


def test_bare_options_that_resume_a_guarded_session_are_guarded(world) -> None:
    session = guard_options(ClaudeAgentOptions(), world.config()).session_id
    resumed = guard_options(ClaudeAgentOptions(resume=session), world.config())
    assert check_options(resumed)["gate"].on


def test_a_workspace_is_one_of_the_options_folder(world) -> None:
    config = SessionConfig(workspace=world.project, run_dir=world.run)
    guarded = guard_options(ClaudeAgentOptions(cwd=world.project), config)
    assert "Write" in guarded.tools
    with pytest.raises(ConfigError, match="workspace="):
        guard_options(ClaudeAgentOptions(cwd=world.root), config)


def test_guarded_options_hold_every_lock(guard) -> None:
    locks = check_options(
        guard(can_use_tool=yes, hooks={"PreToolUse": [HookMatcher(hooks=[hook])]})
    )
    assert [name for name in ("gate", "rules", "prompts") if locks[name].on] == [
        "gate",
        "rules",
        "prompts",
    ]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"allowed_tools": ["Frobnicat", "Bsh"]}, [("options.allowed_tools", "Bsh")]),
        ({"tools": ["Bsh"]}, [("options.tools", "Bsh")]),
        ({"disallowed_tools": ["Raed"]}, [("options.disallowed_tools", "Raed")]),
        ({"disallowed_tools": ["Bsh(rm:*)"]}, [("options.disallowed_tools", "Bsh(rm:*)")]),
        ({"agents": {"x": {"tools": ["Raed"]}}}, [("options.agents['x'].tools", "Raed")]),
        (
            {"agents": {"x": {"disallowedTools": ["Raed", "Bsh(ls)"]}}},
            [
                ("options.agents['x'].disallowedTools", "Raed"),
                ("options.agents['x'].disallowedTools", "Bsh(ls)"),
            ],
        ),
        (
            {"settings": '{"permissions": {"deny": ["Bsh(rm:*)"]}}'},
            [("options.settings['permissions']['deny']", "Bsh(rm:*)")],
        ),
    ],
)
def test_a_misspelt_tool_is_a_fault_of_the_option_that_names_it(
    at_fault, fields: dict[str, Any], found: list[Any]
) -> None:
    if agents := fields.get("agents"):
        own = {n: AgentDefinition(description="d", prompt="p", **a) for n, a in agents.items()}
        fields = {"agents": own}
    assert at_fault(**fields) == found


@pytest.mark.parametrize(
    "rules",
    [["Frobnicate"], ["Frobnicate(x)"], ["Bash(rm:*)"], ["mcp__x__raed"], ["Bas*", "Rea*(x)"]],
)
def test_a_tool_that_resembles_none_may_be_closed(guard, rules: list[str]) -> None:
    assert guard(disallowed_tools=rules).disallowed_tools
