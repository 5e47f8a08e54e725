"""Folders that turn into links, and back, while calls use them; and programs that stay behind."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_kit.session.confinement import own_folder
from agent_kit.testing import ToolCall
from tests.attacks.ways import script
from tests.attacks.world import BACKENDS, World, bash, leaks

pytestmark = pytest.mark.e2e

# Each makes ``drafts/s`` a folder and a link to ``out`` by turns, for some seconds.
SWAPS = {
    "ln": "while :; do rm -rf drafts/s; mkdir drafts/s; echo x > drafts/s/secret.txt; rm -rf drafts/s;"
    " ln -sfn {out} drafts/s; done",
    "rename": "mkdir -p drafts/f; ln -sfn {out} drafts/l; while :; do mv -T drafts/f drafts/s;"
    " mv -T drafts/s drafts/f; mv -T drafts/l drafts/s; mv -T drafts/s drafts/l; done",
    "exchange": "mkdir -p drafts/s; echo x > drafts/s/secret.txt; ln -sfn {out} drafts/l\n"
    + script('while True: libc.renameat2(-100, b"drafts/s", -100, b"drafts/l", 2)'),
    "file": "ln -sfn {out}/secret.txt drafts/fl; echo x > drafts/ff; mkdir -p drafts/s\n"
    + script(
        'os.rename("drafts/fl", "drafts/s/secret.txt")\n'
        'while True: libc.renameat2(-100, b"drafts/ff", -100, b"drafts/s/secret.txt", 2)'
    ),
}

# A program that does in a loop what a shell would be too slow for, on ``drafts/s``.
LOOP = """
import threading
end = __import__("time").time() + 0.5
while __import__("time").time() < end:
    for act in (
        lambda: say(open("drafts/s/secret.txt").read()[:20]),
        lambda: open("drafts/s/secret.txt", "a").write("raced"),
        lambda: open("drafts/s/new", "x").close(),
        lambda: os.chmod("drafts/s/secret.txt", 0o666),
        lambda: os.chmod("drafts/s", 0o777),
        lambda: os.utime("drafts/s/secret.txt", (1, 1)),
        lambda: os.chown("drafts/s/secret.txt", os.getuid(), os.getgid()),
        lambda: os.unlink("drafts/s/secret.txt"),
        lambda: os.rename("drafts/d.md", "drafts/s/d.md"),
        lambda: os.link("drafts/s/secret.txt", "drafts/taken"),
        lambda: os.mkdir("drafts/s/folder"),
    ):
        try: act()
        except OSError: pass
"""

# The path of a call is exchanged in memory while the call is looked at.
MEMORY = """
import threading, time
good, bad = b"drafts/d.md".ljust(60, b"\\0"), os.path.relpath(P).encode().ljust(60, b"\\0")
shared = ctypes.create_string_buffer(60)
end = time.time() + 0.5
def swap():
    while time.time() < end: ctypes.memmove(shared, good, 60); ctypes.memmove(shared, bad, 60)
each = threading.Thread(target=swap); each.start()
while time.time() < end:
    libc.chmod(shared, 0o606); libc.chown(shared, 0, 0); libc.utimes(shared, None)
