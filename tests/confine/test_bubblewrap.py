"""Bubblewrap shows a program the view, and nothing else. Nothing here is skipped: it must be there."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_kit.confine.backend import Backend
from agent_kit.confine.bubblewrap import Bubblewrap, _pinned
from agent_kit.confine.looking import look
from agent_kit.confine.view import ConfinedView, Mount, Sight
from agent_kit.scope import FileScope, ToolOnlyDir
from agent_kit.testing import tree

if TYPE_CHECKING:
    from tests.confine.conftest import Inside

WORLD = (
    "w/sources/a.md=canary(open)",
    "w/sources/.env=canary(env)",
    "w/sources/keys/k.pem=canary(pem)",
    "w/sources/with space/ü.md=canary(odd)",
    "w/drafts/d.md=old",
    "w/drafts/CLAUDE.md=rules",
    "w/drafts/sub/.env=canary(env2)",
    "w/README.md=canary(readme)",
    "w/knowledge/k.md=canary(knowledge)",
    "out/o.md=canary(out)",
    "home/.ssh/id=canary(ssh)",
)


CANARY = re.compile(r"canary\((\w+)\)")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tree(tmp_path.resolve() / "a world", WORLD)
    os.link(root / "w/knowledge/k.md", root / "w/sources/hard.md")
    (root / "w/sources/link.md").symlink_to(root / "out/o.md")
    (root / "w/sources/linked").symlink_to(root / "out")
    return root


def box_scope(root: Path) -> FileScope:
    return FileScope(
        project_dir=str(root / "w"),
        writable_dirs=["drafts"],
        searchable_dirs=["sources", "drafts"],
        denied_paths=["**/.env", "sources/keys"],
        tool_only_dirs=[ToolOnlyDir(dir="knowledge", instead="its tools")],
        home=str(root / "home"),
    )


@pytest.fixture
def box(root: Path, inside: Callable[[Backend, FileScope], Inside]) -> Inside:
    return inside(Bubblewrap(), box_scope(root))


@pytest.mark.parametrize(("user", "told"), [(0, True), (1000, False)])
def test_a_root_is_told_which_writable_folders_are_not_its_own(
    root: Path, monkeypatch: pytest.MonkeyPatch, user: int, told: bool
) -> None:
    """The namespace knows one user: what others own can't be written, whoever is root outside."""
    mounts = (
        Mount(path=str(root), sight=Sight.WRITE),
        Mount(path=f"{root}/new", sight=Sight.WRITE),
        Mount(path="/usr", sight=Sight.READ),
    )
    view = ConfinedView(mounts=mounts, cwd="/", tmp="/tmp")
    monkeypatch.setattr("os.geteuid", lambda: user)
    real = os.stat
    monkeypatch.setattr(
        "os.stat",
        lambda path, **more: (
            os.stat_result((0o40755, 1, 1, 1, 54321, 0, 0, 0, 0, 0))
            if str(path) == str(root)
            else real(path, **more)
        ),
    )
    assert Bubblewrap().hindered(view) == ((str(root),) if told else ())
    assert [str(root) in note for note in Bubblewrap().notes(view)] == [True] * told


def everything(root: Path) -> list[str]:
    return [os.path.join(here, name) for here, _, names in os.walk(root) for name in names]


def test_it_works_on_this_machine() -> None:
    assert Bubblewrap().available() is None


def test_a_missing_program_is_said_with_what_to_install() -> None:
    reason = Bubblewrap(program="/nowhere/bwrap").available()
    assert reason is not None
    assert "/nowhere/bwrap" in reason
    assert "apt-get install bubblewrap" in reason


def test_a_program_that_path_hides_is_said_with_the_folder_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert re.fullmatch(
        r"bwrap can't be found on PATH: put /.*bin on PATH\.", Bubblewrap().available() or ""
    )
    monkeypatch.setattr("agent_kit.confine.programs._USUAL", "/nowhere")
    assert "install bubblewrap" in (Bubblewrap().available() or "")


