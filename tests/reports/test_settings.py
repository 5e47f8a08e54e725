"""What reaches the CLI as settings, sources, environment and arguments, and what stays out."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, ConfigError, SessionConfig, Subagent
from agent_kit.session.isolation import ISOLATION
from agent_kit.session.run_folder import close_run_folder
from agent_kit.testing import Say, ToolCall

SOURCES = (
    [],
    ["project"],
    ["project", "local"],
    ["user", "project"],
    ["user"],
    ["user", "project", "local"],
)
ISOLATED = {
    "outputStyle": "default",
    "autoMemoryEnabled": False,
    "includeGitInstructions": False,
    "disableClaudeAiConnectors": True,
    "disableAllHooks": True,
    "disableSkillShellExecution": True,
    "crossSessionInbound": "refuse",
}


def arguments(options: Any) -> list[str]:
    """The command line that the SDK makes of options."""
    from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

    transport = SubprocessCLITransport(prompt="", options=options)
    transport._cli_path = "claude"
    return transport._build_command()


@pytest.mark.report(81, 85)
@pytest.mark.parametrize("sources", SOURCES, ids=repr)
def test_the_sources_are_always_said_also_when_there_are_none(world, sources: list[str]) -> None:
    for options in (
        world.options(setting_sources=sources),
        world.options(spec={"setting_sources": sources}),
        world.options(setting_sources=sources, spec={"setting_sources": ["user"]}),
    ):
        assert options.setting_sources == sources
        assert f"--setting-sources={','.join(sources)}" in arguments(options)


@pytest.mark.report(85)
def test_unsaid_sources_are_the_project_alone(world) -> None:
    options = world.options()
    assert options.setting_sources == ["project"]
    assert "--setting-sources=project" in arguments(options)


@pytest.mark.report(87)
@pytest.mark.parametrize("sources", SOURCES, ids=repr)
def test_skills_and_plugins_turn_no_source_on(world, sources: list[str]) -> None:
    world.has("project/plugin/skills/s/SKILL.md=---\nname: s\ndescription: d\n---\nx")
    options = world.options(
        setting_sources=sources, spec={"plugins": ["plugin"], "skills": ["simplify"]}
    )
    assert options.skills == ["plugin:s", "simplify"]
    assert [each for each in arguments(options) if "setting-sources" in each] == [
        f"--setting-sources={','.join(sources)}"
    ]


@pytest.mark.report(82, 83, 89)
@pytest.mark.parametrize("sources", SOURCES, ids=repr)
def test_the_runners_own_things_are_turned_off_for_every_value_of_the_sources(
    world, sources: list[str]
) -> None:
    settings = json.loads(world.options(setting_sources=sources).settings)
    assert {name: settings.get(name) for name in ISOLATED} == ISOLATED
    assert {row.setting: row.value for row in ISOLATION} == ISOLATED


@pytest.mark.report(82, 83, 89)
@pytest.mark.parametrize("row", ISOLATION, ids=lambda row: row.setting)
def test_a_persons_settings_do_not_undo_the_isolation_unless_it_is_unlocked_by_name(
    world, row: Any
) -> None:
    other = {row.setting: "another" if isinstance(row.value, str) else not row.value}
    assert world.plan(settings=other).settings[row.setting] is row.value
    assert world.plan(spec={"options": {"settings": other}}).settings[row.setting] is row.value
    assert world.plan(settings=other, unlock=[row.unlock]).settings[row.setting] is not row.value
    assert row.setting not in world.plan(unlock=[row.unlock]).settings
    rest = {each.setting: each.value for each in ISOLATION if each is not row}
    unlocked = world.plan(unlock={row.unlock}).settings
    assert {name: unlocked[name] for name in rest} == rest


@pytest.mark.report(83)
@pytest.mark.parametrize("strict", [True, False])
def test_other_mcp_servers_can_be_kept_out(world, strict: bool) -> None:
    options = world.options(strict_mcp_config=strict)
    assert options.strict_mcp_config is strict
    assert ("--strict-mcp-config" in arguments(options)) is strict


def memory_of(world: Any) -> str:
    """Where the runner's memory of the project lies, as a path below ``root``."""
    from agent_kit.sdk.locations import CliLocations

    places = CliLocations({"HOME": str(world.home)})
    results = Path(places.tool_results_dir(Path(os.path.realpath(world.project)), "id"))
    return str((results.parents[1] / "memory" / "MEMORY.md").relative_to(world.root))


