"""What is shown is text: it steers no terminal, and it fits."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from agent_kit.cli._screen import Screen
from agent_kit.testing import AnsweredBy, CallRecord

NASTY = "a\x1b[2Jb\x07c\u202ed [red]e[/red] \x9bf"


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def call(tool: str = "Read", /, lock: AnsweredBy | None = None, **fields: Any) -> CallRecord:
    return CallRecord(
        call_id=fields.pop("call_id", "one"),
        tool=tool,
        input=fields.pop("input", {"file_path": "a.md"}),
        result=fields.pop("result", None),
        is_error=lock is not AnsweredBy.RAN,
        lock=lock,
        agent=fields.pop("agent", None),
    )


@pytest.mark.parametrize(
    "show",
    [
        lambda screen: screen.prompted(NASTY),
        lambda screen: screen.said(NASTY, None),
        lambda screen: screen.said("x", NASTY),
        lambda screen: screen.blocked(NASTY),
        lambda screen: screen.failed(NASTY),
        lambda screen: screen.called(call(NASTY)),
        lambda screen: screen.called(call(input={"file_path": NASTY})),
        lambda screen: screen.called(call(input={NASTY: NASTY})),
        lambda screen: screen.called(call(agent=NASTY)),
        lambda screen: screen.rows([(NASTY, "x"), ("y", NASTY)]),
        lambda screen: screen.check(False, NASTY, [NASTY]),
        lambda screen: screen.paragraph(NASTY),
        lambda screen: screen.section(NASTY),
        lambda screen: screen.title(NASTY),
        lambda screen: screen.error(NASTY),
        lambda screen: (
            screen.called(call()),
            screen.answered(call(lock=AnsweredBy.GATE, result=NASTY)),
        ),
        lambda screen: (
            screen.called(call(NASTY)),
            screen.called(call(call_id="two")),
            screen.answered(call(NASTY, lock=AnsweredBy.RAN, result=NASTY)),
        ),
    ],
)
def test_nothing_that_is_shown_can_steer_the_terminal(
    show: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    show(Screen(plain=True))
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert [char for char in text if not (char.isprintable() or char == "\n")] == []


def test_markup_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(plain=True).said("[red]e[/red] :smile:", None)
    assert capsys.readouterr().out == "The model: [red]e[/red] :smile:\n"


def test_a_long_sentence_is_broken_below_its_own_beginning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = Screen(plain=True)
    screen.called(call())
    screen.answered(call(lock=AnsweredBy.GATE, result="one two three four five six seven"))
    assert capsys.readouterr().out.splitlines() == [
        "  1  Read a.md",
        "     DENIED by lock 1, the gate: one two",
        "     three four five six seven",
    ]


def test_a_denial_is_shown_whole_and_an_allowed_result_on_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen, words = Screen(plain=True), " ".join(["word"] * 50)
    screen.called(call())
    screen.answered(call(lock=AnsweredBy.RULES, result=words))
    assert capsys.readouterr().out.count("word") == 50
    screen.called(call())
    screen.answered(call(lock=AnsweredBy.RAN, result=words))
    shown = capsys.readouterr().out.splitlines()[1:]
    assert len(shown) == 1
    assert shown[0].endswith("...")
    assert len(shown[0]) <= 40


def test_an_answer_that_does_not_follow_its_call_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = Screen(plain=True)
    screen.called(call("Read", call_id="one"))
    screen.called(call("Grep", call_id="two", input={"pattern": "x"}))
    screen.answered(call("Grep", AnsweredBy.RAN, call_id="two", result="hit"))
    screen.answered(call("Read", AnsweredBy.RAN, call_id="one", result="text"))
    assert capsys.readouterr().out.splitlines() == [
        "  1  Read a.md",
        '  2  Grep "x"',
        "     allowed: hit",
        "     1 Read: allowed: text",
    ]


@pytest.mark.parametrize("lock", AnsweredBy)
def test_every_lock_has_words(lock: AnsweredBy, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(plain=True)
    screen.called(call())
    screen.answered(call(lock=lock, result="x"))
    assert capsys.readouterr().out.splitlines()[-1].endswith("x")


@pytest.mark.parametrize(("encoding", "mark"), [("ascii", "FAILED"), ("utf-8", "✗")])
def test_a_stream_without_unicode_gets_ascii_marks(
    encoding: str, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    Screen().check(False, "é")
    sys.stdout.flush()
    assert raw.getvalue().decode(encoding).split()[0] == mark