def test_a_program_that_fails_is_said_with_what_it_said(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    reason = Bubblewrap(program=str(broken)).available()
    assert reason is not None
    assert "No permissions to create new namespace" in reason
    assert "user namespaces" in reason


def test_what_ends_leaves_no_core_with_what_it_held(box: Inside) -> None:
    assert box.sh("ulimit -Hc; ulimit -c unlimited 2>/dev/null; ulimit -c").split() == ["0", "0"]


def test_every_file_of_the_world_is_what_the_view_says(root: Path, box: Inside) -> None:
    script = """
    for path; do
        if cat "$path" >/dev/null 2>&1; then echo "read $path"; else echo "nothing $path"; fi
        if (: >> "$path") 2>/dev/null; then echo "write $path"; fi
    done
    """
    files = everything(root)
    said = set(box.sh(script, *files).splitlines())
    for path in files:
        if os.path.islink(path):
            assert f"nothing {path}" in said
            continue
        sight = box.view.sight(path)
        assert (f"read {path}" in said) == (sight is not Sight.NOTHING), path
        assert (f"write {path}" in said) == (sight is Sight.WRITE), path
    assert f"read {root}/w/sources/with space/ü.md" in said  # a control


def test_what_is_written_inside_is_there_afterwards_and_belongs_to_the_user(
    root: Path, box: Inside
) -> None:
    box.sh("echo new > drafts/new.md; mkdir drafts/folder; mv drafts/d.md drafts/folder/")
    assert (root / "w/drafts/new.md").read_text() == "new\n"
    assert (root / "w/drafts/new.md").stat().st_uid == os.getuid()
    assert (root / "w/drafts/folder/d.md").read_text() == "old"


@pytest.mark.parametrize(
    "script",
    [
        "echo x > new.md",
        "echo x > sources/new.md",
        "echo x > drafts/CLAUDE.md",
        "rm drafts/CLAUDE.md",
        "mv drafts/CLAUDE.md drafts/c.md",
        "rm -rf drafts/sub/.env",
        "mkdir '{root}/out/sub'",
        "echo x > /new",
        "echo x > /usr/new",
        "ln sources/a.md drafts/hard.md",
        "mount --bind / drafts",
        "mount -o remount,rw sources",
        "umount sources",
        "umount drafts/CLAUDE.md",
    ],
)
def test_nothing_else_can_be_changed(root: Path, box: Inside, script: str) -> None:
    before = snapshot(root)
    said = box.sh(f"{script.format(root=root)} && echo done")
    assert "done" not in said, said
    assert snapshot(root) == before


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path: (Path(path).read_bytes(), os.lstat(path).st_nlink)
        for path in everything(root)
        if not os.path.islink(path)
    }


def test_a_folder_above_a_covered_name_can_not_be_renamed(root: Path, box: Inside) -> None:
    tree(root, ("w/drafts/deep/er/.env=canary(deep)", "w/drafts/free/x.md=x"))
    said = box.with_(mounts=look(box_scope(root)).mounts).sh(
        "mv drafts/deep drafts/d2; mv drafts/deep/er drafts/e2; mv drafts/free drafts/f2; ls drafts"
    )
    assert "f2" in said.splitlines()
    assert "d2" not in said.splitlines()
    assert not (root / "w/drafts/e2/.env").exists()  # mv copies what it can't rename
    assert (root / "w/drafts/deep/er/.env").read_text() == "canary(deep)"


@pytest.mark.parametrize(
    "read", ["w/data/z/CLAUDE.md=x", "w/data/z/.claude/settings.local.json={}", "w/data/z/free"]
)
def test_a_mount_below_a_read_only_one_takes_no_pin_from_another(
    root: Path, inside: Callable[[Backend, FileScope], Inside], read: str
) -> None:
    """Two mounts below one folder: what the second is in doesn't let the first's go."""
    tree(root, ["w/data/private.csv=canary(csv)", "w/data/kb/k.md=canary(kb)", read])
    scope = FileScope(
        project_dir=str(root / "w"),
        writable_dirs=["."],
        searchable_dirs=["."],
        denied_paths=["data/private.csv", "data/z/.claude/settings.local.json"],
        tool_only_dirs=[ToolOnlyDir(dir="data/kb", instead="its tools")],
        home="/nowhere",
    )
    said = inside(Bubblewrap(), scope).sh("mv data data2; mv sources s2; ls")
    assert "s2" in said.splitlines()  # a control
    assert "data2" not in said.splitlines()
    assert (root / "w/data/kb/k.md").exists()


def test_a_folder_between_two_read_only_ones_is_no_writable_one() -> None:
    mounts = (
        Mount(path="/w", sight=Sight.WRITE),
        Mount(path="/w/a/b", sight=Sight.READ),
        Mount(path="/w/a/b/c/d", sight=Sight.NOTHING),
        Mount(path="/x", sight=Sight.READ),
        Mount(path="/x/y/z", sight=Sight.NOTHING),
    )
    pinned = _pinned(ConfinedView(mounts=mounts, cwd="/w", tmp="/t"))
    assert pinned == [Mount(path="/w/a", sight=Sight.WRITE)]


@pytest.mark.parametrize(
    "gone", ["drafts/sub/.env", "drafts/CLAUDE.md", "drafts/sub", "sources/.env", "sources/keys"]
)
def test_what_has_gone_since_the_plan_is_not_made_and_keeps_nothing_from_starting(
    root: Path, box: Inside, gone: str
) -> None:
    path = root / "w" / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    said = box.sh("cat sources/a.md; cat sources/.env sources/keys/k.pem drafts/sub/.env")
    assert CANARY.findall(said) == ["open"]
    assert not path.exists()


