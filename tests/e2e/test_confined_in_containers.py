"""Confined sessions where less works: what containers forbid, and what is said about it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import pytest

from agent_kit.confine.bubblewrap import DOCKER_FLAGS, PODMAN_FLAGS
from tests.e2e import hosts
from tests.e2e.hosts import ANYBODY, World, made_world

pytestmark = pytest.mark.e2e

Made = TypeVar("Made")
USE: Final = (
    "Bash",
    {"command": "cat sources/syllabus.md; cat sources/.e*; echo by > drafts/c.md"},
)
CLOSED: Final = ("Read", {"file_path": "sources/.env"})


@pytest.fixture
def world() -> Iterator[World]:
    yield from made_world(Path(tempfile.gettempdir()), os.getuid() or ANYBODY)


# --- machines on which less works -----------------------------------------------------------------


def _cover_proc() -> None:
    """This thread and what it starts see what engines make of /proc: some of it is covered."""
    if os.getuid():
        pytest.skip("needs root")
    hosts._checked(hosts._libc.unshare(hosts._NEW_MOUNTS), "unshare")
    hosts._mount(None, "/", None, hosts._ALL | hosts._PRIVATE)
    hosts._mount("/dev/null", "/proc/timer_list", None, hosts._BIND)


def on(machine: Callable[[], None], work: Callable[[], Made]) -> Made:
    """Do ``work`` in a thread that is on ``machine``; what it starts is there too."""

    def run() -> Made:
        machine()
        return work()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def _as_it_is() -> None:
    assert threading.current_thread() is not threading.main_thread()


def doctor(world: World, *words: str, no_namespaces: bool = True) -> tuple[int, str]:
    """The command's status and what it prints, as the world's user."""
    file = world.root / "doctor.json"
    described = {"user": world.user, "no_namespaces": no_namespaces, "no_landlock": False}
    file.write_text(json.dumps(described))
    program = (
        "import json, os, sys; sys.path[:0] = sys.argv[2].split(os.pathsep);"
        "from tests.e2e import hosts; described = json.load(open(sys.argv[1]));"
        "hosts.os.execv = lambda *_: None; hosts._become(described, sys.argv[1]);"
        "os.execve(sys.executable, [sys.executable, '-m', 'agent_kit.cli', 'doctor', *sys.argv[3:]],"
        "{**os.environ, 'PYTHONPATH': sys.argv[2]})"
    )
    paths = os.pathsep.join(hosts._PATHS)
    env = {"PATH": os.environ["PATH"], "HOME": str(world.home), "ANTHROPIC_API_KEY": "sk-canary"}
    world.own()
    world.own(world.temporary)
    done = subprocess.run(
        [sys.executable, "-c", program, str(file), paths, *words],
        env={**env, "TMPDIR": str(world.temporary), "COLUMNS": "2000"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "sk-canary" not in done.stdout
    return done.returncode, done.stdout


def checks(said: str) -> dict[str, dict[str, Any]]:
    found = json.loads(said)
    return {check["name"]: check for check in (*found["locks"], *found["parts"])}


# --- no user namespaces ---------------------------------------------------------------------------


def test_without_user_namespaces_landlock_is_chosen_and_commands_work(world: World) -> None:
    run = world.run(USE, CLOSED, confinement="auto", no_namespaces=True)
    assert run["locks"][0] == "ran", run
    assert run["results"][0].startswith("canary(syllabus)")
    assert "canary(env)" not in run["results"][0]
    assert "Permission denied" in run["results"][0]  # it is there, and can't be opened
    assert (world.drafts / "c.md").read_text() == "by\n"
    assert run["locks"][1] in ("gate", "rules")
    assert not any("canary(env)" in text for text in run["requests"])
    plan = world.run(what="plan", confinement="auto", no_namespaces=True)
    assert plan["locks"]["kernel"] == [True, "the CLI runs confined to the scope (landlock)."]


def test_with_them_bubblewrap_is(world: World) -> None:
    """The control."""
    plan = world.run(what="plan", confinement="auto")
    assert plan["locks"]["kernel"] == [True, "the CLI runs confined to the scope (bubblewrap)."]


def test_doctor_then_says_landlock_and_how_a_container_lets_bubblewrap_work(world: World) -> None:
    status, said = doctor(world, "--json")
    found = checks(said)
    assert status == 0
    assert (found["kernel"]["works"], found["landlock"]["works"]) == (True, True)
    assert "by landlock" in found["kernel"]["said"]
    assert found["bubblewrap"]["works"] is False
    assert found["bubblewrap"]["said"].endswith("(ENOSPC))")
    for flags in (f"docker run {DOCKER_FLAGS} ", f"podman run {PODMAN_FLAGS} "):
        assert flags in found["bubblewrap"]["remedy"]
    status, said = doctor(world, "--plain")
    assert status == 0
    for part in ("ok kernel: ", "What to do: let it make user namespaces", DOCKER_FLAGS):
        assert part in " ".join(said.split()), said


def test_doctor_knows_a_container_that_covers_parts_of_proc(world: World) -> None:
    status, said = on(_cover_proc, lambda: doctor(world, "--json", no_namespaces=False))
    found = checks(said)
    assert status == 0
    assert "by landlock" in found["kernel"]["said"]
    assert "mount proc" in found["bubblewrap"]["said"]
    assert "systempaths=unconfined" in found["bubblewrap"]["remedy"]
    assert "unmask=ALL" in found["bubblewrap"]["remedy"]
    status, said = on(_as_it_is, lambda: doctor(world, "--json", no_namespaces=False))
    assert checks(said)["bubblewrap"]["works"] is True


# --- nothing works --------------------------------------------------------------------------------


def nothing(world: World, **fields: Any) -> dict[str, Any]:
    def work() -> dict[str, Any]:
        return world.run(what="plan", no_namespaces=True, **fields)

    return on(hosts._forbid_landlock, work)


def test_where_nothing_works_a_session_with_commands_is_refused(world: World) -> None:
    found = nothing(world, confinement="auto")
    assert found["error"] == "ConfinementUnavailableError"
    for part in (
        "Bash can run commands, and nothing confines them",
        "bwrap failed",
        DOCKER_FLAGS,
        PODMAN_FLAGS,
        "this kernel has no Landlock: use Linux 5.13 or newer",
        "take the tool out",
        "confinement='external'",
        "allow_unconfined_commands=True",
    ):
        assert part in found["said"], found["said"]
    assert "Set confinement='auto'" not in found["said"]


def test_a_host_whose_path_lacks_bwrap_is_told_so(world: World) -> None:
    empty = world.root / "no programs"
    empty.mkdir()
    described = {"confinement": "auto", "env": {"PATH": str(empty)}}
    found = nothing(world, **described)
    assert found["error"] == "ConfinementUnavailableError"
    assert "bubblewrap: bwrap can't be found on PATH" in found["said"]


def test_where_nothing_works_a_session_without_commands_goes_on_and_says_why(
    world: World,
) -> None:
    found = nothing(world, confinement="auto", spec={"tools": []})
    on_, reason = found["locks"].pop("kernel")
    assert on_ is False
    assert "nothing confines the CLI here" in reason
    assert "bwrap failed" in reason
    assert "this kernel has no Landlock" in reason
    assert {lock for lock, (is_on, _) in found["locks"].items() if is_on} == {
        "gate",
        "rules",
        "prompts",
    }

    def work() -> dict[str, Any]:
        return world.run(
            CLOSED,
            ("Read", {"file_path": "sources/syllabus.md"}),
            confinement="auto",
            no_namespaces=True,
            spec={"tools": []},
        )

    run = on(hosts._forbid_landlock, work)
    assert run["locks"][0] in ("gate", "rules")
    assert run["locks"][1] == "ran"
    assert not any("canary(env)" in text for text in run["requests"])


@pytest.mark.parametrize("tools", [[], ["Bash"]])
def test_where_nothing_works_a_required_confinement_is_an_error(
    world: World, tools: list[str]
) -> None:
    found = nothing(world, confinement="required", spec={"tools": tools})
    assert found["error"] == "ConfinementUnavailableError"
    assert "confinement='required', but nothing confines the CLI here" in found["said"]
    assert DOCKER_FLAGS in found["said"]


def test_where_nothing_works_doctor_fails_and_says_what_to_do(world: World) -> None:
    status, said = on(hosts._forbid_landlock, lambda: doctor(world, "--json"))
    found = checks(said)
    assert status == 1
    assert json.loads(said)["works"] is False
    assert found["kernel"]["works"] is False
    assert "sessions with commands are refused" in found["kernel"]["said"]
    assert "confinement='external'" in found["kernel"]["remedy"]
    assert DOCKER_FLAGS in found["bubblewrap"]["remedy"]
    assert "Linux 5.13" in found["landlock"]["remedy"]
    status, said = on(hosts._forbid_landlock, lambda: doctor(world, "--plain"))
    assert status == 1
    assert DOCKER_FLAGS in " ".join(said.split())


def test_doctor_knows_an_engine_that_forbids_landlock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "errno", SimpleNamespace(ENOSYS=errno.EPERM))
    status, said = on(hosts._forbid_landlock, lambda: doctor(world, "--json"))
    assert status == 1
    assert checks(said)["landlock"]["said"] == "the container forbids Landlock"
    assert "seccomp" in checks(said)["landlock"]["remedy"]


# --- the container is the boundary ----------------------------------------------------------------


def test_with_an_external_confinement_commands_run_and_the_other_locks_refuse(
    world: World,
) -> None:
    plan = nothing(world, confinement="external")
    assert plan["locks"]["kernel"] == [
        False,
        "confinement='external': a container around the host is the boundary.",
    ]
    assert all(plan["locks"][lock][0] for lock in ("gate", "rules", "prompts"))

    def work() -> dict[str, Any]:
        return world.run(
            ("Bash", {"command": "echo by > drafts/c.md; cat sources/.e*"}),
            CLOSED,
            ("Read", {"file_path": "/etc/hostname"}),
            ("Write", {"file_path": "sources/new.md", "content": "x"}),
            confinement="external",
            no_namespaces=True,
        )

    run = on(hosts._forbid_landlock, work)
    assert run["locks"][0] == "ran"
    assert run["results"][0] == "canary(env)"  # nothing of the kit's holds a command
    assert {*run["locks"][1:]} <= {"gate", "rules"}
    assert (world.drafts / "c.md").read_text() == "by\n"
    assert not (world.project / "sources/new.md").exists()
