"""A person answers at a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy.approval import PersonsAnswer, approve, edit, reject
from agent_kit.terminal import desk, terminal_asker

from .conftest import PATIENCE, Person, approval

PROMPT = r"Run it\? \[y/n/e(/r)?\] "


def asked(person: Person, **fields: Any) -> asyncio.Task[PersonsAnswer]:
    return asyncio.ensure_future(person.ask(approval(**fields)))


async def answer(task: asyncio.Task[PersonsAnswer]) -> PersonsAnswer:
    return await asyncio.wait_for(task, PATIENCE)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("y\n", approve()),
        (" YES \n", approve()),
        ("n\n", reject()),
        ("no\n", reject()),
        ("n use the copy in drafts\n", reject("use the copy in drafts")),
        ("no, ask again tomorrow\n", reject("ask again tomorrow")),
        ("r\n", approve(remember=True)),
        ("\x03", reject()),
        ("y\x03", reject()),
        ("\x04", reject()),
        ("y\x04\x04", reject()),
        ("y\x04\n", approve()),
    ],
)
async def test_what_is_typed_is_the_answer(
    person: Person, typed: str, expected: PersonsAnswer
) -> None:
    task = asked(person, rule="interrupt_on[Write]")
    await person.sees(PROMPT)
    person.types(typed)
    assert await answer(task) == expected


@pytest.mark.parametrize(
    "typed",
    ["", " ", "x", "yy", "y n", "yes please", "ny", "\x1b[A", "\uff59", "ok", "1", "e x", "r x"],
)
async def test_anything_else_asks_again(person: Person, typed: str) -> None:
    task = asked(person, rule="interrupt_on[Write]")
    await person.sees(PROMPT)
    person.types(typed + "\n")
    await person.sees(r"Please answer with one of y/n/e/r\.\r\n" + PROMPT)
    assert not task.done()
    person.types("n\n")
    assert await answer(task) == reject()


async def test_a_rule_is_remembered_only_where_there_is_one_and_by_its_name(person: Person) -> None:
    task = asked(person)
    assert "don't ask again" not in await person.sees(r"\[y/n/e\] ")
    person.types("r\n")
    await person.sees("Please answer")
    await person.sees(PROMPT)
    person.types("n\n")
    await answer(task)
    task = asked(person, rule="SessionConfig.permissions[3]")
    shown = await person.sees(PROMPT)
    assert "don't ask again for SessionConfig.permissions[3] in this session" in shown
    person.types("n\n")
    await answer(task)


@pytest.mark.parametrize(
    ("tool", "given", "shows"),
    [
        ("Bash", {"command": "make"}, True),
        ("Write", {"file_path": "a.md", "content": ""}, True),
        ("Write", {"file_path": "/work/a.md", "content": ""}, False),
        ("WebFetch", {"url": "https://a.example/"}, False),
    ],
)
async def test_the_folder_is_shown_where_it_counts(
    person: Person, tool: str, given: dict[str, Any], shows: bool
) -> None:
    task = asked(person, tool=tool, tool_input=given, cwd="/work/there")
    shown = await person.sees(PROMPT)
    assert ("folder | /work/there" in shown) is shows
    person.types("n\n")
    await task


async def test_what_was_typed_before_the_question_is_no_answer(person: Person) -> None:
    person.types("y\ny\ny")
    await asyncio.sleep(0.05)
    task = asked(person)
    await person.sees(PROMPT)
    await asyncio.sleep(0.3)
    assert not task.done()
    person.types("\n")  # the "y" before it went, too
    await person.sees("Please answer")
    await person.sees(PROMPT)
    person.types("n\n")
    assert await answer(task) == reject()


async def test_the_second_line_of_an_answer_doesnt_answer_the_next_question(person: Person) -> None:
    first, second = asked(person, target="one"), asked(person, target="two")
    await person.sees(PROMPT)
    person.types("y\ny\n")
    assert await answer(first) == approve()
    await person.sees(PROMPT)
    await asyncio.sleep(0.3)
    assert not second.done()
    person.types("n\n")
    assert await answer(second) == reject()


async def test_questions_at_once_come_in_turn_and_are_counted(person: Person) -> None:
    tasks = [asked(person, target=f"/work/{number}.md") for number in range(3)]
    for number, more in enumerate(("2 more are waiting.", "1 more is waiting.", None)):
        shown = await person.sees(PROMPT)
        assert re.findall(r"/work/\d\.md", shown)[0] == f"/work/{number}.md"
        assert (more is None) == ("waiting." not in shown)
        assert more is None or more in shown
        person.types(f"n {number}\n")
        assert await answer(tasks[number]) == reject(str(number))


async def test_the_first_question_waits_a_moment_for_those_that_come_with_it(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_TOGETHER", 3.0)
    first = asked(person)
    await asyncio.sleep(0.2)
    second = asked(person)
    assert "1 more is waiting." in await person.sees(PROMPT)
    for task in (first, second):
        person.types("y\n")
        assert await answer(task) == approve()
        if task is first:
            await person.sees(PROMPT)


async def test_streams_that_are_closed_in_mid_question_are_still_read(person: Person) -> None:
    with (
        open(os.dup(person.terminal)) as reading,
        open(os.dup(person.terminal), "w") as writing,
    ):
        task = asyncio.ensure_future(terminal_asker(input=reading, output=writing)(approval()))
        await person.sees(PROMPT)
    person.types("y\n")
    assert await answer(task) == approve()


async def test_the_event_loop_goes_on_while_a_question_is_open(person: Person) -> None:
    task = asked(person, tool_input={"content": "line\n" * 20000})
    for _ in range(100):
        await asyncio.sleep(0.005)
        assert not task.done()
    await person.sees(" no > ")
    person.types("n\n")
    assert await answer(task) == reject()


async def test_a_withdrawn_question_says_so_and_the_next_gets_its_answer(person: Person) -> None:
    first, second = asked(person, target="/work/1"), asked(person, target="/work/2")
    await person.sees(PROMPT)
    person.types("y")  # not sent
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await person.sees("Withdrawn: this call waits for no answer any more.")
    assert "/work/2" in await person.sees(PROMPT)
    person.types("n second\n")
    assert await answer(second) == reject("second")


async def test_what_was_typed_for_a_withdrawn_question_is_nobodys_input(person: Person) -> None:
    task = asked(person)
    await person.sees(PROMPT)
    person.types("y")
    task.cancel()
    await person.sees("Withdrawn")
    await asyncio.sleep(0.2)
    person.types("next\n")
    assert os.read(person.terminal, 100) == b"next\n"


async def test_a_question_withdrawn_in_the_queue_is_never_shown(person: Person) -> None:
    tasks = [asked(person, target=f"/work/{number}.md") for number in range(3)]
    await person.sees(PROMPT)
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer(tasks[1])  # it is withdrawn before the person goes on
    person.types("\n")
    assert "1 more is waiting." in await person.sees(PROMPT)
    person.types("y\n")
    assert await answer(tasks[0]) == approve()
    shown = await person.sees(PROMPT)
    assert "/work/2.md" in shown
    assert "waiting." not in shown
    person.types("y\n")
    assert await answer(tasks[2]) == approve()
    assert "/work/1.md" not in person.look()
    assert "Withdrawn" not in person.look()


async def test_a_terminal_that_takes_no_output_holds_up_no_loop_and_no_cancellation(
    person: Person,
) -> None:
    termios.tcflow(person.terminal, termios.TCOOFF)
    task = asked(person)
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer(task)
    termios.tcflow(person.terminal, termios.TCOON)
    task = asked(person, target="/work/next")
    await person.sees("/work/next")
    await person.sees(PROMPT)
    person.types("y\n")
    assert await answer(task) == approve()


async def test_the_terminal_is_left_as_it_was(person: Person) -> None:
    before = termios.tcgetattr(person.terminal)
    task = asked(person)
    await person.sees(PROMPT)
    assert termios.tcgetattr(person.terminal) != before
    person.types("y\n")
    await answer(task)
    assert termios.tcgetattr(person.terminal) == before
    task = asked(person)
    await person.sees(PROMPT)
    task.cancel()
    await person.sees("Withdrawn")
    await until(lambda: termios.tcgetattr(person.terminal) == before)


async def test_a_terminal_in_raw_mode_is_read_by_the_line_all_the_same(person: Person) -> None:
    import tty

    tty.setraw(person.terminal)
    task = asked(person)
    await person.sees(PROMPT)
    person.types("x\x7fy\r")  # with a slip of the finger
    assert await answer(task) == approve()


async def test_a_terminal_that_somebody_made_non_blocking_shows_all(person: Person) -> None:
    person.resize(80, 24)
    os.set_blocking(person.terminal, False)
    task = asked(person, tool_input={"content": "x" * 300_000})
    await person.sees("no > ")
    person.types("a\n")
    await asyncio.sleep(0.5)  # it is full
    await person.sees(PROMPT)
    assert sum(map(len, re.findall(r"[|:] (x+)\r\n", person.look()))) == 300_000
    person.types("y\n")
    assert await answer(task) == approve()


async def test_a_terminal_that_goes_away_refuses(person: Person) -> None:
    import pty

    theirs, terminal = pty.openpty()
    with (
        open(terminal, closefd=False) as reading,
        open(terminal, "w", closefd=False) as writing,
    ):
        task = asyncio.ensure_future(terminal_asker(input=reading, output=writing)(approval()))
        await asyncio.sleep(0.5)
        os.close(theirs)
        assert await answer(task) == reject()
    os.close(terminal)


# --- editing -------------------------------------------------------------------------------------


def editor(folder: Path, body: str) -> str:
    script = folder / "editor.py"
    script.write_text(f"import json, os, sys\npath = sys.argv[-1]\n{body}\n")
    return f"{sys.executable} {script} --wait"


REPLACE = """
value = json.load(open(path))
value["content"] = "mine"
json.dump(value, open(path, "w"))
"""


@pytest.mark.parametrize("variable", ["VISUAL", "EDITOR"])
async def test_the_input_is_edited_in_the_persons_editor(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, editor(tmp_path, REPLACE))
    task = asked(person)
    await person.sees(PROMPT)
    person.types("e\n")
    assert await answer(task) == edit({"file_path": "/work/a.md", "content": "mine"})


async def test_the_file_is_private_hides_nothing_and_is_gone_afterwards(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "note"
    body = f"""
