"""Tools that open files themselves, on the real CLI: rules, a person and authorizers hold for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool

from agent_kit import (
    Contribution,
    ExtensionContext,
    Guard,
    RefusedError,
    Subagent,
    approve,
    content_check,
    deny_paths,
    guard,
    options_from_plan,
    read_trail,
    reject,
    session_mode,
    size_ceiling,
)
from agent_kit.scope import FileScope
from agent_kit.testing import Say, ToolCall
from tests.people import Person, rule

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e


def trail(course: Course) -> list[dict[str, Any]]:
    """Every line of the sessions so far, in their order."""
    paths = (course.run_dir / "host").glob("*.decisions.jsonl")
    return sorted((line for path in paths for line in read_trail(path)), key=lambda e: e["time"])


def page(course: Course, name: str, text: str) -> Path:
    path = course.project / "knowledge" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\ntitle: {path.stem}\n---\n{text}\n")
    return path


@pytest.fixture
def pages(course: Course) -> Course:
    page(course, "topic/open.md", "canary(openpage) about exams")
    page(course, "topic/closed.md", "canary(closedpage) about exams")
    return course


# --- the kit's extensions --------------------------------------------------------------------


def test_a_source_that_a_rule_denies_is_not_in_the_list_and_is_no_origin(course: Course) -> None:
    (course.project / "sources/marks.md").write_text("canary(marks)")
    (course.project / "drafts/secret.md").write_text("canary(draftsecret)")
    script = [
        ToolCall("mcp__sources__list_sources", {}),
        ToolCall("mcp__sources__save_to_sources", {"file": "drafts/secret.md"}),
        ToolCall("mcp__sources__save_to_sources", {"file": "drafts/newsletter.md"}),
        ToolCall(
            "mcp__sources__save_to_sources", {"file": "drafts/newsletter.md", "name": "marks/n.md"}
        ),
    ]
    open_run = course.session(script[:1])
    assert "marks.md" in (open_run.calls[0].result or "")
    run = course.session(
        script,
        permissions=[
            rule("deny", "sources/marks*", operations=("read", "write")),
            rule("deny", "drafts/secret.md", operations=("read",)),
        ],
    )
    listed, secret, letter, marks = run.calls
    assert "syllabus.md" in (listed.result or "")
    assert "marks.md" not in (listed.result or "")
    assert secret.is_error
    assert "a rule of this session forbids it" in (secret.result or "")
    assert not letter.is_error
    assert marks.is_error
    assert not (course.project / "sources/secret.md").exists()
    assert not (course.project / "sources/marks").exists()
    assert (course.project / "sources/newsletter.md").exists()


def test_a_page_that_a_rule_denies_is_neither_read_nor_found_nor_changed(pages: Course) -> None:
    def script(name: str) -> list[ToolCall]:
        return [
            ToolCall("mcp__knowledge__knowledge_read", {"id": f"topic/{name}"}),
            ToolCall("mcp__knowledge__knowledge_read", {"id": f"TOPIC/{name.upper()}"}),
            ToolCall("mcp__knowledge__knowledge_search", {"query": "exams"}),
            ToolCall("mcp__knowledge__knowledge_index", {}),
        ]

    control = pages.session(script("closed"))
    assert {"openpage", "closedpage"} <= pages.seen(control)
    run = pages.session(
        [*script("closed"), *script("open")],
        permissions=[rule("deny", "knowledge/topic/closed.md", operations=("read",))],
    )
    assert pages.seen(run) & {"openpage", "closedpage"} == {"openpage"}
    assert "topic/closed" not in (run.calls[3].result or "")
    made = pages.session(
        [
            ToolCall(
                "mcp__knowledge__knowledge_create",
                {"pages": [{"type": kind, "title": "New", "body": "x"}]},
            )
            for kind in ("policy", "topic")
        ],
        permissions=[rule("deny", "knowledge/policy/**", operations=("write",))],
    )
    assert [call.is_error for call in made.calls] == [True, False]
    assert not (pages.project / "knowledge/policy").exists()
    assert (pages.project / "knowledge/topic/new.md").exists()


def test_a_person_is_asked_about_a_page_and_a_search_leaves_it_out(pages: Course) -> None:
    read = ToolCall("mcp__knowledge__knowledge_read", {"id": "topic/closed"})
    search = ToolCall("mcp__knowledge__knowledge_search", {"query": "exams"})
    rules = [rule("interrupt", "knowledge/topic/closed.md")]

    no = Person(reject("it is about marks"))
    run = pages.session([search, read], permissions=rules, ask=no)
    assert "it is about marks" in (run.calls[1].result or "")
    assert "closedpage" not in pages.seen(run)

    yes = Person(approve())
    run = pages.session([read, search], permissions=rules, ask=yes)
    (asked,) = yes.asked
    assert asked.tool == "mcp__knowledge__knowledge_read"
    assert asked.tool_input == {"id": "topic/closed"}
    assert asked.target == "topic/closed"
    assert "canary(closedpage)" in (run.calls[0].result or "")
    assert "topic/closed" not in (run.calls[1].result or "")  # a yes ends with its call
    lines = [line for line in trail(pages) if line["answer"] is not None]
    assert [(line["verdict"], line["answer"]) for line in lines] == [
        ("deny", "rejected"),
        ("allow", "approved"),
    ]

    for more in ({}, {"mode": "autonomous", "ask": Person()}, {"ask": "defer"}):
        alone = pages.session([read], permissions=rules, **more)
        assert alone.calls[0].is_error
        assert "was refused" in (alone.calls[0].result or "")
        assert "closedpage" not in pages.seen(alone)


def test_authorizers_hold_for_the_extensions_tools(pages: Course) -> None:
    run = pages.session(
        [
            ToolCall("mcp__knowledge__knowledge_read", {"id": "topic/closed"}),
            ToolCall("mcp__knowledge__knowledge_read", {"id": "Topic/Closed"}),
            ToolCall("mcp__knowledge__knowledge_search", {"query": "exams"}),
            ToolCall("mcp__knowledge__knowledge_index", {}),
            ToolCall("mcp__sources__list_sources", {}),
            ToolCall("mcp__sources__save_to_sources", {"file": "drafts/newsletter.md"}),
        ],
        authorizers=[
            deny_paths(["knowledge/topic/closed.md", "sources/syllabus.md"]),
            size_ceiling(10),
        ],
    )
    assert pages.seen(run) & {"openpage", "closedpage"} == {"openpage"}
    assert not any("topic/closed" in (call.result or "") for call in run.calls[2:4])
    assert "syllabus" not in (run.calls[4].result or "")
    assert "10-byte ceiling" in (run.calls[5].result or "")


def test_what_the_agent_wants_to_keep_is_checked_before_it_is_kept(pages: Course) -> None:
    run = pages.session(
        [
            ToolCall("mcp__memory__remember", {"note": "swordfish", "quote": "remember swordfish"}),
            ToolCall("mcp__memory__remember", {"note": "coffee", "quote": "I drink coffee"}),
            ToolCall("mcp__memory__recall", {}),
            ToolCall("mcp__memory__forget", {"id": "fact/coffee"}),
        ],
        run={"prompt": "remember swordfish. I drink coffee."},
        authorizers=[content_check("swordfish")],
        permissions=[rule("deny", "memory/fact/coffee.md", operations=("write",))],
    )
    refused, coffee, recalled, _ = run.calls
    assert "content check" in (refused.result or "")
    assert coffee.is_error
    assert "Nothing is remembered" in (recalled.result or "")
    assert not (pages.project / "memory/fact").exists()


def test_a_note_under_a_rule_is_not_forgotten(course: Course) -> None:
    note = course.project / "memory/fact/coffee.md"
    note.parent.mkdir(parents=True)
    note.write_text("---\ntitle: coffee\nquote: coffee\n---\ncoffee\n")
    forget = ToolCall("mcp__memory__forget", {"id": "fact/coffee"})
    run = course.session([forget], permissions=[rule("deny", "memory/**", operations=("write",))])
    assert "can't be deleted" in (run.calls[0].result or "")
    assert note.exists()
    course.session([forget])
    assert not note.exists()


def test_an_auditor_changes_no_page_and_keeps_its_own_rules(pages: Course) -> None:
    new = {"pages": [{"type": "topic", "title": "Made", "body": "x"}]}
    create = ToolCall("mcp__knowledge__knowledge_create", new)
    read = ToolCall("mcp__knowledge__knowledge_read", {"id": "topic/closed"})
    auditor = Subagent(
        description="d",
        prompt="p",
        tools=["mcp__knowledge__knowledge_create", "mcp__knowledge__knowledge_read"],
        writable_dirs=[],
        permissions=[rule("deny", "knowledge/topic/closed.md")],
    )
    fields = {"description": "d", "prompt": "Look.", "subagent_type": "auditor"}
    start = ToolCall("Agent", fields, script=[create, read, Say("done")])
    run = pages.session([start, read, create], spec={"subagents": {"auditor": auditor}})
    by = {(call.agent, call.tool.rpartition("_")[2]): call for call in run.calls}
    assert "may write less than others" in (by["auditor", "create"].result or "")
    assert by["auditor", "read"].is_error
    assert not by[None, "read"].is_error
    assert not by[None, "create"].is_error


# --- tools of a host -------------------------------------------------------------------------


class Cleaner:
    """A host's own extension: its tool deletes what it is told to, after it has asked."""

    name = "cleaner"
    plugin_dir: Path | None = None
    provides: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def missing(self, _context: ExtensionContext) -> str | None:
        return None

    def contribute(self, context: ExtensionContext) -> Contribution:
        with pytest.raises(LookupError):
            context.guard()
        return Contribution(
            mcp_servers={"cleaner": lambda: _server("cleaner", _removing(context))},
        )


