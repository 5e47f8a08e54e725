"""What counts as a change of the world."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.world import Kept, World, changes


def of(before: dict[str, object], after: dict[str, object]) -> list[str]:
    kept = [Kept("own/*", "new files"), Kept("open/*", "all", old=True)]
    return changes(before, after, [*kept, Kept("own/list/*", "names", copies=True)], {"canary(a)"})


def file(text: str) -> object:
    return ("0o100644", text.encode())


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({}, {"x": file("1")}, "new: x: 1"),
        ({"x": file("1")}, {"x": file("2")}, "changed: x: 2"),
        ({"x": file("1")}, {}, "gone: x: None"),
        ({"x": file("1")}, {"x": ("0o100755", b"1")}, "changed: x: 1"),
        ({"x": file("1")}, {"x": ("link", "y")}, "changed: x: ('link', 'y')"),
        ({"own/x": file("1")}, {"own/x": file("2")}, "changed: own/x: 2"),
        ({"own/x": file("1")}, {}, "gone: own/x: None"),
        ({}, {"own/x": file("a canary(a)")}, "copy of canary(a): own/x"),
        ({}, {"open/x": file("canary(a)")}, "copy of canary(a): open/x"),
    ],
)
def test_a_change_is_noticed(
    before: dict[str, object], after: dict[str, object], found: str
) -> None:
    assert of(before, after) == [found]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"x": file("1")}, {"x": file("1")}),
        ({}, {"own": ("0o40755", None), "own/x": file("1"), "own/list/x": file("canary(a)")}),
        ({"open/x": file("1")}, {"open/x": file("2")}),
    ],
)
def test_what_is_kept_is_no_change(before: dict[str, object], after: dict[str, object]) -> None:
    assert of(before, after) == []


def test_every_place_of_a_world_is_looked_at(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        before = world.snapshot()
        for place in (world.project, world.home, world.out, world.home / ".claude", tmp_path):
            (place / "made").write_text("x")
        (world.project / ".git" / "hooks" / "pre-commit").write_text("x")
        found = world.changes(before)
    assert [each.split(": ")[1] for each in found] == [
        "home/.claude/made",
        "home/made",
        "home/work/course/.git/hooks/pre-commit",
        "home/work/course/made",
        "made",
        "out/made",
    ]
