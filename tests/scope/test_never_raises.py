"""Whatever a model writes, there is an answer: never an exception, and both questions agree."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_kit.scope import (
    Code,
    ConfigError,
    Decision,
    FileScope,
    ToolOnlyDir,
    Verdict,
    check_file_scope,
    explain_file_scope,
)
from agent_kit.scope.tools import FILE_TOOLS, NO_PATH_TOOLS, PATH_FIELDS

COMMON: dict[str, Any] = {
    "searchable_dirs": ["."],
    "writable_dirs": ["drafts"],
    "read_only_dirs": ["sources"],
    "denied_paths": ["secret", "**/.env", "keys/*.pem", "[a-c]*.x", "\u00e9?"],
    "tool_only_dirs": [ToolOnlyDir(dir="knowledge", instead="x")],
    "mcp_file_tools": {"mcp__fs__read": {"path": "read", "to": "write"}},
}
SCOPES = (
    FileScope(project_dir="/tmp", home="/root", **COMMON),
    FileScope(project_dir="/", **{**COMMON, "denied_paths": []}),
    FileScope(platform="windows", project_dir="C:\\p", home="C:\\h", **COMMON),
    FileScope(platform="windows", project_dir="\\\\srv\\share", **COMMON),
)

ODD = st.sampled_from(
    ["", ".", "..", "~", "~/", "/", "//", "\\", "C:", "C:\\", "\\\\?\\", "\\\\.\\", "//srv/share", "/c/x",
     "a\0b", "\ud800", "\u200c", "x" * 300, "a/" * 3000, "{a,b}", "{" * 200, "[", "[z-a]", "@(", "NUL", "a:b",
     "/proc/self/fd/0", "/dev/stdin", "secret", "knowledge", "CLAUDE.md", "hooks", "*", "?", "!", "#", " "]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=30),
    ODD,
    st.lists(ODD, max_size=5).map("/".join),
    st.lists(ODD, max_size=4).map("".join),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
TOOLS = st.one_of(
    st.sampled_from(
        [*FILE_TOOLS, *FILE_TOOLS, *sorted(NO_PATH_TOOLS)[:2], "Later", "mcp__fs__read"]
    ),
    JSON,
)
FIELDS = st.one_of(st.sampled_from([*sorted(PATH_FIELDS), "pattern", "to", "glob"]), TEXTS)
INPUTS = st.one_of(st.dictionaries(FIELDS, st.one_of(TEXTS, TEXTS, JSON), max_size=4), JSON)
CWDS = st.one_of(st.none(), TEXTS, JSON)


def configured(scope: FileScope) -> int:
    """Characters of the names that a person configured: those are told whole."""
    compiled = scope._compiled
    labels = [*compiled.readable, *compiled.writable, *compiled.searchable]
    return sum(map(len, [*labels, *(entry.label for _, entry in compiled.closed_paths)]))


def answered(scope: FileScope, tool: Any, tool_input: Any, cwd: Any) -> Decision:
    decision = explain_file_scope(scope, tool, tool_input, cwd=cwd)
    message = check_file_scope(scope, tool, tool_input, cwd=cwd)
    assert message == decision.message
    assert (decision.verdict is Verdict.ALLOW) == (message is None)
    assert (decision.code in (Code.OK, Code.NOT_JUDGED)) == (message is None)
    if message is not None:
        assert message.isprintable()
        assert len(message) < 2600 + configured(scope)
    return decision


@settings(max_examples=300)
@given(st.sampled_from(SCOPES), TOOLS, INPUTS, CWDS)
@example(SCOPES[0], "Read", {"file_path": 10**5000}, None)
@example(SCOPES[0], "Read", {"file_path": float("nan")}, None)
@example(SCOPES[2], "Read", None, "\\\\.\\x")
@example(SCOPES[0], "Read", {"file_path": f"{'a' * 200}/" * 30}, None)
def test_every_call_gets_an_answer(scope: FileScope, tool: Any, tool_input: Any, cwd: Any) -> None:
    first = answered(scope, tool, tool_input, cwd)
    assert answered(scope, tool, tool_input, cwd) == first  # and the same one again


@settings(max_examples=150)
@given(TEXTS, st.one_of(st.none(), TEXTS), st.sampled_from(SCOPES))
def test_every_glob_gets_an_answer(pattern: str, path: str | None, scope: FileScope) -> None:
    answered(scope, "Glob", {"pattern": pattern, "path": path}, None)
    answered(scope, "Glob", {"pattern": pattern}, None)


@settings(max_examples=150)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(
                ("writable_dirs", "searchable_dirs", "readable_dirs", "also_readable", "denied_paths",
                 "read_only_dirs", "tool_only_dirs"),
                st.one_of(st.lists(st.one_of(TEXTS, JSON), max_size=3), JSON),
            ),
            **dict.fromkeys(("project_dir", "home", "tool_results_dir"), st.one_of(TEXTS, JSON)),
            "platform": st.one_of(st.sampled_from(["posix", "windows"]), JSON),
            "writable_control_files": st.one_of(st.booleans(), JSON),
            "mcp_file_tools": JSON,
            "other": JSON,
        },
    ),
    st.booleans(),
)  # fmt: skip
def test_every_configuration_is_a_scope_or_a_config_error(
    fields: dict[str, Any], sound: bool
) -> None:
    if sound:
        fields.setdefault("project_dir", "/nowhere")
    try:
        scope = FileScope(**fields)
    except ConfigError as error:
        assert error.faults
        assert all(fault.field and fault.remedy for fault in error.faults)
        assert str(error)
        return
    for path in ("a", "/nowhere/a", "C:\\a"):
        for tool in ("Read", "Write", "Grep"):
            answered(scope, tool, {"file_path": path, "path": path}, None)


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def test_a_deep_value_gets_an_answer() -> None:
    for value in (
        nested(100_000),
        {"a": nested(900)},
        "{a," * 50 + "}" * 50,
        "{" * 99,
        "{" * 10**6,
    ):
        for tool in ("Read", "Glob", "Later"):
            answered(SCOPES[0], tool, {"file_path": value, "pattern": value, "path": "."}, None)
