"""Programs really run inside Landlock, as this user and as an ordinary one, and what they reach."""

from __future__ import annotations

import contextlib
import marshal
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent_kit.confine import landlock
from agent_kit.confine.backend import ConfinementUnavailableError, Launch
from agent_kit.confine.landlock import Landlock, abi_version, limits
from agent_kit.confine.view import ConfinedView, Mount, Sight

pytestmark = pytest.mark.skipif(abi_version() < 1, reason="this kernel has no Landlock")

SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/passwd")
PYTHON = "/usr/bin/python3"
NOBODY = 65534
KIT = Path(landlock.__file__).parent


@dataclass
class World:
    """A project with what is closed in it, and a way to run programs inside."""

    root: Path
    user: int | None
    view: ConfinedView

    def change(self, **fields: Any) -> World:
        return replace(self, view=replace(self.view, **fields))

    def start(
        self, *program: str, launch: Launch | None = None, **more: Any
    ) -> subprocess.Popen[str]:
        launch = launch or Landlock().launch(self.view)
        handle = os.memfd_create("view")
        os.write(handle, launch.text or b"")
        os.lseek(handle, 0, os.SEEK_SET)
        words = [word.replace("{fd}", str(handle)) for word in launch.argv]
        if self.user is not None:  # who may read neither the checkout nor this interpreter
            words[0] = PYTHON
            words[3] = str(self.root / "kit" / "_landlock_start.py")
            more |= {"user": self.user, "group": self.user, "extra_groups": []}
        passed = (handle, *more.pop("pass_fds", ()))
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
        try:
            return subprocess.Popen([*words, *program], pass_fds=passed, **more)
        finally:
            os.close(handle)

    def run(self, *program: str, **more: Any) -> subprocess.CompletedProcess[str]:
        with self.start(*program, **more) as process:
            out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(program, process.returncode, out, err)

    def sh(self, line: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.run("/bin/sh", "-c", line, **more)

    def python(self, text: str, **more: Any) -> str:
        done = self.run(PYTHON, "-I", "-c", text, **more)
        return done.stdout.strip() or done.stderr.strip()


FILES = {
    "w/README.md": "canary-readme",
    "w/sources/a.md": "open",
    "w/sources/.env": "canary-env",
    "w/sources/deep/b.md": "open-deep",
    "w/kb/page.md": "canary-kb",
    "w/drafts/old.md": "old",
    "w/drafts/sub/old.md": "old",
    "w/notes/CLAUDE.md": "frozen",
    "w/notes/n.md": "note",
    "w/notes/free/n.md": "note",
    "outside/secret": "canary-outside",
}
MOUNTS = {
    "w/sources": Sight.READ,
    "w/sources/.env": Sight.NOTHING,
    "w/drafts": Sight.WRITE,
    "w/notes": Sight.WRITE,
    "w/notes/CLAUDE.md": Sight.READ,
}


@pytest.fixture(params=["this user", "an ordinary user"])
def world(request) -> Iterator[World]:
    root = Path(tempfile.mkdtemp(prefix="ll")).resolve()
    root.chmod(0o755)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for folder in ("tmp", "kit"):
        (root / folder).mkdir()
    for file in KIT.glob("_landlock_*.py"):
        shutil.copy(file, root / "kit")
    os.symlink("../README.md", root / "w/drafts/link")
    user = NOBODY if request.param == "an ordinary user" and os.geteuid() == 0 else None
    if user is not None:
        for here, folders, files in os.walk(root):
            for name in (*folders, *files):
                os.chown(os.path.join(here, name), user, user, follow_symlinks=False)
    mounts = tuple(
        Mount(path=f"{root}/{name}", sight=sight, folder=(root / name).is_dir())
        for name, sight in sorted(MOUNTS.items())
    )
    view = ConfinedView(
        mounts=mounts, cwd=f"{root}/w", tmp=f"{root}/tmp", system=SYSTEM, network=False
    )
    yield World(root, user, view)
    shutil.rmtree(root)


CLOSED = [
    "cat README.md",
    "cat ./sources/../README.md",
    "cat sources/.env",
    "cat drafts/link",
    "cat kb/page.md",
    "cat ../outside/secret",
    "cat /proc/self/cwd/README.md",
    "cat /proc/self/root$PWD/README.md",
    "cd ../outside && cat secret",
    "head -c 99 < README.md",
    "cp README.md drafts/copy && cat drafts/copy",
    "ln README.md drafts/hard && cat drafts/hard",
    "ln sources/.env drafts/hard && cat drafts/hard",
    "mv README.md drafts/moved && cat drafts/moved",
    "mv kb drafts/kb && cat drafts/kb/page.md",
    "mv sources/.env sources/env && cat sources/env",
    "mv sources drafts/s && cat drafts/s/.env",
    "ln -s $PWD/README.md drafts/l && cat drafts/l",
    "ln -s $PWD drafts/d && cat drafts/d/README.md",
    "exec 5< README.md; cat <&5",
    "tar cf - README.md kb ../outside | tr -d '\\0'",
    "grep -r canary .",
    "find / -name README.md -path '*w/README*' -exec cat {} +",
    "perl -e 'open F, q(README.md); print <F>'",
    "sh README.md",
    ". ./README.md",
    "truncate -s 0 README.md; dd if=kb/page.md",
    f"{PYTHON} -c \"print(open('README.md').read())\"",
    f"{PYTHON} -c \"import os; f=os.open('README.md',os.O_PATH); print(open(f'/proc/self/fd/{{f}}').read())\"",
    f"{PYTHON} -c \"import mmap,os; f=os.open('README.md',os.O_RDONLY); print(mmap.mmap(f,0)[:])\"",
    "cat /proc/1/environ; cat /proc/1/cwd/README.md; cat /proc/1/root$PWD/README.md",
]  # fmt: skip


@pytest.mark.parametrize("line", CLOSED)
def test_what_is_closed_is_not_read(world, line):
    before = {name: (world.root / name).read_text() for name in FILES}
    done = world.sh(line)
    assert "canary" not in done.stdout + done.stderr
    assert {name: (world.root / name).read_text() for name in FILES} == before


OPEN = [
    ("cat sources/a.md sources/deep/b.md", "openopen-deep"),
    ("ls sources", "a.md\ndeep"),
    ("cat drafts/old.md; ls drafts/sub", "oldold.md"),
    ("echo new > drafts/new; cat drafts/new", "new"),
    ("echo more >> drafts/old.md; cat drafts/old.md", "oldmore"),
    ("mkdir -p drafts/a/b; echo x > drafts/a/b/c; mv drafts/a drafts/d; cat drafts/d/b/c", "x"),
    ("mv drafts/old.md drafts/sub/moved; cat drafts/sub/moved", "old"),
    ("ln drafts/old.md drafts/twin; ln -s old.md drafts/soft; cat drafts/twin drafts/soft", "oldold"),
    ("rm -r drafts/sub; ls drafts", "link\nold.md"),
    ("cp -a sources/deep drafts/deep; cat drafts/deep/b.md", "open-deep"),
    ("tar cf drafts/t sources/deep; cd drafts; tar xf t; cat sources/deep/b.md", "open-deep"),
    ("sed -i s/old/NEW/ drafts/old.md; cat drafts/old.md", "NEW"),
    ("install -m 750 drafts/old.md drafts/i; stat -c %a drafts/i", "750"),
    ("chmod +x drafts/old.md; test -x drafts/old.md && echo yes", "yes"),
    ("touch -d @1000 drafts/old.md; stat -c %Y drafts/old.md", "1000"),
    ("mkfifo drafts/p; echo through > drafts/p & cat drafts/p", "through"),
    ("echo $$ > /dev/null; head -c 3 /dev/urandom | wc -c", "3"),
    ("echo x | cat", "x"),
    ("cat sources/a.md | (cat; echo) | tee drafts/t", "open"),
    ("echo tmp > $TMPDIR/t; cat $TMPDIR/t", "tmp"),
    ("cat notes/CLAUDE.md; ls notes", "frozenCLAUDE.md\nfree\nn.md"),
    ("echo x > notes/n.md; cat notes/n.md", "x"),
    ("echo x > notes/free/new; cat notes/free/new", "x"),
    ("pwd -P", "{w}"),
    (f"{PYTHON} -c 'import subprocess as s; print(s.run([\"echo\", \"hi\"], capture_output=True).stdout)'", "b'hi\\n'"),
    ("perl -e 'rename q(drafts/old.md), q(drafts/sub/m) or die $!'; cat drafts/sub/m", "old"),
    ("sort --parallel=2 sources/a.md", "open"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "answer"), OPEN, ids=[line for line, _ in OPEN])
def test_what_is_open_works_as_ever(world, line, answer):
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": f"{world.root}/tmp"}
    done = world.sh(line, env=env)
    wanted = answer.replace("{w}", f"{world.root}/w")
    names = sorted(done.stdout.split()) == sorted(wanted.split()) if "ls" in line else False
    assert (done.stderr, names or done.stdout.strip() == wanted) == ("", True), done.stdout


UNCHANGED = [
    "echo x > sources/a.md",
    "echo x > sources/new",
    "echo x > new",
    "rm sources/a.md",
    "mkdir sources/d",
    "mv sources/a.md drafts/a",
    "mv drafts/old.md sources/old",
    "mv drafts/old.md ./old",
    "ln sources/a.md drafts/hard && echo x > drafts/hard",
    "ln -s ../sources/a.md drafts/l; echo x > drafts/l",
    "ln drafts/old.md sources/hard",
    ": > sources/a.md",
    "truncate -s 0 sources/a.md",
    "chmod 777 sources/a.md",
    "chmod 777 README.md ../outside",
    "chmod 777 drafts/link",
    "touch -d @1 sources/a.md README.md ../outside/secret",
    "touch -hd @1 ../w/kb",
    "chgrp 0 README.md; chown 0 README.md",
    "echo x > notes/CLAUDE.md",
    "rm notes/CLAUDE.md",
    "mv notes/CLAUDE.md notes/x",
    "mv notes drafts/notes",
    "mv drafts/old.md notes/CLAUDE.md",
    "chmod 600 notes/CLAUDE.md",
    "echo x > notes/new",
    "rm -rf . ../outside sources kb",
    "sed -i s/o/x/ sources/a.md",
    f"{PYTHON} -c \"import os; os.setxattr('README.md', 'user.x', b'y')\"",
    f"{PYTHON} -c \"import os; f=os.open('sources/a.md',0); os.fchmod(f,0o777); os.utime(f,(1,1))\"",
    f"{PYTHON} -c \"import os; f=os.open('README.md',os.O_PATH); os.chmod(f'/proc/self/fd/{{f}}',0o777)\"",
    f"{PYTHON} -c \"import os; f=os.open('..',os.O_PATH); os.chmod('w/README.md',0o777,dir_fd=f)\"",
    f"{PYTHON} -c \"import os; os.truncate('README.md',0)\"",
    f"{PYTHON} -c \"import os; os.open('sources/a.md',os.O_RDONLY|os.O_TRUNC)\"",
]  # fmt: skip


def state(root: Path) -> dict[str, Any]:
    """All that a file is, but for what is in the folders that may be written."""
    found = {}
    for here, folders, files in os.walk(root / "w", topdown=True):
        if here == f"{root}/w/drafts":
            folders[:] = files[:] = []
        for name in (*folders, *files):
            path = os.path.join(here, name)
            it = os.lstat(path)
            text = Path(path).read_bytes() if os.path.isfile(path) else b""
            times = (it.st_mtime_ns,) if name in files else ()
            found[path] = (it.st_mode, it.st_uid, it.st_gid, *times, text, os.listxattr(path))
    return found | {"outside": (root / "outside/secret").stat().st_mtime_ns}


@pytest.mark.parametrize("line", UNCHANGED)
def test_what_is_not_writable_is_not_changed(world, line):
    before = state(world.root)
    world.sh(line)
    assert state(world.root) == before


def test_a_file_with_its_owners_rights_is_not_made(world):
    world.sh("cp /bin/true drafts/t; chmod u+s drafts/t; chmod g+s drafts/t; chmod +x drafts/t")
    assert (world.root / "w/drafts/t").stat().st_mode & 0o7111 == 0o111
    world.python("import os; os.open('drafts/s', os.O_CREAT | os.O_WRONLY, 0o6755)")
    assert not (world.root / "w/drafts/s").exists()


@pytest.mark.parametrize("folder", [".", "kb", "..", "/", "/proc", "/etc", "/dev", "/tmp"])
def test_a_folder_that_is_not_in_the_view_is_not_listed(world, folder):
    assert "Permission denied" in world.sh(f"ls {folder}").stderr


def test_a_folder_above_a_closed_folder_is_not_listed_and_its_neighbours_are(world):
    closed = f"{world.root}/w/sources/deep"
    mounts = (*world.view.mounts, Mount(path=closed, sight=Sight.NOTHING))
    world = world.change(mounts=tuple(sorted(mounts)))
    assert world.sh("ls sources; ls sources/deep; cat sources/a.md").stdout == "open"
    assert any(
        note.startswith(f"{world.root}/w/sources: can't be")
        for note in Landlock().notes(world.view)
    )


OLD_TIMES = {
    "utime": (132, "2q", (1000, 2000)),
    "utimes": (235, "4q", (1000, 0, 2000, 0)),
    "futimesat": (261, "4q", (1000, 0, 2000, 0)),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have none of them")
@pytest.mark.parametrize("call", OLD_TIMES)
def test_times_are_set_by_the_older_calls_too_where_it_may_be_written(world, call):
    nr, form, values = OLD_TIMES[call]
    before = state(world.root)
    text = f"""
import ctypes, os, struct
l = ctypes.CDLL(None)
for path in (b'drafts/old.md', b'sources/a.md'):
    print(l.syscall({nr}, *({[-100] if call == "futimesat" else []}), path, struct.pack('{form}', *{values})))
print(os.stat('drafts/old.md').st_atime, os.stat('drafts/old.md').st_mtime)
"""
    assert world.python(text).split() == ["0", "-1", "1000.0", "2000.0"]
    assert state(world.root) == before


# --- other processes ------------------------------------------------------------------------------


@pytest.fixture
def neighbour(world) -> Iterator[int]:
    """A process of the same user outside, with a secret in its environment and its command line."""
    who = (
        {} if world.user is None else {"user": world.user, "group": world.user, "extra_groups": []}
    )
    with subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60; : canary-words"], env={"SECRET": "canary-env"}, **who
    ) as process:
        yield process.pid
        process.kill()


SEEN = ["cat {}/environ", "cat {}/cmdline", "cat {}/mem", "cat {}/maps", "cat {}/status", "cat {}/fd/0",
        "cat {}/root/etc/hostname", "ls {}", "ls {}/fd", "ls {}/cwd/", "ls {}/task", "ls {}/map_files"]  # fmt: skip


@pytest.mark.parametrize("line", SEEN)
def test_a_process_outside_is_not_seen(world, neighbour, line):
    done = world.sh(line.format(f"/proc/{neighbour}"))
    assert done.stdout == ""
    assert "Permission denied" in done.stderr


@pytest.mark.skipif(abi_version() < 6, reason="held from ABI 6 on")
def test_a_process_outside_gets_no_signals(world, neighbour):
    assert (
        "not permitted"
        in world.sh(f"kill -9 {neighbour}; kill -9 $PPID; kill -9 {os.getpid()}").stderr
    )
    os.kill(neighbour, 0)


def test_the_limits_of_a_process_outside_are_not_changed(world, neighbour):
    text = f"import resource as r; r.prlimit({neighbour}, r.RLIMIT_NOFILE, (9, 9))"
    assert "PermissionError" in world.python(text)


CALLS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "mount": (165, 40), "unshare": (272, 97),
    "setns": (308, 268), "pivot_root": (155, 41), "chroot": (161, 51), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "keyctl": (250, 219), "userfaultfd": (323, 282),
    "kexec_load": (246, 104), "open_by_handle_at": (304, 265), "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241), "shmget": (29, 194), "mq_open": (240, 180),
    "openat2": (437, 437), "clone3": (435, 435), "unknown": (600, 600),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls_that_reach_around_the_view_are_refused_before_they_look_at_anything(world, call):
    nr = CALLS[call][os.uname().machine == "aarch64"]
    text = (
        "import ctypes, errno; l = ctypes.CDLL(None, use_errno=True);"
        f"l.syscall({nr}, -1, -1, -1, -1, -1, -1); print(errno.errorcode[ctypes.get_errno()])"
    )
    assert world.python(text) in ("EPERM", "ENOSYS")


def test_a_process_inside_makes_no_user_namespace_by_clone(world):
    text = (
        "import ctypes, os; l = ctypes.CDLL(None, use_errno=True);"
        f"r = l.syscall({220 if os.uname().machine == 'aarch64' else 56}, 0x10000011, 0, 0, 0, 0);"
        "os._exit(0) if r == 0 else print(r, ctypes.get_errno())"
    )
    assert world.python(text) == "-1 1"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86_64 has a second set of numbers")
def test_the_second_set_of_call_numbers_is_closed(world):
    text = (
        "import ctypes; l = ctypes.CDLL(None, use_errno=True);"
        "print(l.syscall(0x40000000 + 39), ctypes.get_errno())"
    )
    assert world.python(text) == "-1 38"


def test_root_keeps_no_power_but_the_use_of_files(world):
    held = world.python("print(open(f'/proc/{__import__(\"os\").getpid()}/status').read())")
    found = dict(
        line.split(":\t") for line in held.splitlines() if line.startswith(("Cap", "NoNew"))
    )
    kept = f"{0b1010 if os.geteuid() == 0 and world.user is None else 0:016x}"
    assert found["CapEff"] == found["CapPrm"] == kept
    assert found["CapInh"] == found["CapAmb"] == "0" * 16
    assert found["NoNewPrivs"] == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can use what belongs to somebody else")
def test_root_still_writes_into_somebody_elses_project(world):
    for path in (world.root / "w/drafts", world.root / "w/drafts/old.md"):
        os.chown(path, 12345, 12345)
        path.chmod(0o700 if path.is_dir() else 0o600)
    done = world.sh("echo x > drafts/old.md && echo x > drafts/new && chmod 640 drafts/old.md")
    assert (done.returncode == 0) == (world.user is None)


# --- descriptors, the environment, how it ends ----------------------------------------------------


def test_descriptors_of_the_host_are_not_inherited(world):
    with open(world.root / "outside/secret") as secret:
        number = secret.fileno()
        said = world.python(f"import os; print(os.pread({number}, 99, 0))", pass_fds=[number])
    assert "Bad file descriptor" in said


def test_only_the_three_usual_descriptors_are_open(world):
    text = (
        "import os\nfor n in range(3, 300):\n"
        "    try: os.fstat(n); print(n)\n    except OSError: pass\nprint('looked')"
    )
    with open(os.devnull) as other:
        assert world.python(text, pass_fds=[other.fileno()]) == "looked"


def test_the_environment_is_the_callers_and_folders_that_are_not_there_leave_the_path(world):
    env = {"A": "b", "PATH": f"{world.root}/outside:/usr/bin:/bin"}
    done = world.sh('echo "$A $PATH $HOME"', env=env)
    assert done.stdout.strip() == "b /usr/bin:/bin"


@pytest.mark.parametrize(("line", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("true", 0)])
def test_it_ends_as_the_program_ends(world, line, code):
    assert world.sh(line).returncode == code


def test_broken_pipes_end_programs_as_ever(world):
    assert world.sh("yes | head -1").stderr == ""


def alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(process: int) -> bool:
    end = time.monotonic() + 10
    while alive(process) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(process)


def test_what_it_started_in_the_background_ends_with_it(world):
    done = world.sh(
        "setsid nohup sleep 300 >/dev/null 2>&1 & (setsid sleep 300 >/dev/null 2>&1 & echo $!) ; echo $!"
    )
    started = [int(word) for word in done.stdout.split()]
    assert len(started) == 2
    assert all(map(gone, started))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_it_reaches_the_program(world, number):
    # Whoever starts the tests may ignore it, as nohup does: a shell can't trap it then.
    before = signal.signal(number, signal.SIG_DFL)
    line = "trap 'echo heard; exit 7' TERM INT HUP; echo ready; while :; do sleep 0.05; done"
    with world.start("/bin/sh", "-c", line) as process:
        signal.signal(number, before)
        assert process.stdout and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.communicate(timeout=20)[0] == "heard\n"
    assert process.returncode == 7


def test_the_program_dies_when_the_watcher_is_killed(world):
    with world.start("/bin/sh", "-c", "echo $$; exec sleep 300") as process:
        assert process.stdout
        inside = int(process.stdout.readline())
        process.kill()
        process.wait()
    assert gone(inside)


def test_all_of_it_dies_when_whoever_started_it_is_killed(world):
    text = (
        "import subprocess, sys, time; p = subprocess.Popen(sys.argv[2:], pass_fds=[int(sys.argv[1])]);"
        "time.sleep(300)"
    )
    launch = Landlock().launch(world.view)
    with tempfile.TemporaryFile("w+b") as file:
        file.write(launch.text or b"")
        file.seek(0)
        number = str(file.fileno())
        words = [word.replace("{fd}", number) for word in launch.argv]
        program = ["/bin/sh", "-c", "setsid sleep 300 & echo $! $$; exec sleep 300"]
        with subprocess.Popen(
            [sys.executable, "-c", text, number, *words, *program],
            pass_fds=[file.fileno()], stdout=subprocess.PIPE, text=True,
        ) as host:  # fmt: skip
            assert host.stdout
            inside = [int(word) for word in host.stdout.readline().split()]
            host.kill()
            host.wait()
    assert len(inside) == 2
    assert all(map(gone, inside))


# --- sockets --------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> Iterator[socket.socket]:
    """A host's server: it says its word to whoever comes."""
    with socket.socket(family, kind) as server:
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()
            threading.Thread(target=answer, args=(server,), daemon=True).start()
        yield server
        server.shutdown(socket.SHUT_RDWR)  # the thread waits for the next one


def answer(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = server.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(b"canary-served")


CONNECT = """
import socket
s = socket.socket(socket.{family}, socket.SOCK_STREAM)
s.settimeout(5)
s.connect({address!r})
print(s.recv(99))
"""


def test_a_unix_socket_outside_the_view_is_not_reached(world):
    path = str(world.root / "outside/s")
    with serving(socket.AF_UNIX, path):
        os.chmod(path, 0o777)
        said = world.python(CONNECT.format(family="AF_UNIX", address=path))
    assert "PermissionError" in said and "canary" not in said


def test_a_unix_socket_in_a_writable_folder_is_not_reached_either(world):
    path = str(world.root / "w/drafts/s")
    with serving(socket.AF_UNIX, path):
        os.chmod(path, 0o777)
        said = world.python(CONNECT.format(family="AF_UNIX", address=path))
    assert "PermissionError" in said and "canary" not in said


def test_an_abstract_socket_is_not_reached(world):
    name = f"\0{world.root}"
    with serving(socket.AF_UNIX, name):
        said = world.python(CONNECT.format(family="AF_UNIX", address=name))
    assert "Error" in said and "canary" not in said


@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("spelled", ["{path}", "../outside/s", "/proc/self/cwd/../outside/s"])
def test_a_unix_socket_of_the_view_is_reached_by_any_spelling(world, network, spelled):
    path = str(world.root / "outside/s")
    world = world.change(sockets=(path,), network=network)
    with serving(socket.AF_UNIX, path):
        os.chmod(path, 0o777)
        said = world.python(
            CONNECT.format(family="AF_UNIX", address=spelled.replace("{path}", path))
        )
    assert said == "b'canary-served'"


def test_a_socket_of_the_view_keeps_its_flags_and_can_be_waited_for(world):
    path = str(world.root / "outside/s")
    text = f"""
import asyncio, fcntl, os
async def main():
    read, write = await asyncio.open_unix_connection({path!r})
    file = write.get_extra_info('socket').fileno()
    print(await read.read(), fcntl.fcntl(file, fcntl.F_GETFD), fcntl.fcntl(file, fcntl.F_GETFL) & os.O_NONBLOCK)
asyncio.run(main())
"""
    with serving(socket.AF_UNIX, path):
        os.chmod(path, 0o777)
        said = world.change(sockets=(path,)).python(text)
    assert said == f"b'canary-served' 1 {os.O_NONBLOCK}"


def test_a_link_to_a_socket_of_the_view_leads_nowhere_else(world):
    good, bad = str(world.root / "tmp/good"), str(world.root / "outside/bad")
    world = world.change(sockets=(good,))
    os.symlink(bad, good)
    with serving(socket.AF_UNIX, bad):
        os.chmod(bad, 0o777)
        said = world.python(CONNECT.format(family="AF_UNIX", address=good))
    assert "PermissionError" in said


def test_an_address_that_changes_while_it_is_looked_at_reaches_nothing(world):
    """A second thread swaps the path of the view's socket for another while calls run."""
    good, bad = str(world.root / "outside/g"), str(world.root / "outside/b")
    text = f"""
import ctypes, socket, threading, time
l = ctypes.CDLL(None, use_errno=True)
head = socket.AF_UNIX.to_bytes(2, 'little')
address = ctypes.create_string_buffer(head + {good.encode()!r} + b'\\0')
at = ctypes.addressof(address) + 2 + {len(good) - 1}
stop = False
def swap():
    while not stop:
        ctypes.memset(at, ord('b'), 1); ctypes.memset(at, ord('g'), 1)
threading.Thread(target=swap).start()
heard, tries = set(), 0
while tries < 300 or (not heard and tries < 100_000):  # the other thread may be held up
    tries += 1
    s = socket.socket(socket.AF_UNIX)
    if l.connect(s.fileno(), address, len(address)) == 0:
        heard.add(s.recv(99))
    s.close()
stop = True
print(heard)
"""
    with serving(socket.AF_UNIX, good), socket.socket(socket.AF_UNIX) as other:
        other.bind(bad)
        other.listen()
        other.settimeout(0.2)
        os.chmod(good, 0o777)
        os.chmod(bad, 0o777)
        assert world.change(sockets=(good,)).python(text) == "{b'canary-served'}"
        with pytest.raises(TimeoutError):
            other.accept()


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_unix_sockets_of_other_kinds_are_not_made(world, kind):
    assert "PermissionError" in world.python(
        f"import socket; socket.socket(socket.AF_UNIX, socket.{kind})"
    )


def test_a_pair_of_datagram_sockets_which_could_send_anywhere_is_not_made(world):
    assert "PermissionError" in world.python(
        "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"
    )


def test_a_pair_of_sockets_works_and_can_not_be_connected_elsewhere(world):
    path = str(world.root / "outside/s")
    text = f"""
import socket
a, b = socket.socketpair()
a.send(b'hi'); print(b.recv(9))
a.connect({path!r})
"""
    with serving(socket.AF_UNIX, path):
        os.chmod(path, 0o777)
        said = world.run(PYTHON, "-I", "-c", text)
    assert said.stdout == "b'hi'\n" and "Error" in said.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "127.0.0.2"])