with open({str(note)!r}, "w") as file:
    modes = [oct(os.stat(each).st_mode) for each in (path, os.path.dirname(path))]
    json.dump([path, *modes, open(path).read(), os.isatty(0), os.isatty(1)], file)
"""
    monkeypatch.setenv("EDITOR", editor(tmp_path, body + REPLACE))
    task = asked(person, tool_input={"content": "é\u202e\x1b\U000e0041\ud800"})
    await person.sees(PROMPT)
    person.types("e\n")
    assert await answer(task) == edit({"content": "mine"})
    import json

    path, file_mode, folder_mode, text, *terminals = json.loads(note.read_text())
    assert stat.S_IMODE(int(file_mode, 8)) == 0o600
    assert stat.S_IMODE(int(folder_mode, 8)) == 0o700
    assert text == '{\n  "content": "é\\u202e\\u001b\\udb40\\udc41\\ud800"\n}'
    assert terminals == [True, True]
    assert not os.path.exists(os.path.dirname(path))


async def test_a_faulty_edit_is_said_and_the_draft_is_kept(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
text = open(path).read()
open(path, "w").write("{ oops" if "oops" not in text else '{"kept": true}')
"""
    monkeypatch.setenv("EDITOR", editor(tmp_path, body))
    task = asked(person)
    await person.sees(PROMPT)
    person.types("e\n")
    await person.sees("This is no JSON: ")
    await person.sees(PROMPT)
    person.types("e\n")
    assert await answer(task) == edit({"kept": True})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", r"Nothing was changed\."),
        (REPLACE + "sys.exit(1)", r"The editor ended with status 1: nothing is changed\."),
        ("os.unlink(path)", "The edited file can't be read: "),
        ("open(path, 'wb').write(b'\\xff')", "The edited file can't be read: "),
        ("open(path, 'w').write('[1]')", "An input is a JSON object"),
        ("open(path, 'w').write('{\"a\": NaN}')", "NaN is no number of JSON"),
        ("open(path, 'w').write('{\"a\": 1, \"a\": 2}')", "a name stands twice in one object"),
        ("open(path, 'w').write('[' * 100000)", "This is no JSON: "),
    ],
)
async def test_an_edit_that_gives_no_new_input_asks_again(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, body))
    task = asked(person)
    await person.sees(PROMPT)
    person.types("e\n")
    await person.sees(said)
    await person.sees(PROMPT)
    assert not task.done()
    person.types("n\n")
    assert await answer(task) == reject()


