"""Control files: they steer later sessions, so no tool writes them, wherever they lie."""

from __future__ import annotations

import os
import subprocess
from itertools import permutations
from pathlib import Path

import pytest

from agent_kit.scope import Code, FileScope, explain_file_scope
from agent_kit.testing import tree

WRITERS = {"Write": "file_path", "Edit": "file_path", "NotebookEdit": "notebook_path"}


def codes(root: Path, path: str, **fields: bool) -> set[Code]:
    """The codes of writing ``path`` with each tool, relative and absolute."""
    scope = FileScope(
        project_dir=root,
        writable_dirs=[".", "drafts"],
        searchable_dirs=["."],
        writable_control_files=fields.get("writable_control_files", False),
    )
    return {
        explain_file_scope(scope, tool, {field: text}).code
        for tool, field in WRITERS.items()
        for text in (path, f"{root}/{path}")
    }


CONTROL = [
    ".claude",
    ".claude/settings.json",
    ".claude/skills/x/SKILL.md",
    ".mcp.json",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    ".git",
    ".git/hooks/pre-commit",
    ".git/config",
    ".gitmodules",
    ".gitconfig",
    ".envrc",
    ".vscode/tasks.json",
    ".hg/hgrc",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".idea/workspace.xml",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".config/fish/config.fish",
    ".jj/repo/config.toml",
    "mise.toml",
    ".mise.toml",
    ".zed/tasks.json",
    ".devcontainer/devcontainer.json",
    ".roo/mcp.json",
    ".kiro/settings/mcp.json",
    ".windsurfrules",
    ".clinerules/x.md",
    ".aider.conf.yml",
    "opencode.json",
    ".agent-kit.pending",
    ".bash_completion",
    ".xprofile",
    ".xsessionrc",
]


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("folder", ["", "drafts/", "drafts/a/b/c/"])
def test_a_control_file_is_not_written_at_any_depth(tmp_path: Path, name: str, folder: str) -> None:
    assert codes(tmp_path, folder + name) == {Code.CONTROL_FILE}
    assert codes(tmp_path, folder + name.swapcase()) == {Code.CONTROL_FILE}
    assert codes(tmp_path, folder + name, writable_control_files=True) == {Code.OK}


@pytest.mark.parametrize(
    "name",
    [".cl\u200caude/x", "\ufeffCLAUDE.md", ".gi\u200ct/config", "AGENT\u017f.md", "CLAUDE.md/x", ".MCP.JSON",
     "claude.MD", "CLAUDE.md\t", ".git\u206a", "CLAUDE.md/."],
)  # fmt: skip
def test_a_disguised_control_file_is_one(tmp_path: Path, name: str) -> None:
    assert codes(tmp_path, f"drafts/{name}") == {Code.CONTROL_FILE}


@pytest.mark.parametrize(
    "name",
    ["claude.txt", "my-CLAUDE.md", ".claude-notes", "x.git", "git/hooks", ".gitignore", ".github/x",
     "config", "hooks/x", "HEAD", "refs/x", "objects/x", "commondir", ".bashrc.md", ".mcp.json5",
     ".github/instructions.md", "vimrc", "devcontainer.json", ".config/tools.json", "mise.md"],
)  # fmt: skip
def test_an_ordinary_name_is_none(tmp_path: Path, name: str) -> None:
    assert codes(tmp_path, f"drafts/{name}") == {Code.OK}


def test_control_files_are_read_like_any_other(tmp_path: Path) -> None:
    tree(tmp_path, ["CLAUDE.md=x", ".git/config=x"])
    scope = FileScope(project_dir=tmp_path, searchable_dirs=["."])
    for path in ("CLAUDE.md", ".git/config", ".claude/settings.json"):
        assert explain_file_scope(scope, "Read", {"file_path": path}).code is Code.OK
    assert explain_file_scope(scope, "Grep", {"pattern": "x", "path": ".git"}).code is Code.OK


