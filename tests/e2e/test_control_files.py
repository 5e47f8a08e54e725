"""No tool writes what steers a later session: seen in the sessions that come after.

One session tries every tool, name, spelling and depth, in a project that is writable as a whole.
Then others run in the same project: with the same configuration, with the most open one, and
without the kit. The control is the same with ``writable_control_files``: what was planted is told to
the model and run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.store.names import is_control_name
from agent_kit.store.page import version_of
from agent_kit.testing import AnsweredBy, CallRecord, Say, SessionRun, ToolCall, run_session, tree
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import sources

pytestmark = pytest.mark.e2e

RUN = "touch <root>/ran"
HOOKS = {
    event: [{"hooks": [{"type": "command", "command": RUN}]}]
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop")
}
FRONT = "---\nname: planted\ndescription: canary(planted)\n---\ncanary(planted)"
# What is planted, below a folder, and what it holds.
PLANTED = {
    "CLAUDE.md": "canary(planted)",
    "CLAUDE.local.md": "canary(planted)",
    "AGENTS.md": "canary(planted)",
    ".claude/CLAUDE.md": "canary(planted)",
    ".claude/settings.json": json.dumps({"hooks": HOOKS, "env": {"HTTPS_PROXY": ""}}),
    ".claude/settings.local.json": json.dumps({"hooks": HOOKS}),
    ".claude/rules/planted.md": "canary(planted)",
    ".claude/agents/planted.md": FRONT,
    ".claude/skills/planted/SKILL.md": FRONT,
    ".claude/commands/planted.md": FRONT,
    ".mcp.json": json.dumps({"mcpServers": {"p": {"command": "sh", "args": ["-c", RUN]}}}),
    ".git/config": f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {RUN}\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/objects/x": "x",
    ".git/refs/x": "x",
    ".gitmodules": "x",
    ".envrc": RUN,
    ".vscode/tasks.json": "{}",
    ".bashrc": RUN,
    ".profile": RUN,
}
DEPTHS = ("", "drafts/", "drafts/a/b/c/")


def plain(path: str) -> str:
    return path


# Other spellings of a path whose last folder or file is a control name.
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": plain,
    "in capitals": str.upper,
    "other case": str.swapcase,
    "by way of ..": lambda path: f"sub/../{path}",
    "with ./": lambda path: f"./{path.replace('/', '/./')}",
    "two slashes": lambda path: path.replace("/", "//"),
    "space at the end": lambda path: f"{path} ",
    "no-break space at the end": lambda path: f"{path}\u00a0",
    "a character that is ignored": lambda path: path.replace("a", "a\u200c", 1),
    "a mark that is ignored": lambda path: f"{path}\ufeff",
    "long s": lambda path: path.replace("s", "\u017f", 1).replace("S", "\u017f", 1),
    "absolute": lambda path: f"<root>/course/{path}",
    "through a linked folder": lambda path: f"drafts/linked/{path}",
}
LINKS = (
    "course/drafts/linked => ..",
    "course/drafts/plain.md => ../CLAUDE.md",
    "course/drafts/dotted => ../.claude",
)
BY_LINK = {"drafts/plain.md": "canary(planted)", "drafts/dotted/settings.json": PLANTED[".claude/settings.json"]}  # fmt: skip

WORLD = (
    "home/",
    "out/",
    "course/drafts/a.md=an open draft",
    "course/drafts/a/b/c/a.md=a deep draft",
    "course/sub/",
    "course/sources/original.md=an original",
    "course/knowledge/concept/CLAUDE.md=old",
    "course/memory/",
)
NOTEBOOK = '{"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": null, "source": ["old"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'  # fmt: skip


def file_calls(root: Path) -> Iterator[ToolCall]:
    """Every path with every tool that writes files."""
    text = str(root)
    for depth in DEPTHS:
        for path, content in PLANTED.items():
            for spelling in SPELLINGS.values():
                name = spelling(depth + path).replace("<root>", text)
                yield write(name, content.replace("<root>", text))
            name = f"{depth}{path}"
            yield ToolCall("Edit", {"file_path": name, "old_string": "", "new_string": content})
    for path, content in BY_LINK.items():
        yield write(path, content.replace("<root>", text))
        yield ToolCall("Edit", {"file_path": path, "old_string": "", "new_string": content})
    notebook = {"notebook_path": "drafts/.claude/x.ipynb", "cell_id": "a", "new_source": "new"}
    yield ToolCall("NotebookEdit", notebook)


def write(path: str, content: str) -> ToolCall:
    return ToolCall("Write", {"file_path": path, "content": content})


PAGE = {"title": "CLAUDE", "body": "canary(planted)"}


def extension_calls() -> Iterator[ToolCall]:
    """What the extensions' tools could be made to write."""
    for name in ("CLAUDE", "claude.md", "CLAUDE.md.md", "AGENTS", "CLAUDE.local", "CLAUDE\ufe0f"):
        for page in ({**PAGE, "type": "concept", "slug": name}, {**PAGE, "type": name}):
            yield ToolCall("mcp__knowledge__knowledge_create", {"pages": [page]})
    for name in (".claude", ".git", "..", ".claude/rules", "../drafts", "config.fish"):
        page = {**PAGE, "type": name, "slug": "settings"}
        yield ToolCall("mcp__knowledge__knowledge_create", {"pages": [page]})
    disguised = (
        "claude.MD",
        "CLAUDE.md\ufe0f",
        "AGENT\u017f.md",
        "week1/CLAUDE.md",
        "../CLAUDE.md",
    )
    for path in (*PLANTED, *disguised):
        yield ToolCall("mcp__sources__save_to_sources", {"file": "drafts/a.md", "name": path})
    edit = {
        "id": "concept/CLAUDE",
        "version": version_of(b"old"),
        "old_text": "old",
        "new_text": "canary(planted)",
    }
    yield ToolCall("mcp__knowledge__knowledge_edit", edit)
    for note in ("CLAUDE", "AGENTS", ".claude", "claude.local"):
        yield ToolCall("mcp__memory__remember", {"note": note, "quote": "Go"})


