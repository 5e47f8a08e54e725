"""The launcher: what it makes, what it brings back, and that nothing of it stays."""

from __future__ import annotations

import marshal
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from agent_kit.confine import _steering, _tidying, _walking, launcher
from agent_kit.confine.bubblewrap import Bubblewrap
from agent_kit.scope import FileScope
from agent_kit.session.confinement import Confinement, confine_session, own_folder
from agent_kit.session.launch import describe_launcher
from agent_kit.testing import tree

SESSION = "5e551011-0000-4000-8000-{:012x}"


@dataclass
class World:
    root: Path
    session: str
    confinement: Confinement
    start: list[str]
    description: str

    def run(self, script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        (self.root / "cli").write_text(f"#!/bin/sh\n{script}\n")
        return subprocess.run(
            [*self.start, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "HOME": str(self.root / "home"), "CLAUDE_CONFIG_DIR": "", **env},
            cwd=self.root / "w",
        )

    def begin(self, script: str) -> subprocess.Popen[str]:
        (self.root / "cli").write_text(f"#!/bin/sh\n{script}\n")
        return subprocess.Popen(
            [*self.start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.root / "w",
        )

    def change(self, **fields: Any) -> None:
        path = Path(self.description)
        path.write_bytes(marshal.dumps({**marshal.loads(path.read_bytes()), **fields}))


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
    start = describe_launcher(confinement, host, session, (), {})
    description = str(host / f"{session}.launch")
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


class Named(StrEnum):
    NAME = "OF_AN_ENUMERATION"


def test_a_name_of_a_kind_of_its_own_is_taken_for_what_it_says(world: World) -> None:
    confinement = replace(world.confinement, env_names=(Named.NAME,))
    describe_launcher(confinement, world.root / "run/host", world.session, (), {Named.NAME: "x"})
    assert "OF_AN_ENUMERATION=set\n" in world.run("env", OF_AN_ENUMERATION="set").stdout


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
    assert describe_launcher(world.confinement, host, world.session, (), {}) == world.start
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
                "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)\nchild.wait()"
            ),
            *world.start,
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


PARTS = ("launcher", "_bringing", "_places", "_steering", "_tidying", "_walking")


def test_it_loads_only_the_standard_library_and_looks_nothing_up_in_the_project(
    world: World,
) -> None:
    (world.root / "w/contextlib.py").write_text("raise SystemExit('the project was asked')")
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
    root = tree(tmp_path.resolve(), ("w/a/CLAUDE.md=planted", "theirs/CLAUDE.md=theirs"))
    entered = []
    for here in _walking.walk(str(root / "w")):
        entered.append(here.below())
        if swapped and here.folders:  # it was listed, and is a link when it is opened
            (root / "w/a").rename(root / "w/b")
            (root / "w/a").symlink_to("../theirs")
    assert entered == ([[]] if swapped else [[], ["a"]])
    noted = {"writable": [str(root / "w")], "control_names": ["claude.md"], "known": []}
    real = _steering._names_in

    def swapping(here: Any, names: set[str]) -> list[str]:
        found = real(here, names)
        if swapped and found:  # it was judged, and leads elsewhere when it is moved
            (root / "w/b").rename(root / "w/c")
            (root / "w/b").symlink_to("../theirs")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_steering, "_names_in", swapping)
        _steering.remove_new_files({**noted, "removed": str(root / "kept")})
    assert (root / "theirs/CLAUDE.md").read_text() == "theirs"
    assert (root / "kept/0-CLAUDE.md").read_text() == "planted"


def planted(root: Path, *names: str) -> dict[str, Any]:
    """What is noted of a session that made the control files ``names``."""
    tree(root, names)
    return {
        "writable": [str(root / "w")],
        "control_names": ["claude.md", ".claude", ".git"],
        "known": [],
        "removed": str(root / "kept"),
    }


