"""A person's settings: their types are known, they are merged, and no lock is undone by them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_kit import ConfigError, plan_session
from agent_kit.session.environment import fixed_env
from agent_kit.session.isolation import ISOLATION, NESTED_MEMORY
from agent_kit.session.settings import SETTINGS, UNCHECKED_SETTINGS, settings_faults
from agent_kit.testing import Say, ToolCall, run_session

# A value of the right type for each setting of the table, and values of wrong ones.
FLAGS = (
    "alwaysThinkingEnabled",
    "autoCompactEnabled",
    "autoMemoryEnabled",
    "disableAllHooks",
    "disableClaudeAiConnectors",
    "disableSkillShellExecution",
    "enableAllProjectMcpServers",
    "fastMode",
    "fileCheckpointingEnabled",
    "includeCoAuthoredBy",
    "includeGitInstructions",
    "respectGitignore",
    "skipWebFetchPreflight",
)
GOOD: dict[str, Any] = {
    **dict.fromkeys(FLAGS, True),
    "agent": "helper",
    "apiKeyHelper": "echo key",
    "attribution": {"commit": "", "pr": ""},
    "autoMemoryDirectory": "/elsewhere",
    "availableModels": ["claude-opus-5-5"],
    "awsAuthRefresh": "true",
    "awsCredentialExport": "true",
    "claudeMdExcludes": ["/elsewhere/**"],
    "cleanupPeriodDays": 3,
    "crossSessionInbound": "hold",
    "disabledMcpjsonServers": ["x"],
    "effortLevel": "high",
    "enabledMcpjsonServers": ["x"],
    "env": {"KIT_X": "y"},
    "language": "English",
    "model": "claude-opus-5-5",
    "modelOverrides": {"claude-opus-5-5": "claude-opus-5-5"},
    "otelHeadersHelper": "true",
    "outputStyle": "default",
    "plansDirectory": "plans",
}
WRONG = ("x", 5, 0, -1, 1.5, None, True, [], [5], {}, {"a": 5}, {5: "a"}, "")


def test_the_table_and_these_examples_have_the_same_names() -> None:
    assert set(GOOD) == set(SETTINGS)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_setting_takes_its_type_and_no_other(name: str) -> None:
    assert settings_faults("settings", {name: GOOD[name]}, unchecked=False) == []
    for value in WRONG:
        same = type(value) is type(GOOD[name]) and value not in ([5], {"a": 5}, {5: "a"}, 0, -1)
        found = settings_faults("settings", {name: value}, unchecked=True)
        assert bool(found) is not same, value
        for fault in found:
            assert (fault.field, fault.value) == (f"settings[{name!r}]", value)


@pytest.mark.e2e
async def test_on_the_cli_the_rules_hold_beside_every_setting_of_the_table(world) -> None:
    world.has("project/closed.txt=canary-closed", "project/drafts/open.txt=canary-open")
    good = {name: value for name, value in GOOD.items() if name not in ("agent", "apiKeyHelper")}
    plan = world.plan(
        settings={**good, "agent": "general-purpose"},
        extra_writable_dirs=["drafts"],
        denied_paths=["closed.txt"],
    )
    assert set(good) <= set(plan.settings)
    options = world.options(
        settings=good, extra_writable_dirs=["drafts"], denied_paths=["closed.txt"]
    )
    options.hooks.clear()
    options.can_use_tool = None
    calls = tuple(
        ToolCall("Read", {"file_path": str(world.project / name)})
        for name in ("closed.txt", "drafts/open.txt")
    )
    run = await run_session(options, [calls, Say("x")], home=world.home)
    assert run.unplayed == ()
    assert not run.saw("canary-closed")
    assert run.saw("canary-open")


@pytest.mark.e2e
async def test_on_the_cli_one_malformed_setting_takes_every_rule_away(world) -> None:
    # Why the table is closed. When this fails, the CLI has become more careful, and the table may.
    world.has("project/closed.txt=canary-closed")
    options = world.options(denied_paths=["closed.txt"], spec={"tools": ["Read"]})
    options.hooks.clear()
    options.settings = json.dumps({**json.loads(options.settings), "cleanupPeriodDays": 0})
    read = ToolCall("Read", {"file_path": str(world.project / "closed.txt")})
    assert (await run_session(options, [read, Say("x")], home=world.home)).saw("canary-closed")


@pytest.mark.parametrize("given", ["config", "spec"])
@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"permissions": "x"}, "['permissions']"),
        ({"permissions": None}, "['permissions']"),
        ({"permissions": ["Read"]}, "['permissions']"),
        ({"permissions": {"deny": "Read(//x)"}}, "['permissions']['deny']"),
        ({"permissions": {"deny": None}}, "['permissions']['deny']"),
        ({"permissions": {"deny": [5]}}, "['permissions']['deny']"),
        ({"permissions": {"deny": {"a": "b"}}}, "['permissions']['deny']"),
        ({"permissions": {"allow": "Read"}}, "['permissions']['allow']"),
        ({"permissions": {"ask": "x"}}, "['permissions']['ask']"),
        ({"permissions": {"deny": ["Bash", "Bsh(rm:*)"]}}, "['permissions']['deny']"),
        ({"permissions": {"ask": ["Raed"]}}, "['permissions']['ask']"),
        ({"permissions": {"denies": []}}, "['permissions']['denies']"),
        ({"permissions": {"defaultMode": "acceptEdits"}}, "['permissions']['defaultMode']"),
        (
            {"permissions": {"additionalDirectories": ["/"]}},
            "['permissions']['additionalDirectories']",
        ),
        (
            {"permissions": {"disableBypassPermissionsMode": "x"}},
            "['permissions']['disableBypassPermissionsMode']",
        ),
        ({"permissions": {5: []}}, "['permissions'][5]"),
        ({"hooks": {"PreToolUse": []}}, "['hooks']"),
        ({"sandbox": {"enabled": True}}, "['sandbox']"),
        ({"enabledPlugins": {}}, "['enabledPlugins']"),
        ({"env": {"HOME": "/x"}}, "['env']['HOME']"),
        ({"env": {"A": 5}}, "['env']"),
        ({"defaultShell": "bash"}, "['defaultShell']"),
        ({"autoMemoryEnable": False}, "['autoMemoryEnable']"),
        ({5: "x"}, "[5]"),
    ],
    ids=repr,
)
def test_settings_of_a_wrong_shape_are_a_fault_of_the_field_that_gave_them(
    world, settings: Any, field: str, given: str
) -> None:
    if given == "config":
        found = world.faults(settings=settings)
        assert [name for name, _ in found] == [f"settings{field}"]
    else:
        found = world.faults(spec={"options": {"settings": settings}})
        assert [name for name, _ in found] == [f"options['settings']{field}"]


@pytest.mark.parametrize(
    "settings", ["settings.json", '{"permissions": {}}', [], 5, None], ids=repr
)
def test_the_specs_settings_are_a_dict_and_are_not_dropped(world, settings: Any) -> None:
    assert world.faults(spec={"options": {"settings": settings}}) == [
        ("options['settings']", settings)
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "Read",
        "Edit",
        "Write",
        "Glob",
        "Grep",
        "NotebookEdit",
        "Read(//**)",
        "Edit(//work/**)",
        "LS",
    ],
)
def test_no_setting_grants_files_that_the_scope_does_not(world, rule: str) -> None:
    assert world.faults(settings={"permissions": {"allow": ["WebFetch", rule]}}) == [
        ("settings['permissions']['allow']", rule)
    ]
    world.plan(settings={"permissions": {"deny": [rule], "ask": [rule]}})


@pytest.mark.parametrize("rule", ["", "*", "Read, Bash", "Bash(", " Bash", "Bash()"])
def test_a_text_that_is_no_rule_is_a_fault(world, rule: str) -> None:
    for name in ("allow", "deny", "ask"):
        assert world.faults(settings={"permissions": {name: [rule]}}) == [
            (f"settings['permissions'][{name!r}]", rule)
        ]


def circle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1, 2}, object(), b"x", circle()],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_json_does_not_have_is_a_fault_also_of_an_unchecked_setting(
    world, value: Any
) -> None:
    ((field, found),) = [
        (fault.field, fault.value)
        for fault in settings_faults("settings", {"somethingNew": value}, unchecked=True)
    ]
    assert field == "settings"
    assert found == {"somethingNew": value}


def test_an_unknown_setting_needs_to_be_unlocked(world) -> None:
    settings = {"somethingNew": {"a": 1}}
    assert world.faults(settings=settings) == [("settings['somethingNew']", {"a": 1})]
    plan = world.plan(settings=settings, unlock=[UNCHECKED_SETTINGS])
    assert plan.settings["somethingNew"] == {"a": 1}
    known = {"model": 5, "hooks": {}, "sandbox": {}, "enabledPlugins": {}}
    known["permissions"] = {"additionalDirectories": [], "defaultMode": "plan", "allow": ["Read"]}
    assert [field for field, _ in world.faults(settings=known, unlock=[UNCHECKED_SETTINGS])] == [
        "settings['model']",
        "settings['hooks']",
        "settings['sandbox']",
        "settings['enabledPlugins']",
        "settings['permissions']['additionalDirectories']",
        "settings['permissions']['defaultMode']",
        "settings['permissions']['allow']",
    ]


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"hooks": {}}, "SessionConfig.hooks"),
        ({"sandbox": {}}, "SessionConfig.confinement"),
        ({"enabledPlugins": {}}, "AgentSpec.plugins"),
        ({"permissions": {"additionalDirectories": []}}, "SessionConfig.extra_readable_dirs"),
        ({"permissions": {"defaultMode": "plan"}}, "SessionConfig.permission_mode"),
        ({"permissions": {"allow": ["Edit"]}}, "extra_writable_dirs"),
        ({"env": {"CLAUDE_CONFIG_DIR": "x"}}, "SessionConfig.config_dir"),
        ({"env": {"HOME": "x"}}, "SessionConfig.env"),
        ({"env": {"CLAUDE_CODE_TMPDIR": "x"}}, "SessionConfig.env"),
    ],
    ids=repr,
)
def test_a_setting_that_has_a_better_place_is_sent_there(world, settings: Any, place: str) -> None:
    with pytest.raises(ConfigError, match=place) as caught:
        world.plan(settings=settings)
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize("name", ["hooks", "project-hooks", "PROJECT_HOOKS", "all", "env"])
def test_an_unknown_unlock_is_a_fault_that_lists_the_known_ones(world, name: str) -> None:
    assert world.faults(unlock=["project_hooks", name]) == [("unlock", name)]
    with pytest.raises(ValueError, match="project_hooks") as caught:
        world.plan(unlock=[name])
    for known in (*(row.unlock for row in ISOLATION), NESTED_MEMORY, UNCHECKED_SETTINGS):
        assert known in caught.value.faults[0].remedy


def test_settings_of_spec_and_config_are_merged_and_no_ones_deny_is_lost(world) -> None:
    plan = world.plan(
        spec={
            "options": {
                "settings": {
                    "model": "one",
                    "language": "Latin",
                    "env": {"A": "spec", "B": "spec"},
                    "permissions": {"deny": ["WebFetch"], "allow": ["Bash(ls)"], "ask": ["Agent"]},
                    "claudeMdExcludes": ["/spec/**"],
                }
            }
        },
        settings={
            "model": "two",
            "env": {"B": "config"},
            "permissions": {"deny": ["WebSearch"]},
        },
        denied_paths=["secret"],
    )
    settings = plan.settings
    assert (settings["model"], settings["language"]) == ("two", "Latin")
    env = {"A": "spec", "B": "config", **fixed_env(plan.config)}
    assert settings["env"] == env
    permissions = settings["permissions"]
    assert {"WebFetch", "WebSearch", f"Read(/{world.project}/secret)"} <= set(permissions["deny"])
    assert "Bash(ls)" in permissions["allow"]
    assert permissions["ask"] == ["Agent"]
    assert "/spec/**" in settings["claudeMdExcludes"]
    assert len(settings["claudeMdExcludes"]) > 1


def test_the_plans_settings_are_not_the_persons_own_dict(world) -> None:
    given: dict[str, Any] = {"permissions": {"deny": ["WebFetch"]}, "env": {"A": "b"}}
    kept = json.dumps(given)
    world.plan(settings=given, denied_paths=["x"])
    assert json.dumps(given) == kept


def test_no_rule_stands_twice(world) -> None:
    rule = f"Read(/{world.project}/secret)"
    plan = world.plan(
        denied_paths=["secret", "secret/", str(world.project / "secret")],
        settings={"permissions": {"deny": [rule, rule]}},
    )
    deny = plan.settings["permissions"]["deny"]
    assert len(deny) == len(set(deny))
    assert deny.count(rule) == 1


def test_planning_twice_gives_the_same_settings(world) -> None:
    spec, config = (
        world.spec(tools=["WebFetch"]),
        world.config(extra_writable_dirs=["drafts"], denied_paths=["a", "**/.env"]),
    )
    one, two = plan_session(spec, config), plan_session(spec, config)
    assert one.session_id != two.session_id
    assert json.dumps(one.settings).replace(one.session_id, two.session_id) == json.dumps(
        two.settings
    )
