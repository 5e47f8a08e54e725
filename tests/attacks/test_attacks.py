"""The kernel lock alone: every other lock is switched off, and commands try everything."""

from __future__ import annotations

import os
import shutil

import pytest
from claude_agent_sdk import ProcessError

from tests.attacks.ways_blind import BLIND, INTO_THE_CLI
from tests.attacks.ways_changes import CHANGES, PLANTS
from tests.attacks.ways_programs import PROGRAMS
from tests.attacks.ways_python import PYTHON
from tests.attacks.ways_shell import LINKS, PROC, SHELL
from tests.attacks.world import (
    BACKENDS,
    CLOSED,
    KEYS,
    World,
    bash,
    leaks,
    there,
    told,
    tried,
)

READS = (*SHELL, *LINKS, *PROC, *PROGRAMS, *PYTHON)
MARK = "attack-mark"
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/etc", "/usr/local/bin", "/usr/lib")


def test_there_are_ways_enough() -> None:
    ways = (*READS, *BLIND, *INTO_THE_CLI, *CHANGES)
    distinct = {" ".join(way.command.split()) for way in ways}
    assert len(distinct) == len(ways)
    assert len(ways) >= 400
    assert len({way.family for way in ways}) >= 18


# What one confinement lets nobody do, or that needs what no confinement gives: there such a way has
# no open file to be seen at. The words that tell such ways.
OWNERS = ("chown", "chgrp", "u+s", "mknod", "/proc/$PPID/root", "O_TMPFILE")
NOT_IN = {
    "bubblewrap": OWNERS,
    # no pseudo-terminals; a folder above the project can't be opened
    "landlock": (*OWNERS, "script -q", "pty.fork", "syscall(437", "-C /", "ed -s", "setxattr"),
}


@pytest.mark.e2e
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_command_reaches_a_closed_file_or_the_key(world: World, backend: str) -> None:
    """Each way reaches the open file, in the same call that does not reach the closed ones."""
    before = world.checksum()
    ways = there((*BLIND, *READS))
    controls = [str(world.drafts / "open/o.txt")] * len(ways)
    calls = tried(ways, world.paths(), controls)
    run = world.run(world.confined(backend), calls)
    assert leaks(run) == []
    assert world.checksum() == before
    answers = told(run, ways)
    silent = [each.command for each in ways if each.works and "canary(open" not in answers[each]]
    assert [each for each in silent if not any(word in each for word in NOT_IN[backend])] == []


@pytest.mark.e2e
def test_without_the_kernel_lock_commands_reach_all_of_it(world: World) -> None:
    """The control of the world itself."""
    run = world.run(
        world.unconfined(), [*(bash(f"cat {path}") for path in world.paths()), bash("env")]
    )
    assert {f"canary({key})" for key in CLOSED if key != "hardlink"} <= {
        call.result for call in run.calls
    }
    assert any(KEYS[1] in (call.result or "") for call in run.calls)


@pytest.mark.e2e
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_command_reaches_into_the_cli(world: World, backend: str) -> None:
    ways = there(INTO_THE_CLI)
    paths = world.paths(["outside"])
    run = world.run(world.confined(backend), tried(ways, paths, paths * len(ways)))
    answers = told(run, ways)
    assert {way.command: words for way, words in answers.items() if "reached(" in words} == {}
    assert not [each for each in run.messages if getattr(each, "subtype", "") == "canary_forged"]


@pytest.mark.e2e
def test_without_the_kernel_lock_commands_do_reach_into_the_cli(world: World) -> None:
    ways = [way for way in there(INTO_THE_CLI) if way.works]
    paths = world.paths(["outside"])
    run = world.run(world.unconfined(), tried(ways, paths, paths * len(ways)))
    assert len([words for words in told(run, ways).values() if "reached(" in words]) >= 6
    assert [each for each in run.messages if getattr(each, "subtype", "") == "canary_forged"]


@pytest.mark.e2e
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_command_changes_anything_outside_the_writable_folders(
    world: World, backend: str
) -> None:
    """Each way changes an open file, or its folder, in the same call that leaves the others alone."""
    ways = there(CHANGES)
    for number in range(len(ways)):
        shutil.copytree(world.drafts / "open", world.drafts / f"each/{number}")
    before, own = world.checksum(), world.states(world.drafts / "each")
    controls = [str(world.drafts / f"each/{number}/o.txt") for number in range(len(ways))]
    more = ("course/sources/a.md", "course/private/p.md")  # of the project: not above drafts/
    paths = [*world.paths(each for each in CLOSED if each != "project")]
    paths += [str(world.root / each) for each in more]
    run = world.run(world.confined(backend), tried(ways, paths, controls))
    assert leaks(run) == []
    assert world.checksum() == before
    after = world.states(world.drafts / "each")
    same = {path for path in {*own, *after} if own.get(path) == after.get(path)}
    kept = [
        way.command
        for number, way in enumerate(ways)
        if {f"{world.drafts}/each/{number}", controls[number]} <= same
    ]
    assert [each for each in kept if not any(word in each for word in NOT_IN[backend])] == []


@pytest.mark.e2e
@pytest.mark.parametrize("backend", BACKENDS)
def test_commands_that_kill_everything_end_the_session_and_no_more(
    world: World, backend: str
) -> None:
    before = world.checksum()
    with pytest.raises(ProcessError):
        world.run(world.confined(backend), [bash("kill -9 -1")])
    assert world.checksum() == before


@pytest.mark.e2e
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_would_steer_a_later_session_is_gone_when_this_one_ends(
    world: World, backend: str
) -> None:
    before = world.checksum()
    kept = {str(path.relative_to(world.drafts)) for path in world.drafts.rglob("*")}
    world.run(world.confined(backend), [bash(line) for line in PLANTS.strip().splitlines()])
    left = {str(path.relative_to(world.drafts)) for path in world.drafts.rglob("*")} - kept
    assert left == {"kept.md", "bare", "bare/objects", "bare/refs", "deep", "deep/a"}
    assert (world.drafts / "deep").stat().st_mode & 0o777 == 0
    assert world.checksum() == before
    projects = world.home / ".claude/projects"
    brought = {path.name for path in projects.rglob("*")} - {
        path.name for path in projects.iterdir()
    }
    assert not {"MEMORY.md", "CLAUDE.md", "link.jsonl", "root", "secret.txt"} & brought
    assert not [f"{each}/{MARK}" for each in PLACES if os.path.lexists(f"{each}/{MARK}")]