def _removing(context: ExtensionContext) -> Any:
    @tool("remove", "Removes a file or folder.", {"path": str})
    async def remove(arguments: dict[str, Any]) -> dict[str, Any]:
        real = Path(await context.guard().require("delete", arguments["path"]))
        shutil.rmtree(real) if real.is_dir() else real.unlink()
        return {"content": [{"type": "text", "text": "removed"}]}

    return remove


def _server(name: str, *tools: Any) -> Any:
    return create_sdk_mcp_server(name, tools=list(tools))


@pytest.fixture
def folders(course: Course) -> Iterator[Course]:
    for name in ("old/a.md", "old/keep/b.md", "older/c.md"):
        path = course.project / "drafts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    yield course


def test_a_folder_is_deleted_whole_or_not_at_all(folders: Course) -> None:
    def remove(path: str) -> ToolCall:
        return ToolCall("mcp__cleaner__remove", {"path": path})

    run = folders.session(
        [remove("drafts/old"), remove("drafts/older"), remove("README.md"), remove("drafts/.env")],
        spec={"extensions": [Cleaner()]},
        permissions=[rule("deny", "drafts/old/keep/**", operations=("write",))],
    )
    assert [call.is_error for call in run.calls] == [True, False, True, True]
    assert "Nothing was deleted" in (run.calls[0].result or "")
    assert (folders.project / "drafts/old/a.md").exists()
    assert not (folders.project / "drafts/older").exists()
    assert (folders.project / "README.md").exists()
    lines = [line for line in trail(folders) if "operation" in (line["target"] or "")]
    assert [(line["verdict"], line["lock"]) for line in lines] == [
        ("deny", "rules"),
        ("allow", "guard"),
        ("deny", "guard"),
        ("deny", "guard"),
    ]
    assert all(
        line["tool_use_id"] == call.call_id for line, call in zip(lines, run.calls, strict=True)
    )


