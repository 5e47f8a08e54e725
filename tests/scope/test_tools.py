"""Which field of which tool is judged, and as what."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from agent_kit.scope import Code, FileScope, ToolOnlyDir, check_file_scope, explain_file_scope
from agent_kit.scope.tools import FILE_TOOLS, NO_PATH_TOOLS, PATH_FIELDS, mcp_fields, names_path

PROJECT = "/nowhere/p"
MCP = {
    "mcp__fs__read": {"path": "read", "other": "read"},
    "mcp__fs__move": {"source": "read", "destination": "write"},
    "mcp__fs__find": {"root": "search"},
    "mcp__fs__tree": {"root": "list"},
    "mcp__a__b__c": {"path": "write"},
}
SCOPE = FileScope(
    project_dir=PROJECT,
    writable_dirs=["drafts"],
    searchable_dirs=["sources"],
    readable_dirs=["sources", "rubrics"],
    denied_paths=["sources/secret"],
    tool_only_dirs=[ToolOnlyDir(dir="knowledge", instead="its tools")],
    mcp_file_tools=MCP,
)
BOTH = FileScope(
    project_dir=PROJECT, writable_dirs=["work"], searchable_dirs=["work"], denied_paths=["work/x"]
)


def code(tool: Any, tool_input: Any, scope: FileScope = SCOPE) -> Code:
    decision = explain_file_scope(scope, tool, tool_input)
    assert check_file_scope(scope, tool, tool_input) == decision.message
    return decision.code


@pytest.mark.parametrize(
    ("tool", "field", "inside", "outside"),
    [
        ("Read", "file_path", "rubrics/a", Code.OUTSIDE_READABLE),
        ("NotebookRead", "notebook_path", "rubrics/a", Code.OUTSIDE_READABLE),
        ("Write", "file_path", "drafts/a", Code.OUTSIDE_WRITABLE),
        ("Write", "path", "drafts/a", Code.OUTSIDE_WRITABLE),
        ("Edit", "file_path", "drafts/a", Code.OUTSIDE_WRITABLE),
        ("Edit", "path", "drafts/a", Code.OUTSIDE_WRITABLE),
        ("MultiEdit", "file_path", "drafts/a", Code.OUTSIDE_WRITABLE),
        ("NotebookEdit", "notebook_path", "drafts/a", Code.OUTSIDE_WRITABLE),
        ("Glob", "path", "rubrics", Code.OUTSIDE_READABLE),
        ("LS", "path", "rubrics", Code.OUTSIDE_READABLE),
        ("Grep", "path", "sources/a", Code.OUTSIDE_SEARCHABLE),
    ],
)
def test_the_field_of_a_tool_is_judged_as_what_it_does(
    tool: str, field: str, inside: str, outside: Code
) -> None:
    assert field in FILE_TOOLS[tool].fields
    more = {"pattern": "x"} if tool in ("Glob", "Grep") else {"content": "/etc/passwd"}
    assert code(tool, {field: inside, **more}) is Code.OK
    assert code(tool, {field: "elsewhere/a", **more}) is outside
    assert code(tool, {field: "knowledge/a", **more}) is Code.TOOLS_ONLY


@pytest.mark.parametrize("tool", sorted(FILE_TOOLS))
@pytest.mark.parametrize("field", sorted(PATH_FIELDS))
def test_a_renamed_field_of_a_file_tool_is_judged_as_well(tool: str, field: str) -> None:
    own = FILE_TOOLS[tool].fields[0]
    fine = {
        "Write": "drafts/a",
        "Edit": "drafts/a",
        "MultiEdit": "drafts/a",
        "NotebookEdit": "drafts/a",
    }
    good = {own: fine.get(tool, "sources/a"), "pattern": "x"}
    assert code(tool, good) is Code.OK
    for value in ("/etc/passwd", ["/etc/passwd"], ["sources/a", "/etc/passwd"]):
        assert code(tool, {**good, field: value}) not in (Code.OK, Code.NOT_JUDGED)
        assert code(tool, {field: value, **good} | {field: value}) not in (Code.OK, Code.NOT_JUDGED)


@pytest.mark.parametrize("field", sorted(PATH_FIELDS))
@pytest.mark.parametrize(
    "tool", ["LaterTool", "read", "READ", " Read", "Read ", "Réad", "", "EnterWorktree"]
)
def test_an_unknown_tool_with_a_path_is_judged_as_a_read_and_a_write(tool: str, field: str) -> None:
    assert code(tool, {field: "work/a"}, BOTH) is Code.OK
    assert code(tool, {field: ["work/a", "work/b"]}, BOTH) is Code.OK
    assert code(tool, {field: "work/x"}, BOTH) is Code.DENIED_PATH
    assert code(tool, {field: "/etc/passwd"}, BOTH) is Code.OUTSIDE_WRITABLE
    assert code(tool, {field: ["work/a", "/etc/passwd"]}, BOTH) is Code.OUTSIDE_WRITABLE
    assert code(tool, {field: "sources/a"}) is Code.OUTSIDE_WRITABLE  # readable is not enough
    assert code(tool, {field: "drafts/a"}) is Code.OUTSIDE_READABLE  # nor is writable
    assert code(tool, {field: "work/CLAUDE.md"}, BOTH) is Code.CONTROL_FILE
    assert (
        code(tool, {field: ""}, BOTH) is Code.OUTSIDE_WRITABLE
    )  # it may mean where the call stands
    assert code(tool, {field: " "}, BOTH) is Code.OUTSIDE_WRITABLE


@pytest.mark.parametrize(
    "value", [None, 7, True, b"x", {}, {"a": "b"}, ["a", 7], [["a"]], [None], ("a",)]
)
@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ("Read", "file_path"),
        ("Write", "file_path"),
        ("Grep", "path"),
        ("Glob", "path"),
        ("Glob", "pattern"),
        ("LS", "path"),
        ("Later", "paths"),
        ("mcp__fs__read", "path"),
    ],
)
def test_a_path_that_is_no_text_is_a_denial(tool: str, field: str, value: object) -> None:
    wide = FileScope(
        project_dir=PROJECT, writable_dirs=["."], searchable_dirs=["."], mcp_file_tools=MCP
    )
    assert code(tool, {"pattern": "*", field: "a"}, wide) is Code.OK
    given = {"pattern": "*", field: value}
    message = check_file_scope(wide, tool, given)
    assert message is not None
    assert message.endswith(
        "can't be judged as a path: write the plain path of one file or folder."
    )
    assert code(tool, given, wide) is Code.MALFORMED


def test_an_empty_list_of_paths_names_nothing() -> None:
    assert code("Later", {"paths": []}) is Code.NOT_JUDGED
    assert code("Read", {"file_path": []}) is Code.NOT_JUDGED


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Bash", {"command": "cat /etc/passwd", "path": "/etc/passwd"}),
        ("Agent", {"prompt": "x", "path": "/etc"}),
        ("Later", {"command": "x", "query": "/etc/passwd", "PATH": "/etc", "pathname": "/etc"}),
        ("mcp__other__read", {"path": "/etc/passwd"}),
        ("mcp__fs__read", {"file_path": "/etc/passwd"}),  # not the field that was named
        ("mcp__", {"path": "/etc/passwd"}),
        ("TodoWrite", {"file": "/etc/passwd"}),
    ],
)
def test_what_is_not_judged_here_gets_no_objection(tool: str, tool_input: dict[str, Any]) -> None:
    assert code(tool, tool_input) is Code.NOT_JUDGED


def test_no_tool_both_takes_paths_and_takes_none() -> None:
    assert not NO_PATH_TOOLS & FILE_TOOLS.keys()


@pytest.mark.parametrize("tool_input", [None, [], "x", 7, (("file_path", "sources/a"),), {1, 2}])
def test_input_that_is_no_mapping_is_a_denial_for_a_tool_that_is_judged(tool_input: Any) -> None:
    for tool in ("Read", "Grep", "Later", "mcp__fs__read"):
        assert code(tool, tool_input) is Code.MALFORMED
        message = check_file_scope(SCOPE, tool, tool_input)
        assert (
            message == f"{tool} was not called by a name and with named fields, so it was refused."
        )
    assert code("Bash", tool_input) is Code.NOT_JUDGED


@pytest.mark.parametrize("tool", [None, 7, b"Read", ["Read"], {}, ("Read",)])
def test_a_tool_name_that_is_no_text_is_a_denial(tool: Any) -> None:
    assert code(tool, {"file_path": "sources/a"}) is Code.MALFORMED
    assert code(tool, None) is Code.MALFORMED


class Text(str):
    """A text that is one, and something more."""

    __slots__ = ()


def test_a_text_of_a_subclass_is_a_text() -> None:
    for tool in ("Read", Text("Read")):
        assert code(tool, {"file_path": Text(f"{PROJECT}/sources/a")}) is Code.OK
        assert code(tool, {"file_path": Text(f"{PROJECT}/x")}) is Code.OUTSIDE_READABLE


def test_any_mapping_will_do() -> None:
    for path, expected in ((f"{PROJECT}/sources/a", Code.OK), ("/x", Code.OUTSIDE_READABLE)):
        assert code("Read", MappingProxyType({"file_path": path})) is expected
    assert code("Read", {7: "/etc", "file_path": f"{PROJECT}/sources/a"}) is Code.OK


# --- MCP tools ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "tool_input", "expected"),
    [
        ("mcp__fs__read", {"path": "sources/a"}, Code.OK),
        ("mcp__fs__read", {"path": "sources/secret"}, Code.DENIED_PATH),
        ("mcp__fs__read", {"path": "sources/a", "other": "/etc"}, Code.OUTSIDE_READABLE),
        ("mcp__fs__read", {"path": ["sources/a", "/etc"]}, Code.OUTSIDE_READABLE),
        ("mcp__fs__read", {"path": ""}, Code.OUTSIDE_READABLE),
        ("mcp__fs__read", {}, Code.NOT_JUDGED),
        ("mcp__fs__move", {"source": "sources/a", "destination": "drafts/a"}, Code.OK),
        ("mcp__fs__move", {"source": "drafts/a", "destination": "drafts/b"}, Code.OUTSIDE_READABLE),
        ("mcp__fs__move", {"source": "sources/a", "destination": "x"}, Code.OUTSIDE_WRITABLE),
        ("mcp__fs__move", {"destination": "drafts/CLAUDE.md"}, Code.CONTROL_FILE),
        ("mcp__fs__find", {"root": "sources"}, Code.CONTAINS_DENIED),
        ("mcp__fs__find", {"root": "rubrics"}, Code.OUTSIDE_SEARCHABLE),
        ("mcp__fs__tree", {"root": "sources"}, Code.OK),
        ("mcp__fs__tree", {"root": "."}, Code.CONTAINS_TOOLS_ONLY),
        ("mcp__a__b__c", {"path": "x"}, Code.OUTSIDE_WRITABLE),
        # the server of a plugin, the same tool
        ("mcp__plugin_kit_fs__read", {"path": "sources/a"}, Code.OK),
        ("mcp__plugin_kit_fs__read", {"path": "/etc"}, Code.OUTSIDE_READABLE),
        ("mcp__plugin_kit_a__b__c", {"path": "x"}, Code.OUTSIDE_WRITABLE),
        ("mcp__plugin_my__kit_fs__read", {"path": "/etc"}, Code.OUTSIDE_READABLE),
        ("mcp__plugin_kit_fs__write", {"path": "/etc"}, Code.NOT_JUDGED),
        ("mcp__plugin_kitfs__read", {"path": "/etc"}, Code.NOT_JUDGED),
        ("mcp__kit_fs__read", {"path": "/etc"}, Code.NOT_JUDGED),
        ("MCP__fs__read", {"path": "/etc"}, Code.OUTSIDE_WRITABLE),  # an unknown tool
    ],
)
def test_an_mcp_tool_is_judged_by_the_fields_that_were_named(
    tool: str, tool_input: dict[str, Any], expected: Code
) -> None:
    assert code(tool, tool_input) is expected


def test_where_two_mcp_entries_may_be_meant_both_are() -> None:
    configured = {
        "mcp__fs__get": {"path": "read"},
        "mcp__my_fs__get": {"path": "write", "to": "read"},
    }
    found = list(mcp_fields("mcp__plugin_kit_my_fs__get", configured))
    assert found == [("path", "read"), ("path", "write"), ("to", "read")]
    assert list(mcp_fields("mcp__fs__get", configured)) == [("path", "read")]
    assert list(mcp_fields("mcp__fs__get", {})) == []


def test_an_mcp_tool_in_the_sentence_is_called_by_its_name() -> None:
    message = check_file_scope(SCOPE, "mcp__fs__tree", {"root": "/etc"})
    assert message is not None
    assert message.startswith('mcp__fs__tree can\'t list "/etc": listing is only allowed inside')


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("log_path", True),
        ("scriptPath", True),
        ("base-dirs", True),
        ("LOG_FILE", True),
        ("FILE", False),
        ("attachments", True),
        ("profile", False),
        ("makefile", False),
        (5, False),
        (None, False),
    ],
)
def test_a_field_of_an_unknown_tool_is_a_path_by_the_end_of_its_name(
    field: object, path: bool
) -> None:
    assert names_path(field) is path
    scope = FileScope(project_dir="/w", searchable_dirs=["open"])
    refused = check_file_scope(scope, "LaterTool", {field: "closed"})  # type: ignore[dict-item]
    assert (refused is not None) is path