def nested(top: Path, depth: int, name: str) -> int:
    """Folders in each other; the lowest, opened."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    return here


@pytest.mark.parametrize("depth, name", [(25, "d" * 200), (3_000, "d")])
def test_nothing_lies_too_deep(tmp_path: Path, depth: int, name: str) -> None:
    root = tmp_path.resolve()
    noted = planted(root, "w/")
    lowest = nested(root / "w", depth, name)
    os.mkdir(".claude", dir_fd=lowest)
    os.close(os.open("CLAUDE.md", os.O_CREAT | os.O_WRONLY, 0o4755, dir_fd=lowest))
    os.chmod(f"/proc/self/fd/{lowest}/CLAUDE.md", 0o4755)
    known = _steering.known_files(noted)
    assert [path.rpartition("/")[2] for path, _ in known] == [".claude", "CLAUDE.md"]
    _steering.remove_new_files({**noted, "known": known})
    assert len(os.listdir(lowest)) == 2
    _tidying._take_privileges({**noted, "started": 0.0})
    assert os.stat("CLAUDE.md", dir_fd=lowest).st_mode & 0o7777 == 0o755
    _steering.remove_new_files(noted)
    assert os.listdir(lowest) == []
    assert sorted(each.name for each in (root / "kept").iterdir()) == [
        "0-.claude",
        "1-CLAUDE.md",
        "list.txt",
    ]
    os.close(lowest)
    _tidying.remove(str(root / "w"))
    assert not (root / "w").exists()


def test_a_deep_folder_that_is_moved_meanwhile_is_left_for_the_ones_beside_it(
    tmp_path: Path,
) -> None:
    root = tmp_path.resolve()
    tree(root, ("w/a/", "w/b/CLAUDE.md=x", "elsewhere/"))
    os.close(nested(root / "w/a", 100, "d"))
    for name in "abcefgh":  # on both sides of the one that is moved, whatever the order
        (root / "w/a/d" / name).mkdir()
    seen = []
    for depth, here in enumerate(_walking.walk(str(root / "w"))):
        seen.append("/".join(here.below()))
        if here.below()[:1] == ["a"] and len(here.below()) == 101:
            (root / "w/a/d/d").rename(root / "elsewhere/d")
    assert depth >= 101
    assert "b" in seen
    assert {f"a/d/{name}" for name in "abcefgh"} <= {*seen}


# What lies in a folder beside a settings file, and can't be copied.
ODD = {
    "nothing": lambda folder: None,
    "a FIFO": lambda folder: os.mkfifo(folder / "pipe"),
    "a socket": lambda folder: os.mknod(folder / "s", stat.S_IFSOCK | 0o600),
    "a huge file": lambda folder: os.truncate(
        os.open(folder / "h", os.O_CREAT | os.O_RDWR), 1 << 40
    ),
    "a shut file": lambda folder: (folder / "settings.json").chmod(0),
    "a shut folder": lambda folder: folder.chmod(0o500),
    "deep folders": lambda folder: os.close(nested(folder, 300, "d" * 50)),
}


@pytest.mark.parametrize("where", ["here", "another file system", "nowhere"])
@pytest.mark.parametrize("odd", ODD)
def test_a_control_file_goes_even_if_it_can_not_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, odd: str
) -> None:
    noted = planted(tmp_path.resolve(), "w/.claude/settings.json={}", "w/CLAUDE.md=x")
    if where == "nowhere":
        noted["removed"] = str(tmp_path / "gone/kept")
    elif where == "another file system":
        kept = Path(tempfile.mkdtemp(dir="/dev/shm"))
        assert kept.stat().st_dev != tmp_path.stat().st_dev
        noted["removed"] = str(kept / "kept")
    ODD[odd](tmp_path / "w/.claude")
    _steering.remove_new_files(noted)
    assert list((tmp_path / "w").iterdir()) == []
    kept = Path(noted["removed"])
    lost = where == "nowhere" or (where != "here" and odd in _NOT_COPIED)
    assert ("not all of it could be kept" in capsys.readouterr().err) == lost
    if where != "nowhere":
        listed = (kept / "list.txt").read_text().splitlines()
        assert [line.partition(" (")[0] for line in listed] == [
            f"0: {tmp_path}/w/.claude",
            f"1: {tmp_path}/w/CLAUDE.md",
        ]
        if odd != "a shut file":
            assert (kept / "0-.claude/settings.json").read_text() == "{}"
        shutil.rmtree(kept if where == "here" else kept.parent)


_NOT_COPIED = ("a FIFO", "a socket", "a huge file", "deep folders")


def test_what_an_earlier_end_kept_is_kept_beside_it(tmp_path: Path) -> None:
    for text in ("one", "two"):
        _steering.remove_new_files(planted(tmp_path.resolve(), f"w/CLAUDE.md={text}"))
    texts = [(tmp_path / f"kept/{n}-CLAUDE.md").read_text() for n in range(2)]
    assert texts == ["one", "two"]
    assert len((tmp_path / "kept/list.txt").read_text().splitlines()) == 2


def test_what_was_somewhere_else_before_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session puts the person's own in the place of what was just judged."""
    noted = planted(tmp_path.resolve(), "w/x/CLAUDE.md=theirs")
    noted["known"] = _steering.known_files(noted)
    tree(tmp_path, ("w/y/CLAUDE.md=planted",))
    real = _steering._Kept.take

    def take(kept: Any, here: Any, name: str, told: str, judged: Any) -> None:
        os.replace(tmp_path / "w/x/CLAUDE.md", tmp_path / "w/y/CLAUDE.md")
        real(kept, here, name, told, judged)

    monkeypatch.setattr(_steering._Kept, "take", take)
    _steering.remove_new_files(noted)
    assert (tmp_path / "w/y/CLAUDE.md").read_text() == "theirs"


