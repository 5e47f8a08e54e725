"""Run folders: for this user alone, tidied up after, and no link in them is ever followed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from agent_kit import AgentSpec, SessionConfig, build_session_options, plan_session
from agent_kit.session.options import options_from_plan
from agent_kit.session.pins import PINNED_COMMANDS
from agent_kit.session.run_folder import (
    close_run_folder,
    open_run_folder,
    remove_old_runs,
    write_private,
)

GONE = 2**22 + 1  # no process has this id


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_folder_and_its_files_are_for_this_user_alone(tmp_path: Path, mask: int) -> None:
    kept = os.umask(mask)
    try:
        host = open_run_folder(tmp_path / "deep" / "run", "id")
        file = write_private(host, "id.settings.json", "{}")
    finally:
        os.umask(kept)
    assert host == tmp_path / "deep" / "run" / "host"
    assert (mode(tmp_path / "deep" / "run"), mode(host)) == (0o700, 0o700)
    assert {mode(path) for path in host.iterdir()} == {0o600}
    assert file in host.iterdir()


def test_a_host_part_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "run" / "host").mkdir(parents=True, mode=0o755)
    assert mode(open_run_folder(tmp_path / "run", "id")) == 0o700


def test_a_host_part_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "host").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="host"):
        open_run_folder(tmp_path / "run", "id")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_host_part_of_somebody_else_is_refused(tmp_path: Path) -> None:
    host = tmp_path / "run" / "host"
    host.mkdir(parents=True)
    os.chown(host, 12345, 12345)
    with pytest.raises(PermissionError, match="another user"):
        open_run_folder(tmp_path / "run", "id")


def test_a_file_that_is_there_already_is_replaced_and_never_written_through(tmp_path: Path) -> None:
    host = open_run_folder(tmp_path / "run", "id")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (host / "id.settings.json").symlink_to(victim)
    write_private(host, "id.settings.json", "new")
    assert victim.read_text() == "precious"
    assert (host / "id.settings.json").read_text() == "new"
    os.link(victim, host / "id.mcp.json")
    write_private(host, "id.mcp.json", "new")
    assert victim.read_text() == "precious"


def test_closing_removes_what_only_the_session_needed_and_keeps_the_rest(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for session in ("one", "two"):
        host = open_run_folder(run, session)
        for name in ("settings.json", "mcp.json", "prompt.md"):
            write_private(host, f"{session}.{name}", session)
    (host / "trail.jsonl").write_text("kept")
    close_run_folder(run, "one")
    assert {path.name for path in host.iterdir()} == {
        "trail.jsonl",
        "two.settings.json",
        "two.mcp.json",
        "two.prompt.md",
        "two.owner",
    }
    close_run_folder(run)
    assert {path.name for path in host.iterdir()} == {"trail.jsonl"}
    close_run_folder(tmp_path / "missing")


def test_closing_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "home"
    precious.mkdir()
    for name in ("id.settings.json", "id.owner"):
        (precious / name).write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "host").symlink_to(precious)
    close_run_folder(tmp_path / "run")
    close_run_folder(tmp_path / "run", "id")
    assert len(list(precious.iterdir())) == 2


def test_sessions_that_share_a_run_folder_have_settings_of_their_own(world) -> None:
    secrets = {"settings": {"env": {"T": "x"}}}
    one = world.options(denied_paths=["one"], **secrets)
    two = world.options(denied_paths=["two"], **secrets)
    assert one.settings != two.settings
    assert f"{world.project}/one" in Path(one.settings).read_text()
    assert f"{world.project}/one" not in Path(two.settings).read_text()
    assert f"{world.project}/two" in Path(two.settings).read_text()


# --- tidying up -------------------------------------------------------------------------------


def made(
    runs: Path, name: str, *, age: float, owner: int | None = None, secret: bool = True
) -> Path:
    host = open_run_folder(runs / name, name)
    (host / f"{name}.owner").unlink()
    if owner is not None:
        write_private(host, f"{name}.owner", str(owner))
    if secret:
        write_private(host, f"{name}.settings.json", "{}")
    (host / "trail.jsonl").write_text("kept")
    when = time.time() - age
    os.utime(runs / name, (when, when))
    return runs / name


def names(runs: Path) -> set[str]:
    return {path.name for path in runs.iterdir()}


def test_the_newest_runs_stay(tmp_path: Path) -> None:
    for age in range(6):
        made(tmp_path, f"run{age}", age=age * 100)
    remove_old_runs(tmp_path, 3)
    assert names(tmp_path) == {"run0", "run1", "run2"}
    remove_old_runs(tmp_path, 0)
    assert names(tmp_path) == set()
    remove_old_runs(tmp_path / "missing", 3)


def test_runs_stay_as_long_as_they_are_young_enough(tmp_path: Path) -> None:
    for age in (5, 50, 500, 5000):
        made(tmp_path, f"run{age}", age=age)
    remove_old_runs(tmp_path, timedelta(seconds=100))
    assert names(tmp_path) == {"run5", "run50"}
    remove_old_runs(tmp_path, timedelta())
    assert names(tmp_path) == set()


def test_a_run_is_as_young_as_its_last_start(tmp_path: Path) -> None:
    made(tmp_path, "resumed", age=5000)
    open_run_folder(tmp_path / "resumed", "resumed")
    close_run_folder(tmp_path / "resumed")
    remove_old_runs(tmp_path, timedelta(seconds=100))
    assert names(tmp_path) == {"resumed"}


def test_a_run_in_use_stays_with_all_it_needs_however_old(tmp_path: Path) -> None:
    made(tmp_path, "used", age=10_000, owner=os.getpid())
    made(tmp_path, "killed", age=10_000, owner=GONE)
    made(tmp_path, "odd", age=10_000, owner=None)
    remove_old_runs(tmp_path, 0)
    assert names(tmp_path) == {"used"}
    assert (tmp_path / "used" / "host" / "used.settings.json").exists()


def test_what_a_killed_host_left_behind_goes_also_from_a_run_that_stays(tmp_path: Path) -> None:
    kept = made(tmp_path, "killed", age=10, owner=GONE)
    remove_old_runs(tmp_path, 5)
    assert {path.name for path in (kept / "host").iterdir()} == {"trail.jsonl"}


@pytest.mark.parametrize("owner", ["", "x", "99999999999999999999999", "1.5", "\0"])
def test_an_owner_that_is_no_process_id_is_nobody(tmp_path: Path, owner: str) -> None:
    folder = made(tmp_path, "odd", age=10)
    (folder / "host" / "odd.owner").write_text(owner)
    remove_old_runs(tmp_path, 0)
    assert names(tmp_path) == set()


def test_tidying_up_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "host").mkdir(parents=True)
    (precious / "host" / "x.settings.json").write_text("mine")
    runs = tmp_path / "runs"
    old = made(runs, "old", age=1000)
    (old / "into").symlink_to(precious)
    (old / "host" / "y.mcp.json").symlink_to(precious / "host" / "x.settings.json")
    (runs / "linked").symlink_to(precious)
    half = runs / "half"
    half.mkdir()
    (half / "host").symlink_to(precious / "host")
    (runs / "file").write_text("x")
    remove_old_runs(runs, 0)
    assert names(runs) == {"linked", "file"}
    assert (precious / "host" / "x.settings.json").read_text() == "mine"


def test_building_a_session_tidies_up_this_agents_runs_and_nobody_elses(world) -> None:
    runs = world.root / "state" / "agent-kit" / "agent" / "runs"
    for age in range(4):
        made(runs, f"run{age}", age=1000 + age)
    other = made(world.root / "state" / "agent-kit" / "other" / "runs", "theirs", age=10_000)
    config = SessionConfig(project_dir=world.project, keep_runs=2)
    options = build_session_options(AgentSpec(name="agent"), config)
    assert names(runs) == {options.session_id, "run0"}
    assert other.exists()


def test_a_run_folder_that_was_named_is_left_alone(world) -> None:
    made(world.root, "old", age=10_000)
    world.options(keep_runs=0)
    assert (world.root / "old").exists()
    assert world.run.exists()


def test_resuming_an_old_run_does_not_remove_it_first(world) -> None:
    runs = world.root / "state" / "agent-kit" / "agent" / "runs"
    session = "b2e4a7f0-2d0e-4b57-8a43-3a2f8a1d9f00"
    made(runs, session, age=10_000)
    for age in range(3):
        made(runs, f"run{age}", age=age)
    config = SessionConfig(project_dir=world.project, keep_runs=1, resume=session)
    build_session_options(AgentSpec(name="agent"), config)
    assert (runs / session / "host" / "trail.jsonl").read_text() == "kept"


def test_settings_of_a_process_that_ends_are_gone(world) -> None:
    code = """
