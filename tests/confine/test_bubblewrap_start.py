"""What stands beside the mounts: each is looked at, the machine's settings are shut, keys refused."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_kit.confine import _bubblewrap_start, _mounted
from agent_kit.confine._landlock_filter import ARCHES, assemble_beside
from agent_kit.confine.backend import Backend
from agent_kit.confine.bubblewrap import Bubblewrap
from agent_kit.confine.view import Mount, Sight
from agent_kit.scope import FileScope
from agent_kit.testing import tree

if TYPE_CHECKING:
    from tests.confine.conftest import Inside

BWRAP = shutil.which("bwrap") or "bwrap"
PYTHON = "/usr/bin/python3"
CHANGED = "what is mounted is not what was planned"
GONE = "the confined program could not be started: "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = (
        "w/drafts/p/.env=x",
        "w/drafts/p/CLAUDE.md=rules",
        "w/drafts/r/n.md=n",
        "w/free/f.md=f",
    )
    return tree(tmp_path.resolve() / "a world", [*files, "out/secret.md=canary(out)"])


def scope(root: Path, *opened: str) -> FileScope:
    return FileScope(
        project_dir=str(root / "w"),
        writable_dirs=opened[:1],
        searchable_dirs=opened,
        denied_paths=["**/.env"],
        home="/nowhere",
    )


@pytest.fixture
def box(root: Path, inside: Callable[[Backend, FileScope], Inside]) -> Inside:
    return inside(Bubblewrap(), scope(root, "drafts", "free"))


def late(box: Inside, root: Path, change: str, after: str = "") -> Inside:
    """The same, with something that happens when every mount has been judged, before the first one."""
    program = root / "bwrap"
    program.write_text(f"#!/bin/sh\ncd '{root}/w'\n{change}\nexec {BWRAP} {after} \"$@\"\n")
    program.chmod(0o755)
    return type(box)(Bubblewrap(program=str(program)), box.view)


SWAPPED = {
    "a folder for a link": "mv drafts/p aside; ln -s ../../out drafts/p; mkdir ../out/x",
    "a folder for another": "mv drafts/p aside; mv drafts/r drafts/p; touch drafts/p/.env"
    " drafts/p/CLAUDE.md",
    "a file for a link": "rm drafts/p/CLAUDE.md; ln -s ../../../out/secret.md drafts/p/CLAUDE.md",
    "a file for another": "mv drafts/p/CLAUDE.md aside; echo x > drafts/p/CLAUDE.md",
    "a writable folder for a link": "mv drafts aside; ln -s ../out drafts",
    "a read-only folder for a link": "mv free aside; ln -s ../out free",
    "a read-only folder for another": "mv free aside; cp -r ../out free",
}


@pytest.mark.parametrize("change", SWAPPED.values(), ids=SWAPPED)
def test_what_is_swapped_while_bubblewrap_starts_ends_the_start(
    root: Path, box: Inside, change: str
) -> None:
    script = (
        f"cat drafts/p/* drafts/* free/* '{root}/out/'*; echo x > drafts/p/planted;"
        f" echo x > '{root}/out/planted'; echo; echo ran"
    )
    assert "ran" in late(box, root, ":").sh(script).splitlines()  # a control
    (root / "w/drafts/p/planted").unlink()
    done = late(box, root, change).run(["/bin/sh", "-c", script])
    assert done.returncode != 0
    assert "canary" not in done.stdout
    assert "ran" not in done.stdout.splitlines()
    assert not [path for path in root.rglob("planted") if path.exists()]


def test_a_folder_above_the_project_is_not_mounted(
    root: Path, inside: Callable[[Backend, FileScope], Inside]
) -> None:
    """A link upwards leads to what is there inside as well, and would be mounted onto itself."""
    box = inside(Bubblewrap(), scope(root, "."))
    swap = "mv drafts/p aside; ln -s ../.. drafts/p; cp aside/* .."
    out = f"'{root}/out"
    done = late(box, root, swap).run(["/bin/sh", "-c", f"cat {out}/secret.md'; : > {out}/planted'"])
    assert "canary" not in done.stdout
    assert done.returncode == 126, done.stdout
    assert not (root / "out/planted").exists()


def test_it_is_said_what_was_swapped(root: Path, box: Inside) -> None:
    done = late(box, root, SWAPPED["a file for another"]).run(["/bin/echo", "ran"])
    assert done.returncode == 126
    assert done.stdout.startswith(f"agent-kit: {GONE}{CHANGED} ({root}/w/drafts/p/CLAUDE.md: ")


REWRITE = """#!{python}
import os, sys
at = int(sys.argv[2])
old, new = (text.replace("|", "\\0").encode() for text in ({old!r}, {new!r}))
text = os.pread(at, 1 << 20, 0)
assert text.count(old) == 1, text
os.ftruncate(at, 0)
os.pwrite(at, text.replace(old, new), 0)
os.execv({bwrap!r}, [{bwrap!r}, *sys.argv[1:]])
"""


def told(box: Inside, root: Path, old: str, new: str) -> subprocess.CompletedProcess[str]:
    """A start in which bubblewrap mounts something else than it was told to. ``|`` ends a word."""
    program = root / "bwrap"
    text = {"old": old.format(root=root), "new": new.format(root=root)}
    program.write_text(REWRITE.format(python=sys.executable, bwrap=BWRAP, **text))
    program.chmod(0o755)
    return type(box)(Bubblewrap(program=str(program)), box.view).run(["/bin/echo", "ran"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", ""),
        ("--bind|{root}/out|/tmp/here|", "/tmp/here: nothing should be mounted there"),
        ("--ro-bind|/usr|/host|", "/host: nothing should be mounted there"),
        ("--dev-bind|/dev|/dev/all|", "/dev/all: nothing should be mounted there"),
        ("--bind|/dev|/dev|", "/dev: something else is mounted there"),
        ("--tmpfs|{root}/w/free|", "/w/free: something else is mounted there"),
        ("--bind|{root}/w/free|{root}/w/free|", "/w/free: it can be written"),
        ("--bind|{root}/w/free|{root}/w/drafts/r|", "/w/drafts/r: nothing should be mounted there"),
        ("--bind|/proc/sys|/proc/sys|", "/proc/sys: it can be written"),
        ("--ro-bind|/usr|/proc/fs|", "/proc/fs: something else is mounted there"),
        ("--proc|/proc|", ": nothing is mounted there"),
    ],
)
def test_a_mount_that_was_not_planned_so_ends_the_start(
    root: Path, box: Inside, more: str, said: str
) -> None:
    done = told(box, root, "|--remount-ro|/|", f"|{more}--remount-ro|/|")
    if not more:  # a control
        assert done.stdout == "ran\n"
        return
    assert (done.returncode, "ran" in done.stdout.split()) == (126, False), done.stdout
    assert CHANGED in done.stdout
    assert said in done.stdout


def test_a_root_that_can_be_written_ends_the_start(root: Path, box: Inside) -> None:
    done = told(box, root, "|--remount-ro|/|", "|")
    assert "(/: it can be written" in done.stdout


def test_without_the_look_nothing_runs(
    root: Path, box: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell inside waits for a word, not for an end."""
    broken = root / "broken"
    here = Path(_bubblewrap_start.__file__).parent
    shutil.copytree(here, broken)
    (broken / "_mounted.py").write_text(
        (here / "_mounted.py").read_text().replace("def faults(", "def _faults(")
    )
    start = str(broken / "_bubblewrap_start.py")
    monkeypatch.setattr(
        "agent_kit.confine.bubblewrap._start", lambda: (sys.executable, "-I", "-S", start)
    )
    done = box.run(["/bin/echo", "ran"])
    assert (done.returncode, "ran" in done.stdout.split()) == (126, False)


