"""The launcher: what it makes, what it brings back, and that nothing of it stays."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_kit.confine import _tidying, launcher
from agent_kit.confine.bubblewrap import Bubblewrap
from agent_kit.scope import FileScope
from agent_kit.session.confinement import Confinement, confine_session, own_folder
from agent_kit.session.launch import write_launcher
from agent_kit.testing import tree

SESSION = "5e551011-0000-4000-8000-{:012x}"


@dataclass
class World:
    root: Path
    session: str
    confinement: Confinement
    start: str
    description: str

    def run(self, script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        (self.root / "cli").write_text(f"#!/bin/sh\n{script}\n")
        return subprocess.run(
            [self.start, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "HOME": str(self.root / "home"), "CLAUDE_CONFIG_DIR": "", **env},
            cwd=self.root / "w",
        )

    def begin(self, script: str) -> subprocess.Popen[str]:
        (self.root / "cli").write_text(f"#!/bin/sh\n{script}\n")
        return subprocess.Popen(
            [self.start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.root / "w",
        )

    def change(self, **fields: Any) -> None:
        path = Path(self.description)
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    root = tree(tmp_path.resolve() / "a world", ("w/drafts/a.md=a", "w/closed.md=canary", "home/"))
    cli = root / "cli"
    cli.write_text("#!/bin/sh\n")
    cli.chmod(0o755)
    session = SESSION.format(int.from_bytes(os.urandom(6), "big"))
    confinement = confine_session(
        Bubblewrap(),
        scope=FileScope(
            project_dir=str(root / "w"),
            writable_dirs=["drafts"],
            searchable_dirs=["drafts"],
            home=str(root / "home"),
        ),
        cli=str(cli),
        project=root / "w",
        session_id=session,
        encoded_project="-w",
        sources=("project",),
        memory_files=(),
        programs=(),
        network=True,
        brokered=False,
        account=False,
        env_names=("NAMED",),
    )
    host = root / "run" / "host"
    host.mkdir(parents=True)
    start = write_launcher(confinement, host, session, (), {})
    description = str(host / f"{session}.launch.json")
    yield World(root, session, confinement, start, description)
    assert not own_folder(session).exists()


def test_words_input_output_and_status_pass_through(world: World) -> None:
    done = world.run('cat; echo "$@"; pwd; echo no >&2; exit 7', "one", "two words")
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["one two words", str(world.root / "w")]
    assert done.stderr.strip() == "no"


def test_the_cli_sees_its_folders_and_nothing_closed(world: World) -> None:
    done = world.run('ls; ls drafts; cat closed.md; test -d "$CLAUDE_CONFIG_DIR" && echo config')
    assert done.stdout.split() == ["drafts", "a.md", "config"]
    assert "canary" not in done.stdout + done.stderr


def test_the_environment_is_cut_to_what_is_named(world: World) -> None:
    given = {
        "SOME_PASSWORD": "canary",
        "ANTHROPIC_API_KEY": "canary",
        "CLAUDE_CODE_OAUTH_TOKEN": "canary",
        "ANTHROPIC_ADMIN_KEY": "canary",
        "CLAUDE_API_KEY": "canary",
        "ANTHROPIC_SOMETHING_SECRET": "canary",
        "NAMED": "named",
        "LC_TIME": "de",
        "ANTHROPIC_MODEL": "m",
    }
    done = world.run("env; cat /proc/*/environ", **given)
    assert "canary" not in done.stdout
    assert {"NAMED=named", "LC_TIME=de", "ANTHROPIC_MODEL=m"} <= {*done.stdout.splitlines()}


def test_the_transcript_is_there_for_a_resumed_session_and_comes_back(world: World) -> None:
    kept = world.root / "home/.claude/projects/-w"
    kept.mkdir(parents=True)
    (kept / f"{world.session}.jsonl").write_text("before\n")
    at = f'"$CLAUDE_CONFIG_DIR"/projects/-w/{world.session}'
    done = world.run(
        f"cat {at}.jsonl; echo after >> {at}.jsonl; mkdir -p {at}/x; echo r > {at}/x/r"
    )
    assert done.stdout == "before\n", done.stderr
    assert (kept / f"{world.session}.jsonl").read_text() == "before\nafter\n"
    assert (kept / world.session / "x/r").read_text() == "r\n"
    assert (kept / f"{world.session}.jsonl").stat().st_mode & 0o777 == 0o600


def test_nothing_else_of_the_configuration_comes_back_and_no_link_is_followed(world: World) -> None:
    secret = world.root / "w/closed.md"
    done = world.run(
        'cd "$CLAUDE_CONFIG_DIR"; echo "{}" > settings.json; echo x > CLAUDE.md;'
        f' mkdir -p projects/-w; ln -s "{secret}" projects/-w/{world.session}.jsonl'
    )
    assert done.returncode == 0, done.stderr
    assert not list((world.root / "home/.claude").rglob("*.*"))


def test_what_steers_is_found_however_it_is_hidden(world: World) -> None:
    tree(world.root, ("w/drafts/agents.txt=old",))
    (world.root / "w/drafts/CLAUDE.md").symlink_to("agents.txt")  # known, and not covered: a link
    world.run(
        "rm drafts/CLAUDE.md; echo evil > drafts/CLAUDE.md;"
        " mkdir -p drafts/x/.claude; chmod 555 drafts/x/.claude; chmod 311 drafts/x;"
        " mkdir -p drafts/bare/objects drafts/bare/refs; echo ref > drafts/bare/HEAD;"
        f' mkdir -p "$CLAUDE_CONFIG_DIR"/projects/-w;'
        f' truncate -s 9G "$CLAUDE_CONFIG_DIR"/projects/-w/{world.session}.jsonl'
    )
    kept(world)
    drafts = world.root / "w/drafts"
    assert not (drafts / "CLAUDE.md").exists()
    assert not (drafts / "x/.claude").exists()
    assert not (drafts / "bare/HEAD").exists()
    assert not list((world.root / "home/.claude").rglob("*.jsonl"))


def test_a_folder_of_the_persons_stays_as_it_was(world: World) -> None:
    folder = world.root / "w/drafts/kept"
    folder.mkdir(mode=0o555)
    folder.chmod(0o555)
    done = world.run("stat -c %a drafts/kept")
    assert done.stdout == "555\n"
    assert folder.stat().st_mode & 0o777 == 0o555


def test_a_control_file_that_gets_another_name_is_kept(world: World) -> None:
    """Nothing that was there at the start is ever taken away."""
    tree(world.root, ("w/drafts/sub/.vscode/settings.json=theirs", "w/drafts/sub/a.md=a"))
    world.run("mv drafts/sub drafts/sub2")
    texts = [p.read_text() for p in (world.root / "w/drafts").rglob("settings.json")]
    assert texts == ["theirs"]


def test_a_link_on_the_way_to_the_transcript_is_not_followed(world: World) -> None:
    tree(world.root, (f"elsewhere/{world.session}/host/key=canary",))
    done = world.run(
        'mkdir -p "$CLAUDE_CONFIG_DIR"/projects;'
        f' ln -s "{world.root}/elsewhere" "$CLAUDE_CONFIG_DIR"/projects/-w'
    )
    assert done.returncode == 0, done.stderr
    assert not [path for path in (world.root / "home/.claude").rglob("*") if path.is_file()]


def test_a_control_file_that_a_person_makes_after_the_building_stays(world: World) -> None:
    tree(world.root, ("w/drafts/clone/.git/config=theirs",))
    world.run("echo x > drafts/clone/CLAUDE.md")
    assert (world.root / "w/drafts/clone/.git/config").read_text() == "theirs"
    assert not (world.root / "w/drafts/clone/CLAUDE.md").exists()


def test_a_folder_that_was_refused_is_left_alone(world: World, tmp_path: Path) -> None:
    own = tmp_path / "theirs" / "session"
    tree(tmp_path, (f"theirs/session/config/projects/-w/{world.session}.jsonl=forged",))
    own.parent.chmod(0o755)
    world.change(own_folder=str(own), config_dir=str(own / "config"))
    assert world.run("echo ran").returncode == launcher.FAILED
    assert own.exists()
    assert not list((world.root / "home/.claude").rglob("*.jsonl"))


def test_new_control_files_are_removed_and_reported_and_old_ones_stay(world: World) -> None:
    tree(world.root, ("w/drafts/sub/CLAUDE.md=old",))
    host = world.root / "run/host"
    assert write_launcher(world.confinement, host, world.session, (), {}) == world.start
    world.run(
        "mkdir -p drafts/new/.claude; echo x > drafts/new/.claude/settings.json;"
        " echo x > drafts/claude.MD; ln -s /etc drafts/.git; echo x > drafts/kept.md"
    )
    left = {os.path.relpath(path, world.root / "w") for path in (world.root / "w").rglob("*")}
    assert left == {
        "closed.md",
        "drafts",
        "drafts/a.md",
        "drafts/kept.md",
        "drafts/new",
        "drafts/sub",
        "drafts/sub/CLAUDE.md",
    }
    kept = world.root / f"run/host/{world.session}.removed"
    report = [line.partition(": ")[2] for line in (kept / "list.txt").read_text().splitlines()]
    drafts = world.root / "w/drafts"
    assert sorted(report) == sorted(
        str(drafts / name) for name in ("new/.claude", "claude.MD", ".git")
    )
    assert {path.name.partition("-")[2] for path in kept.iterdir()} == {
        "",
        ".claude",
        ".git",
        "claude.MD",
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_that_runs_inside(world: World, number: int) -> None:
    mark = f"31{time.time_ns()}"
    script = f"sleep {mark} & setsid sleep {mark} & echo started; sleep {mark}"
    with world.begin(script) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "started\n"
        running.send_signal(number)
        assert running.wait(timeout=20) != 0
        assert gone(mark)


def test_a_cli_that_is_killed_leaves_nothing(world: World) -> None:
    mark = f"31{time.time_ns()}"
    with world.begin(f"setsid sleep {mark} & echo started; kill -9 $$") as running:
        assert running.wait(timeout=20) == 128 + 9
        assert gone(mark)


def test_a_host_that_is_killed_leaves_nothing(world: World) -> None:
    """The CLI ends with its input; a background process that it left does not keep the place."""
    mark = f"31{time.time_ns()}"
    (world.root / "cli").write_text(
        f"#!/bin/sh\nsetsid sleep {mark} &\necho started\ncat > /dev/null\n"
    )
    host = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import subprocess, sys\n"
                "child = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE)\nchild.wait()"
            ),
            world.start,
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=world.root / "w",
    )
    with host:
        assert host.stdout is not None
        assert host.stdout.readline() == "started\n"
        host.kill()
    assert gone(mark)
    deadline = time.monotonic() + 10
    while own_folder(world.session).exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def gone(mark: str) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not subprocess.run(["pgrep", "-f", mark], capture_output=True).stdout:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("launch", {"argv": ["/nowhere/bwrap"], "text": None}),
        ("launch", {"argv": ["/usr/bin/bwrap", "--no-such-flag"], "text": None}),
        ("cli", "/nowhere/claude"),
        ("launch", {}),
        ("own_folder", "/proc/nowhere"),
    ],
)
def test_when_anything_fails_the_cli_is_not_started(world: World, field: str, value: Any) -> None:
    world.change(**{field: value})
    done = world.run("echo ran")
    assert done.returncode != 0
    assert "ran" not in done.stdout.split()
    assert done.stderr


def test_a_folder_of_sessions_that_others_may_enter_is_refused(
    world: World, tmp_path: Path
) -> None:
    own = tmp_path / "open" / "session"
    own.parent.mkdir(mode=0o755)
    world.change(own_folder=str(own), made_folders=[])
    done = world.run("echo ran")
    assert done.returncode == launcher.FAILED
    assert "open to others" in done.stderr


PARTS = ("launcher", "_bringing", "_places", "_tidying")


def test_it_loads_only_the_standard_library_and_looks_nothing_up_in_the_project(
    world: World,
) -> None:
    (world.root / "w/json.py").write_text("raise SystemExit('the project was asked')")
    done = world.run("echo ran", PYTHONPATH=str(world.root / "w"), PYTHONSTARTUP="x.py")
    assert done.stdout == "ran\n", done.stderr
    parts = [Path(launcher.__file__).with_name(f"{name}.py") for name in PARTS]
    loaded = {
        line.split()[1].split(".")[0]
        for part in parts
        for line in part.read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
    assert loaded <= sys.stdlib_module_names | {"__future__"}


def kept(world: World) -> list[Path]:
    """What is kept of a session's because it could not be brought back; it goes after the test."""
    found = [*own_folder(world.session).parent.glob(f"{world.session}.kept-*")]
    held = [path for top in found for path in top.rglob("*") if path.is_file()]
    texts = [path for path in held if path.stat().st_size < 100 and path.read_text()]
    for top in found:
        shutil.rmtree(top)
    return texts


