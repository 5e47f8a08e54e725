"""The short way to an answer: which calls take it. That it agrees is a law of ``test_laws_on_disk``."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.judge import is_plainly_allowed, judge_and_name, name_plainly
from agent_kit.testing import tree

TREE = [
    "in/f=x",
    "in/.hidden=x",
    "in/a..b=x",
    "in/sub/g=x",
    "in/one=x",
    "in/twin == in/one",
    "in/link => sub/g",
    "in/dir => sub",
    "in/shut/f=x",
    "in/é=x",
    "out/f=x",
]


def plain(root: Path, tool: Any, tool_input: Any, cwd: Any = None) -> bool:
    scope = FileScope(
        project_dir=str(root),
        searchable_dirs=["in"],
        writable_dirs=["in"],
        read_only_dirs=["in/sub"],
        denied_paths=["in/shut", "*.pem"],
    )
    found = is_plainly_allowed(scope, tool, tool_input, cwd)
    named = name_plainly(scope, tool, tool_input, cwd)
    assert named == (judge_and_name(scope, tool, tool_input, cwd)[1] if found else None)
    assert not found or check_file_scope(scope, tool, tool_input, cwd=cwd) is None
    return found


@pytest.mark.parametrize("name", ["f", ".hidden", "a..b", "new", "new/x/y", "..new", "a b", "a\\b"])
@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ("Read", "file_path"),
        ("Write", "file_path"),
        ("Edit", "file_path"),
        ("MultiEdit", "file_path"),
        ("NotebookEdit", "notebook_path"),
        ("NotebookRead", "notebook_path"),
    ],
)
def test_the_usual_call_takes_it(tmp_path: Path, tool: str, field: str, name: str) -> None:
    tree(tmp_path, TREE)
    call = {field: f"{tmp_path}/in/{name}", "content": "x"}
    assert plain(tmp_path, tool, call)
    assert plain(tmp_path, tool, call, "/anywhere")
    assert not plain(tmp_path, tool, call, "/é")
    assert not plain(tmp_path, tool, call, 7)


@pytest.mark.parametrize(
    "path",
    [
        "in/link",  # a link
        "in/dir/g",
        "in/dir/new",
        "in/twin",  # a second name
        "in/f/.",
        "in/./f",
        "in//f",
        "in/../in/f",
        "in/..",
        "in/f/",
        "in/f ",
        "in/f\x1c",
        "in/é",
        "in/sub",  # a folder
        "in/shut/f",
        "in/a.pem",
        "in/f\0",
        "in/x AM.png",
        "in/" + "x" * 256,
        "out/f",
        "new",
        "/proc/self/environ",
        "/dev/null",
    ],
)
def test_anything_else_is_judged_in_full(tmp_path: Path, path: str) -> None:
    tree(tmp_path, TREE)
    assert not plain(tmp_path, "Read", {"file_path": os.path.join(f"{tmp_path}/", path)})


def test_a_fifo_and_a_loop_are_judged_in_full(tmp_path: Path) -> None:
    tree(tmp_path, [*TREE, "in/loop => loop"])
    os.mkfifo(tmp_path / "in" / "fifo")
    for name in ("loop", "loop/x", "fifo"):
        assert not plain(tmp_path, "Read", {"file_path": f"{tmp_path}/in/{name}"})


def test_what_is_read_only_or_a_control_file_is_read_that_way_and_not_written(
    tmp_path: Path,
) -> None:
    tree(tmp_path, TREE)
    for name in ("sub/g", "sub/new", "CLAUDE.md", ".git/config"):
        call = {"file_path": f"{tmp_path}/in/{name}"}
        assert plain(tmp_path, "Read", call) is not name.startswith("sub")
        assert not plain(tmp_path, "Write", call)
    lifted = FileScope(project_dir=str(tmp_path), writable_dirs=["in"], writable_control_files=True)
    for name, expected in (("CLAUDE.md", True), ("f", True), ("twin", False)):
        call = {"file_path": f"{tmp_path}/in/{name}"}
        assert is_plainly_allowed(lifted, "Edit", call, None) is expected
        assert not is_plainly_allowed(lifted, "Read", call, None)


def test_where_everything_is_open_what_is_closed_is_not(tmp_path: Path) -> None:
    scope = FileScope(
        project_dir=str(tmp_path),
        searchable_dirs=["/"],
        writable_dirs=["/"],
        denied_paths=["/no such file"],
    )
    for path, expected in {
        "/no such file": False,
        "//no such file": False,
        "/no other file": True,
        "/proc/self/environ": False,
        "/proc/no such file": False,
        "/PROC/no such file": False,
        "/sys/no such file": False,
        "/dev/no such file": False,
        "/dev": False,
        "/": False,
    }.items():
        for tool in ("Read", "Write"):
            assert is_plainly_allowed(scope, tool, {"file_path": path}, None) is expected, path


class Text(str):
    __slots__ = ()


def test_only_plain_values_take_it(tmp_path: Path) -> None:
    tree(tmp_path, TREE)
    path = f"{tmp_path}/in/f"
    assert plain(tmp_path, "Read", {"file_path": path})
    for tool, call in (
        ("Read", {"file_path": Text(path)}),
        ("Read", MappingProxyType({"file_path": path})),
        ("Read", {"file_path": [path]}),
        ("Read", {"file_path": path, "path": path}),
        ("Read", {"path": path}),
        ("Read", {"file_path": ""}),
        ("Read", {}),
        ("Read", None),
        (Text("Read"), {"file_path": path}),
        (None, {"file_path": path}),
        ("Grep", {"path": path}),
        ("Glob", {"path": path}),
        ("LS", {"path": path}),
        ("Bash", {"file_path": path}),
        ("Later", {"file_path": path}),
        ("mcp__fs__read", {"file_path": path}),
    ):
        assert not plain(tmp_path, tool, call)