def test_a_link_to_a_control_file_and_one_named_so_are_control_files(tmp_path: Path) -> None:
    tree(
        tmp_path, ["drafts/n => ../CLAUDE.md", "drafts/c => ../.claude", "drafts/CLAUDE.md => n.md"]
    )
    for path in ("drafts/n", "drafts/c/settings.json", "drafts/CLAUDE.md"):
        assert codes(tmp_path, path) == {Code.CONTROL_FILE}


# --- bare repositories ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["config", "hooks/post-receive", "hooks", "HEAD", "objects/ab/cd", "refs/heads/main", "commondir",
     "config.worktree", "CONFIG", "Hooks/x"],
)  # fmt: skip
def test_what_steers_a_bare_repository_is_not_written(tmp_path: Path, path: str) -> None:
    tree(tmp_path, ["drafts/r.git/HEAD=x", "drafts/r.git/objects/", "drafts/r.git/refs/"])
    assert codes(tmp_path, f"drafts/r.git/{path}") == {Code.CONTROL_FILE}
    assert codes(tmp_path, f"drafts/r.git/{path}", writable_control_files=True) == {Code.OK}
    assert codes(tmp_path, "drafts/r.git/notes.md") == {Code.OK}
    tree(tmp_path, ["linked => drafts/r.git"])
    assert codes(tmp_path, f"linked/{path}") == {Code.CONTROL_FILE}


def write_all(root: Path, files: dict[str, str]) -> set[str]:
    """Write what the scope lets be written, in this order; returns what was refused."""
    refused = set()
    for name, text in files.items():
        if Code.CONTROL_FILE in codes(root, name):
            refused.add(name)
            continue
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return refused


RUNS = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[alias]\n\tst = !echo RAN\n"


def git_says(folder: Path, home: Path) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "st"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return done.stdout


BARE = {
    "drafts/r/config": RUNS,
    "drafts/r/HEAD": "ref: refs/heads/x\n",
    "drafts/r/objects/x": "",
    "drafts/r/refs/x": "",
}
# A folder with these two is a repository whose settings lie elsewhere.
POINTED = {
    "drafts/common/config": RUNS,
    "drafts/common/objects/x": "",
    "drafts/common/refs/x": "",
    "drafts/r/HEAD": "ref: refs/heads/x\n",
    "drafts/r/commondir": "../common\n",
}


@pytest.mark.parametrize("files", [BARE, POINTED], ids=["bare", "pointed"])
def test_git_takes_such_a_folder_for_a_repository(tmp_path: Path, files: dict[str, str]) -> None:
    """The control of the next test: these files do run what they name."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert git_says(tmp_path / "drafts/r", tmp_path) == "RAN\n"


@pytest.mark.parametrize("order", list(permutations(BARE)))
def test_no_order_of_writes_completes_a_bare_repository(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    assert write_all(tmp_path, {name: BARE[name] for name in order})
    assert git_says(tmp_path / "drafts/r", tmp_path) == ""


@pytest.mark.parametrize("order", list(permutations(POINTED)), ids=lambda order: "")
def test_no_order_of_writes_points_a_folder_to_a_repository(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    refused = write_all(tmp_path, {name: POINTED[name] for name in order})
    assert refused & {"drafts/r/HEAD", "drafts/r/commondir"}
    assert len({"HEAD", "commondir"} & set(os.listdir(tmp_path / "drafts/r"))) == 1


def test_a_folder_that_can_not_be_listed_may_be_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("agent_kit.scope.control.os.listdir", refuse)
    assert codes(tmp_path, "drafts/config") == {Code.CONTROL_FILE}
    assert codes(tmp_path, "drafts/notes") == {Code.OK}


def test_a_file_where_the_folder_would_be_is_no_repository(tmp_path: Path) -> None:
    tree(tmp_path, ["drafts/f=x"])
    assert codes(tmp_path, "drafts/f/config") == {Code.OK}
    assert codes(tmp_path, "drafts/none/config") == {Code.OK}