# Names that mean nothing to a later session, so that a tool may write them.
HARMLESS = {"claude-note", "agents-note", "claude-local", "claude-page"}


def spec(**more: Any) -> AgentSpec:
    own = [sources(), knowledge(), memory(dir="memory")]
    return AgentSpec(name="writer", extensions=own, **more)


def config(root: Path, **more: Any) -> SessionConfig:
    fields: dict[str, Any] = {
        "extra_writable_dirs": ["."],
        "setting_sources": ["project", "local"],
        **more,
    }
    home = {"HOME": str(root / "home")}
    places: dict[str, Any] = {"project_dir": root / "course", "run_dir": root / "run"}
    return SessionConfig(env=home, **places, **{"confinement": "off", **fields})


def bare(root: Path) -> ClaudeAgentOptions:
    """A session of someone who doesn't use the kit."""
    return ClaudeAgentOptions(
        cwd=str(root / "course"),
        env={"HOME": str(root / "home"), "IS_SANDBOX": "1"},
        setting_sources=["user", "project", "local"],
        permission_mode="bypassPermissions",
        system_prompt={"type": "preset", "preset": "claude_code"},
        tools=["Read", "Skill", "Agent"],
    )


async def run(root: Path, options: ClaudeAgentOptions, calls: list[ToolCall]) -> SessionRun:
    found = await run_session(options, [tuple(calls), Say("Done.")], home=root / "home")
    assert found.unplayed == ()
    return found


def control_files(root: Path) -> set[str]:
    """What a later session would take for its own, anywhere in the world, as the disk has it."""
    return {
        os.path.relpath(os.path.join(here, name), root)
        for here, folders, files in os.walk(root)
        for name in (*folders, *files)
        if is_control_name(name.strip().rstrip("."))
        and not here.startswith((f"{root}/home", f"{root}/run"))
    }


NEXT = {
    "the same": lambda root: build_session_options(spec(), config(root)),
    "the most open": lambda root: build_session_options(
        spec(tools=["Agent"]),
        config(
            root,
            setting_sources=["user", "project", "local"],
            unlock=["nested_memory", "project_hooks", "project_env", "git_instructions"],
        ),
    ),
    "without the kit": bare,
}
READS = ("drafts/a.md", "drafts/a/b/c/a.md", "sources/original.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """What came of a later session."""

    saw: bool
    ran: bool


async def later(root: Path, kind: str) -> Later:
    (root / "ran").unlink(missing_ok=True)
    reads = [ToolCall("Read", {"file_path": path}) for path in READS]
    found = await run(root, NEXT[kind](root), reads)
    assert [call.lock for call in found.calls] == [AnsweredBy.RAN] * len(READS)
    return Later(saw=found.saw("canary(planted)"), ran=(root / "ran").exists())


async def test_what_no_tool_could_write_steers_no_later_session(
    tmp_path: Path, refused: Callable[[CallRecord], bool]
) -> None:
    tree(tmp_path, [*WORLD, *LINKS, f"course/drafts/.claude/x.ipynb={NOTEBOOK}"])
    before = control_files(tmp_path)
    options = build_session_options(spec(tools=["NotebookEdit"]), config(tmp_path))
    files, own = list(file_calls(tmp_path)), list(extension_calls())
    look = ToolCall("Read", {"file_path": "drafts/.claude/x.ipynb"})  # else it can't be edited
    script = [look, (*files, *own), Say("Done.")]
    found = await run_session(options, script, home=tmp_path / "home", timeout=120)
    assert found.unplayed == ()
    looked, *calls = found.calls
    assert looked.lock is AnsweredBy.RAN
    assert [call for call in calls[: len(files)] if not refused(call)] == []
    written = [call.result for call in calls[len(files) :] if not call.is_error]
    assert [text for text in written if not any(name in str(text) for name in HARMLESS)] == []
    assert control_files(tmp_path) == before
    assert (tmp_path / "course/knowledge/concept/CLAUDE.md").read_text("utf-8") == "old"
    for kind in NEXT:
        assert await later(tmp_path, kind) == Later(saw=False, ran=False), kind


async def test_control_files_that_may_be_written_do_steer_later_sessions(tmp_path: Path) -> None:
    """The control."""
    tree(tmp_path, WORLD)
    options = build_session_options(spec(), config(tmp_path, writable_control_files=True))
    text = str(tmp_path)
    calls = [write(path, content.replace("<root>", text)) for path, content in PLANTED.items()]
    found = await run(tmp_path, options, calls)
    assert [call.lock for call in found.calls] == [AnsweredBy.RAN] * len(calls)
    assert (await later(tmp_path, "without the kit")) == Later(saw=True, ran=True)
    assert (await later(tmp_path, "the most open")) == Later(saw=True, ran=True)
