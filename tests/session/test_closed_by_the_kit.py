"""What a session closes and opens by itself: account files, repositories, the project's ``.claude``."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit import ToolOnlyDir, check_file_scope


def reads(plan: Any, path: object) -> bool:
    return check_file_scope(plan.scope, "Read", {"file_path": str(path)}) is None


# --- account files ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".credentials.json", ".claude.json"])
@pytest.mark.parametrize("kind", ["default", "config_dir", "env"])
def test_the_files_of_the_account_are_closed_wherever_a_cli_may_keep_them(
    world, name: str, kind: str, monkeypatch
) -> None:
    fields: dict[str, Any] = {}
    folders = [world.home / ".claude", world.home]
    if kind == "config_dir":
        fields = {"config_dir": str(world.root / "cfg")}
        folders.append(world.root / "cfg")
    elif kind == "env":
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(world.root / "cfg"))
        folders.append(world.root / "cfg")
    plan = world.plan(
        extra_readable_dirs=[str(world.root)], run_dir=str(world.root / "run"), **fields
    )
    for folder in folders:
        assert not reads(plan, folder / name)
        assert f"Read(/{folder}/{name})" in plan.settings["permissions"]["deny"]
        assert reads(plan, folder / "other.json")


def test_an_odd_home_does_not_open_the_account_files(world) -> None:
    home = world.root / "ho[m]e*?"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / ".credentials.json").write_text("x")
    plan = world.plan(env={"HOME": str(home)}, extra_readable_dirs=[str(world.root)])
    for name in (
        ".credentials.json",
        ".claude/.credentials.json",
        ".claude.json",
        ".claude/.claude.json",
    ):
        assert not reads(plan, home / name), name
    assert reads(plan, home / "other")
    assert reads(plan, world.root / "home" / ".claude.json")  # which the pattern would match


# --- repositories -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "denied",
    [
        "secret.txt",
        "deep/er/secret.txt",
        "deep",
        "not/there/yet",
        "deep/*.key",
        "se[c]ret",
        "~/../project/secret.txt",
    ],
)
def test_the_repository_of_a_denied_path_is_closed_too(world, denied: str) -> None:
    world.has("project/.git/objects/pack/x=x", "project/deep/er/")
    plan = world.plan(extra_readable_dirs=["."], denied_paths=[denied])
    assert not reads(plan, ".git/objects/pack/x")
    assert reads(plan, "README.md")


def test_the_repository_of_a_tools_only_folder_is_closed_too(world, part) -> None:
    world.has("project/.git/objects/x=x", "project/knowledge/", "project/drafts/.git/x=x")
    extension = part(tool_only_dirs=(ToolOnlyDir(dir="knowledge", instead="its tools"),))
    plan = world.plan(spec={"extensions": [extension]}, extra_readable_dirs=["."])
    assert not reads(plan, ".git/objects/x")
    assert reads(plan, "drafts/.git/x")  # another repository


def test_every_repository_on_the_way_up_counts_also_one_that_is_a_file_or_a_link(world) -> None:
    world.has(
        "project/.git => ../store",
        "store/x=x",
        "project/sub/.git=gitdir: ../.git/modules/sub",
        "project/sub/secret=x",
    )
    plan = world.plan(
        extra_readable_dirs=[".", str(world.root / "store")], denied_paths=["sub/secret"]
    )
    for closed in (".git/x", "sub/.git", str(world.root / "store" / "x")):
        assert not reads(plan, closed), closed
    assert reads(plan, "sub/other")


def test_an_escaped_name_is_that_file_and_its_repository_is_closed(world) -> None:
    world.has("project/a[1]/.git/x=x", "project/a[1]/secret=x")
    plan = world.plan(extra_readable_dirs=["."], denied_paths=["a\\[1\\]/secret"])
    assert not reads(plan, "a[1]/secret")
    assert not reads(plan, "a[1]/.git/x")


def test_without_anything_closed_a_repository_may_be_read(world) -> None:
    world.has("project/.git/x=x")
    plan = world.plan(extra_readable_dirs=["."])
    assert reads(plan, ".git/x")
    assert check_file_scope(plan.scope, "Write", {"file_path": ".git/x"}) is not None


# --- the project's .claude --------------------------------------------------------------------

PARTS = ("skills", "commands", "agents", "rules", "output-styles")
OTHERS = (
    "settings.json",
    "settings.local.json",
    "worktrees/x",
    "agent-memory/x",
    "projects/x",
    "x",
)


@pytest.mark.parametrize("sources", [[], ["project"], ["local"], ["user", "project"]], ids=repr)
def test_parts_of_the_projects_claude_folder_are_readable_with_the_project_source(
    world, sources: list[str]
) -> None:
    world.has(*(f"project/.claude/{part}/x=x" for part in PARTS))
    plan = world.plan(setting_sources=sources)
    for part in PARTS:
        assert reads(plan, f".claude/{part}/x") is ("project" in sources)
        assert check_file_scope(plan.scope, "Write", {"file_path": f".claude/{part}/x"}) is not None
    for other in OTHERS:
        assert not reads(plan, f".claude/{other}")


@pytest.mark.parametrize("kind", ["home", "config_dir", "link"])
def test_the_runners_own_config_folder_is_not_the_projects(world, kind: str) -> None:
    world.has("home/.claude/skills/x=x", "project/.claude/skills/x=x")
    if kind == "home":
        plan = world.plan(project_dir=world.home)
        asked = world.home / ".claude/skills/x"
    elif kind == "config_dir":
        plan = world.plan(config_dir=".claude")
        asked = world.project / ".claude/skills/x"
    else:
        world.has("other/.claude => ../home/.claude")
        plan = world.plan(project_dir=world.root / "other")
        asked = world.root / "other/.claude/skills/x"
    assert not reads(plan, asked)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", ["part", "whole"])
def test_a_project_can_not_open_a_folder_with_a_link_of_such_a_name(
    world, part: str, kind: str
) -> None:
    world.has("home/.ssh/id_ed25519=x", f"home/{part}/x=x")
    if kind == "part":
        world.has("project/.claude/", f"project/.claude/{part} => {world.home}/.ssh")
        asked = ["../home/.ssh/id_ed25519", f".claude/{part}/id_ed25519"]
    else:
        world.has(f"project/.claude => {world.home}")
        asked = [f"../home/{part}/x", f".claude/{part}/x"]
    plan = world.plan()
    for path in asked:
        assert not reads(plan, path)
    assert any(f"{world.project}/.claude/{part} is a link" in note for note in plan.notes)


def test_links_inside_a_part_lead_nowhere_either(world) -> None:
    world.has(
        "home/.ssh/id=x",
        f"project/.claude/skills/s => {world.home}/.ssh",
        "project/.claude/skills/t/SKILL.md=x",
    )
    plan = world.plan()
    assert reads(plan, ".claude/skills/t/SKILL.md")
    assert not reads(plan, ".claude/skills/s/id")


@pytest.mark.parametrize("run_dir", [None, "../run"])
def test_nothing_that_the_kit_closes_stops_a_search_of_the_whole_project(
    world, run_dir: str | None
) -> None:
    world.has("project/.git/x=x", "project/.claude/worktrees/x/a=x")
    plan = world.plan(extra_writable_dirs=["."], denied_paths=["**/.env"], run_dir=run_dir)
    for fields in ({"path": "."}, {}, {"path": "drafts"}):
        assert check_file_scope(plan.scope, "Grep", {"pattern": "x", **fields}) is None
    for closed in (".git/x", ".claude/worktrees/x/a"):
        assert not reads(plan, closed)


def test_the_indexes_of_page_stores_are_closed_wherever_an_open_folder_holds_the_cache(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = "cache/agent-kit/pages.index/0f/pages.sqlite"
    world.has(f"project/{index}=x", "project/cache/other=x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(world.project / "cache"))
    plan = world.plan(extra_writable_dirs=["."])
    assert not reads(plan, index)
    assert reads(plan, "cache/other")
    assert check_file_scope(plan.scope, "Grep", {"pattern": "x", "path": "."}) is None
    elsewhere = world.plan(extra_writable_dirs=["drafts"])
    assert elsewhere.scope.denied_paths == tuple(
        path for path in plan.scope.denied_paths if "pages.index" not in path
    )


# --- what the plan tells an operator ----------------------------------------------------------


def test_the_plan_lists_what_the_project_source_loads(world) -> None:
    world.has(
        "CLAUDE.md=x", "project/CLAUDE.md=x", "project/.claude/CLAUDE.md=x", "project/.mcp.json={}"
    )
    notes = world.plan().notes
    for file in ("CLAUDE.md", "project/CLAUDE.md", "project/.claude/CLAUDE.md"):
        assert f"{world.root / file} is loaded: 'project' is a setting source" in notes
    servers = (
        f"the servers of {world.project / '.mcp.json'} are started: 'project' is a setting source"
    )
    assert servers in notes
    assert servers not in world.plan(strict_mcp_config=True).notes
    for sources in ([], ["local"]):
        assert not [
            note for note in world.plan(setting_sources=sources).notes if "setting source" in note
        ]


def test_the_prompt_names_the_folders_as_the_refusals_do(world) -> None:
    plan = world.plan(
        extra_writable_dirs=["drafts"],
        extra_readable_dirs=["sources", str(world.home)],
        spec={"system_prompt": "  You help.\n"},
    )
    assert plan.system_prompt.startswith("You help.\n\n# Folders\n")
    assert "only inside `drafts/`." in plan.system_prompt
    assert f"only inside `drafts/`, `sources/`, `{world.home}/`." in plan.system_prompt
    assert world.plan(spec={"system_prompt": ""}).system_prompt == ""
