"""What the plan says of a confinement, of servers' scripts, and to the model of the network."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit.confine.choice import BACKENDS
from agent_kit.session.extensions import Active
from agent_kit.session.notes import confinement_notes, is_offline, plan_notes, server_notes
from agent_kit.session.prompt import system_prompt
from agent_kit.session.surroundings import look_around

KEY = {"ANTHROPIC_API_KEY": "sk-made-up"}
NOBODY = Active(extensions=(), contributions=(), inactive={})

needs_a_backend = pytest.mark.skipif(
    all(backend.available() for backend in BACKENDS.values()), reason="nothing confines here"
)


def git_notes(world, *, tools: Any = ("Bash",), **fields: Any) -> list[str]:
    spec, config = {"tools": tools}, {"confinement": "required", "env": KEY, **fields}
    plan = world.plan(spec=spec, **config)
    around = look_around(world.spec(**spec), world.config(**config))
    return [*confinement_notes(around, plan.confinement, plan.tools)]


@needs_a_backend
def test_a_git_that_commands_do_not_see_is_told_with_what_shows_it(world) -> None:
    assert git_notes(world) == []
    world.has("project/.git/HEAD=x")
    (note,) = git_notes(world)
    assert note == (
        "the project's .git is not there for commands; confined_git=True shows it, read-only"
    )
    assert git_notes(world, tools=()) == []
    assert git_notes(world, extra_readable_dirs=["."]) == []  # it is there


@needs_a_backend
def test_a_git_that_is_shown_holds_what_closed_files_once_were(world) -> None:
    assert git_notes(world, confined_git=True) == []
    world.has("project/.git/HEAD=x")
    (note,) = git_notes(world, confined_git=True)
    assert "confined_git=True: the history in .git holds" in note


def test_unconfined_nothing_is_said_of_git(world) -> None:
    world.has("project/.git/HEAD=x")
    assert git_notes(world, confinement="off", allow_unconfined_commands=True) == []


def test_a_server_s_script_that_does_not_exist_is_told(world) -> None:
    gone = f"{world.root}/gone.py"
    (note,) = server_notes({"kb": {"command": "python3", "args": [gone]}}, None)
    assert note == f"the server 'kb' names {gone}, which doesn't exist"


@needs_a_backend
def test_what_lies_beside_a_server_s_script_is_told_to_be_closed_inside(world) -> None:
    world.has("server/main.py=x", "project/sources/main.py=x")
    inside, outside = f"{world.project}/sources/main.py", f"{world.root}/server/main.py"
    servers = {
        name: {"command": "python3", "args": [path]}
        for name, path in {"in": inside, "out": outside, "system": "/usr/bin/env"}.items()
    }
    plan = world.plan(
        spec={"mcp_servers": servers}, extra_readable_dirs=["sources"], confinement="required"
    )
    (note,) = server_notes(servers, plan.confinement)
    assert f"name {world.root}/server in extra_readable_dirs" in note
    assert [*server_notes(servers, None)] == []


@needs_a_backend
def test_a_relative_script_in_a_folder_that_is_not_open_is_told(world) -> None:
    world.has("project/server.py=x", "project/tools/s.py=x", "project/sources/s.py=x")
    args = {"top": "server.py", "below": "tools/s.py", "open": "sources/s.py", "word": "serve"}
    servers = {
        name: {"command": "python3", "args": ["-u", word, 7, "a\0b"]} for name, word in args.items()
    }
    plan = world.plan(extra_readable_dirs=["sources"], confinement="required")
    assert [*server_notes(servers, plan.confinement)] == [
        f"the server {name!r} names {args[name]}, which isn't there inside: write its absolute path,"
        " or name its folder in extra_readable_dirs"
        for name in ("top", "below")
    ]
    assert [*server_notes(servers, None)] == []


@needs_a_backend
def test_a_web_tool_that_reaches_nothing_is_no_way_out(world) -> None:
    spec = {"tools": ["Bash", "WebFetch", "WebSearch"]}
    for network, told in (
        (None, ["WebSearch is a way", "WebFetch reaches nothing"]),
        (False, ["WebFetch is a way", "WebSearch is a way"]),
    ):
        fields = {"confinement": "required", "env": KEY, "confine_network": network}
        plan = world.plan(spec=spec, **fields)
        around = look_around(world.spec(**spec), world.config(**fields))
        offline = is_offline(plan.confinement)
        notes = plan_notes(around, _Folders, plan.rules, {}, True, plan.tools, offline=offline)
        found = [note for note in notes if note.startswith("Web")]
        assert [note[: len(start)] for note, start in zip(found, told, strict=True)] == told
    assert not is_offline(None)


class _Folders:
    linked_parts = memory_files = ()


def test_the_prompt_says_in_one_line_that_commands_have_no_network(world) -> None:
    spec, config = world.spec(), world.config(extra_readable_dirs=["sources"])
    scope = world.plan(extra_readable_dirs=["sources"]).scope
    said = system_prompt(spec, config, NOBODY, scope, no_network=True)
    assert said.splitlines()[0] == "# Folders"
    assert "- Commands have no network." in said.splitlines()
    assert "network" not in system_prompt(spec, config, NOBODY, scope)