each.join()
"""


def file_calls(world: World) -> list[ToolCall]:
    file = str(world.drafts / "s/secret.txt")
    return [
        ToolCall("Read", {"file_path": file}),
        ToolCall("Write", {"file_path": file, "content": "raced"}),
        ToolCall("Write", {"file_path": str(world.drafts / "s/new.md"), "content": "raced"}),
        ToolCall("Grep", {"pattern": "canary", "path": "drafts/s", "output_mode": "content"}),
        ToolCall("Glob", {"pattern": "*", "path": str(world.drafts / "s")}),
        ToolCall("Edit", {"file_path": file, "old_string": "canary", "new_string": "raced"}),
        bash("cat drafts/s/secret.txt; echo raced > drafts/s/secret.txt; ls drafts/s"),
        bash(
            "echo raced > drafts/s/made; rm -rf drafts/s/*; cp drafts/d.md drafts/s/; tar xf x -C drafts/s"
        ),
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_folder_that_turns_into_a_link_leads_nowhere_else(world: World, backend: str) -> None:
    before = world.checksum()
    calls = []
    for swap in SWAPS.values():
        command = swap.replace("{out}", str(world.root / "out")).replace("'", QUOTE)
        lead = "export P=$PWD/../out/secret.txt D=x N=x; "
        going = f"(timeout 3 bash -c '{command}'; rm drafts/going) &> /dev/null"
        calls += [bash(f"{lead} touch drafts/going; {going} &"), *file_calls(world) * 2]
        calls += [bash(lead + script(LOOP)), bash(lead + script(MEMORY)), bash(TIDY)]
    run = world.run(world.confined(backend), calls)
    assert leaks(run) == []
    assert world.checksum() == before


TIDY = "while [ -e drafts/going ]; do sleep 0.05; done; rm -rf drafts/[sfl]* drafts/taken; echo d > drafts/d.md"
QUOTE = "'\\''"


def test_without_the_kernel_lock_such_a_link_does_lead_elsewhere(world: World) -> None:
    (world.drafts / "s").symlink_to(world.root / "out")
    before = world.checksum()
    run = world.run(world.unconfined(), file_calls(world))
    assert leaks(run)
    assert world.checksum() != before


# Programs that outlive the call that started them; each has the mark in its environment.
STAYERS = (
    "sleep 300 &",
    "nohup sleep 300 > /dev/null 2>&1 &",
    "setsid sleep 300 > /dev/null 2>&1 < /dev/null &",
    "(sleep 300 &)",
    "(setsid sh -c 'while :; do echo x >> drafts/alive; sleep 0.05; done' > /dev/null 2>&1 &)",
    "trap '' HUP TERM INT; sleep 300 & disown",
    "sh -c 'trap \"\" HUP TERM INT QUIT; while :; do sleep 1; done' > /dev/null 2>&1 &",
    "perl -e 'fork and exit; setpgrp; fork and exit; sleep 300' > /dev/null 2>&1",
    "perl -MPOSIX -e 'fork and exit; POSIX::setsid(); fork and exit; $0 = \"[kworker]\"; sleep 300' &> /dev/null",
    "export P D N; "
    + script(
        "if os.fork() == 0: os.setsid(); os.fork(); os.closerange(0, 99); os.execlp('sleep', 'x', '300')"
    ),
    "coproc sleep 300",
    "timeout 300 sleep 300 > /dev/null 2>&1 &",
    "bash -c 'kill -STOP $$' > /dev/null 2>&1 &",
    "for each in 1 2 3 4 5 6 7 8; do (while :; do sleep 0.2; done &) > /dev/null 2>&1; done",
    "(sh -c 'while :; do sh -c \"sleep 0.01\" & wait; done' &) > /dev/null 2>&1",
)


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_that_was_started_outlives_the_session(world: World, backend: str) -> None:
    mark, session = f"attack-{uuid.uuid4()}", str(uuid.uuid4())
    before = world.checksum()
    lead = f"export MARK={mark} P=x D=x N=x; "
    calls = [bash(lead + each) for each in STAYERS]
    calls.append(bash("ps ax | grep -c '[s]leep' || ls -d /proc/[0-9]* | wc -l; ls drafts/alive"))
    run = world.run(world.confined(backend, session_id=session), calls)
    assert "drafts/alive" in (run.calls[-1].result or "")  # a control: they do run
    for _ in range(100):
        if not own_folder(session).exists() and not list(marked(mark)):
            break
        time.sleep(0.05)
    assert list(marked(mark)) == []
    assert not own_folder(session).exists()
    size = (world.drafts / "alive").stat().st_size
    time.sleep(0.2)
    assert (world.drafts / "alive").stat().st_size == size
    assert world.checksum() == before


def marked(mark: str) -> Iterator[str]:
    """The command lines of the processes that have ``mark`` in their environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                mark.encode() in (folder / "environ").read_bytes()
                and int(folder.name) != os.getpid()
            ):
                yield (folder / "cmdline").read_text()
        except OSError:
            continue
