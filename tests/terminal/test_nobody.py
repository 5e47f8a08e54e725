"""Where nobody can be asked, the call is refused at once; and a program's own streams stay its own."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import pty
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy.approval import Unasked, reject
from agent_kit.terminal import ask_in_terminal, asker, terminal_asker

from .conftest import PATIENCE, Person, approval

NO_TERMINAL = "Nobody could be asked: there is no terminal."
ROOT = Path(__file__).parents[2]

# A program with a terminal of its own as its controlling one.
PROGRAM = """
import asyncio, fcntl, os, sys, termios
if sys.argv[1:]:
    fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
from agent_kit.policy.approval import Approval
from agent_kit.terminal import ask_in_terminal
question = Approval(question_id="one", tool="Write", reason="The rule asks.")
"""
ASKS = "print(asyncio.run(ask_in_terminal(question)))"


@contextmanager
def program(body: str, terminal: int | None, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    known = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = [sys.executable, "-c", PROGRAM + textwrap.dedent(body)]
    running = subprocess.Popen(
        words if terminal is None else [*words, str(terminal)],
        pass_fds=() if terminal is None else (terminal,),
        start_new_session=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        **(known | streams),
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


async def outcome(running: subprocess.Popen[bytes]) -> tuple[str, str]:
    told, complained = await asyncio.to_thread(running.communicate, timeout=PATIENCE)
    return told.decode().strip(), complained.decode()


async def test_the_question_goes_to_the_controlling_terminal_and_the_streams_stay_clean(
    person: Person,
) -> None:
    with program(ASKS, person.terminal) as running:
        shown = await person.sees(r"Run it\? ")
        assert "\x1b[r" in shown  # what an earlier output left behind is undone
        person.types("y\n")
        assert await outcome(running) == ("Approved(remember=False)", "")


async def test_ctrl_c_refuses_the_call_and_ends_no_program(person: Person) -> None:
    body = "print(asyncio.run(ask_in_terminal(question)), asyncio.run(ask_in_terminal(question)))"
    with program(body, person.terminal) as running:
        for _ in range(2):
            await person.sees(r"Run it\? ")
            person.types("\x03")
        assert await outcome(running) == ("Rejected(message='') Rejected(message='')", "")
        assert running.returncode == 0


async def test_ctrl_c_in_the_editor_is_the_editors(person: Person, tmp_path: Path) -> None:
    script = tmp_path / "editor.py"
    script.write_text(
        "import json, os, sys\nprint('editing', flush=True)\nkeys = os.read(0, 9).decode()\n"
        "json.dump({'keys': keys}, open(sys.argv[1], 'w'))\n"
    )
    body = f"os.environ['EDITOR'] = {f'{sys.executable} {script}'!r}\n{ASKS}"
    with program(body, person.terminal) as running:
        await person.sees(r"Run it\? ")
        person.types("e\n")
        await person.sees("editing")
        person.types("\x03\n")
        assert await outcome(running) == (r"Edited(tool_input={'keys': '\x03\n'})", "")


async def test_without_a_terminal_the_call_is_refused_and_the_operator_reads_it_once() -> None:
    body = "print(asyncio.run(ask_in_terminal(question)))\n" * 2
    with program(body, None) as running:
        told, complained = await outcome(running)
    assert told == "\n".join([f"Unasked(message={NO_TERMINAL!r})"] * 2)
    assert complained.count(NO_TERMINAL) == 1
    assert "Calls that a person must approve are refused." in complained


async def test_standard_input_and_error_will_do_when_they_are_a_terminal(person: Person) -> None:
    with program(ASKS, None, stdin=person.terminal, stderr=person.terminal) as running:
        await person.sees(r"Run it\? ")
        person.types("n later\n")
        told, _ = await asyncio.to_thread(running.communicate, timeout=PATIENCE)
        assert told.decode().strip() == "Rejected(message='later')"


async def test_a_program_in_the_background_is_refused_and_not_stopped(person: Person) -> None:
    body = f"""
    if os.fork() == 0:
        os.setpgid(0, 0)
        {ASKS}
    else:
        os.wait()
    """
    with program(body, person.terminal) as running:
        told, _ = await outcome(running)
    assert told == (
        "Unasked(message='Nobody could be asked: "
        "the program runs in the background of its terminal.')"
    )


async def test_a_program_that_ends_in_mid_question_leaves_the_terminal_as_it_was(
    person: Person,
) -> None:
    import termios

    before = termios.tcgetattr(person.terminal)
    body = """
    import threading
    threading.Thread(target=lambda: asyncio.run(ask_in_terminal(question)), daemon=True).start()
    sys.stdin.readline()
    """
    with program(body, person.terminal, stdin=subprocess.PIPE) as running:
        await person.sees(r"Run it\? ")
        assert termios.tcgetattr(person.terminal) != before
        running.stdin.write(b"\n")
        running.stdin.flush()
        _, complained = await outcome(running)
        assert complained == ""
        assert termios.tcgetattr(person.terminal) == before


async def test_one_terminal_has_one_queue_however_it_is_named(person: Person) -> None:
    body = """
    from agent_kit.terminal import terminal_asker
    other = terminal_asker(input=sys.stdin, output=sys.stderr, plain=True)
    async def both():
        return await asyncio.gather(ask_in_terminal(question), other(question))
    print(asyncio.run(both()))
    """
    with program(body, person.terminal, stdin=person.terminal, stderr=person.terminal) as running:
        assert "1 more is waiting." in await person.sees(r"Run it\? ")
        person.types("n 1\n")
        await person.sees(r"Run it\? ")
        person.types("n 2\n")
        told, _ = await asyncio.to_thread(running.communicate, timeout=PATIENCE)
        assert told.decode().strip() == "[Rejected(message='1'), Rejected(message='2')]"


@pytest.mark.parametrize("kind", ["memory", "pipe", "closed"])
async def test_streams_that_are_no_terminal_refuse(
    kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker, "_TOLD", set())
    reading, writing = io.StringIO("y\n"), io.StringIO()
    if kind != "memory":
        ends = os.pipe()
        reading, writing = os.fdopen(ends[0]), os.fdopen(ends[1], "w")
    if kind == "closed":
        reading.close()
    with caplog.at_level(logging.WARNING, "agent_kit.terminal"):
        for _ in range(2):
            ask = terminal_asker(input=reading, output=writing)
            assert await ask(approval()) == Unasked(message=NO_TERMINAL)
    assert len(caplog.records) == 1
    reading.close()
    writing.close()


async def test_one_stream_that_is_no_terminal_is_enough_to_refuse(
    person: Person, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("y\n")
    with (
        open(tmp_path / "file", "r+") as file,
        open(person.terminal, closefd=False) as reading,
        open(person.terminal, "w", closefd=False) as writing,
    ):
        for streams in ((reading, file), (file, writing)):
            ask = terminal_asker(input=streams[0], output=streams[1])
            assert await asyncio.wait_for(ask(approval()), PATIENCE) == Unasked(message=NO_TERMINAL)
    assert person.look() == ""


async def test_without_rich_it_says_what_to_install(
    person: Person, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    answer = await asyncio.wait_for(person.ask(approval()), PATIENCE)
    assert answer.message.startswith("Nobody could be asked: ")
    assert "pip install rich" in caplog.text


def test_faulty_arguments_are_said_at_once(person: Person) -> None:
    for arguments in (
        {"input": sys.stdin},
        {"output": sys.stderr},
        {"input": "x", "output": sys.stderr},
        {"input": sys.stdin, "output": 2},
        {"plain": 1},
    ):
        with pytest.raises(TypeError):
            terminal_asker(**arguments)


def test_the_public_names_are_these() -> None:
    import agent_kit.terminal

    assert agent_kit.terminal.__all__ == ["Ask", "ask_in_terminal", "terminal_asker"]
    assert asyncio.iscoroutinefunction(ask_in_terminal)


# --- without POSIX ----------------------------------------------------------------------------------


async def test_without_posix_lines_are_read_in_a_thread_and_none_is_swallowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agent_kit.terminal import place
    from agent_kit.terminal.plain import PlainTerminal

    theirs, terminal = pty.openpty()
    with open(terminal, closefd=False) as reading, open(terminal, "w", closefd=False) as writing:
        monkeypatch.setattr(
            place,
            "_of_streams",
            lambda *both: place.Place(key="x", open=lambda: PlainTerminal(*both)),
        )
        ask = terminal_asker(input=reading, output=writing, plain=True)
        first, second = (asyncio.ensure_future(ask(approval())) for _ in range(2))
        await asyncio.sleep(0.5)
        first.cancel()
        await asyncio.sleep(0.5)
        os.write(theirs, b"n second\n")
        assert await asyncio.wait_for(second, PATIENCE) == reject("second")
        third = asyncio.ensure_future(ask(approval()))
        await asyncio.sleep(0.5)
        os.write(theirs, b"\x04")
        assert await asyncio.wait_for(third, PATIENCE) == reject()
    os.close(theirs)
    os.close(terminal)
