"""A question that asks for something: what the person writes is filled in, and a plain yes is no answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy.approval import PersonsAnswer, edit, reject
from tests.terminal.conftest import PATIENCE, Person, approval

INPUT = {"what": "the form", "why": "to fill it in", "file": ""}
PROMPT = r"Your answer\? \[g/n/e\] $"


def asked(person: Person, **fields: Any) -> asyncio.Task[PersonsAnswer]:
    question = approval(tool_input=INPUT, asks_for="file", **fields)
    return asyncio.ensure_future(person.ask(question))


async def answer(task: asyncio.Task[PersonsAnswer]) -> PersonsAnswer:
    return await asyncio.wait_for(task, PATIENCE)


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("g /home/Ada/My form.pdf\n", "/home/Ada/My form.pdf"),
        ("GIVE ~/f.pdf \n", "~/f.pdf"),
        ("g -\n", "-"),
    ],
)
async def test_what_is_written_behind_g_is_given(person: Person, typed: str, given: str) -> None:
    task = asked(person)
    await person.sees(PROMPT)
    person.types(typed)
    assert await answer(task) == edit({**INPUT, "file": given})


async def test_g_alone_asks_for_it_on_a_line_of_its_own(person: Person) -> None:
    task = asked(person)
    assert "g  give it: file, on one line" in await person.sees(PROMPT)
    person.types("g\n")
    await person.sees(r"file: $")
    person.types("\n")
    await person.sees(r"Nothing was given\.\r\n" + PROMPT)
    person.types("g\n")
    await person.sees(r"file: $")
    person.types(" /srv/été.pdf \n")
    assert await answer(task) == edit({**INPUT, "file": "/srv/été.pdf"})


@pytest.mark.parametrize("typed", ["y", "yes", "", "r", "/home/ada/f.pdf", "f /home/ada/f.pdf"])
async def test_a_yes_gives_nothing_and_asks_again(person: Person, typed: str) -> None:
    task = asked(person)
    await person.sees(PROMPT)
    person.types(typed + "\n")
    await person.sees(r"Please answer with one of g/n/e\.\r\n" + PROMPT)
    assert not task.done()
    person.types("n it is at home\n")
    assert await answer(task) == reject("it is at home")


@pytest.mark.parametrize("typed", ["g x\n", "g\n"])
async def test_where_nothing_is_asked_for_nothing_is_given(person: Person, typed: str) -> None:
    task = asyncio.ensure_future(person.ask(approval()))
    await person.sees(r"Run it\? \[y/n/e\] $")
    person.types(typed)
    await person.sees(r"Please answer with one of y/n/e\.")
    person.types("n\n")
    assert await answer(task) == reject()


async def test_the_whole_input_can_be_filled_in_in_an_editor(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s|"file": ""|"file": "/a/b.pdf"|\' "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    task = asked(person)
    assert "edit the whole input" in await person.sees(PROMPT)
    person.types("e\n")
    assert await answer(task) == edit({**INPUT, "file": "/a/b.pdf"})


async def test_ctrl_c_at_the_line_to_fill_in_is_a_no(person: Person) -> None:
    task = asked(person)
    await person.sees(PROMPT)
    person.types("g\n")
    await person.sees(r"file: $")
    person.types("\x03")
    assert await answer(task) == reject()