@pytest.mark.e2e
@pytest.mark.report(81, 82, 83, 84, 85, 88, 89)
@pytest.mark.parametrize("sources", [[], ["project"], ["user", "project"]], ids=repr)
def test_on_the_cli_the_runners_configuration_reaches_the_model_only_where_the_sources_say_so(
    world, sources: list[str]
) -> None:
    touch = {"type": "command", "command": f"touch {shlex.quote(str(world.root))}/hook-ran"}
    hooks = {"UserPromptSubmit": [{"hooks": [touch]}]}
    world.has(
        "home/.claude/CLAUDE.md=canary-user-memory",
        "home/.claude/settings.json=" + json.dumps({"language": "canary-language", "hooks": hooks}),
        "home/.claude/skills/mine/SKILL.md=---\nname: mine\ndescription: canary-user-skill\n---\nx",
        f"{memory_of(world)}=canary-auto-memory",
        "project/CLAUDE.md=canary-project-memory",
        "project/.claude/settings.json="
        + json.dumps({"disableAllHooks": True, "hooks": hooks, "autoMemoryEnabled": True}),
        "project/closed.txt=canary-closed",
    )
    run = world.run(
        world.options(setting_sources=sources, spec={"tools": ["Read"]}),
        [ToolCall("Read", {"file_path": str(world.project / "closed.txt")}), Say("x")],
    )
    assert run.saw("canary-project-memory") is ("project" in sources)
    assert run.saw("canary-user-memory") is ("user" in sources)
    for canary in ("canary-auto-memory", "canary-user-skill"):
        assert not run.saw(canary), run.where(canary)
    assert not (world.root / "hook-ran").exists()
    assert run.calls[0].is_error  # the gate is there, whatever the project says of hooks
    assert not run.saw("canary-closed")


@pytest.mark.e2e
@pytest.mark.report(86)
@pytest.mark.parametrize("trusted", [False, True])
def test_what_the_host_has_set_wins_over_the_users_and_the_projects_settings(
    world, trusted: bool
) -> None:
    elsewhere = {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/",
        "ANTHROPIC_API_KEY": "canary-key",
        "HTTPS_PROXY": "http://127.0.0.1:9/",
    }
    trust = {"projects": {str(world.project): {"hasTrustDialogAccepted": trusted}}}
    user, project = {"KIT_U": "user", **elsewhere}, {"KIT_P": "project", **elsewhere}
    world.has(
        "home/.claude.json=" + json.dumps(trust),
        "home/.claude/settings.json=" + json.dumps({"env": user}),
        "project/.claude/settings.json=" + json.dumps({"env": project}),
    )
    command = ToolCall("Bash", {"command": 'echo "<$KIT_U> <$KIT_P> <$KIT_H> $HTTPS_PROXY"'})
    run = world.run(
        world.options(
            env={"KIT_U": "host", "KIT_P": "host", "KIT_H": "host"},
            allow_unconfined_commands=True,
            spec={"tools": ["Bash"]},
        ),
        [command, Say("the host's model")],
    )
    assert run.text == "the host's model"
    assert run.calls[0].result.startswith("<host> <host> <host> ")
    assert ":9/" not in run.calls[0].result


@pytest.mark.report(86)
def test_a_persons_settings_can_not_move_the_folders_that_the_plan_counts_on(world) -> None:
    for name in ("HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR"):
        with pytest.raises(ConfigError) as caught:
            world.plan(settings={"env": {name: "/elsewhere"}})
        assert [fault.field for fault in caught.value.faults] == [f"settings['env'][{name!r}]"]


