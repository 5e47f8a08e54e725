"""What is shown is what would run: nothing hidden, nothing cut, nothing that steers the terminal."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.policy.approval import PersonsAnswer, Unasked, reject
from agent_kit.terminal.literal import is_hidden, is_literal, on_rows, signs, to_json
from agent_kit.terminal.sheet import sheet

from .conftest import PATIENCE, Person, approval

# What a model may write, how it is shown, and why it must be.
NASTY = (
    ("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),  # clears the screen
    ("\x1b]8;;http://x\x1b\\here", r"\x1b]8;;http://x\x1b\\here"),  # a link with another name
    ("\x9b31m", r"\x9b31m"),  # the same in eight bits
    ("rm -rf /\rls", r"rm -rf /\rls"),  # would overwrite the line
    ("a\bb", r"a\x08b"),
    ("a\tb", r"a\tb"),
    ("a\0b", r"a\x00b"),
    ("a\x7fb", r"a\x7fb"),
    ("a\u202eb", r"a\u202eb"),  # right to left from here on
    ("a\u2066b", r"a\u2066b"),
    ("a\u200bb", r"a\u200bb"),  # no width
    ("a\ufeffb", r"a\ufeffb"),
    ("a\u00adb", r"a\xadb"),
    ("a\u00a0b", r"a\xa0b"),  # a space that is none
    ("a\u2028b", r"a\u2028b"),
    ("a\x85b", r"a\x85b"),
    ("a\u0301b", r"a\u0301b"),  # combines
    ("a\u20ddb", r"a\u20ddb"),
    ("a\u0903b", r"a\u0903b"),
    ("a\ufe0fb", r"a\ufe0fb"),  # variation selectors
    ("a\U000e0100b", r"a\U000e0100b"),
    ("a\U000e0041b", r"a\U000e0041b"),  # a tag
    ("a\u3164b", r"a\u3164b"),  # a filler
    ("a\u2800b", r"a\u2800b"),  # a blank that counts as a sign
    ("a\ue000b", r"a\ue000b"),
    ("a\ud800b", r"a\ud800b"),  # half a character
    ("secret.md ", r"secret.md\x20"),  # another file
    ("\\x1b \x1b", r"\\x1b \x1b"),  # a text that looks like an escape, and one
)
# What looks like something, and is shown as it is.
PLAIN = (
    "[bold]x[/bold]",
    "[link=http://x]y[/link]",
    ":smile:",
    "http://example.com/",
    r"grep '\.md$'",
    r"C:\new",
    "größe 漢字 🙂 → Ωж",
    '"quoted"',
)


def lines(rows: Any) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


@pytest.mark.parametrize(("text", "expected"), NASTY)
async def test_nothing_that_hides_or_steers_reaches_the_terminal(
    person: Person, text: str, expected: str
) -> None:
    fields: dict[str, Any] = {"tool": text, "agent": text, "target": text, "reason": text}
    fields |= {"rule": text, "tool_input": {"file_path": text, text: [text, {"x": text}]}}
    task = asyncio.ensure_future(person.ask(approval(**fields)))
    await person.sees(r"Run it\? ")
    person.types("n\n")
    await asyncio.wait_for(task, PATIENCE)
    shown = person.look().replace("\r\n", "\n")
    assert shown.count(f"| {expected}\n") == 7  # tool, agent, target, reason; three in the input
    within = expected.removesuffix("\\x20")  # there a word follows: the blank can be seen
    assert f"again for {within}" in shown
    assert all(" " <= char <= "~" or char == "\n" for char in shown)


@pytest.mark.parametrize("text", PLAIN)
async def test_what_only_looks_like_markup_is_shown_as_it_is(person: Person, text: str) -> None:
    task = asyncio.ensure_future(person.ask(approval(target=text, tool_input={"command": text})))
    await person.sees(r"Run it\? ")
    person.types("n\n")
    await asyncio.wait_for(task, PATIENCE)
    assert person.look().count(f"| {text}\r\n") == 2


def test_a_text_with_escapes_says_that_its_backslashes_are_doubled() -> None:
    (_, label, note, *rest) = lines(sheet(approval(tool_input={"content": "a\\b\tc"}), 60))[-4:]
    assert (label, note) == ("    content", "      (escaped: \\\\ is one backslash)")
    assert rest == ["      | a\\\\b\\tc"]


def test_what_a_terminal_cant_write_is_an_escape() -> None:
    assert not is_literal("ä", "ascii")
    shown = lines(sheet(approval(target="ä€", tool_input={"ä": ["ä"]}), 60, "ascii"))
    assert "  target | \\xe4\\u20ac" in shown
    assert '    "\\u00e4"' in shown
    assert all(line.isascii() for line in shown)


def test_a_line_break_in_a_heading_is_an_escape() -> None:
    rows = lines(sheet(approval(target="/work/a\nreason | trusted", rule="x"), 60))
    assert "  target | /work/a\\nreason | trusted" in rows


def test_a_line_that_is_too_long_goes_on_behind_another_mark() -> None:
    text = "x" * 25 + " " * 30 + "reason | trusted\nsecond"
    rows = lines(sheet(approval(tool_input={"command": text}), 28))[-5:]
    assert rows == [
        "      | " + "x" * 20,
        "      : " + "x" * 5 + " " * 15,
        "      : " + " " * 15 + "reaso",
        "      : n | trusted",
        "      | second",
    ]


def test_a_key_cant_pass_for_another_field() -> None:
    rows = lines(sheet(approval(tool_input={"reason | trusted": 1, "a = b": {}, "a" * 41: ""}), 60))
    assert rows[-4:-2] == ['    "reason | trusted" = 1', '    "a = b" = {}']
    assert rows[-2] == f'    "{"a" * 41}"'


async def test_blanks_are_shown_to_the_last(person: Person) -> None:
    person.resize(200, 24)
    task = asyncio.ensure_future(person.ask(approval(tool_input={"command": " " * 300 + "b"})))
    shown = await person.sees(r"Run it\? ")
    assert f"      | {' ' * 191}\r\n      : {' ' * 109}b\r\n" in shown
    person.types("n\n")
    await asyncio.wait_for(task, PATIENCE)


def test_every_kind_of_value_is_told_apart() -> None:
    given_ = {"a": "5", "b": 5, "c": None, "d": "null", "e": "", "f": [], "g": [[1.5], {"h": True}]}
    shown = "\n".join(lines(sheet(approval(tool_input=given_), 60)))
    assert shown.endswith(
        "    a\n      | 5\n    b = 5\n    c = null\n    d\n      | null\n    e\n      | \n"
        "    f = []\n    g\n      [0]\n        [0] = 1.5\n      [1]\n        h = true"
    )


def test_what_lies_deep_is_shown_as_json_and_whole() -> None:
    value: Any = "end\u202e"
    for _ in range(50):
        value = [value]
    shown = "".join(lines(sheet(approval(tool_input={"deep": value}), 60)))
    assert "(as JSON)" in shown
    assert '"end\\u202e"' in shown


def test_an_input_without_fields_is_shown_as_such() -> None:
    assert lines(sheet(approval(tool_input={}), 60))[-1] == "  input  = {}"


def test_no_character_that_is_shown_can_be_missed_or_steers() -> None:
    for number in range(0x110000):
        char = chr(number)
        if not is_hidden(char):
            assert char.isprintable()
            assert unicodedata.category(char)[0] in "LNPS" or char == " "


@given(st.text(), st.integers(4, 40))
def test_what_is_shown_can_be_read_back(text: str, width: int) -> None:
    told = []
    for line in text.split("\n"):
        row = [
            sign for part in on_rows(signs(line, literal=is_literal(text)), width) for sign in part
        ]
        told.append("".join(sign for sign, _ in row))
    if is_literal(text):
        assert "\n".join(told) == text
    else:
        assert [re.sub(r"\\.[0-9a-fA-F]*", _back, line) for line in told] == text.split("\n")


def _back(match: re.Match[str]) -> str:
    escape = match.group()
    digits = {"x": 2, "u": 4, "U": 8}.get(escape[1])
    if digits is None:
        return {"\\": "\\", "t": "\t", "r": "\r"}[escape[1]] + escape[2:]
    return chr(int(escape[2 : 2 + digits], 16)) + escape[2 + digits :]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_the_json_that_is_edited_says_the_same_and_hides_nothing(value: Any) -> None:
    text = to_json(value, indent=2)
    assert json.loads(text) == value
    assert not any(is_hidden(char) for char in text if char != "\n")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(11, 40))
def test_no_row_is_wider_than_it_may_be(text: str, width: int) -> None:
    from rich.cells import cell_len

    for row in on_rows(signs(text, literal=is_literal(text)), width):
        assert cell_len("".join(sign for sign, _ in row)) <= width


# --- pages -----------------------------------------------------------------------------------------


LONG = "\n".join(f"line {number}" for number in range(1, 101))


async def ask(person: Person, **fields: Any) -> asyncio.Task[PersonsAnswer]:
    return asyncio.ensure_future(person.ask(approval(**fields)))


@pytest.mark.parametrize("count", [40, 45, 50, 55, 60])
async def test_a_long_question_is_shown_page_after_page_before_it_can_be_answered(
    person: Person, count: int
) -> None:
    person.resize(80, 24)
    content = "\n".join(f"line {number}" for number in range(count))
    task = await ask(person, tool_input={"content": content})
    pages, shown = [], ""
    while "Run it?" not in shown:
        shown = await person.sees(r"no > |Run it\? ")
        pages.append(shown)
        if "Run it?" not in shown:
            person.types("\n")
    assert all(page.count("\n") <= 24 for page in pages)
    told = re.findall(r"\| (line \d+)\r\n", "".join(pages))
    assert told == content.split("\n")
    assert "  tool   | Write" in pages[-1]  # what it was about is said again
    person.types("y\n")
    assert type(await asyncio.wait_for(task, PATIENCE)).__name__ == "Approved"


async def test_a_page_takes_a_no_but_no_yes(person: Person) -> None:
    person.resize(80, 24)
    task = await ask(person, rule="x", tool_input={"content": LONG})
    for typed in ("y", "r", "e", "q", "a b"):
        await person.sees("no > ")
        person.types(typed + "\n")
        await person.sees("First the whole question, then the answer.")
    await person.sees("no > ")
    person.types("n too long\n")
    assert await asyncio.wait_for(task, PATIENCE) == reject("too long")


async def test_the_rest_of_the_pages_can_be_had_at_once(person: Person) -> None:
    person.resize(80, 24)
    task = await ask(person, tool_input={"content": "x" * 100_000})
    await person.sees("no > ")
    person.types("a\n")
    await person.sees(r"Run it\? ")
    assert sum(map(len, re.findall(r"[|:] (x+)\r\n", person.look()))) == 100_000
    person.types("\x03")
    assert await asyncio.wait_for(task, PATIENCE) == reject()


async def test_in_a_window_that_was_made_narrower_the_question_begins_again(person: Person) -> None:
    person.resize(80, 24)
    task = await ask(person, tool_input={"content": LONG})
    await person.sees("no > ")
    person.resize(40, 24)
    person.types("\n")
    assert "A call waits for your answer." in await person.sees("no > ")
    person.types("n\n")
    assert await asyncio.wait_for(task, PATIENCE) == reject()


async def test_a_terminal_that_says_no_size_gets_rows_of_80(person: Person) -> None:
    person.resize(0, 0)
    task = await ask(person, tool_input={"content": "x" * 200})
    shown = await person.sees(r"Run it\? ")
    assert max(map(len, shown.split("\r\n"))) == 79
    person.types("n\n")
    await asyncio.wait_for(task, PATIENCE)


async def test_an_input_that_cant_be_shown_is_refused(person: Person) -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    task = await ask(person, tool_input={"deep": value})
    answer = await asyncio.wait_for(task, PATIENCE)
    assert answer == Unasked(message="Nobody could be asked: the question could not be shown.")
