"""What a resumed session would run before any lock is asked: seen in its transcript."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_kit.session.resumed import resume_faults

ID = "7d4d5e1c-0000-4000-8000-000000000001"


def deferred(use_id: str, tool: str = "Bash") -> dict[str, Any]:
    found = {"type": "hook_deferred_tool", "toolUseID": use_id, "toolName": tool}
    return {"type": "attachment", "attachment": found}


def result(*use_ids: str) -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": use_id, "content": "x"} for use_id in use_ids]
    return {"type": "user", "message": {"role": "user", "content": blocks}}


def transcript(root: Path, *lines: Any, session: str = ID, project: str = "-w") -> Path:
    path = root / "projects" / project / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def tools(root: Path, session: str | None = ID) -> list[str]:
    """The tools that are named in faults of a resume."""
    faults = resume_faults(session, root)
    assert all((fault.field, fault.value) == ("resume", session) for fault in faults)
    return [fault.remedy.split(" a call of ")[1].split(" ")[0] for fault in faults]


def test_a_deferred_call_without_a_result_is_a_fault(tmp_path: Path) -> None:
    transcript(tmp_path, deferred("t1"), deferred("t2", "Read"))
    assert tools(tmp_path) == ["Bash", "Read"]


def test_one_that_has_a_result_is_none(tmp_path: Path) -> None:
    transcript(tmp_path, deferred("t1"), deferred("t2", "Read"), result("t1"))
    assert tools(tmp_path) == ["Read"]
    transcript(tmp_path, deferred("t1"), result("other", "t1"))
    assert tools(tmp_path) == []


def test_one_that_is_deferred_again_after_its_result_waits_again(tmp_path: Path) -> None:
    transcript(tmp_path, deferred("t1"), result("t1"), deferred("t1"))
    assert tools(tmp_path) == ["Bash"]


def test_a_line_that_is_nested_too_deeply_is_no_other_fault(tmp_path: Path) -> None:
    deep = "[" * 200_000 + "]" * 200_000
    transcript(tmp_path, f'{{"tool_result": {deep}}}', deferred("t1"))
    assert tools(tmp_path) == ["Bash"]
    transcript(tmp_path, f'{{"type": "hook_deferred_tool", "x": {deep}}}')
    assert tools(tmp_path) == ["some"]  # it may be one: nobody can tell


def test_a_new_session_resumes_nothing(tmp_path: Path) -> None:
    transcript(tmp_path, deferred("t1"))
    assert tools(tmp_path, None) == []


def test_only_the_transcripts_of_the_session_count_in_whichever_project(tmp_path: Path) -> None:
    transcript(tmp_path, deferred("t1"), session=ID.replace("1c", "1d"))
    assert tools(tmp_path) == []
    transcript(tmp_path, deferred("t1", "One"), project="-one")
    transcript(tmp_path, deferred("t1", "Two"), project="-two")
    assert tools(tmp_path) == ["One", "Two"]
    assert tools(tmp_path / "elsewhere") == []


@pytest.mark.parametrize(
    "line",
    [
        '{"attachment": {"type": "hook_deferred_tool"',
        "[]",
        '"hook_deferred_tool"',
        '["tool_result"]',
        '{"attachment": "hook_deferred_tool"}',
        '{"attachment": {"type": "another", "hook_deferred_tool": 1}}',
        '{"message": "tool_result"}',
        '{"message": {"content": "tool_result"}}',
        '{"message": {"content": ["tool_result", 5, {"type": "tool_result"}]}}',
        "",
        "\udcff hook_deferred_tool",
    ],
)
def test_a_line_that_is_something_else_hides_nothing(tmp_path: Path, line: str) -> None:
    path = transcript(tmp_path, deferred("t1"))
    with path.open("ab") as file:
        file.write(line.encode(errors="surrogateescape") + b"\n")
    with path.open("a") as file:
        file.write(json.dumps(deferred("t2", "Read")) + "\n")
    assert tools(tmp_path) == ["Bash", "Read"]


def test_a_call_that_names_no_tool_is_told_all_the_same(tmp_path: Path) -> None:
    transcript(tmp_path, {"attachment": {"type": "hook_deferred_tool"}})
    assert tools(tmp_path) == ["None"]


def test_a_transcript_that_cant_be_read_is_left_to_the_cli(tmp_path: Path) -> None:
    (tmp_path / "projects/-w" / f"{ID}.jsonl").mkdir(parents=True)
    assert tools(tmp_path) == []
    os.rmdir(tmp_path / "projects/-w" / f"{ID}.jsonl")
    (tmp_path / "projects/-w" / f"{ID}.jsonl").symlink_to("nothing")
    assert tools(tmp_path) == []