def test_nothing_of_the_look_is_left_to_the_program(box: Inside) -> None:
    said = box.sh("for each in /proc/self/fd/*; do readlink $each; done; env; echo ran")
    assert "ran" in said.split()
    assert "socket:" not in said
    assert "memfd" not in said
    assert "AGENT_KIT" not in said


def test_a_file_system_of_the_hosts_in_an_opened_folder_comes_along(
    root: Path, box: Inside, tmp_path: Path
) -> None:
    """In a mount namespace of the test's own: what is mounted on the host there is seen inside."""
    (root / "w/drafts/m").mkdir()
    (root / "w/free/m").mkdir()
    launch = box.backend.launch(box.view)
    (tmp_path / "text").write_bytes(launch.text or b"")
    words = [word.replace("{fd}", "8") for word in launch.argv]
    script = (
        'mount -t tmpfs t "$1/w/drafts/m" && mount -t tmpfs t "$1/w/free/m" || exit 77; echo m > "$1/w/free/m/f";'
        ' exec 8<"$2"; shift 2; "$@"'
    )
    inner = "echo x > drafts/m/x && cat drafts/m/x free/m/f; echo y > free/m/y || echo refused"
    done = subprocess.run(
        ["unshare", "-rm", "/bin/sh", "-c", script, "sh", str(root), str(tmp_path / "text"), *words]
        + ["/bin/sh", "-c", inner],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["x", "m", "refused"], done.stderr


# --- the machine's settings -----------------------------------------------------------------------

SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/proc/mtrr",
    "/proc/irq/default_smp_affinity",
    "/proc/acpi/wakeup",
    "/proc/dynamic_debug/control",
)
TELLING = ("kpageflags", "kpagecount", "vmallocinfo", "timer_list", "slabinfo", "keys", "kallsyms")