def test_a_deletion_asks_a_person_and_a_mode_that_is_switched_counts(folders: Course) -> None:
    remove = ToolCall("mcp__cleaner__remove", {"path": "drafts/old"})
    asks = [rule("interrupt", "drafts/old/keep/b.md", operations=("write",))]
    person = Person(reject("we need it"))
    run = folders.session([remove], spec={"extensions": [Cleaner()]}, permissions=asks, ask=person)
    assert "we need it" in (run.calls[0].result or "")
    assert (folders.project / "drafts/old/keep/b.md").exists()
    person = Person(approve())
    folders.session([remove], spec={"extensions": [Cleaner()]}, permissions=asks, ask=person)
    assert not (folders.project / "drafts/old").exists()


def test_a_tool_that_deletes_a_folder_file_by_file_asks_once_for_the_whole(
    folders: Course,
) -> None:
    holder: list[Guard] = []

    @tool("clear", "Removes the files of a folder, one by one.", {"path": str})
    async def clear(arguments: dict[str, Any]) -> dict[str, Any]:
        root = Path(await holder[0].require("delete", arguments["path"]))
        for path in sorted(root.rglob("*"), reverse=True):
            real = Path(await holder[0].require("delete", path))
            real.rmdir() if real.is_dir() else real.unlink()
        return {"content": [{"type": "text", "text": "cleared"}]}

    person = Person(approve())
    plan = folders.plan(
        spec={"mcp_servers": {"own": _server("own", clear)}},
        permissions=[rule("interrupt", "drafts/old/**", operations=("write",))],
        ask=person,
    )
    options = options_from_plan(plan)
    holder.append(plan.guard())
    run = folders.run(options, [ToolCall("mcp__own__clear", {"path": "drafts/old"})])
    assert not run.calls[0].is_error
    assert not list((folders.project / "drafts/old").iterdir())
    assert len(person.asked) == 1


def test_a_hosts_own_tool_with_a_guard_of_its_own(course: Course) -> None:
    """As in a server that runs beside the session: the scope is made once more."""
    scope = FileScope(
        project_dir=str(course.project), searchable_dirs=["drafts"], denied_paths=["**/.env"]
    )
    own = guard(
        scope, rules=[rule("deny", "drafts/plan.ipynb")], authorizers=[deny_paths(["**/*.secret"])]
    )
    (course.project / "drafts/x.secret").write_text("canary(xsecret)")
    (course.project / "drafts/link.md").symlink_to(course.out / "secret.txt")

    @tool("attach", "Attaches a file.", {"file": str})
    async def attach(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            text = Path(await own.require("read", arguments["file"])).read_text()
        except RefusedError as refused:
            text = str(refused)
        return {"content": [{"type": "text", "text": text}]}

    names = ("newsletter.md", "plan.ipynb", ".env", "x.secret", "link.md", "../README.md")
    run = course.session(
        [ToolCall("mcp__mail__attach", {"file": f"drafts/{name}"}) for name in names],
        spec={"mcp_servers": {"mail": _server("mail", attach)}},
    )
    assert course.seen(run) == {"newsletter"}


def test_the_plans_guard_becomes_the_sessions(course: Course) -> None:
    plan = course.plan(permissions=[rule("deny", "drafts/plan.ipynb")])
    before = plan.guard()
    assert isinstance(before, Guard)
    assert before.check_scope_and_rules("read", "drafts/plan.ipynb") is not None
    assert before.check_scope_and_rules("read", "drafts/newsletter.md") is None
    options = options_from_plan(plan)
    after = plan.guard()
    assert after is not before
    assert after.policy.mode is session_mode(options)
