"""What a repository's configuration names is closed where it lies in a writable folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_kit.confine import git_config
from agent_kit.confine.control_links import decided_at, files_led_to, led_to
from agent_kit.confine.git_config import named_by_git
from agent_kit.confine.view import Sight
from agent_kit.testing import tree

# the configuration, what it names; "~" is the home folder, the rest is below the project
NAMED = (
    ("[include]\n\tpath = ../project.gitconfig\n", ["project.gitconfig"]),
    ("[include] path=../a\n[Include]\nPATH = ../b\n", ["a", "b"]),
    ('[includeIf "gitdir:~/x/"]\n\tpath = ../a b.cfg ; comment\n', ["a b.cfg"]),
    ('[includeIf "onbranch:a]b\\"c"]\n\tpath = "../a;b" # comment\n', ["a;b"]),
    ("[core]\n\thooksPath = .husky\n", [".husky"]),
    ("[core]\n\thookspath = .husky/_\n", [".husky"]),
    ("[CORE]\n\tattributesFile = ./attributes\n", ["attributes"]),
    ("[core]\n\tattributesFile = ~/attributes\n", ["~/attributes"]),
    ("[core]\n\thooksPath = /else/where/\n", ["/else/where"]),
    ("[core]\n\thooksPath = a\\\nb\n", ["ab"]),
    ('[core]\r\n\thooksPath = "a\\\\b\\"c"\r\n', ['a\\b"c']),
    ("\ufeff[core]\nhooksPath=a\nhooksPath=b\n", ["a", "b"]),
    ("# [core]\n; \\\n[core]\n# hooksPath = no\nhooksPath = yes\n", ["yes"]),
    ("[core]\n\teditor = vim\n\thooksPath\n\thooksPath =\n[core.x]\n\tpath = a\n", []),
    ('[remote "core"]\n\tpath = a\n[other]\n\thooksPath = b\n', []),
    ("[core\nhooksPath = a\n", []),
    ("[include]\n\tpath = ../folder\n", []),
    ("\0\xff[[[", []),
    ("", []),
)


def repository(root: Path, config: str, *entries: str) -> Path:
    tree(root, [".git/", "folder/x=x", *entries])
    (root / ".git" / "config").write_bytes(config.encode())
    return root


@pytest.mark.parametrize(("config", "names"), NAMED)
def test_what_it_names_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, names: list[str]
) -> None:
    monkeypatch.setenv("HOME", "/ho/me")
    root = repository(tmp_path.resolve() / "w", config)
    found = [os.path.normpath(each) for each in named_by_git(str(root))]
    assert found == [os.path.join(root, name.replace("~", "/ho/me")) for name in names]


@pytest.mark.parametrize(("config", "names"), [row for row in NAMED if row[1]])
def test_git_reads_it_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, names: list[str]
) -> None:
    monkeypatch.setenv("HOME", "/ho/me")
    (tmp_path / "config").write_bytes(config.encode())
    listed = ["git", "config", "--file", "config", "--no-includes", "--null", "--list"]
    told = subprocess.run(listed, cwd=tmp_path, capture_output=True, check=True).stdout.decode()
    values = [entry.partition("\n")[2] for entry in told.split("\0") if entry]
    bases = [value.removeprefix("../").removeprefix("./").rstrip("/") for value in values]
    assert [base.removesuffix("/_") for base in bases] == names


def test_an_included_file_is_read_too_and_is_relative_to_itself(tmp_path: Path) -> None:
    root = repository(
        tmp_path.resolve() / "w",
        "[include]\npath=../sub/a.cfg\n",
        "sub/a.cfg=[include]\npath = b.cfg\npath = a.cfg\n[core]\nhooksPath = hooks\n",
    )
    found = [os.path.relpath(os.path.normpath(each), root) for each in named_by_git(str(root))]
    assert {*found} == {"sub/a.cfg", "sub/b.cfg", "hooks"}


def test_no_more_files_are_read_than_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_config, "_FILES", 2)
    chain = [f"{at}.cfg=[include]\npath = {at + 1}.cfg\n" for at in range(9)]
    root = repository(tmp_path.resolve() / "w", "[include]\npath=../0.cfg\n", *chain)
    assert len(named_by_git(str(root))) < 3


def test_a_configuration_that_is_no_file_names_nothing(tmp_path: Path) -> None:
    root = tmp_path / "w"
    tree(root, [".git/"])
    os.mkfifo(root / ".git" / "config")
    assert named_by_git(str(root)) == ()
    assert named_by_git(str(tmp_path / "none")) == ()


def test_a_work_tree_is_led_to_its_repository(tmp_path: Path) -> None:
    main, work = tmp_path.resolve() / "main", tmp_path.resolve() / "work"
    repository(main, "[core]\nhooksPath = .husky\n", ".git/worktrees/work/commondir=../..\n")
    (main / ".git/worktrees/work/config.worktree").write_text("[core]\nattributesFile = a\n")
    tree(work, [f".git=gitdir: {main}/.git/worktrees/work\n"])
    assert set(named_by_git(str(work))) == {str(work / ".husky"), str(work / "a")}


def test_a_repository_above_the_project_counts(tmp_path: Path) -> None:
    root = repository(tmp_path.resolve() / "w", "[core]\nhooksPath = folder/hooks\n")
    assert named_by_git(str(root / "folder")) == (str(root / "folder/hooks"),)


def test_it_is_closed_where_it_can_be_written_there_or_not(tmp_path: Path) -> None:
    config = (
        "[include]\npath=../p.cfg\npath=../none.cfg\npath=../../out.cfg\n[core]\nhooksPath=.husky\n"
    )
    root = repository(tmp_path.resolve() / "w", config, ".husky/pre-commit=x", "p.cfg=[a]\n")
    (root.parent / "out.cfg").touch()
    names = {str(root / name) for name in ("p.cfg", "none.cfg", ".husky")}
    assert set(files_led_to(str(root), [str(root)])) == names
    assert files_led_to(str(root), [str(root / "folder")]) == ()
    assert led_to([], str(root), {str(root): Sight.WRITE}) == dict.fromkeys(
        (str(root / name) for name in ("p.cfg", ".husky")), Sight.READ
    )
    assert decided_at(str(root), [str(root)]) == (str(root / "none.cfg"),)
    (root / ".git" / "config").write_text("[core]\n")
    assert files_led_to(str(root), [str(root)]) == ()