WRITE_ALL = (
    'cd "$CLAUDE_CONFIG_DIR"; mkdir -p projects/-w/{s}; echo told > projects/-w/{s}.jsonl;'
    " echo one > projects/-w/{s}/1; echo two > projects/-w/{s}/2"
)


def test_what_can_not_be_brought_back_is_kept_and_said(world: World) -> None:
    tree(world.root, ("home/.claude/projects=a file where a folder must be",))
    done = world.run(WRITE_ALL.format(s=world.session))
    assert done.returncode == 0
    assert f"{world.session}.jsonl" in done.stderr
    assert ".kept-" in done.stderr
    assert {path.name for path in kept(world)} == {f"{world.session}.jsonl", "1", "2"}


def test_one_thing_that_can_not_be_brought_back_keeps_no_other_from_it(world: World) -> None:
    tree(world.root, (f"home/.claude/projects/-w/{world.session}/1/in the way=",))
    world.change(copied_in=[])
    done = world.run(WRITE_ALL.format(s=world.session))
    there = world.root / "home/.claude/projects/-w"
    assert (there / f"{world.session}.jsonl").read_text() == "told\n"
    assert (there / world.session / "2").read_text() == "two\n"
    assert f"{world.session}/1 (" in done.stderr
    assert not [path for path in there.rglob("*.part")]
    assert {path.name for path in kept(world)} == {f"{world.session}.jsonl", "1", "2"}