def test_without_the_network_no_server_on_this_machine_is_reached(world, host):
    with serving(socket.AF_INET, ("127.0.0.1", 0)) as server:
        said = world.python(
            CONNECT.format(family="AF_INET", address=(host, server.getsockname()[1]))
        )
    assert "PermissionError" in said


OTHER = ["AF_INET, socket.SOCK_DGRAM", "AF_INET6, socket.SOCK_STREAM", "AF_INET, socket.SOCK_RAW, 1",
         "AF_INET, socket.SOCK_STREAM, 262", "AF_PACKET, socket.SOCK_RAW", "AF_VSOCK, socket.SOCK_STREAM",
         "AF_ALG, socket.SOCK_SEQPACKET", "AF_NETLINK, socket.SOCK_RAW, 15"]  # fmt: skip


@pytest.mark.parametrize("kind", OTHER)
def test_without_the_network_no_other_socket_is_made(world, kind):
    said = world.python(f"import socket; socket.socket(socket.{kind})")
    assert "PermissionError" in said or "not supported" in said


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_with_the_network_streams_and_datagrams_work(world, kind):
    text = f"""
import socket
a = socket.socket(socket.AF_INET, socket.{kind}); a.bind(('127.0.0.1', 0))
if socket.{kind} == socket.SOCK_STREAM: a.listen()
b = socket.socket(socket.AF_INET, socket.{kind}); b.connect(a.getsockname()); b.send(b'hi')
print((a.accept()[0] if socket.{kind} == socket.SOCK_STREAM else a).recv(9))
"""
    assert world.change(network=True).python(text) == "b'hi'"