@pytest.mark.parametrize("command", ["/no/such/editor", "'unclosed"])
async def test_an_editor_that_cant_be_started_asks_again(
    person: Person, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("EDITOR", command)
    task = asked(person)
    await person.sees(PROMPT)
    person.types("e\n")
    await person.sees("The editor('s command)? can't be ")
    await person.sees(PROMPT)
    person.types("n\n")
    assert await answer(task) == reject()


async def test_a_withdrawn_question_ends_its_editor(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, asked_to = tmp_path / "pid", tmp_path / "asked"
    body = f"""
import signal, time
def end(*_):
    open({str(asked_to)!r}, "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, end)
open({str(begun)!r}, "w").write(str(os.getpid()))
time.sleep(60)
"""
    monkeypatch.setenv("EDITOR", editor(tmp_path, body))
    task = asked(person)
    await person.sees(PROMPT)
    person.types("e\n")
    await until(lambda: begun.exists() and begun.read_text())
    task.cancel()
    await person.sees("Withdrawn")
    await until(lambda: not os.path.exists(f"/proc/{begun.read_text()}"))
    assert asked_to.exists()  # it could save what was written


async def test_an_editor_that_doesnt_want_to_end_is_ended(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"
    body = f"""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({str(note)!r}, "w").write(str(os.getpid()))
time.sleep(60)
"""
    monkeypatch.setenv("EDITOR", editor(tmp_path, body))
    first, second = asked(person), asked(person)
    await person.sees(PROMPT)
    person.types("e\n")
    await until(lambda: note.exists() and note.read_text())
    first.cancel()
    await person.sees("Withdrawn")
    assert not os.path.exists(f"/proc/{note.read_text()}")
    await person.sees(PROMPT)
    person.types("y\n")
    assert await answer(second) == approve()


async def test_without_an_editor_the_input_is_typed_on_one_line(person: Person) -> None:
    task = asked(person)
    await person.sees(PROMPT)
    for typed, said in (
        ("{", "This is no JSON: "),
        ("", "Nothing was changed"),
        ('{"file_path": "/work/a.md", "content": "text"}', "Nothing was changed"),
        ("[" * 1500, r"set \$EDITOR for a long input"),
    ):
        person.types("e\n")
        await person.sees("The new input, as JSON on one line: ")
        person.types(typed + "\n")
        await person.sees(said)
        await person.sees(PROMPT)
    person.types("e\n")
    await person.sees("The new input, as JSON on one line: ")
    person.types('{"content": "mine"}\n')
    assert await answer(task) == edit({"content": "mine"})


async def test_one_true_and_true_are_different_inputs(person: Person) -> None:
    task = asked(person, tool_input={"count": 1})
    await person.sees(PROMPT)
    person.types("e\n")
    await person.sees("on one line: ")
    person.types('{"count": true}\n')
    assert (await answer(task)).tool_input == {"count": True}


async def until(holds: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