@pytest.mark.parametrize("path", [path for path in SETTINGS if os.path.exists(path)])
def test_a_setting_of_the_machine_can_not_be_opened_for_writing(box: Inside, path: str) -> None:
    """Nothing is ever written: it is opened for both."""
    done = box.run(["/bin/sh", "-c", f"exec 3<>{path} && echo opened"])
    assert "opened" not in done.stdout.split(), done.stdout
    assert done.returncode != 126


@pytest.mark.parametrize("name", [name for name in TELLING if os.path.exists(f"/proc/{name}")])
def test_what_the_kernel_tells_its_root_is_not_told(box: Inside, name: str) -> None:
    done = box.run(["/bin/sh", "-c", f"head -c 8 /proc/{name} | wc -c; echo ran"])
    assert done.stdout.split()[-2:] == ["0", "ran"], done.stdout


def test_what_programs_ask_for_in_proc_is_told(box: Inside) -> None:
    said = box.sh(
        "cat /proc/sys/kernel/ostype; grep -c processor /proc/cpuinfo; head -1 /proc/meminfo;"
        " cat /proc/sys/kernel/random/boot_id | wc -c; ls /proc/self/fd > /dev/null && echo fd"
    )
    assert "Linux" in said
    assert "MemTotal" in said
    assert "37" in said.split()
    assert "fd" in said.split()


# --- keys and sockets -----------------------------------------------------------------------------

KEYS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    found = libc.syscall(*words)
    return found if found >= 0 else -ctypes.get_errno()
numbers = {numbers}
"""
HOST = (
    KEYS
    + """
call(numbers[2], 1, b"a test's own")
assert call(numbers[0], b"user", b"canary", b"canary(key)", 11, -3) > 0
"""
)
ASKS = (
    KEYS
    + """
