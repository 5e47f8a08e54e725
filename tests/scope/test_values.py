"""The scope as a value: frozen, checked, every mistake told at once."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from agent_kit import scope as package
from agent_kit.scope import (
    Code,
    ConfigError,
    Decision,
    Fault,
    FileScope,
    ToolOnlyDir,
    Verdict,
    check_file_scope,
    explain_file_scope,
)
from agent_kit.scope.file_scope import NATIVE
from agent_kit.scope.value import Checked

FIELDS: dict[str, Any] = {
    "project_dir": "/nowhere/p",
    "writable_dirs": ["drafts"],
    "searchable_dirs": ["sources"],
    "readable_dirs": ["sources"],
    "also_readable": ["/opt/plugin"],
    "read_only_dirs": ["sources"],
    "denied_paths": [".env", "*.pem"],
    "tool_results_dir": "/results",
    "tool_only_dirs": [ToolOnlyDir(dir="knowledge", instead="its tools")],
    "writable_control_files": True,
    "mcp_file_tools": {"mcp__fs__read": {"path": "read"}},
    "platform": "posix",
    "home": "/home/u",
}
LISTS = ["writable_dirs", "searchable_dirs", "readable_dirs", "also_readable", "read_only_dirs",
         "denied_paths"]  # fmt: skip
TEXTS = ["project_dir", "tool_results_dir", "home"]


def faults_of(**fields: Any) -> list[tuple[str, object, str]]:
    with pytest.raises(ConfigError) as caught:
        FileScope(**fields)
    return [(fault.field, fault.value, fault.remedy) for fault in caught.value.faults]


def test_equal_inputs_make_equal_scopes() -> None:
    scope, same = FileScope(**FIELDS), FileScope(**copy.deepcopy(FIELDS))
    assert scope == same
    assert hash(scope) == hash(same)
    for name, other in {"home": "/x", "denied_paths": [], "platform": "windows"}.items():
        fields = {**FIELDS, name: other}
        if name == "platform":
            fields = {"project_dir": "C:\\p", "platform": other}
        assert FileScope(**fields) != scope
    assert len({scope, same}) == 1


def test_a_scope_can_not_be_changed() -> None:
    scope = FileScope(**FIELDS)
    with pytest.raises(FrozenInstanceError):
        scope.project_dir = "/"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del scope.denied_paths  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        scope.other = 1  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        FIELDS["tool_only_dirs"][0].dir = "x"


def test_what_was_given_may_change_afterwards() -> None:
    given = copy.deepcopy(FIELDS)
    scope = FileScope(**given)
    before = copy.deepcopy(scope)
    for name in LISTS:
        given[name].append("/")
    given["mcp_file_tools"]["mcp__fs__read"]["path"] = "write"
    given["mcp_file_tools"]["mcp__x__y"] = {"path": "read"}
    given["tool_only_dirs"].clear()
    assert scope == before == FileScope(**FIELDS)
    assert scope.mcp_file_tools == {"mcp__fs__read": {"path": "read"}}
    assert explain_file_scope(scope, "Read", {"file_path": "/etc"}).code is Code.OUTSIDE_READABLE


def test_collections_become_tuples_and_texts_stay_as_written() -> None:
    scope = FileScope(**FIELDS)
    for name in LISTS:
        assert getattr(scope, name) == tuple(FIELDS[name])
    assert scope.tool_only_dirs == (ToolOnlyDir(dir="knowledge", instead="its tools"),)
    assert FileScope(project_dir="/p").readable_dirs is None
    assert FileScope(project_dir="/p").platform == NATIVE


def test_a_scope_is_copied_replaced_and_pickled() -> None:
    scope = FileScope(**FIELDS)
    for twin in (copy.copy(scope), copy.deepcopy(scope), pickle.loads(pickle.dumps(scope))):
        assert twin == scope
        assert explain_file_scope(twin, "Read", {"file_path": ".env"}).code is Code.DENIED_PATH
    wider = dataclasses.replace(scope, denied_paths=())
    assert explain_file_scope(wider, "Read", {"file_path": ".env"}).code is Code.OUTSIDE_READABLE
    assert "_compiled" not in repr(scope)


def test_a_decision_is_a_frozen_value() -> None:
    decision = Decision(verdict=Verdict.ALLOW, code=Code.OK)
    assert decision == Decision(verdict=Verdict.ALLOW, code=Code.OK)
    with pytest.raises(FrozenInstanceError):
        decision.code = Code.MALFORMED  # type: ignore[misc]
    assert (str(Verdict.DENY), str(Code.DENIED_PATH)) == ("deny", "denied-path")


def test_the_codes_are_these() -> None:
    assert [str(code) for code in Code] == [
        "ok", "not-judged", "denied-path", "denied-pattern", "tools-only", "read-only",
        "control-file", "outside-readable", "outside-writable", "outside-searchable",
        "contains-denied", "contains-tools-only", "climbs", "special-file", "malformed",
    ]  # fmt: skip


# --- paths ----------------------------------------------------------------------------------------


def test_path_likes_are_accepted() -> None:
    fields = {
        "project_dir": Path("/nowhere/p"),
        "home": PurePosixPath("/home/u"),
        "tool_results_dir": Path("/results"),
        "tool_only_dirs": [ToolOnlyDir(dir=Path("knowledge"), instead="x")],  # type: ignore[arg-type]
        **{name: [Path("x")] for name in LISTS},
    }
    scope = FileScope(**fields)
    assert scope.project_dir == "/nowhere/p"
    assert scope.home == "/home/u"
    assert scope.tool_results_dir == "/results"
    assert scope.denied_paths == ("x",)
    assert scope.tool_only_dirs[0].dir == "knowledge"


def test_entries_are_relative_to_the_project_and_it_to_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p").mkdir()
    monkeypatch.chdir(tmp_path)
    scope = FileScope(project_dir="p", searchable_dirs=["in"], denied_paths=["in/x*"])
    monkeypatch.chdir("/")
    for path, code in (
        ("in/a", Code.OK),
        ("in/x1", Code.DENIED_PATTERN),
        ("a", Code.OUTSIDE_READABLE),
    ):
        assert explain_file_scope(scope, "Read", {"file_path": path}).code is code
        absolute = {"file_path": f"{tmp_path}/p/{path}"}
        assert explain_file_scope(scope, "Read", absolute).code is code


def test_a_tilde_is_the_given_home() -> None:
    scope = FileScope(
        project_dir="~/p",
        home="/nowhere/u",
        searchable_dirs=["~/in", "x"],
        denied_paths=["~/in/.*"],
    )
    for path, code in (
        ("/nowhere/u/in/a", Code.OK),
        ("/nowhere/u/in/.a", Code.DENIED_PATTERN),
        ("/nowhere/u/p/x/a", Code.OK),
        ("~/in/a", Code.OK),
    ):
        assert explain_file_scope(scope, "Read", {"file_path": path}).code is code


def test_a_process_whose_folder_is_gone_needs_an_absolute_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        with pytest.raises(OSError):
            os.getcwd()
        assert FileScope(project_dir="/nowhere/p").project_dir == "/nowhere/p"
        assert FileScope(project_dir="~/p", home="/h").project_dir == "~/p"
        remedy = "write an absolute path: the process's own folder is gone."
        assert faults_of(project_dir="p") == [("project_dir", "p", remedy)]
    finally:
        os.chdir(tmp_path)


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (7, "give a path as text."),
        (b"/p", "give a path as text."),
        (["/p"], "give a path as text."),
        ("", "give a path; this one is empty."),
        ("/a\0b", "a path can't hold a NUL."),
    ],
)
def test_a_text_that_is_none_is_a_fault(name: str, value: object, remedy: str) -> None:
    assert faults_of(**{**FIELDS, name: value}) == [(name, value, remedy)]


class Odd:
    """A path-like of bytes."""

    def __fspath__(self) -> bytes:
        return b"/p"


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    "value", ["/p", b"/p", 7, {"/p"}, {"/p": 1}, Path("/p"), iter(["/p"]), True]
)
def test_a_list_that_is_none_is_a_fault(name: str, value: object) -> None:
    assert faults_of(**{**FIELDS, name: value}) == [(name, value, "give a list.")]


@pytest.mark.parametrize("name", LISTS)
def test_each_item_of_a_list_is_checked(name: str) -> None:
    odd = Odd()
    found = faults_of(**{**FIELDS, name: ["fine", 7, "", None, "a\0", odd]})
    assert found == [
        (name, 7, "give a path as text."),
        (name, "", "give a path; this one is empty."),
        (name, None, "give a path as text."),
        (name, "a\0", "a path can't hold a NUL."),
        (name, odd, "give a path as text."),
    ]
    if name != "readable_dirs":
        assert faults_of(**{**FIELDS, name: None}) == [(name, None, "give a list.")]


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("writable_control_files", 1, "write True or False."),
        ("writable_control_files", "yes", "write True or False."),
        ("platform", "linux", "write 'posix' or 'windows'."),
        ("platform", None, "write 'posix' or 'windows'."),
        ("platform", ["posix"], "write 'posix' or 'windows'."),
        ("mcp_file_tools", [], "give {tool name: {field: access}}."),
        ("mcp_file_tools", None, "give {tool name: {field: access}}."),
        ("tool_only_dirs", "knowledge", "give a list."),
    ],
)
def test_other_wrong_values_are_faults(name: str, value: object, remedy: str) -> None:
    assert faults_of(**{**FIELDS, name: value}) == [(name, value, remedy)]


@pytest.mark.parametrize(
    "item", ["knowledge", ("knowledge", "x"), None, {"dir": "k", "instead": "x"}]
)
def test_a_tools_only_folder_is_a_value_of_its_own(item: object) -> None:
    expected = ("tool_only_dirs", item, "give ToolOnlyDir(dir=…, instead=…).")
    assert faults_of(**{**FIELDS, "tool_only_dirs": [item]}) == [expected]


@pytest.mark.parametrize(
    "entry",
    [
        {"fs__read": {"path": "read"}},
        {"Read": {"path": "read"}},
        {7: {"path": "read"}},
        {"mcp__fs__read": "path"},
        {"mcp__fs__read": ["path"]},
        {"mcp__fs__read": {"path": "execute"}},
        {"mcp__fs__read": {"path": ["read"]}},
        {"mcp__fs__read": {"path": None}},
        {"mcp__fs__read": {7: "read"}},
    ],
)
def test_an_mcp_entry_that_names_no_field_is_a_fault(entry: Any) -> None:
    remedy = "give the tool's path fields with one of ['list', 'read', 'search', 'write'] each."
    found = faults_of(**{**FIELDS, "mcp_file_tools": {**entry, "mcp__x__y": {"a": "search"}}})
    assert found == [("mcp_file_tools", entry, remedy)]


def test_everything_that_is_wrong_comes_in_one_error() -> None:
    with pytest.raises(ConfigError) as caught:
        FileScope(
            projct_dir="/p",  # type: ignore[call-arg]
            writable_dirs="drafts",
            searchable_dirs=["", 7],
            denied_paths=["#*", "a\0", "../*", "fine"],
            home=7,  # type: ignore[arg-type]
            platform="dos",
            colour="red",
        )
    assert str(caught.value).splitlines() == [
        "projct_dir='/p': there is no such field; did you mean 'project_dir'?",
        f"colour='red': there is no such field; the fields are {', '.join(FIELDS)}.",
        "project_dir=None: this field is required.",
        "home=7: give a path as text.",
        "writable_dirs='drafts': give a list.",
        "searchable_dirs='': give a path; this one is empty.",
        "searchable_dirs=7: give a path as text.",
        "denied_paths='a\\x00': a path can't hold a NUL.",
        "platform='dos': write 'posix' or 'windows'.",
        "denied_paths='#*': a pattern can't begin with '#'; write '\\#*' for the name.",
        "denied_paths='../*': '..' has no place in a pattern.",
    ]


def test_an_unknown_field_alone_is_a_fault() -> None:
    assert faults_of(**FIELDS, denied_path=["x"]) == [
        ("denied_path", ["x"], "there is no such field; did you mean 'denied_paths'?")
    ]


def test_what_is_wrong_with_a_list_of_none_is_told_once() -> None:
    found = faults_of(project_dir="/p", denied_paths=7)
    assert found == [("denied_paths", 7, "give a list.")]


def test_the_two_parts_of_a_tools_only_folder_are_checked() -> None:
    with pytest.raises(ConfigError) as caught:
        ToolOnlyDir(dir="", insted="x")  # type: ignore[call-arg]
    assert [(fault.field, fault.remedy) for fault in caught.value.faults] == [
        ("insted", "there is no such field; did you mean 'instead'?"),
        ("instead", "this field is required."),
        ("tool_only_dirs.dir", "give a path; this one is empty."),
    ]


def test_a_fault_says_field_value_and_remedy() -> None:
    fault = Fault(field="a", value="b", remedy="c.")
    error = ConfigError(iter([fault, fault]))
    assert error.faults == (fault, fault)
    assert str(error) == "a='b': c.\na='b': c."
    assert isinstance(error, ValueError)


def test_positional_values_are_pythons_own_error() -> None:
    with pytest.raises(TypeError):
        FileScope("/p")  # type: ignore[call-arg]


@dataclass(frozen=True, kw_only=True)
class Trusting(metaclass=Checked):
    """Its own check takes for granted that every value is there."""

    size: int
    name: str = "x"

    def __post_init__(self) -> None:
        if self.size < 0 or len(self.name) > 9:
            raise ConfigError([Fault(field="size", value=self.size, remedy="more.")])


def test_a_check_that_stumbles_over_a_missing_value_does_not_hide_that_it_is_missing() -> None:
    with pytest.raises(ConfigError, match="size=None: this field is required"):
        Trusting()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Trusting(size="7")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Trusting(size=1, name=7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="size=-1: more"):
        Trusting(size=-1)
    assert Trusting(size=1).size == 1


# --- the package ----------------------------------------------------------------------------------


def test_the_public_names_are_these() -> None:
    assert package.__all__ == [
        "Access", "Code", "ConfigError", "Decision", "Fault", "FileScope", "ToolOnlyDir", "Verdict",
        "check_file_scope", "explain_file_scope",
    ]  # fmt: skip
    assert all(hasattr(package, name) for name in package.__all__)


def test_deciding_loads_neither_the_sdk_nor_what_is_not_needed() -> None:
    """In a fresh interpreter, with the usual calls."""
    script = """
