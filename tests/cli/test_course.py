"""The demo's project is what the demo says that it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_kit.cli._course import INJECTION, SUBMISSION, Course, build_course


def test_each_canary_is_in_the_file_that_it_is_listed_for_and_in_no_other(course: Course) -> None:
    files = [p for p in course.root.rglob("*") if p.is_file() and not p.is_symlink()]
    for canary in course.canaries:
        holders = {p for p in files if canary.text in p.read_text()}
        expected = {course.root / canary.file}
        if canary.file == "course/agent.config.json":
            expected.add(course.project / "sources" / "old-settings.json")  # its hard link
        assert holders == expected


def test_no_two_runs_have_a_canary_in_common(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    canaries = [c.text for name in ("one", "two") for c in build_course(tmp_path / name).canaries]
    assert len(set(canaries)) == len(canaries) == 18


def test_the_link_in_sources_points_out_of_the_project(course: Course) -> None:
    target = Path(os.path.realpath(course.project / "sources" / "answers.md"))
    assert target == course.root / "elsewhere" / "answers.md"
    assert not target.is_relative_to(course.project)


def test_the_hard_link_is_the_denied_file_itself(course: Course) -> None:
    assert os.path.samefile(
        course.project / "sources" / "old-settings.json", course.project / "agent.config.json"
    )


@pytest.mark.parametrize(
    "wanted", ["agent.config.json", ".env", "~/.ssh/id_ed25519", "memory/", "drafts/CLAUDE.md"]
)
def test_the_submission_asks_for_what_the_script_then_tries(course: Course, wanted: str) -> None:
    assert wanted in INJECTION
    assert INJECTION in (course.root / SUBMISSION).read_text()


def test_nothing_is_changed_at_first(course: Course) -> None:
    assert course.changed() == ()
    assert len(course.before) == 11
