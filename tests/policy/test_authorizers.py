"""The ready authorizers: what they refuse, in which words, and which arguments they take."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import (
    Authorized,
    AuthorizerContext,
    FilePermission,
    Messages,
    Refusal,
    allow,
    ask_user,
    authorize_call,
    authorizer_faults,
    content_check,
    contents,
    deny,
    deny_paths,
    rate_limit,
    read_authorizers,
    read_limit,
    size_ceiling,
    targets_of,
)
from agent_kit.policy.authorizers import may_close_files
from agent_kit.scope import ConfigError, FileScope
from agent_kit.scope.judge import named_paths


@pytest.fixture
def scope(tmp_path: Path) -> FileScope:
    for name in ("a.md", "logs/server.log", "closed/key", "open/b.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one\ntwo\nthree\n")
    (tmp_path / "way").symlink_to("closed/key")
    return FileScope(project_dir=tmp_path, searchable_dirs=["."], writable_dirs=["."])


def context(scope: FileScope, **more: Any) -> AuthorizerContext:
    return AuthorizerContext(project_dir=str(scope.project_dir), **more)


async def call(scope: FileScope, authorizer: Any, tool: str, **given: Any) -> Authorized:
    return await authorize_call([authorizer], scope, tool, given, context(scope))


async def refused(scope: FileScope, authorizer: Any, tool: str, **given: Any) -> str | None:
    found = await call(scope, authorizer, tool, **given)
    return None if found.refusal is None else str(found.refusal)


# --- deny_paths ---------------------------------------------------------------------------------


async def test_a_link_to_a_denied_file_is_refused_and_what_it_leads_to_is_not_told(
    scope: FileScope,
) -> None:
    closed = deny_paths(["closed/**"])
    assert await refused(scope, closed, "Read", file_path="way") == (
        "[read:denied] way was refused by policy (the path matches a denied pattern)."
    )
    assert await refused(scope, closed, "Write", file_path=f"{scope.project_dir}/way") == (
        "[write:denied] way was refused by policy (the path matches a denied pattern)."
    )
    assert await refused(scope, closed, "Read", file_path="a.md") is None


async def test_denied_paths_hold_for_every_operation(scope: FileScope) -> None:
    closed = deny_paths(["closed/**", "**/.env"])
    for tool, given in (
        ("Grep", {"pattern": "x", "path": "closed"}),
        ("Grep", {"pattern": "x"}),  # above it
        ("Glob", {"pattern": "*"}),
        ("LS", {"path": "closed"}),
    ):
        assert await refused(scope, closed, tool, **given), tool
    assert await refused(scope, closed, "Grep", pattern="x", path="open") is None
    Path(scope.project_dir, "open/deep").mkdir()
    Path(scope.project_dir, "open/deep/.env").touch()
    for path, expected in (
        ("open/x", False),
        ("open/b.md", False),
        ("logs", False),
        ("open/.env", True),
        ("open", True),
        (".", True),
    ):
        found = await authorize_call(
            [closed], scope, "Write", {"file_path": path}, context(scope), deletes=True
        )
        assert (found.refusal is not None) == expected, path
    assert str(found.refusal).startswith("[delete:denied] ")


async def test_denied_paths_are_below_the_project_of_each_session(tmp_path: Path) -> None:
    closed = deny_paths(["x/**", "~/y/**"])
    for name in ("one", "two"):
        scope = FileScope(project_dir=tmp_path / name, searchable_dirs=["/"])
        for path, expected in ((f"{name}/x/a", True), ("one/x/a", name == "one"), ("y/a", True)):
            found = await authorize_call(
                [closed],
                scope,
                "Read",
                {"file_path": f"{tmp_path}/{path}"},
                context(scope, home=str(tmp_path)),
            )
            assert (found.refusal is not None) == expected


# --- size_ceiling -------------------------------------------------------------------------------


async def test_a_ceiling_tells_how_to_read_a_part(scope: FileScope) -> None:
    assert await refused(scope, size_ceiling(13), "Read", file_path="logs/server.log") == (
        "[read:denied] logs/server.log was refused by policy"
        " (14 bytes is over the 13-byte ceiling)."
    )
    ranged = size_ceiling(13, unranged_only=True)
    path = f"{scope.project_dir}/logs/server.log"
    assert await refused(scope, ranged, "Read", file_path=path) == (
        "[read:denied] logs/server.log was refused by policy (14 bytes is over the 13-byte ceiling"
        " for a whole-file read; a ranged read such as"
        ' {"file_path": "logs/server.log", "offset": 1, "limit": 2000} is allowed).'
    )
    assert await refused(scope, ranged, "Read", file_path=path, offset=1) is None
    assert await refused(scope, ranged, "Read", file_path=path, limit=1) is None
    assert await refused(scope, ranged, "Read", file_path=path, limit=None) is not None


async def test_a_ceiling_is_for_reads_of_files_alone(scope: FileScope) -> None:
    ceiling = size_ceiling(0)
    assert await refused(scope, ceiling, "Read", file_path="a.md")
    assert await refused(scope, ceiling, "Read", file_path="way")  # the size of what it leads to
    assert await refused(scope, ceiling, "Read", file_path="none.md") is None
    assert await refused(scope, ceiling, "Read", file_path="logs") is None
    assert await refused(scope, ceiling, "Write", file_path="a.md") is None
    assert await refused(scope, ceiling, "Grep", path="a.md") is None


# --- rate_limit ---------------------------------------------------------------------------------


async def test_a_rate_is_of_any_stretch_of_time_and_of_one_session(scope: FileScope) -> None:
    now = 100.0
    limit = rate_limit(2, 60, operations=["write", "delete"], clock=lambda: now)
    here, there = context(scope), context(scope)

    async def write(where: AuthorizerContext, **more: bool) -> str | None:
        given = {"file_path": "a.md"}
        found = await authorize_call([limit], scope, "Write", given, where, **more)
        return None if found.refusal is None else found.refusal.message

    assert await write(here) is None
    now = 130.0
    assert await write(here, deletes=True) is None
    message = "a.md was refused by policy (no more than 2 in 60 seconds; try again in 30 s)."
    assert await write(here) == message
    assert await write(there) is None
    assert await refused(scope, limit, "Read", file_path="a.md") is None
    now = 160.0
    assert await write(here) is None  # the first is 60 seconds ago
    assert await write(here) == message  # and none that was refused counts


async def test_a_rate_of_none_refuses_every_call(scope: FileScope) -> None:
    assert await refused(scope, rate_limit(0, 1.5), "Read", file_path="a.md") == (
        "[read:denied] a.md was refused by policy (no more than 0 in 1.5 seconds)."
    )


async def test_a_call_with_an_id_counts_once_whatever_it_names_and_whoever_refuses_it_later(
    scope: FileScope,
) -> None:
    now = 100.0
    limit = rate_limit(2, 60, clock=lambda: now)
    closed = deny_paths(["open/**"])
    state: dict[Any, Any] = {}

    async def search(use_id: str | None, *authorizers: Any) -> bool:
        where = AuthorizerContext(project_dir=scope.project_dir, tool_use_id=use_id, state=state)
        given = {"pattern": "{logs,closed}/*"}
        found = await authorize_call([limit, *authorizers], scope, "Glob", given, where)
        return found.allowed

    assert await search("t1")
    assert await search("t1")  # what a tool opens while it runs is the same call
    assert not await search("t2", closed)
    assert not await search("t3")
    now = 160.0
    assert await search("t3")
    assert not await search(None)  # who can't be told from another is a call for each path
    state.clear()
    assert not await search(None)


# --- content_check ------------------------------------------------------------------------------

WRITES = [
    ("Write", {"file_path": "a.md", "content": "{}"}),
    ("Edit", {"file_path": "a.md", "old_string": "key", "new_string": "{}"}),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "{}"}),
    (
        "MultiEdit",
        {
            "file_path": "a.md",
            "edits": [{"old_string": "key", "new_string": "x"}, {"new_string": "{}"}],
        },
    ),
    ("mcp__s__put", {"to": "a.md", "parts": [{"text": "{}"}], "n": 1}),
    ("mcp__s__put", {"to": "a.md", "{}": None}),
]


def filled(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace("{}", text)
    if isinstance(value, dict):
        return {filled(name, text): filled(item, text) for name, item in value.items()}
    return [filled(item, text) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("tool", "given"), WRITES)
@pytest.mark.parametrize(
    "check",
    [r"k[e]y", re.compile("KEY", re.IGNORECASE), lambda text: "key" in text],
    ids=["text", "expression", "function"],
)
async def test_what_is_about_to_be_written_is_looked_at(
    scope: FileScope, tool: str, given: dict[str, Any], check: Any
) -> None:
    scope = FileScope(
        project_dir=scope.project_dir,
        writable_dirs=["."],
        mcp_file_tools={"mcp__s__put": {"to": "write"}},
    )
    checked = content_check(check)
    assert await refused(scope, checked, tool, **filled(given, "my key")) == (
        f"[write:denied] {'a.ipynb' if tool == 'NotebookEdit' else 'a.md'} was refused by policy"
        " (what is to be written was refused by a content check)."
    )
    assert await refused(scope, checked, tool, **filled(given, "mine")) is None


class Foreign:
    """As what the package ``regex`` compiles."""

    pattern = "x"

    def search(self, text: str, *, timeout: float, concurrent: bool) -> object:
        assert timeout == 4 and concurrent
        if "slow" in text:
            raise TimeoutError
        return "x" if "x" in text else None


async def test_an_expression_with_a_time_limit_refuses_after_it(scope: FileScope) -> None:
    check = content_check(Foreign())
    found = {
        text: await refused(scope, check, "Write", file_path="n", content=text)
        for text in ("a", "x", "slow")
    }
    assert found["a"] is None
    assert "refused by a content check" in str(found["x"])
    assert "could not be checked" in str(found["slow"])
    assert not check.inline


@pytest.mark.parametrize(
    ("authorizer", "closes"),
    [
        (deny_paths(["x"]), False),  # by its patterns
        (size_ceiling(1), False),
        (read_limit(lines=1), False),
        (rate_limit(1, 1), False),
        (content_check("x"), False),
        (ask_user(lambda _target: True), True),
        (read_authorizers(size_ceiling(1), ask_user(lambda _target: True)), True),
    ],
)
def test_which_authorizers_may_close_a_file_to_reading(authorizer: Any, closes: bool) -> None:
    assert may_close_files([authorizer]) is closes


def test_one_s_own_authorizer_may_close_a_file_unless_it_judges_no_read() -> None:
    class Own:
        id = "own"
        actions: Any = None

    assert may_close_files([Own()])
    Own.actions = ["write"]
    assert not may_close_files([Own()])


async def test_a_content_check_answers_as_an_authorizer_may(scope: FileScope) -> None:
    answers = {"a": allow(), "b": deny("no b"), "c": None, "d": "yes", "e": 1, "f": False}
    found = {
        text: await refused(scope, content_check(answers.get), "Write", file_path="x", content=text)
        for text in answers
    }
    failed = "[write:extension-failed] x was refused by policy (it could not be checked)."
    assert found == {
        "a": None,
        "b": "[write:denied] x was refused by policy (no b).",
        "c": failed,
        "d": failed,
        "e": failed,
        "f": None,
    }


async def test_contents_that_are_no_text_are_refused(scope: FileScope) -> None:
    for given in ({"content": 7}, {"content": None}):
        found = await refused(scope, content_check("x"), "Write", file_path="a", **given)
        assert found and "extension-failed" in found
    found = await refused(scope, content_check("x"), "MultiEdit", file_path="a", edits=[1])
    assert found and "extension-failed" in found
    assert await refused(scope, content_check("x"), "NotebookEdit", notebook_path="a") is None
    assert await refused(scope, content_check("a"), "Read", file_path="a") is None


# --- read_limit ---------------------------------------------------------------------------------


async def narrowed(scope: FileScope, cut: Any, tool: str = "Read", **given: Any) -> Any:
    found = await call(scope, cut, tool, **({"file_path": "a.md"} | given))
    assert found.refusal is None, found.refusal
    return found.tool_input.get("offset"), found.tool_input.get("limit")


@pytest.mark.parametrize(
    ("limit", "given", "expected"),
    [
        ({"lines": 2}, {}, (1, 2)),
        ({"lines": 2}, {"limit": 1}, (None, 1)),
        ({"lines": 2}, {"limit": 2}, (None, 2)),
        ({"lines": 2}, {"limit": 3}, (1, 2)),
        ({"lines": 2}, {"limit": 9, "offset": 2}, (2, 2)),
        ({"lines": 2}, {"offset": 0}, (1, 2)),
        ({"lines": 2}, {"offset": 3.0}, (3, 2)),
        ({"lines": 2}, {"file_path": "none"}, (1, 2)),
        ({"lines": 2}, {"file_path": "logs"}, (None, None)),
        # one\n two\n three\n are 4, 4 and 6 bytes
        ({"bytes": 14}, {}, (None, None)),
        ({"bytes": 13}, {}, (1, 2)),
        ({"bytes": 7}, {}, (1, 1)),
        ({"bytes": 1}, {}, (1, 1)),
        ({"bytes": 4}, {"offset": 2}, (2, 1)),
        ({"bytes": 10}, {"offset": 2}, (2, 2)),
        ({"bytes": 10}, {"offset": 2, "limit": 1}, (2, 1)),
        ({"bytes": 10}, {"offset": 9}, (9, 1)),
        ({"bytes": 10, "lines": 1}, {"offset": 2}, (2, 1)),
        ({"bytes": 4, "lines": 2}, {}, (1, 1)),
    ],
)
async def test_a_read_is_cut_short(
    scope: FileScope, limit: dict[str, int], given: dict[str, Any], expected: Any
) -> None:
    assert await narrowed(scope, read_limit(**limit), **given) == expected


async def test_a_line_longer_than_what_is_read_at_once_is_one_line(scope: FileScope) -> None:
    Path(scope.project_dir, "a.md").write_text("x" * 200_000 + "\ny\nz\nlast" + "z" * 50)
    assert await narrowed(scope, read_limit(bytes=200_003)) == (1, 2)
    assert await narrowed(scope, read_limit(bytes=100_000)) == (1, 1)
    assert await narrowed(scope, read_limit(bytes=10), offset=2) == (2, 2)


async def test_only_reads_are_cut_short(scope: FileScope) -> None:
    limit = read_limit(lines=1)
    assert await narrowed(scope, limit, "Write") == (None, None)
    assert await narrowed(scope, limit, "NotebookRead", notebook_path="x") == (None, None)


@pytest.mark.parametrize("given", [{"limit": "9"}, {"offset": True}, {"limit": 1.5}])
async def test_a_range_that_is_none_is_refused(scope: FileScope, given: dict[str, Any]) -> None:
    found = await refused(scope, read_limit(lines=1), "Read", file_path="a.md", **given)
    assert found and "extension-failed" in found


COMPACT = '{"cells":[{"source":["a\\nb\\u000ac"]}]}'  # three lines, as the CLI shows them


@pytest.mark.parametrize(
    ("limit", "name", "text", "says"),
    [
        ({"bytes": 9}, "n.ipynb", "0123456789", "10 bytes is over the limit"),
        ({"bytes": 9}, "N.IPYNB", "0123456789", "10 bytes is over the limit"),
        ({"bytes": 9}, "p.pdf", "0123456789", "10 bytes is over the limit"),
        ({"bytes": 9}, "i.PNG", "0123456789", "10 bytes is over the limit"),
        ({"bytes": 9}, "i.jpeg", "0123456789", "10 bytes is over the limit"),
        ({"bytes": 10, "lines": 2}, "n.ipynb", "1\n2\n3", "more than 2 lines"),
        ({"lines": 2}, "n.ipynb", COMPACT, "more than 2 lines"),
        ({"lines": 999}, "p.pdf", "x", "more than 999 lines"),
        ({"bytes": 10}, "n.ipynb", "0123456789", None),
        ({"bytes": 10, "lines": 3}, "n.ipynb", "1\n2\n3", None),
        ({"lines": 3}, "n.ipynb", COMPACT, None),
        ({"lines": 1}, "i.png", "1\n2\n3", None),  # which has no lines
        ({"lines": 1}, "none.ipynb", None, None),
    ],
)
async def test_what_is_read_as_a_whole_is_refused_over_the_limit(
    scope: FileScope, limit: dict[str, int], name: str, text: str | None, says: str | None
) -> None:
    if text is not None:
        Path(scope.project_dir, name).write_text(text)
    for given in ({}, {"offset": 1, "limit": 1}, {"pages": "1"}):
        found = await refused(scope, read_limit(**limit), "Read", file_path=name, **given)
        assert found is None if says is None else says in (found or "")


async def test_a_pipe_by_the_name_of_a_notebook_holds_nobody_up(scope: FileScope) -> None:
    os.mkfifo(Path(scope.project_dir, "n.ipynb"))
    assert await refused(scope, read_limit(lines=2), "Read", file_path="n.ipynb") is None


async def test_a_link_is_read_as_a_whole_by_either_name(scope: FileScope) -> None:
    project = Path(scope.project_dir)
    (project / "n.ipynb").write_text("1\n2\n3")
    (project / "link.txt").symlink_to("n.ipynb")
    (project / "link.pdf").symlink_to("a.md")
    for name in ("link.txt", "link.pdf"):
        assert await refused(scope, read_limit(lines=2), "Read", file_path=name) is not None


async def test_the_lines_of_a_large_notebook_are_not_counted(
    scope: FileScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(scope.project_dir, "n.ipynb").write_text("0123456789")
    monkeypatch.setattr(contents, "_COUNTED", 9)
    assert await refused(scope, read_limit(lines=99), "Read", file_path="n.ipynb") is not None


@pytest.mark.parametrize("name", ["n.ipynb", "p.PDF", "i.webp"])
async def test_a_range_is_none_of_what_is_read_as_a_whole(scope: FileScope, name: str) -> None:
    Path(scope.project_dir, name).write_text("0123456789")
    given = {"file_path": name, "offset": 1, "limit": 1}
    ceiling = size_ceiling(9, unranged_only=True)
    found = await refused(scope, ceiling, "Read", **given)
    assert found is not None
    assert "10 bytes is over the 9-byte ceiling, and it is read as a whole only" in found
    assert await refused(scope, size_ceiling(10, unranged_only=True), "Read", **given) is None
    notebook = {"notebook_path": name, "limit": 1}
    assert await refused(scope, ceiling, "NotebookRead", **notebook) is not None


async def test_those_behind_it_see_the_narrower_read(scope: FileScope) -> None:
    both = [read_limit(lines=1), size_ceiling(1, unranged_only=True)]
    given = {"file_path": "a.md"}
    found = await authorize_call(both, scope, "Read", given, context(scope))
    assert found.allowed
    assert found.tool_input == {"file_path": "a.md", "offset": 1, "limit": 1}
    assert given == {"file_path": "a.md"}
    assert not (await authorize_call(both[::-1], scope, "Read", given, context(scope))).allowed


# --- arguments, targets, words ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "error", "says"),
    [
        (lambda: deny_paths("**/.env"), TypeError, "a list of patterns"),
        (lambda: deny_paths([7]), ConfigError, r"deny_paths\[0\]=7: give a pattern as text"),
        (lambda: deny_paths(["a", "!b", "../c"]), ConfigError, r"deny_paths\[1\](.|\n)*paths\[2\]"),
        (lambda: size_ceiling("1MB"), ConfigError, "max_bytes='1MB': give a number of bytes"),
        (lambda: size_ceiling(True), ConfigError, "max_bytes=True: give a number of bytes"),
        (lambda: size_ceiling(-1), ConfigError, "max_bytes=-1: give a number of bytes from 0 up"),
        (lambda: size_ceiling(1, unranged_only=1), ConfigError, "only=1: write True or False"),
        (lambda: size_ceiling(-1, unranged_only=1), ConfigError, r"max_bytes=-1(.|\n)*only=1"),
        (lambda: rate_limit(1.5, 1), TypeError, "number of calls"),
        (lambda: rate_limit(True, 1), TypeError, "number of calls"),
        (lambda: rate_limit(1, "1"), TypeError, "number of seconds"),
        (lambda: rate_limit(1, True), TypeError, "number of seconds"),
        (lambda: rate_limit(-1, 1), ValueError, "negative"),
        (lambda: rate_limit(1, 0), ValueError, "more than 0"),
        (lambda: rate_limit(1, float("nan")), ValueError, "more than 0"),
        (lambda: rate_limit(1, float("inf")), ValueError, "more than 0"),
        (lambda: rate_limit(1, 1, operations="write"), TypeError, "is a list"),
        (lambda: rate_limit(1, 1, operations=7), TypeError, "is a list"),
        (lambda: rate_limit(1, 1, operations=[]), ValueError, "operations are some of"),
        (lambda: rate_limit(1, 1, operations=["edit"]), ValueError, "read, list, search"),
        (lambda: rate_limit(1, 1, operations=[7]), ValueError, "operations are some of"),
        (lambda: content_check(7), TypeError, "regular expression or a function"),
        (lambda: content_check("("), ValueError, "takes a regular expression: missing"),
        (lambda: content_check(re.compile(b"x")), TypeError, "not of bytes"),
        (lambda: read_limit(), ValueError, "lines, bytes, or both"),
        (lambda: read_limit(lines=0), ValueError, "lines must be at least 1"),
        (lambda: read_limit(bytes=1.5), TypeError, "bytes is a number"),
        (lambda: read_limit(bytes=True), TypeError, "bytes is a number"),
        (
            lambda: read_authorizers(deny_paths([]), 7),
            ConfigError,
            r"read_authorizers\[1\]=7: give an",
        ),
        (lambda: deny(None), TypeError, "a note is text, not NoneType"),
        (lambda: Messages(denied=7), ConfigError, "denied=7: give a text"),
        (lambda: Messages(no="x"), ConfigError, "there is no such field"),
    ],
)
def test_bad_arguments_are_told_at_once(made: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        made()


def test_what_is_wrong_with_authorizers_is_told_with_their_index() -> None:
    class Odd:
        def __init__(self, **fields: Any) -> None:
            self.__dict__.update({"id": "odd", "authorize": lambda *_: allow()} | fields)

    bad = [
        Odd,
        FilePermission(operations=["read"], paths=["x"], mode="deny"),
        Odd(id=""),
        Odd(id=7, actions="read", timeout=0),
        Odd(actions=["edit"], timeout=True),
        Odd(actions=7, timeout="5"),
        Odd(actions=[[]], authorize=7),
        Odd(timeout=float("nan")),
    ]
    assert [(fault.field, fault.remedy[:12]) for fault in authorizer_faults(bad)] == [
        ("authorizers[0]", "give an obje"),
        ("authorizers[1]", "give an obje"),
        ("authorizers[2]", "give it an i"),
        ("authorizers[3]", "give it an i"),
        ("authorizers[3]", "its actions "),
        ("authorizers[3]", "its timeout "),
        ("authorizers[4]", "its actions "),
        ("authorizers[4]", "its timeout "),
        ("authorizers[5]", "its actions "),
        ("authorizers[5]", "its timeout "),
        ("authorizers[6]", "give an obje"),
        ("authorizers[7]", "its timeout "),
    ]
    fine = [Odd(), Odd(actions={"read", "delete"}, timeout=0.5), Odd(timeout=None), deny_paths([])]
    assert authorizer_faults([*fine, read_authorizers(*fine)]) == []
    [fault] = authorizer_faults(deny_paths([]), "SessionConfig.authorizers")
    assert (fault.field, fault.remedy) == (
        "SessionConfig.authorizers",
        "give a list of authorizers.",
    )


def test_a_target_says_what_is_done_with_what(scope: FileScope) -> None:
    root = str(scope.project_dir)
    given = {"file_path": f"{root}/way"}
    [target] = targets_of(scope, "Edit", given, agent="reviewer") or ()
    assert target.action == "write"
    assert target.requested == target.absolute == f"{root}/way"
    assert target.resolved == f"{root}/closed/key"
    assert target.display_path == "way"
    assert (target.size, target.is_folder) == (14, False)
    assert (target.tool, target.tool_input, target.agent) == ("Edit", given, "reviewer")
    [listing] = targets_of(scope, "LS", {}) or ()
    assert (listing.action, listing.is_folder, listing.size) == ("list", True, None)
    assert listing.requested == listing.display_path == "."
    [missing] = targets_of(scope, "Read", {"file_path": "/none/\n"}) or ()
    assert (missing.size, missing.display_path, missing.resolved) == (None, "/none/\\n", "/none")
    assert targets_of(scope, "Bash", {"command": "x"}) == ()
    assert targets_of(scope, "Read", {"file_path": "\0"}) is None


def test_a_target_is_as_it_was_located_and_not_looked_at_again(
    scope: FileScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"file_path": "a.md"}
    named = named_paths(scope, "Read", given)
    (Path(scope.project_dir) / "a.md").unlink()
    [target] = targets_of(scope, "Read", given, named=named) or ()
    assert (target.size, target.is_folder) == (14, False)


def test_all_that_a_text_may_mean_is_one_target(scope: FileScope) -> None:
    """Of a tool that nobody knows each reading counts, once for each action."""
    targets = targets_of(scope, "Odd", {"file_path": " a.md"}) or ()
    assert [target.action for target in targets] == ["write", "read"]
    assert {Path(path).name for path in targets[0].real_paths} == {" a.md", "a.md"}
    assert targets[0].size == 14  # the one that exists
    twice = targets_of(scope, "Odd", {"files": ["a.md", "a.md", "b"]}) or ()
    assert [target.requested for target in twice] == ["a.md", "a.md", "b", "b"]


async def test_a_call_that_cant_be_judged_is_refused(scope: FileScope) -> None:
    found = await call(scope, deny_paths([]), "Read", file_path="\0")
    assert str(found.refusal) == (
        "[read:extension-failed] Read was refused by policy (it could not be checked)."
    )
    deleted = await authorize_call(
        [], scope, "Write", {"file_path": 7}, context(scope), deletes=True
    )
    assert deleted.refusal is not None
    assert deleted.refusal.action == "delete"
    assert (await call(scope, deny_paths(["**"]), "Bash", command="x")).allowed


def test_words_may_be_replaced_and_a_path_is_never_read_as_one_of_them() -> None:
    words = Messages(denied="{path}: {note} ({path})")
    assert words.say("denied", "{note}", "{path}") == "{note}: {path} ({note})"
    assert words.say("failed", "a").startswith("a was refused")


def test_a_refusal_has_its_parts() -> None:
    parts = {
        code: Refusal(action="read", code=code, message="m", display_path="a").severity  # type: ignore[arg-type]
        for code in ("denied", "extension-failed", "changed-during-read", "aborted")
    }
    assert parts == {
        "denied": "warning",
        "extension-failed": "error",
        "changed-during-read": "warning",
        "aborted": "info",
    }
