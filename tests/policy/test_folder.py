"""Which calls mean something else in another folder."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit.policy.folder import needs_folder


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "make"}),
        ("Monitor", {"command": "make"}),
        ("PowerShell", {"command": "dir"}),
        ("SomeLaterTool", {}),
        ("Read", {"file_path": "a.md"}),
        ("Write", {"file_path": "./a.md"}),
        ("Grep", {"pattern": "x"}),
        ("Glob", {"pattern": "**", "path": None}),
        ("LS", {"path": "sub"}),
        ("mcp__own__save", {"target_file": "a.md"}),
        ("mcp__own__save", {"files": ["/w/a.md", "b.md"]}),
        ("SendUserFile", {"files": ["b.md"]}),
    ],
)
def test_a_command_a_relative_path_and_an_unknown_tool_need_their_folder(
    tool: str, given: Any
) -> None:
    assert needs_folder(tool, given)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/w/a.md"}),
        ("Read", {"file_path": "C:\\w\\a.md"}),
        ("Read", {"file_path": "~/a.md"}),
        ("Read", {"file_path": 5}),
        ("Grep", {"pattern": "x", "path": "/w"}),
        ("WebFetch", {"url": "https://a.example/"}),
        ("Agent", {"prompt": "x"}),
        ("mcp__mail__send", {"to": "x"}),
        ("mcp__own__save", {"files": ["/w/a.md", "/w/b.md"]}),
        ("SendUserFile", {"files": ["/w/b.md"]}),
    ],
)
def test_other_calls_are_the_same_in_every_folder(tool: str, given: Any) -> None:
    assert not needs_folder(tool, given)