def test_a_file_that_is_too_large_is_kept_and_said(world: World) -> None:
    at = f"projects/-w/{world.session}.jsonl"
    done = world.run(f'cd "$CLAUDE_CONFIG_DIR"; mkdir -p projects/-w; truncate -s 9G {at}')
    assert "over 256 MiB" in done.stderr
    (folder,) = own_folder(world.session).parent.glob(f"{world.session}.kept-*")
    kept(world)
    assert not folder.exists()


def test_a_missing_folder_keeps_nothing_else_from_coming_back(world: World) -> None:
    world.change(
        copied_out=[f"projects/-w/{world.session}.jsonl", f"projects/-v/{world.session}.jsonl"]
    )
    at = f"projects/-v/{world.session}.jsonl"
    done = world.run(f'cd "$CLAUDE_CONFIG_DIR"; mkdir -p projects/-v; echo told > {at}')
    assert done.stderr == ""
    assert (world.root / f"home/.claude/{at}").read_text() == "told\n"


def test_the_runners_skills_come_along_without_what_is_no_file(world: World) -> None:
    tree(world.root, ("home/.claude/skills/x/SKILL.md=skill", "elsewhere/there.md=linked"))
    skill = world.root / "home/.claude/skills/x"
    (skill / "dangling").symlink_to("/nowhere/at/all")
    (skill / "circle").symlink_to("..")
    (skill / "linked.md").symlink_to("../../../../elsewhere/there.md")
    os.mkfifo(skill / "fifo")
    world.change(copied_in=["skills"])
    done = world.run('cd "$CLAUDE_CONFIG_DIR"/skills/x && ls && cat linked.md')
    assert done.stdout.split() == ["SKILL.md", "linked.md", "linked"], done.stderr


