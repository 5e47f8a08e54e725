"""What a plan refuses or tells instead of dropping it in silence."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit import ConfinementUnavailableError
from agent_kit.confine.choice import BACKENDS

KEY = {"ANTHROPIC_API_KEY": "sk-made-up"}
ASKED = [{"confined_tools": ["python3"]}, {"confined_git": True}, {"confine_network": True}]

needs_a_backend = pytest.mark.skipif(
    all(backend.available() for backend in BACKENDS.values()), reason="nothing confines here"
)


def test_a_misspelt_server_in_mcp_file_tools_is_a_fault_of_the_plan(world) -> None:
    spec = {"mcp_servers": {"greeter": {"command": "greeter"}}}
    named = {"mcp__greter__greet": {"path": "read"}}
    assert world.faults(spec=spec, mcp_file_tools=named) == [
        ("mcp_file_tools", "mcp__greter__greet")
    ]
    world.has("project/.mcp.json={}")
    assert any("mcp__greter__greet" in n for n in world.plan(spec=spec, mcp_file_tools=named).notes)
    world.plan(spec=spec, mcp_file_tools={"mcp__greeter__greet": {"path": "read"}})


@pytest.mark.parametrize("fields", ASKED, ids=repr)
def test_auto_does_not_drop_what_is_asked_of_it_where_nothing_confines(
    world, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for backend in BACKENDS.values():
        monkeypatch.setattr(type(backend), "available", lambda _: "not here: x.")
    with pytest.raises(ConfinementUnavailableError, match=f"^{[*fields][0]} can't be had"):
        world.plan(confinement="auto", **fields)
    assert not world.plan(confinement="auto").locks["kernel"].on


@needs_a_backend
@pytest.mark.parametrize("fields", ASKED[:2], ids=repr)
def test_auto_does_not_drop_it_either_when_the_sign_in_can_not_be_kept_from_commands(
    world, fields: dict[str, Any]
) -> None:
    with pytest.raises(ConfinementUnavailableError, match="there is no key"):
        world.plan(
            spec={"tools": ["Bash"]},
            confinement="auto",
            allow_unconfined_commands=True,
            **fields,
        )


@needs_a_backend
def test_a_confined_plan_tells_of_git_servers_and_the_network(world) -> None:
    world.has("project/.git/HEAD=x", "server/main.py=x")
    servers = {
        name: {"command": "python3", "args": [f"{world.root}/server/{name}.py"]}
        for name in ("main", "gone")
    }
    spec = {"tools": ["Bash", "WebFetch"], "mcp_servers": servers}
    plan = world.plan(spec=spec, confinement="required", env=KEY)
    for told in (
        "the project's .git is not there for commands",
        "WebFetch reaches nothing",
        f"the server 'gone' names {world.root}/server/gone.py, which doesn't exist",
        f"name {world.root}/server in extra_readable_dirs",
    ):
        assert any(told in note for note in plan.notes)
    assert not any("way out" in note for note in plan.notes)
    assert "Commands have no network." in plan.system_prompt
    opened = world.plan(spec=spec, confinement="required", env=KEY, confine_network=False)
    assert "Commands have no network." not in opened.system_prompt
    quiet = world.plan(confinement="required", env=KEY, confine_network=True)
    assert "Commands have no network." not in quiet.system_prompt
