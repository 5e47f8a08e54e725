"""The finder of ``@path`` mentions, by itself: what it reads, and that no text upsets it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.scope.mentions import Mention, find_mentions


def paths(prompt: str) -> list[str]:
    return [mention.path for mention in find_mentions(prompt)]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("", []),
        ("@", []),
        ("@dataclass", ["dataclass"]),  # names nothing that exists
        ("me@example.com", []),
        ("(@x)", []),
        ("\u8acb\u770b\u3002@a \u8acb\u770b@b", ["a"]),
        ("@.. @. @/ @~ @-", []),  # no word in them: the CLI opens none
        ("@a @b", ["a", "b"]),
        ("@b @a @b", ["b", "a"]),  # each once, in order
        ('@"a b" @c @"d"', ["a b", "c", "d"]),
        ('@""', []),
        ('@" "', ["."]),  # the folder itself
        ('@"a', []),
        ("@a.txt, @b.txt.", ["a.txt", "b.txt"]),
        ("@src/x.py#L1-9", ["src/x.py"]),
        ("@#a", ["#a"]),
        ("@a#b#c", ["a#b#c"]),
        ("@a#L1(b(c(", ["a"]),
        ("@a:#L1(b(", ["a:"]),
        ("@\0", []),
        ("@a\0b", []),
        ('@"\0"', []),
    ],
)
def test_the_path_of_a_mention_is_what_the_cli_opens(prompt: str, expected: list[str]) -> None:
    assert paths(prompt) == expected


@pytest.mark.parametrize(
    ("prompt", "readings"),
    [
        ("@a.txt", ("a.txt",)),
        ("@a.txt).", ("a.txt", "a.txt).")),
        ("@a.txt#L1-9,", ("a.txt", "a.txt#L1-9", "a.txt#L1-9,")),
        ("@caf\u00e9", ("caf", "caf\u00e9")),
        ("@\u4e2d\u6587", ("\u4e2d\u6587",)),
        ('@" a.txt#x "', ("a.txt", "a.txt#x")),
        ("@a\0", ("a",)),
        ('@"x/at 9.41 AM.png"', ("x/at 9.41 AM.png", "x/at 9.41\u202fAM.png")),
        ('@"at\u202fPM.png"', ("at\u202fPM.png", "at PM.png")),
        ('@"x/ PM.png"', ("x/ PM.png",)),
    ],
)
def test_the_readings_hold_every_text_that_may_be_meant(
    prompt: str, readings: tuple[str, ...]
) -> None:
    [mention] = find_mentions(prompt)
    assert mention.readings == readings


def test_the_text_of_a_mention_stands_in_the_prompt() -> None:
    prompt = 'Look at @a.txt#L3), and @"my notes.md".'
    assert [mention.text for mention in find_mentions(prompt)] == ["@a.txt#L3", '@"my notes.md"']


ODD = st.text(alphabet=st.sampled_from('@"# \n\ta._-/\\~\0)L19\u3001\u3000\u00e9\U0001f600\ud800'))


@given(st.one_of(ODD, st.text()))
def test_no_text_upsets_the_finder(prompt: str) -> None:
    for mention in find_mentions(prompt):
        assert isinstance(mention, Mention)
        assert mention.text in prompt
        assert mention.path == mention.readings[0]
        assert all(reading and "\0" not in reading for reading in mention.readings)


SLOW = (
    "@",
    "@a",
    '@"',
    '@"a ',
    "@a#",
    "@a ",
    "\u3001@a",
    "\u3001@",
    '@"\u3001',
    "#L1",
    "@#L1-1",
    "@\u00e9",
    "a PM.png",
    '@"a PM.png"\n',
)


@pytest.mark.parametrize("piece", SLOW)
def test_the_time_is_linear_in_the_length_of_the_prompt(piece: str) -> None:
    def seconds(count: int) -> float:
        prompt = piece * count
        start = time.process_time()
        find_mentions(prompt)
        return time.process_time() - start

    small = max(min(seconds(400) for _ in range(5)), 0.0001)
    # A hundred times as long: about 100 where it is linear, 10,000 where it is quadratic.
    assert min(seconds(40_000) for _ in range(2)) < 1_000 * small