import sys
from agent_kit import AgentSpec, SessionConfig, build_session_options
config = SessionConfig(project_dir=sys.argv[1], run_dir=sys.argv[2], settings={"env": {"T": "secret"}})
print(build_session_options(AgentSpec(name="a"), config).settings)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(world.project), str(world.run)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not Path(done.stdout.strip()).exists()
    assert list((world.run / "host").iterdir()) == []


def test_settings_of_a_killed_process_go_with_the_next_start(world) -> None:
    code = """
import os, sys
from agent_kit import AgentSpec, SessionConfig, build_session_options
config = SessionConfig(project_dir=sys.argv[1], settings={"env": {"T": "secret"}})
print(build_session_options(AgentSpec(name="a"), config).settings, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(world.project)],
        capture_output=True,
        text=True,
        check=False,
    )
    left = Path(done.stdout.strip())
    assert "secret" in left.read_text()
    build_session_options(AgentSpec(name="a"), SessionConfig(project_dir=world.project))
    assert not left.exists()
    assert left.parent.exists()  # the run itself is kept


def test_the_settings_file_holds_the_settings_of_the_plan(world) -> None:
    plan = plan_session(world.spec(), world.config(denied_paths=[f"secret{n}" for n in range(500)]))
    options = options_from_plan(plan)
    written = json.loads(Path(options.settings).read_text())
    env = written.pop("env")
    assert env.items() >= plan.settings["env"].items()
    assert set(written) == {*plan.settings, *PINNED_COMMANDS} - {"env"}
    assert all(written[name] == plan.settings[name] for name in plan.settings if name != "env")