@pytest.mark.report(88)
def test_the_gate_stands_whatever_the_settings_say_of_hooks(world) -> None:
    for fields in (
        {},
        {"unlock": ["project_hooks"]},
        {"settings": {"disableAllHooks": True}, "unlock": ["project_hooks"]},
    ):
        options = world.options(**fields)
        (gate,) = options.hooks["PreToolUse"]
        assert gate.on_failure == "block"


@pytest.mark.report(90)
def test_the_marker_of_an_outer_session_is_not_handed_on(world, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("SOME_SECRET", "s")
    for fields in ({}, {"config_dir": "~/cfg"}, {"env": {"MORE": "x"}}):
        assert not {"CLAUDECODE", "SOME_SECRET"} & set(world.options(**fields).env)


@pytest.mark.e2e
@pytest.mark.report(90)
def test_a_session_starts_inside_another_one(world, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    assert world.run(world.options(), [Say("started")]).text == "started"


TOKEN = "tok-f4d1c2"
SECRETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a header": (
        {
            "mcp_servers": {
                "a": {
                    "type": "http",
                    "url": "http://127.0.0.1:9/",
                    "headers": {"Authorization": TOKEN},
                }
            }
        },
        {},
    ),
    "an environment": (
        {"mcp_servers": {"a": {"type": "stdio", "command": "x", "env": {"T": TOKEN}}}},
        {},
    ),
    "an argument": ({"mcp_servers": {"a": {"type": "stdio", "command": "x", "args": [TOKEN]}}}, {}),
    "an address": (
        {"mcp_servers": {"a": {"type": "sse", "url": f"http://127.0.0.1:9/?t={TOKEN}"}}},
        {},
    ),
    "settings": ({}, {"settings": {"env": {"T": TOKEN}}}),
    "a key": ({}, {"env": {"ANTHROPIC_API_KEY": TOKEN}}),
    "a helper": ({}, {"settings": {"apiKeyHelper": f"echo {TOKEN}"}}),
    "the spec's settings": ({"options": {"settings": {"env": {"T": TOKEN}}}}, {}),
}


@pytest.mark.report(91)
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_on_no_command_line_but_in_a_private_file_that_goes(world, name: str) -> None:
    spec, config = SECRETS[name]
    options = world.options(spec=spec, **config)
    assert TOKEN not in " ".join(arguments(options))
    host = world.root / "run" / "host"
    (holder,) = [path for path in host.iterdir() if TOKEN in path.read_text()]
    assert stat.S_IMODE(holder.stat().st_mode) == 0o600
    assert stat.S_IMODE(host.stat().st_mode) == 0o700
    assert str(holder) in arguments(options)
    close_run_folder(world.root / "run")
    assert list(host.iterdir()) == []


@pytest.mark.report(91)
@pytest.mark.parametrize("folder", ["run", "run[1]", "r?n", "run*"])
def test_no_file_tool_opens_that_file_whatever_the_run_folder_is_called(world, folder: str) -> None:
    from agent_kit import check_file_scope

    plan = world.plan(run_dir=str(world.root / folder), extra_readable_dirs=[str(world.root)])
    for asked in (plan.host_dir / "x.settings.json", plan.host_dir):
        assert check_file_scope(plan.scope, "Read", {"file_path": str(asked)}) is not None
        assert (
            check_file_scope(plan.scope, "Glob", {"path": str(asked), "pattern": "*"}) is not None
        )
    assert check_file_scope(plan.scope, "Read", {"file_path": str(plan.run_dir / "log")}) is None