def test_a_folder_that_nothing_is_noted_about_is_left_alone(world: World) -> None:
    own = own_folder(world.session)
    tree(own, ("somebody's=x",))
    own.parent.chmod(0o700)
    done = world.run("echo ran")
    assert done.returncode == launcher.FAILED
    assert "look at it" in done.stderr
    assert (own / "somebody's").exists()
    shutil.rmtree(own)


def test_children_are_found_where_the_kernel_keeps_no_list_of_them() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert child.pid in _tidying._searched(os.getpid())
            assert {*_tidying._listed(os.getpid())} == {*_tidying._searched(os.getpid())}
        finally:
            child.kill()


@pytest.mark.parametrize("swapped", [False, True])
def test_nothing_is_moved_out_of_a_folder_that_was_swapped(tmp_path: Path, swapped: bool) -> None:
    root = tree(tmp_path.resolve(), ("a/CLAUDE.md=planted", "theirs/CLAUDE.md=theirs", "kept/"))
    if swapped:
        (root / "a").rename(root / "b")
        (root / "a").symlink_to("theirs")
    with contextlib.suppress(OSError):
        _tidying._move(str(root / "a/CLAUDE.md"), str(root / "kept/0"))
    assert (root / "theirs/CLAUDE.md").read_text() == "theirs"
    assert (root / "kept/0").exists() is not swapped


def test_a_neighbour_that_takes_the_folder_of_both_away_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(folder: str) -> None:
        real(folder)
        made.append(folder)
        if len(made) < 3:
            os.rmdir(folder)

    real = launcher.places.make
    monkeypatch.setattr(launcher.places, "make", make)
    tmp_path.chmod(0o755)
    launcher._make_own(str(tmp_path / "both" / "one"))
    assert (tmp_path / "both/one").is_dir()
    assert len(made) == 3
