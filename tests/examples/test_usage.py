"""The examples started with the wrong number of arguments."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Start = Callable[..., "subprocess.CompletedProcess[str]"]

USAGE = {
    "check_a_call": "[TOOL PATH]",
    "course_assistant": "COURSE QUESTION",
    "research_team": "FOLDER QUESTION [DSN]",
    "data_analyst": "FOLDER QUESTION",
    "guard_existing_options": "FOLDER QUESTION",
    "guarded_session": "FOLDER QUESTION",
    "my_extension": "COURSE QUESTION",
}


@pytest.mark.parametrize(("name", "said"), USAGE.items())
def test_an_example_with_a_wrong_number_of_arguments_says_how_it_is_started(
    name: str, said: str, by_hand: Start
) -> None:
    many = ("w", "x", "y", "z")
    wrong = (("x",), many) if said.startswith("[") else ((), many)
    for arguments in wrong:
        done = by_hand(name, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("usage: ")
        assert line.endswith(f"{name}.py {said}")