print("add", call(numbers[0], b"user", b"left", b"x", 1, -3))
print("request", call(numbers[1], b"user", b"canary", None, 0))
print("search", call(numbers[2], 10, -3, b"user", b"canary", 0))
"""
)


def keys(text: str) -> str:
    numbers = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]
    return text.replace("{numbers}", repr(numbers))


def test_the_kernels_keys_are_refused(box: Inside) -> None:
    outside = subprocess.run(
        [sys.executable, "-c", keys(HOST + ASKS.replace(KEYS, ""))], capture_output=True, text=True
    )
    found = dict(line.split() for line in outside.stdout.splitlines())
    assert all(int(value) > 0 for value in found.values()), outside  # a control
    said = box.run([PYTHON, "-c", keys(ASKS)]).stdout
    assert said.split() == ["add", "-38", "request", "-38", "search", "-38"]


def test_the_session_has_a_keyring_of_its_own() -> None:
    """Where the filter isn't written for the machine, it is all there is."""
    start = (
        "from agent_kit.confine import _bubblewrap_start as s; s._have_own_keyring(numbers[2])\n"
    )
    text = HOST + start
    done = subprocess.run(
        [sys.executable, "-c", keys(text + ASKS.replace(KEYS, ""))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    found = dict(line.split() for line in done.stdout.splitlines())
    assert int(found["add"]) > 0, done
    assert found["search"] == "-126"  # ENOKEY


SOCKETS = """
import socket, sys
for family in map(int, sys.argv[1:]):
    try:
        socket.socket(family, socket.SOCK_DGRAM if family == 16 else socket.SOCK_STREAM).close()
        print(family, "made")
    except OSError as error:
        print(family, error.errno)
"""


def test_no_socket_is_made_of_a_family_that_knows_no_namespace(box: Inside) -> None:
    families = [socket.AF_VSOCK, 38, 31, 21, 30]  # and AF_ALG, AF_BLUETOOTH, AF_RDS, AF_TIPC
    said = box.run([PYTHON, "-c", SOCKETS, *map(str, families)]).stdout.split()
    assert said[1::2] == ["97"] * len(families)  # EAFNOSUPPORT
    common = box.run([PYTHON, "-c", SOCKETS, "1", "2", "16"]).stdout.split()
    assert common[1::2] == ["made"] * 3


@pytest.mark.parametrize("machine", ARCHES)
def test_the_small_filter_is_whole(machine: str) -> None:
    """Every jump lands inside, and the last word is an end."""
    text = assemble_beside(machine)
    steps = [text[at : at + 8] for at in range(0, len(text), 8)]
    for at, step in enumerate(steps):
        assert at + 1 + max(step[2], step[3]) < len(steps) or step[0] == 0x06
    assert steps[-1][0] == 0x06


def test_a_machine_that_is_not_known_gets_no_filter_and_that_is_said(
    box: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert assemble_beside("riscv64") == b""
    assert not any("AF_VSOCK" in note for note in Bubblewrap().notes(box.view))
    real = os.uname()
    other = os.uname_result((*real[:4], "riscv64"))
    monkeypatch.setattr("os.uname", lambda: other)
    assert any("AF_VSOCK" in note for note in Bubblewrap().notes(box.view))


# --- what bubblewrap was told ---------------------------------------------------------------------


def test_the_last_word_about_a_path_counts_and_hides_what_is_below() -> None:
    words = [
        "--ro-bind",
        "/usr/lib",
        "/w/a",
        "--tmpfs",
        "/w",
        "--remount-ro",
        "/w",
        "--new-session",
    ]
    words += ["--bind", "/usr", "/w/b", "--ro-bind-try", "/nowhere", "/x", "--chdir", "/"]
    plan = _mounted.planned(words, lambda path: (1, len(path)) if path != "/nowhere" else None)
    assert {path: each.writable for path, each in plan.items()} == {
        "/": True,
        "/w": False,
        "/w/b": True,
    }
    assert plan["/w/b"].what == (1, 4)


def test_a_source_that_has_gone_ends_the_start() -> None:
    with pytest.raises(FileNotFoundError, match="/gone"):
        _mounted.planned(["--bind", "/gone", "/w"], lambda path: None)


def test_a_view_with_the_whole_machine_opened_is_started(box: Inside) -> None:
    mounts = (Mount(path="/", sight=Sight.READ),)
    assert box.with_(mounts=mounts, cwd="/usr").sh("pwd; echo x > x || echo refused").split()[::2]
