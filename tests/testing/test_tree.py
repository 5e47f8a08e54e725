"""Folder trees in a few strings."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_kit.testing import tree


def test_each_form_makes_what_it_says(tmp_path: Path) -> None:
    tree(tmp_path, ["d/", "f", "g=a=b => c\n", "h => nowhere", "i == g"])
    assert (tmp_path / "d").is_dir()
    assert (tmp_path / "f").read_text() == ""
    assert (tmp_path / "h").readlink() == Path("nowhere")
    assert (tmp_path / "i").samefile(tmp_path / "g")


def test_everything_after_the_first_equals_sign_is_content(tmp_path: Path) -> None:
    tree(tmp_path, ["f=a=b\r\n", "k=d/"])
    assert (tmp_path / "f").read_bytes() == b"a=b\r\n"
    assert (tmp_path / "k").read_text() == "d/"


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    tree(tmp_path, ["a/b/c=x", "p/q => ../a/b/c", "r/s == a/b/c"])
    assert (tmp_path / "p/q").read_text() == "x"
    assert (tmp_path / "r/s").stat().st_nlink == 2


def test_a_tree_can_grow_and_returns_its_root(tmp_path: Path) -> None:
    assert tree(tree(tmp_path, ["a/"]), ["a/", "a/b=x"]) == tmp_path
    assert (tmp_path / "a/b").read_text() == "x"


@pytest.mark.parametrize(
    "entry",
    [
        "/abs=x",  # would leave the root
        "../up=x",
        "a/../../up=x",
        "..",
        "/",  # no name
        "=x",
        "",
        "../up => a",
        "../up == f",
        "a == ../f",
    ],
)
def test_a_name_that_is_not_below_the_root_is_refused(tmp_path: Path, entry: str) -> None:
    root = tree(tmp_path / "root", ["f=x"])
    with pytest.raises(ValueError, match="not a name below"):
        tree(root, [entry])
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


@pytest.mark.parametrize("entry", ["f", "f=y", "f => a", "f == g"])
def test_a_name_that_is_there_already_is_an_error(tmp_path: Path, entry: str) -> None:
    root = tree(tmp_path, ["f=x", "g"])
    with pytest.raises(FileExistsError):
        tree(root, [entry])
    assert (root / "f").read_text() == "x"