@pytest.mark.parametrize("name", ["drafts", "drafts/CLAUDE.md", "drafts/sub"])
def test_what_has_become_a_link_since_the_plan_shows_nothing_of_what_it_leads_to(
    root: Path, box: Inside, name: str
) -> None:
    """A session beside this one may have made it one."""
    tree(root, ["out/.env=canary(linked)", "out/id=canary(linked)"])
    path = root / "w" / name
    path.rename(root / "aside")
    path.symlink_to(root / ("out" if (root / "aside").is_dir() else "out/id"))
    said = box.sh(f"cat sources/a.md; cat {name} {name}/id {name}/.env; ls {name}/")
    assert CANARY.findall(said) == ["open"]
    assert "id" not in said.split()


def test_a_start_that_fails_is_said_in_a_sentence_and_runs_nothing(box: Inside) -> None:
    *start, _, _ = box.backend.launch(box.view).argv
    with tempfile.TemporaryFile() as nothing:
        done = subprocess.run(
            [*start, str(nothing.fileno()), "/bin/echo", "ran"],
            pass_fds=[nothing.fileno()],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (126, "")
    assert done.stderr.startswith("agent-kit: the confined program could not be started: ")


def test_a_socket_in_an_open_folder_is_covered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "w/drafts/s.sock"
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(path.parent)
        server.bind("s.sock")
        mounts = {mount.path: mount.sight for mount in look(box_scope(root)).mounts}
        assert mounts[str(path)] is Sight.NOTHING


@pytest.mark.parametrize(
    "script",
    [
        "cat '{root}/out/o.md'",
        "cat sources/link.md sources/linked/o.md",
        "cat sources/hard.md",
        "ln -s '{root}/out/o.md' drafts/l; cat drafts/l",
        "cat /proc/*/root'{root}/out/o.md'",
        "cat /proc/1/cwd/../out/o.md",
        "for fd in /proc/self/fd/*; do readlink $fd; timeout 2 cat $fd < /dev/null; done",
        "tar cf - '{root}' /etc /tmp /home /root /var /run",
        "find '{root}' /root /home /var /run -type f -exec cat {{}} +",
        "cat '{root}/home/.ssh/id'",
        "cd sources/linked && cat o.md",
        "strings /proc/*/environ; cat /proc/*/environ",
        "nsenter -t 1 -m cat '{root}/out/o.md'",
        "unshare -rm cat '{root}/out/o.md'",
        "chroot /proc/1/root cat '{root}/out/o.md'",
    ],
)
def test_no_way_leads_to_a_closed_file(root: Path, box: Inside, script: str) -> None:
    said = box.sh(script.format(root=root))
    assert set(CANARY.findall(said)) <= {"open", "odd"}, said


def test_the_environment_is_the_views_and_nothing_of_the_hosts(
    box: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "canary(environ)")
    said = box.sh("env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "MARK=kept" in said
    assert "canary" not in said


def test_processes_of_the_host_are_not_there(box: Inside) -> None:
    said = box.sh("ls -d /proc/[0-9]*; kill -9 -1; echo survived")
    assert len([line for line in said.splitlines() if line.startswith("/proc/")]) < 6


def test_a_background_process_ends_with_the_session(box: Inside) -> None:
    mark = f"{time.time():.6f}"
    box.sh(f"sleep 300.{mark} & (setsid sleep 300.{mark} &) ; echo started")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        left = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True).stdout
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(left)


def test_without_network_neither_the_hosts_servers_nor_its_abstract_sockets_are_reached(
    box: Inside,
) -> None:
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as abstract:
        server.bind(("127.0.0.1", 0))
        server.listen()
        abstract.bind(f"\0agent-kit-{os.getpid()}")
        abstract.listen()
        tcp = f"/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        reach = box.run(["/bin/bash", "-c", f"echo > {tcp} && echo reached"]).stdout
        assert "reached" not in reach
        opened = box.with_(network=True)
        assert "reached" in opened.run(["/bin/bash", "-c", f"echo > {tcp} && echo reached"]).stdout
        listed = box.sh("cat /proc/net/unix")
        assert f"agent-kit-{os.getpid()}" not in listed


def test_a_socket_of_the_view_can_be_reached_without_network(box: Inside, tmp_path: Path) -> None:
    path = str(tmp_path.resolve() / "s.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert "s.sock" in box.with_(sockets=(path,)).sh(f"ls -l {path}")
        assert "s.sock" not in box.sh(f"ls {path} 2>/dev/null")


def test_nothing_secret_is_on_the_command_line(box: Inside) -> None:
    launch = box.backend.launch(box.view)
    assert "kept" not in " ".join(launch.argv)
    assert b"kept" not in (launch.text or b"")


def test_a_link_that_the_view_names_leads_where_it_leads_outside(root: Path, box: Inside) -> None:
    links = ((str(root / "short"), str(root / "w")),)
    assert "canary(open)" in box.with_(links=links).sh(f"cat '{root}/short/sources/a.md'")
    assert "canary(open)" not in box.sh(f"cat '{root}/short/sources/a.md'")


def test_a_link_among_the_systems_folders_is_there_anyway(box: Inside) -> None:
    links = (("/usr/bin/sh", "/usr/bin/dash"), ("/bin/sh", "/usr/bin/dash"))
    assert box.with_(links=links).sh("echo ran") == "ran\n"