import sys
from agent_kit.scope import FileScope, check_file_scope
scope = FileScope(project_dir="/nowhere", searchable_dirs=["."], denied_paths=[".env"])
assert check_file_scope(scope, "Read", {"file_path": "/nowhere/a"}) is None
assert check_file_scope(scope, "Read", {"file_path": ".env"}) is not None
assert check_file_scope(scope, "Glob", {"pattern": "**/*.md"}) is None
heavy = {"claude_agent_sdk", "mcp", "pathspec", "bracex", "platformdirs", "frontmatter", "asyncio"}
print(sorted(heavy & set(sys.modules)))
"""
    env = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_short_question_and_the_long_one_agree_on_a_scope_that_allows_nothing() -> None:
    scope = FileScope(project_dir="/nowhere")
    for tool, field in (
        ("Read", "file_path"),
        ("Write", "file_path"),
        ("Grep", "path"),
        ("LS", "path"),
    ):
        assert check_file_scope(scope, tool, {field: "/nowhere/a"}) is not None


@pytest.mark.parametrize("decide", [check_file_scope, explain_file_scope])
@pytest.mark.parametrize("scope", ["ws", None, {"project_dir": "/nowhere"}])
def test_a_scope_that_is_none_is_an_error_in_one_sentence(decide: Any, scope: Any) -> None:
    with pytest.raises(TypeError, match=r"^The scope is a FileScope, not a \w+\.$"):
        decide(scope, "Read", {"file_path": "/nowhere/a"})


@pytest.mark.parametrize("name", ["envs", "api_key", "ANTHROPIC_AUTH_TOKEN", "mcp_headers"])
def test_what_stands_in_a_misspelt_field_for_keys_is_in_no_message(name: str) -> None:
    values = {name: {"ANTHROPIC_API_KEY": "canary"}}
    with pytest.raises(ConfigError) as caught:
        FileScope(project_dir="/p", **values)
    assert "canary" not in f"{caught.value} {caught.value.faults}"
    assert f"{name}='…': there is no such field" in str(caught.value)
