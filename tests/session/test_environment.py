"""Variables that would open a lock: fixed for every session, whoever set them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_kit.session.environment import FIXED
from agent_kit.testing import AnsweredBy, Say, ToolCall, run_session

NAMES = [row.name for row in FIXED]


@pytest.mark.parametrize("mentions", ["scope", "off", "any"])
def test_the_options_carry_the_kits_values_over_those_of_the_process(
    world, mentions: str, monkeypatch
) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "1")
    env = world.options(prompt_mentions=mentions).env
    fixed = {name: env[name] for name in NAMES if name in env}
    assert fixed == {
        row.name: row.value for row in FIXED if mentions == "scope" or not row.mentions
    }


OTHERWISE = [
    (row.name, value) for row in FIXED for value in ("1", "0", "true", "yes") if value != row.value
]


@pytest.mark.parametrize(("name", "value"), OTHERWISE)
def test_a_config_that_sets_one_otherwise_is_at_fault(world, name: str, value: str) -> None:
    assert world.faults(env={name: value}) == [("env", {name: value})]
    settings = {"env": {name: value}}
    assert world.faults(settings=settings) == [("settings['env']", {name: value})]
    given = {"options": {"settings": settings}}
    assert world.faults(spec=given) == [("options['settings']['env']", {name: value})]


def test_the_kits_own_value_may_be_given(world) -> None:
    kits = {row.name: row.value for row in FIXED}
    world.plan(env=kits, settings={"env": kits})


def test_what_may_be_unlocked_is_left_to_the_person(world) -> None:
    name = "CLAUDE_CODE_DISABLE_CRON"
    assert world.options().env[name] == "1"
    unlocked = world.options(unlock=["scheduled_tasks"], env={"OTHER": "1"})
    assert name not in unlocked.env
    assert name not in json.loads(unlocked.settings)["env"]


@pytest.mark.parametrize("tool", ["CronCreate", "CronDelete", "CronList", "ScheduleWakeup"])
def test_a_tool_that_submits_prompts_needs_the_unlock(world, tool: str) -> None:
    assert world.faults(spec={"tools": [tool]}) == [("tools", tool)]
    world.plan(spec={"tools": [tool]}, unlock=["scheduled_tasks"])


# A file that is long enough to be counted, and one that is not.
CLOSED = {"short.txt": 1, "long.txt": 12_000}


async def run(world: Any, **config: Any) -> Any:
    world.has(
        *(f"project/{name}=canary-{name} " + "a few words " * n for name, n in CLOSED.items())
    )
    options = world.options(spec={"tools": ["Read"]}, **config)
    reads = tuple(ToolCall("Read", {"file_path": str(world.project / name)}) for name in CLOSED)
    prompts = ["Go.", *(f"see @{name}" for name in CLOSED)]
    done = await run_session(options, [reads, Say("x")], prompt=prompts, home=world.home)
    assert done.unplayed == ()
    return done


@pytest.mark.e2e
@pytest.mark.parametrize("name", [None, *NAMES])
@pytest.mark.parametrize("where", ["process", "project"])
async def test_on_the_cli_no_closed_file_goes_to_the_endpoint_whatever_others_have_set(
    world, name: str | None, where: str, monkeypatch
) -> None:
    if name is not None and where == "process":
        monkeypatch.setenv(name, "1")
    elif name is not None:
        world.has("project/.claude/settings.json=" + json.dumps({"env": {name: "1"}}))
    done = await run(world)
    assert [call.lock for call in done.calls] == [AnsweredBy.GATE, AnsweredBy.GATE]
    assert [prompt.blocked is not None for prompt in done.prompts] == [False, True, True]
    assert not done.saw("canary-"), done.where("canary-")
