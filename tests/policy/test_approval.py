"""What a person may answer: made by three functions, which take nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit.policy.approval import Approved, Edited, Rejected, approve, edit, reject


def test_the_three_answers_hold_what_was_given() -> None:
    assert approve() == Approved(remember=False)
    assert approve(remember=True) == Approved(remember=True)
    assert edit({"file_path": "a"}) == Edited(tool_input={"file_path": "a"})
    assert reject() == Rejected(message="")
    assert reject("not now") == Rejected(message="not now")


@pytest.mark.parametrize("said", [1, 0, "yes", None])
def test_remember_is_true_or_false(said: Any) -> None:
    with pytest.raises(TypeError, match="True or False"):
        approve(remember=said)


@pytest.mark.parametrize("new", [None, "a", ["a"], 3])
def test_an_edited_input_is_a_mapping(new: Any) -> None:
    with pytest.raises(TypeError, match="is a dict"):
        edit(new)


@pytest.mark.parametrize("message", [None, 3, b"no"])
def test_a_message_is_text(message: Any) -> None:
    with pytest.raises(TypeError, match="a message is text"):
        reject(message)


def test_an_edited_input_is_a_copy() -> None:
    given = {"file_path": "a"}
    said = edit(given)
    given["file_path"] = "b"
    assert said.tool_input == {"file_path": "a"}