def test_what_has_changed_where_control_links_lead_is_taken_away(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    noted = planted(root, "w/x/b.md=theirs", "w/y/c.md=theirs", "w/z/d.md=theirs")
    for name in ("a", "same"):
        (root / "w/x" / name).symlink_to("b.md")
    noted["led"] = [str(root / "w" / name) for name in ("x/a", "x/same", "new", "y/gone")]
    noted["known"] = _steering.known_files(noted)
    (root / "w/x/a").unlink()
    (root / "w/x/a").symlink_to("../z/d.md")
    tree(root, ("w/new/e.md=planted", "w/y/other.md=mine"))
    _steering.remove_new_files(noted)
    left = {str(path.relative_to(root / "w")) for path in (root / "w").rglob("*.md")}
    assert left == {"x/b.md", "y/c.md", "z/d.md", "y/other.md"}
    assert not (root / "w/x/a").is_symlink()
    assert (root / "w/x/same").is_symlink()


def test_a_name_that_no_text_holds_keeps_nothing_from_being_done(world: World) -> None:
    done = world.run(
        "name=$(printf 'a\\377\\nb'); mkdir -p drafts/\"$name\"/.claude;"
        " echo x > drafts/CLAUDE.md; mkdir drafts/later; echo x > drafts/later/AGENTS.md;"
        ' cd "$CLAUDE_CONFIG_DIR"; mkdir -p projects/-w;'
        f" echo told > projects/-w/{world.session}.jsonl"
    )
    assert done.returncode == 0, done.stderr
    transcript = world.root / f"home/.claude/projects/-w/{world.session}.jsonl"
    assert transcript.read_text() == "told\n"
    assert not list((world.root / "w").rglob("*.md"))[2:]
    removed = world.root / f"run/host/{world.session}.removed"
    listed = (removed / "list.txt").read_text().splitlines()
    assert len(listed) == 3
    assert any(line.endswith("drafts/a\\udcff\\nb/.claude") for line in listed), listed
    assert not list((world.root / "w").rglob(".claude"))


def test_one_step_that_fails_keeps_no_other_from_being_done_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = []

    def fails(*_: Any) -> Any:
        done.append(1)
        raise UnicodeEncodeError("utf-8", "x", 0, 1, "no")

    for name in ("_take_privileges", "remove_new_files", "_open_up_all"):
        monkeypatch.setattr(_tidying, name, fails)
    monkeypatch.setattr(_tidying.bringing, "bring_back", fails)
    _tidying.tidy_up({"own_folder": str(tmp_path)})
    assert len(done) == 4
    assert capsys.readouterr().err.count("at the end of a session a step failed") == 4


_BESIDE_ANOTHERS_FOLDER = """
import os, sys
from pathlib import Path
from agent_kit.confine._steering import known_files, remove_new_files
root, shut = Path(sys.argv[1]), sys.argv[2]
is_root = os.getuid() == 0
def become(number):
    if is_root:
        os.setegid(number); os.seteuid(number)
if is_root:
    os.setgroups([])
    for folder in [root, *root.rglob("*/")]:
        os.chown(folder, 65534, 65534)
    os.chown(root / "w/b", 65533, 65533)
if shut == "before":
    (root / "w/b").chmod(0o744)
noted = {"writable": [str(root / "w")], "control_names": {".mcp.json"}, "removed": str(root / "removed")}
become(65534)
noted["known"] = known_files(noted)
for name in "ac":
    (root / "w" / name / ".mcp.json").write_text("{}")
become(0)
(root / "w/b").chmod(0o744)
become(65534)
remove_new_files(noted)
become(0)
"""


@pytest.mark.parametrize("shut", ["before", "meanwhile"])
def test_new_control_files_beside_anothers_folder_are_moved(shut: str) -> None:
    """One that can be listed and not entered: only root can make one here that isn't its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # which anybody may enter
        root = tree(Path(folder).resolve(), ("w/a/", "w/b/.mcp.json=theirs", "w/c/"))
        words = [sys.executable, "-c", _BESIDE_ANOTHERS_FOLDER, str(root), shut]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        left = [str(each.relative_to(root)) for each in (root / "w").rglob(".mcp.json")]
        assert left == ["w/b/.mcp.json"]
        told = (
            f"not looked at after a session (Permission denied), look at it: {root}/w/b/.mcp.json"
        )
        is_new = os.getuid() == 0 and shut == "meanwhile"
        assert (told in done.stderr) == is_new, done.stderr


def test_nothing_is_started_for_a_host_that_has_ended(world: World) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    world.change(host=ended.pid)
    done = world.run("touch started")
    assert done.returncode == 126
    assert "has ended" in done.stderr
    assert not (world.root / "w/started").exists()


def test_many_children_are_ended_in_no_time() -> None:
    code = (
        "import os, sys, time; sys.path[:0] = [sys.argv[1]]; import _tidying as t\n"
        "for n in range(3000):\n"
        "    if not os.fork(): os._exit(0) if n else time.sleep(60)\n"
        "time.sleep(1); begun = time.monotonic(); t.end_descendants()\n"
        "print(time.monotonic() - begun)"
    )
    folder = os.path.dirname(_tidying.__file__)
    words = [sys.executable, "-I", "-S", "-c", code, folder]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert float(done.stdout) < 2, done.stderr


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