@pytest.mark.parametrize(
    "kind",
    [
        "AF_INET, socket.SOCK_RAW, 1",
        "AF_INET, socket.SOCK_STREAM, 262",
        "AF_PACKET, socket.SOCK_RAW",
    ],
)
def test_with_the_network_no_raw_or_other_socket_is_made(world, kind):
    said = world.change(network=True).python(f"import socket; socket.socket(socket.{kind})")
    assert "PermissionError" in said or "not supported" in said


# --- what goes wrong at the start -----------------------------------------------------------------

BREAKS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no rules": lambda d: d.pop("rules"),
    "rights that are no number": lambda d: d["rules"].append(["/usr", "all"]),
    "rights that the kernel does not know": lambda d: d.update(handled=1 << 40),
    "a folder that is not there": lambda d: d.update(cwd="/none"),
    "no sockets": lambda d: d.pop("sockets"),
    "no table of what is writable": lambda d: d.pop("writable"),
}


@pytest.mark.parametrize("fault", BREAKS)
def test_nothing_is_started_when_anything_goes_wrong(world, fault):
    launch = Landlock().launch(world.view)
    described = marshal.loads(launch.text or b"")
    BREAKS[fault](described)
    with tempfile.TemporaryFile("w+b") as file:
        file.write(marshal.dumps(described))
        file.seek(0)
        words = [word.replace("{fd}", str(file.fileno())) for word in launch.argv]
        done = subprocess.run(
            [*words, "/bin/sh", "-c", "echo started"],
            pass_fds=[file.fileno()], capture_output=True, text=True,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (126, "")
    assert done.stderr.startswith("agent-kit: the confined program could not be started: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("program", ["/usr/bin/none", "sh", "/"])
def test_a_program_that_can_not_be_run_is_one_sentence_and_126(world, program):
    done = world.run(program)
    assert (done.returncode, done.stderr.count("\n")) == (126, 1)


def test_what_has_been_swapped_for_a_link_since_gets_no_rights(world):
    launch = Landlock().launch(world.view)
    shutil.move(world.root / "w/sources/deep", world.root / "deep")
    os.symlink(world.root / "outside", world.root / "w/sources/deep")
    assert f"{world.root}/w/sources/deep".encode() in (launch.text or b"")
    done = world.sh("cat sources/a.md sources/deep/secret", launch=launch)
    assert done.stdout == "open"


# --- the backend ----------------------------------------------------------------------------------


def test_it_is_available_here():
    assert Landlock().available() is None


def test_the_command_line_holds_no_path_of_the_view(world):
    launch = Landlock().launch(world.view)
    assert launch.argv[1:3] == ("-I", "-S") and launch.argv[-2:] == ("{fd}", "--")
    assert os.path.isabs(launch.argv[0])
    assert str(world.root) not in " ".join(launch.argv)


@pytest.mark.parametrize("number", [38, 95, 1])
def test_a_kernel_without_it_is_told_in_plain_words(monkeypatch, number):
    monkeypatch.setattr(landlock, "_asked", lambda: (-1, number))
    landlock._tried.cache_clear()
    said = landlock._tried()
    landlock._tried.cache_clear()
    assert said and said.endswith(".") and said == landlock._WHY[number]


def test_what_an_old_kernel_does_not_hold_is_told():
    assert (
        len(limits(7, network=True)) < len(limits(5, network=True)) < len(limits(1, network=True))
    )


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
def test_the_start_works_with_what_an_older_kernel_has(world, monkeypatch, abi):
    monkeypatch.setattr(landlock, "abi_version", lambda: abi)
    assert (
        world.sh("cat README.md; cat sources/a.md; echo x > drafts/n; cat drafts/n").stdout
        == "openx\n"
    )
    before = state(world.root)
    world.sh(
        f": > sources/a.md; {PYTHON} -c \"import os; os.open('sources/a.md',os.O_RDONLY|os.O_TRUNC)\""
    )
    world.sh(f"{PYTHON} -c \"import os; os.truncate('sources/a.md',0)\"")
    assert state(world.root) == before


def test_too_many_neighbours_of_something_closed_are_an_error(world, monkeypatch):
    monkeypatch.setattr("agent_kit.confine.landlock_rules.MAX_RULES", 4)
    with pytest.raises(ConfinementUnavailableError, match="Move what is closed"):
        Landlock().launch(world.view)


def test_the_filter_can_be_made_for_both_machines_and_is_as_short_as_the_kernel_asks():
    from agent_kit.confine import _landlock_filter as calls

    for machine in calls.ARCHES:
        for network in (True, False):
            program = calls.assemble(machine, network=network, abi=1)
            assert len(program) % 8 == 0 and len(program) // 8 < 4096


def test_no_two_calls_of_a_machine_share_a_number():
    from agent_kit.confine import _landlock_filter as calls

    for column in (1, 2):
        numbers = [call[column] for call in calls.CALLS if call[column] >= 0]
        numbers += [pair[column - 1] for pair in calls._LOOKED_AT.values() if pair[column - 1] >= 0]
        assert len(numbers) == len(set(numbers))