SERVER = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    results = {
        "initialize": {"protocolVersion": request.get("params", {}).get("protocolVersion"),
                       "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [{"name": "whoami", "description": "d", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": os.environ.get("T", "none")}]},
    }
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": results.get(request["method"], {})}
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.e2e
@pytest.mark.report(91)
def test_on_the_cli_servers_and_settings_from_a_file_work(world) -> None:
    from agent_kit_knowledge import knowledge

    world.has("project/knowledge/")
    servers = {
        "ext": {
            "type": "stdio",
            "command": sys.executable,
            "args": ["-c", SERVER],
            "env": {"T": TOKEN},
        }
    }
    options = world.options(
        spec={"mcp_servers": servers, "extensions": [knowledge()], "tools": ["Bash"]},
        settings={"env": {"KIT_T": "from-settings"}},
        allow_unconfined_commands=True,
    )
    calls = [
        ToolCall("mcp__ext__whoami", {}),
        ToolCall("mcp__knowledge__knowledge_index", {}),
        ToolCall("Bash", {"command": "echo $KIT_T"}),
    ]
    run = world.run(options, [tuple(calls), Say("x")])
    assert [call.is_error for call in run.calls] == [False, False, False]
    assert run.calls[0].result == TOKEN
    assert run.calls[2].result == "from-settings"


@pytest.mark.report(92)
def test_settings_too_long_for_a_command_line_go_to_a_file(world) -> None:
    many = [f"secrets/{number}.txt" for number in range(2000)]
    options = world.options(denied_paths=many)
    assert sum(len(each) + 1 for each in arguments(options)) < 32_000  # what Windows can start
    path = Path(options.settings)
    assert path.parent == world.root / "run" / "host"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    settings = json.loads(path.read_text())
    assert f"Read(/{world.project}/secrets/1999.txt)" in settings["permissions"]["deny"]
    few = world.options(denied_paths=many[:2])
    assert json.loads(few.settings)["permissions"]["deny"]


@pytest.mark.report(92)
def test_more_rules_than_the_cli_reads_are_a_fault(world) -> None:
    with pytest.raises(ConfigError, match="denied_paths") as caught:
        world.plan(denied_paths=[f"{'x' * 100}/{number}.txt" for number in range(5000)])
    assert "folder or a pattern" in caught.value.faults[0].remedy


@pytest.mark.e2e
@pytest.mark.report(92, 93)
@pytest.mark.parametrize("preset", [None, "claude_code"])
def test_on_the_cli_thousands_of_rules_and_long_texts_start_and_hold(
    world, preset: str | None
) -> None:
    names = [f"s/{number}.txt" for number in range(2000)]
    world.has("project/s/1999.txt=canary-closed")
    prompt = "canary-prompt " + "long " * 40_000
    agents = {
        f"agent-{number}": Subagent(description="d", prompt="p" * 50_000) for number in range(10)
    }
    options = world.options(
        denied_paths=names,
        spec={"system_prompt": prompt, "preset": preset, "subagents": agents, "tools": ["Read"]},
    )
    assert sum(len(each) + 1 for each in arguments(options)) < 32_000
    run = world.run(
        options, [ToolCall("Read", {"file_path": str(world.project / names[-1])}), Say("x")]
    )
    assert run.calls[0].is_error
    assert not run.saw("canary-closed")
    assert run.saw("canary-prompt")


@pytest.mark.report(93)
@pytest.mark.parametrize("preset", [None, "claude_code"])
def test_a_long_prompt_is_on_no_command_line(world, preset: str | None) -> None:
    for length in (10, 29_000, 31_000, 200_000):
        options = world.options(
            spec={"system_prompt": "p" * length, "preset": preset}, denied_paths=["x"] * 3
        )
        assert sum(len(each) + 1 for each in arguments(options)) < 32_000
        assert world.plan(spec={"system_prompt": "p" * length}).system_prompt.startswith(
            "p" * length
        )


def test_every_value_that_these_tests_use_is_a_valid_one() -> None:
    assert AgentSpec(name="a").setting_sources == ("project",)
    assert SessionConfig(project_dir=".").setting_sources is None
