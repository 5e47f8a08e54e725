"""Tools and inputs that a guard forgets: each way to a file is judged, and nothing else is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from agent_kit import (
    AgentSpec,
    Code,
    ConfinementUnavailableError,
    FileScope,
    Verdict,
    check_file_scope,
    explain_file_scope,
)
from agent_kit.scope.tools import FILE_TOOLS, PATH_FIELDS
from agent_kit.testing import AnsweredBy, Say, ToolCall

CLOSED = FileScope(
    project_dir="/w", searchable_dirs=["sources"], writable_dirs=["drafts"], platform="posix"
)


@pytest.mark.e2e
@pytest.mark.report(57)
def test_an_import_in_the_projects_instructions_brings_no_file(world) -> None:
    world.has(
        "project/CLAUDE.md=canary-instructions @sec/k.txt @beside/o.txt",
        "project/sec/k.txt=canary-denied",
        "project/beside/o.txt=canary-imported",
        "project/CLAUDE.local.md=canary-local @sec/k.txt",
    )
    closed = {"denied_paths": ["sec"]}
    plan = world.plan(**closed)
    assert any(f"{world.project}/CLAUDE.md is loaded" in note for note in plan.notes)
    seen = {
        "project": ({}, {"canary-instructions"}),
        "no source": ({"setting_sources": []}, set()),
        # Imports then bypass the gate; a denied file stays closed by its rule.
        "unlocked": ({"unlock": ["nested_memory"]}, {"canary-instructions", "canary-imported"}),
    }
    for fields, expected in seen.values():
        run = world.run(world.options(**closed, **fields), [Say("x")])
        canaries = ("canary-instructions", "canary-imported", "canary-denied")
        assert {canary for canary in canaries if run.saw(canary)} == expected


@pytest.mark.report(58)
@pytest.mark.parametrize("denied", ["kit.json", "deep/er/kit.json", "x/*.key", "kit.json/"])
@pytest.mark.parametrize(
    "fields", [{"path": "/w"}, {"path": "."}, {}, {"path": ""}, {"path": "/w/"}, {"path": "../w"}]
)
def test_a_folder_that_contains_a_denied_path_is_not_searched(
    denied: str, fields: dict[str, str]
) -> None:
    scope = FileScope(
        project_dir="/w", searchable_dirs=["."], denied_paths=[denied], platform="posix"
    )
    decision = explain_file_scope(scope, "Grep", {"pattern": "x", **fields})
    assert decision.code is Code.CONTAINS_DENIED  # none of these files exists
    assert explain_file_scope(scope, "Grep", {"pattern": "x", "path": "/w/beside"}).code is Code.OK


@pytest.mark.report(59)
@pytest.mark.parametrize(
    "fields",
    [
        {"pattern": "docs/inner/**"},
        {"pattern": "/w/docs/inner/*"},
        {"pattern": "*", "path": "docs/inner"},
        {"pattern": "inner/*", "path": "docs"},
        {"pattern": "**", "path": "docs/inner/deeper"},
        {"pattern": "./docs/./inner/*"},
        {"pattern": "docs/INNER/*"},
    ],
)
def test_names_inside_a_denied_folder_are_not_listed(fields: dict[str, str]) -> None:
    scope = FileScope(
        project_dir="/w", searchable_dirs=["."], denied_paths=["docs/inner"], platform="posix"
    )
    assert check_file_scope(scope, "Glob", fields) is not None
    assert check_file_scope(scope, "Glob", {"pattern": "docs/other/*"}) is None


@pytest.mark.e2e
@pytest.mark.report(58, 59, 60, 61)
def test_the_cli_hands_out_no_denied_name_and_no_denied_line(world) -> None:
    world.has(
        "project/src/a.md=canary-open find-me",
        "project/src/inner/k.md=canary-denied find-me",
        "project/src/notes.env.md=canary-pattern find-me",
        "project/src/inner/hidden-name.md=x",
        'project/sources/n.ipynb={"cells": [{"cell_type": "code", "id": "a", "metadata": {},'
        ' "outputs": [], "execution_count": null, "source": ["canary-notebook"]}],'
        ' "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    )
    options = world.options(
        extra_readable_dirs=["src", "sources"],
        denied_paths=["src/inner", "**/*.env.md"],
        spec={"tools": ["NotebookEdit", "ToolSearch"]},
    )
    src, notebook = str(world.project / "src"), str(world.project / "sources" / "n.ipynb")
    run = world.run(
        options,
        [
            (
                ToolCall("Glob", {"pattern": "**/*.md", "path": src}),
                ToolCall("Glob", {"pattern": "src/inner/**"}),
                ToolCall("Grep", {"pattern": "find-me", "path": src, "output_mode": "content"}),
                ToolCall("Grep", {"pattern": "find-me", "path": f"{src}/inner"}),
            ),
            ToolCall(
                "Grep",
                {"pattern": "x", "path": notebook, "output_mode": "content", "glob": "../**"},
            ),
            ToolCall("ToolSearch", {"query": "select:NotebookEdit", "max_results": 1}),
            ToolCall(
                "NotebookEdit", {"notebook_path": notebook, "cell_id": "a", "new_source": "mine"}
            ),
            Say("x"),
        ],
    )
    wide, inside, search, search_inside, *_, edit = run.calls
    assert not wide.is_error
    assert "a.md" in wide.result
    assert inside.lock is AnsweredBy.GATE
    assert search.is_error  # it contains a denied folder
    assert search_inside.is_error
    assert edit.is_error
    assert "mine" not in (world.project / "sources" / "n.ipynb").read_text()
    for closed in ("k.md", "hidden-name", "notes.env.md", "canary-denied", "canary-pattern"):
        assert not run.saw(closed), run.where(closed)


@pytest.mark.report(61)
@pytest.mark.parametrize("tool", ["NotebookEdit", "MultiEdit", "Write", "Edit"])
def test_every_tool_that_writes_is_judged_as_a_write(tool: str) -> None:
    (field, *_) = FILE_TOOLS[tool].fields
    decision = explain_file_scope(CLOSED, tool, {field: "/w/sources/n.ipynb", "new_source": "x"})
    assert decision.code is Code.OUTSIDE_WRITABLE
    assert check_file_scope(CLOSED, tool, {field: "/w/drafts/n.ipynb"}) is None


@pytest.mark.report(61)
async def test_the_gate_is_asked_about_notebooks() -> None:
    from agent_kit import create_file_scope_gate

    matcher = create_file_scope_gate(CLOSED)
    assert matcher.matcher is None
    payload = {
        "tool_name": "NotebookEdit",
        "tool_input": {"notebook_path": "/w/sources/n.ipynb"},
        "cwd": "/w",
    }
    answer = await matcher.hooks[0](payload, "id", None)
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.report(62)
@pytest.mark.parametrize("tool", sorted(FILE_TOOLS))
@pytest.mark.parametrize("field", sorted(PATH_FIELDS))
def test_a_path_is_judged_in_whatever_field_it_comes(tool: str, field: str) -> None:
    value: Any = ["/etc/passwd"] if field == "paths" else "/etc/passwd"
    assert check_file_scope(CLOSED, tool, {field: value, "pattern": "x"}) is not None


@pytest.mark.report(62)
@pytest.mark.parametrize(
    "tool", ["Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "NotebookRead"]
)
def test_a_call_without_a_path_is_left_for_the_tool_to_reject(tool: str) -> None:
    assert explain_file_scope(CLOSED, tool, {"content": "x"}).verdict is Verdict.ALLOW
    assert explain_file_scope(CLOSED, tool, {}).verdict is Verdict.ALLOW


@pytest.mark.report(62)
@pytest.mark.parametrize("field", sorted(PATH_FIELDS))
def test_a_file_tool_that_a_later_cli_adds_is_refused_outside(field: str) -> None:
    for path, verdict in (
        ("/etc/passwd", Verdict.DENY),
        ("/w/sources/a", Verdict.DENY),
        ("/w/drafts/a", Verdict.DENY),
    ):
        value: Any = [path] if field == "paths" else path
        assert explain_file_scope(CLOSED, "FutureTool", {field: value}).verdict is verdict
    both = FileScope(
        project_dir="/w", searchable_dirs=["drafts"], writable_dirs=["drafts"], platform="posix"
    )
    value = ["/w/drafts/a"] if field == "paths" else "/w/drafts/a"
    assert explain_file_scope(both, "FutureTool", {field: value}).verdict is Verdict.ALLOW


@pytest.mark.report(63)
@pytest.mark.parametrize(
    "pattern", ["\\.env|id_rsa", "/etc/passwd", "../../x", "~/.ssh/id_rsa", "agent.config.json"]
)
def test_what_is_searched_for_is_no_path(pattern: str) -> None:
    scope = FileScope(
        project_dir="/w",
        searchable_dirs=["sources"],
        denied_paths=["**/.env", "agent.config.json"],
        platform="posix",
    )
    for fields in (
        {"path": "/w/sources"},
        {"path": "sources", "glob": "*.md", "type": "py", "output_mode": "content"},
    ):
        assert check_file_scope(scope, "Grep", {"pattern": pattern, **fields}) is None
    texts = {
        "file_path": "/w/drafts/a",
        "content": pattern,
        "old_string": pattern,
        "new_string": pattern,
    }
    assert check_file_scope(CLOSED, "Write", texts) is None
    assert check_file_scope(CLOSED, "Edit", texts) is None


@pytest.mark.report(64)
def test_an_mcp_tools_paths_are_judged_where_they_are_named_and_only_there() -> None:
    read = {"path": "/w/secret"}
    assert explain_file_scope(CLOSED, "mcp__fs__read_file", read).code is Code.NOT_JUDGED
    judging = dataclasses.replace(
        CLOSED,
        mcp_file_tools={
            "mcp__fs__read_file": {"path": "read"},
            "mcp__fs__move": {"source": "write", "destination": "write"},
            "mcp__fs__search": {"root": "search"},
        },
    )
    assert check_file_scope(judging, "mcp__fs__read_file", read) is not None
    assert check_file_scope(judging, "mcp__fs__read_file", {"path": "/w/sources/a"}) is None
    assert (
        check_file_scope(judging, "mcp__fs__move", {"source": "/w/drafts/a", "destination": "/w/x"})
        is not None
    )
    assert (
        check_file_scope(
            judging, "mcp__fs__move", {"source": "/w/drafts/a", "destination": "/w/drafts/b"}
        )
        is None
    )
    assert check_file_scope(judging, "mcp__fs__search", {"root": "/w"}) is not None
    assert check_file_scope(judging, "mcp__fs__other", read) is None


@pytest.mark.report(64)
def test_the_session_passes_the_named_mcp_tools_on(world) -> None:
    plan = world.plan(
        spec={"mcp_servers": {"fs": {"command": "fs"}}},
        mcp_file_tools={"mcp__fs__read_file": {"path": "read"}},
    )
    assert check_file_scope(plan.scope, "mcp__fs__read_file", {"path": "/etc/passwd"}) is not None


@pytest.mark.report(66)
def test_a_session_has_the_tools_that_it_needs_and_no_other(world) -> None:
    world.has("project/sources/", "project/drafts/")
    nothing = world.options()
    assert nothing.tools == []
    reading = world.options(extra_readable_dirs=["sources"])
    assert reading.tools == ["Read", "Glob", "Grep"]
    writing = world.options(extra_writable_dirs=["drafts"])
    assert writing.tools == ["Read", "Glob", "Grep", "Write", "Edit"]
    for options in (nothing, reading, writing):
        assert options.allowed_tools == []


@pytest.mark.e2e
@pytest.mark.report(66)
@pytest.mark.parametrize("mode", [None, "bypassPermissions"])
def test_the_cli_offers_and_runs_no_other_tool_in_any_mode(world, mode: str | None) -> None:
    world.has("project/sources/a.md=canary-open")
    options = world.options(
        extra_readable_dirs=["sources"], permission_mode=mode, env={"IS_SANDBOX": "1"}
    )
    made = world.root / "made"
    others = [
        ToolCall("Bash", {"command": f"touch {made}"}),
        ToolCall("Write", {"file_path": str(made), "content": "x"}),
        ToolCall("Agent", {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}),
        ToolCall("Skill", {"skill": "simplify"}),
        ToolCall("WebFetch", {"url": "http://127.0.0.1:9/", "prompt": "p"}),
        ToolCall("Workflow", {"script": "x"}),
    ]
    run = world.run(
        options, [ToolCall("Read", {"file_path": "sources/a.md"}), tuple(others), Say("x")]
    )
    offered = {tool["name"] for tool in run.requests[0].body["tools"]} - {"DeferredToolPlaceholder"}
    assert offered == {"Read", "Glob", "Grep"}
    assert not run.calls[0].is_error
    assert [call.tool for call in run.calls[1:] if not call.is_error] == []
    assert not made.exists()


@pytest.mark.report(66)
@pytest.mark.parametrize(
    "tool", ["Bash", "Monitor", "Workflow", "PowerShell", "Bash(git status:*)"]
)
def test_a_tool_that_runs_commands_is_never_there_unconfined_by_accident(world, tool: str) -> None:
    from agent_kit import Subagent

    for fields in (
        {"tools": [tool]},
        {"subagents": {"a": Subagent(description="d", prompt="p", tools=[tool])}},
    ):
        with pytest.raises(ConfinementUnavailableError, match=tool.partition("(")[0]):
            world.plan(spec=fields)


@pytest.mark.report(66)
@pytest.mark.parametrize("name", ["default", "Default", "*", "", "Read,Bash", "Read Bash", "all "])
def test_no_name_of_a_tool_stands_for_more_than_one(name: str) -> None:
    # "default" is the CLI's word for every tool that it has, Bash among them.
    from agent_kit import ConfigError

    with pytest.raises(ConfigError) as caught:
        AgentSpec(name="a", tools=[name])
    assert caught.value.faults[0].field == "tools"
