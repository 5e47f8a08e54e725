"""What a person was shown of files, and whether they are still the same ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import seen as module
from agent_kit.policy.seen import Seen, is_changed, seen_of
from agent_kit.policy.target import targets_of
from agent_kit.scope import FileScope


def look(root: Path, name: str) -> Seen | None:
    scope = FileScope(project_dir=str(root), searchable_dirs=["."])
    return seen_of(targets_of(scope, "Read", {"file_path": name}, cwd=str(root)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "b.md").write_text("b")
    (tmp_path / "link.md").symlink_to("a.md")
    return tmp_path


def test_a_file_is_known_by_every_name_that_it_was_seen_by(root: Path) -> None:
    before = look(root, "link.md")
    assert set(before or ()) == {str(root / "link.md"), str(root / "a.md")}
    assert json.loads(json.dumps(before)) == before
    assert not is_changed(before, look(root, "a.md"))
    (root / "a.md").write_text("another")
    assert is_changed(before, look(root, "a.md"))
    assert is_changed(before, look(root, "link.md"))


def test_a_link_that_leads_elsewhere_is_changed_and_another_file_is_not(root: Path) -> None:
    before = look(root, "link.md")
    (root / "link.md").unlink()
    (root / "link.md").symlink_to("b.md")
    assert is_changed(before, look(root, "link.md"))
    assert not is_changed(before, look(root, "b.md"))


def test_a_file_that_is_made_meanwhile_is_changed(root: Path) -> None:
    before = look(root, "new.md")
    assert not is_changed(before, look(root, "new.md"))
    (root / "new.md").write_text("")
    assert is_changed(before, look(root, "new.md"))


@pytest.mark.parametrize("before", [None, [["/w/a.md", [1]]], "x"], ids=str)
def test_what_cant_be_told_counts_as_changed(root: Path, before: Any) -> None:
    assert is_changed(before, look(root, "a.md"))
    assert is_changed({}, None)


def test_a_file_that_cant_be_told_makes_the_whole_untold(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen_of(None) == seen_of(()) == {}
    monkeypatch.setattr(module, "print_of", lambda _target: None)
    assert look(root, "a.md") is None
