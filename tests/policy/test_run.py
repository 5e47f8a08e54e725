"""What goes wrong with an authorizer is a refusal that hides why from the model and logs it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import (
    Action,
    Answer,
    Authorized,
    AuthorizerContext,
    Target,
    allow,
    ask_user,
    deny,
    read_authorizers,
    read_limit,
    run_authorizers,
    size_ceiling,
    targets_of,
)
from agent_kit.policy.run import authorize_mentions
from agent_kit.policy.waiting import _ABANDONED
from agent_kit.scope import FileScope
from agent_kit.scope.judge import named_paths

FAILED = "[read:extension-failed] a was refused by policy (it could not be checked)."


class Own:
    """An authorizer of one's own, around a function."""

    def __init__(self, function: Callable[..., Any], **fields: Any) -> None:
        self.id = "own"
        self.authorize = function
        self.__dict__.update(fields)


def target(action: str = "read", path: str = "/w/a") -> Target:
    return Target(
        action=Action(action),
        requested=path,
        absolute=path,
        resolved=path,
        display_path="a",
        tool="Read",
    )


def context() -> AuthorizerContext:
    return AuthorizerContext(project_dir="/w", session_id="s", tool_use_id="t")


async def run(*authorizers: Any, about: Target | None = None, **more: Any) -> Authorized:
    return await run_authorizers(authorizers, [about or target()], more.get("within", context()))


async def text(*authorizers: Any, **more: Any) -> str | None:
    found = await run(*authorizers, **more)
    return None if found.refusal is None else str(found.refusal)


def is_sync(_target: Target, _context: AuthorizerContext) -> Answer:
    return deny("sync")


async def is_async(_target: Target, _context: AuthorizerContext) -> Answer:
    await asyncio.sleep(0)
    return deny("async")


class Called:
    async def __call__(self, *_: Any) -> Answer:
        return deny("called")


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (is_sync, "sync"),
        (is_async, "async"),
        (Called(), "called"),
        (lambda *given: is_async(*given), "async"),  # sync, and returns what must be awaited
    ],
)
async def test_authorizers_are_sync_or_async(function: Any, note: str) -> None:
    assert await text(Own(function)) == f"[read:denied] a was refused by policy ({note})."


async def test_a_refusal_without_a_note_says_no_more(caplog: pytest.LogCaptureFixture) -> None:
    assert await text(Own(lambda *_: deny(""))) == "[read:denied] a was refused by policy."
    assert not caplog.records


async def test_an_authorizer_gets_the_target_and_the_session() -> None:
    seen: list[Any] = []

    def authorize(*given: Any) -> Answer:
        seen.extend(given)
        return allow()

    within = context()
    assert (await run(Own(authorize), within=within)).allowed
    assert seen == [target(), within]
    assert seen[1].state == {}


async def test_a_sync_one_runs_beside_the_loop_and_an_inline_one_on_the_spot() -> None:
    threads: list[Any] = []

    def authorize(*_: Any) -> Answer:
        threads.append(threading.current_thread())
        return allow()

    for inline in (False, True, frozenset({Action.READ}), frozenset({Action.LIST}), {Action.READ}):
        assert (await run(Own(authorize, inline=inline))).allowed
    main = threading.main_thread()
    assert [thread is main for thread in threads] == [False, True, True, False, False]
    assert threads[0].daemon


async def test_an_authorizer_is_asked_about_its_actions_alone() -> None:
    for actions, expected in (
        (None, True),
        ({"read"}, True),
        (["list", "write"], False),
        ((), False),
    ):
        found = await run(Own(is_sync, actions=actions))
        assert (found.refusal is not None) == expected


def throws(error: BaseException) -> Callable[..., Any]:
    def authorize(*_: Any) -> Any:
        raise error

    return authorize


def throws_later(error: BaseException) -> Callable[..., Any]:
    async def authorize(*_: Any) -> Any:
        raise error

    return authorize


ERRORS = [ValueError("/secret/path"), StopIteration(), TimeoutError(), OSError()]
ODD_ERRORS = [asyncio.CancelledError(), SystemExit(0), GeneratorExit()]


@pytest.mark.parametrize(
    ("kind", "inline", "error"),
    [
        *((throws, True, error) for error in ERRORS),
        *((throws, False, error) for error in [*ERRORS, *ODD_ERRORS, KeyboardInterrupt()]),
        # In the loop a KeyboardInterrupt is the operator's, and ends it.
        *((throws_later, False, error) for error in [*ERRORS, *ODD_ERRORS]),
    ],
)
async def test_a_throw_is_a_refusal_that_hides_the_cause(
    kind: Any, error: BaseException, inline: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert await text(Own(kind(error), inline=inline)) == FAILED
    [record] = caplog.records
    assert record.name == "agent_kit.policy"
    assert "authorizer own, asked about '/w/a': it failed" in record.getMessage()
    assert record.exc_info


@pytest.mark.parametrize(
    "answer",
    [None, True, "allow", 1, {"allowed": True}, allow, Answer("yes"), Answer(1), Answer],  # type: ignore[arg-type]
)
async def test_anything_else_than_an_answer_is_a_refusal(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert await text(Own(lambda *_: answer)) == FAILED
    assert "neither allow() nor deny()" in caplog.text


async def test_an_answer_of_ones_own_kind_is_none() -> None:
    class Mine(Answer):
        pass

    assert await text(Own(lambda *_: Mine(allowed=True))) == FAILED


async def sleeps(*_: Any) -> Answer:
    await asyncio.sleep(30)
    return allow()


FREE = threading.Event()
ENDED: list[str] = []


async def stays(*_: Any) -> Answer:
    while not FREE.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
    ENDED.append("stays")
    return allow()


async def throws_when_it_is_cancelled(*_: Any) -> Answer:
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        raise ValueError from None
    return allow()


def blocks(*_: Any) -> Answer:
    FREE.wait(30)
    ENDED.append("blocks")
    return allow()


@pytest.mark.parametrize("function", [sleeps, stays, throws_when_it_is_cancelled, blocks])
async def test_what_takes_too_long_is_refused_at_once(
    function: Any, caplog: pytest.LogCaptureFixture
) -> None:
    FREE.clear()
    ENDED.clear()
    try:
        assert await text(Own(function, timeout=0.02)) == FAILED
        assert not ENDED
    finally:
        FREE.set()
    assert "it took too long" in caplog.text
    while _ABANDONED:  # what it says later is not heard
        await asyncio.sleep(0.01)


async def test_the_limit_is_five_seconds_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []

    async def run_host_code(_function: Any, *_: Any, limit: Any, abort: Any) -> Answer:
        limits.append(limit)
        return allow()

    monkeypatch.setattr("agent_kit.policy.run.run_host_code", run_host_code)
    assert (await run(Own(sleeps), Own(sleeps, timeout=9), Own(sleeps, timeout=None))).allowed
    assert (await run(ask_user(lambda _: True))).allowed
    assert limits == [5.0, 9, None, None]


@pytest.mark.parametrize("name", ["id", "actions", "timeout", "inline", "asks_person", "authorize"])
async def test_an_authorizer_whose_fields_throw_is_refused(name: str) -> None:
    class Broken(Own):
        pass

    broken = Broken(is_sync)
    broken.__dict__.pop(name, None)

    def throw(_self: Any) -> Any:
        raise RuntimeError

    setattr(Broken, name, property(throw))
    found = await text(broken)
    assert found == ("[read:denied] a was refused by policy (sync)." if name == "id" else FAILED)


# --- several ------------------------------------------------------------------------------------


async def test_one_from_several_is_asked_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    def named(name: str, answer: Any, **fields: Any) -> Own:
        def authorize(*_: Any) -> Any:
            asked.append(name)
            return answer

        return Own(authorize, **fields)

    inner = read_authorizers(named("b", allow()), named("c", allow(), actions=["write"]))
    several = read_authorizers(named("a", allow()), inner, Own(sleeps, timeout=0.01))
    assert several.id == "own+own+own+own"
    assert await text(several, named("d", allow())) == FAILED
    assert asked == ["a", "b"]
    with pytest.raises(TypeError):
        several.authorize(target(), context())
    assert (await run(read_authorizers())).allowed


async def test_an_authorizer_with_members_of_its_own_is_asked_itself() -> None:
    assert await text(Own(is_sync, members=())) == "[read:denied] a was refused by policy (sync)."


def scoped(root: Path) -> FileScope:
    (root / "a.md").write_text("12345")
    (root / "b").mkdir()
    return FileScope(project_dir=root, searchable_dirs=["."])


async def test_what_a_skill_mentions_is_asked_about_as_a_read_of_the_whole(tmp_path: Path) -> None:
    scope, seen = scoped(tmp_path), []

    def sees(about: Target, _context: AuthorizerContext) -> Answer:
        seen.append((about.action, about.tool, dict(about.tool_input)))
        return allow()

    named = [
        *(named_paths(scope, "Read", {"file_path": "a.md"}) or ()),
        *(named_paths(scope, "LS", {"path": "b"}) or ()),
    ]
    given = {"skill": "x", "args": "@a.md @b"}
    assert not seen

    async def mentioned(*authorizers: Any) -> Authorized:
        return await authorize_mentions(authorizers, scope, given, context(), named)

    done = await mentioned(Own(sees))
    assert (done.allowed, done.tool_input) == (True, given)
    assert seen == [("read", "Read", {"file_path": "a.md"}), ("list", "LS", {"path": "b"})]
    refused = await mentioned(size_ceiling(4))
    assert "5 bytes is over" in str(refused.refusal)
    assert refused.tool_input == given
    assert "a mention attaches the whole" in str((await mentioned(read_limit(lines=1))).refusal)


async def test_each_target_of_a_call_is_judged_and_the_first_refusal_wins() -> None:
    asked: list[tuple[str, str]] = []

    def own(name: str, closed: str) -> Own:
        def authorize(about: Target, _context: Any) -> Answer:
            asked.append((name, about.requested))
            return deny(name) if about.requested == closed else allow()

        return Own(authorize, id=name)

    targets = [target(path="/1"), target(path="/2")]
    found = await run_authorizers([own("a", "/none"), own("b", "/2")], targets, context())
    assert found.refusal is not None
    assert found.refusal.authorizer == "b"
    assert asked == [("a", "/1"), ("b", "/1"), ("a", "/2"), ("b", "/2")]
    assert (await run_authorizers([own("a", "/1")], [], context())).allowed


async def test_a_waiting_question_holds_up_no_other_call() -> None:
    go = asyncio.Event()

    async def question(_target: Target) -> bool:
        await go.wait()
        return True

    waiting = [asyncio.ensure_future(run(ask_user(question))) for _ in range(20)]
    assert (await run(Own(lambda *_: allow()))).allowed
    go.set()
    assert all(found.allowed for found in await asyncio.gather(*waiting))


# --- a person -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "noun"),
    [("read", "read"), ("search", "search"), ("write", "write"), ("delete", "deletion")],
)
@pytest.mark.parametrize("answer", [False, None, "yes", 1, [True]])
async def test_a_person_who_does_not_say_true_has_not_approved(
    action: str, noun: str, answer: Any
) -> None:
    assert await text(ask_user(lambda _: answer), about=target(action)) == (
        f"[{action}:denied] a was refused by policy (the user did not approve the {noun})."
    )


async def test_a_question_that_throws_is_a_refusal() -> None:
    assert await text(ask_user(throws(EOFError()))) == FAILED
    with pytest.raises(TypeError, match="a function of the target"):
        ask_user(True)  # type: ignore[arg-type]


async def test_a_person_is_asked_each_time() -> None:
    asked: list[Target] = []
    question = ask_user(lambda about: not asked.append(about))  # type: ignore[func-returns-value]
    for _ in range(3):
        assert (await run(question)).allowed
    assert len(asked) == 3


def write(path: Path) -> None:
    path.write_text("other")


def same_size(path: Path) -> None:
    seen = path.stat()
    path.write_text("new")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("old")
    other.rename(path)


def to_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


CHANGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "written": ("file", write),
    "written, as long and as old": ("file", same_size),
    "replaced": ("file", replace),
    "gone": ("file", Path.unlink),
    "made a link": ("file", to_link),
    "made": ("missing", Path.touch),
    "made as a folder": ("missing", Path.mkdir),
    "folder made a link": ("folder", to_link),
    "folder made a file": ("folder", lambda path: (path.rmdir(), path.touch()) and None),
    "link led elsewhere": ("link", lambda path: (path.unlink(), path.symlink_to("two")) and None),
    "what a link leads to written": ("link", lambda path: write(path.with_name("one"))),
    "link made a loop": ("link", lambda path: (path.unlink(), path.symlink_to("way")) and None),
}


def planted(folder: Path, kind: str) -> Path:
    path = folder / {"link": "way"}.get(kind, "a")
    for name in ("one", "two"):
        (folder / name).write_text("old")
    if kind == "file":
        path.write_text("old")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("one")
    return path


@pytest.mark.parametrize("change", CHANGES)
async def test_what_changes_while_a_person_thinks_is_refused(change: str, tmp_path: Path) -> None:
    kind, make = CHANGES[change]
    path = planted(tmp_path, kind)
    scope = FileScope(project_dir=tmp_path, writable_dirs=["."])
    targets = targets_of(scope, "Write", {"file_path": str(path)})
    assert targets is not None

    def question(_target: Target) -> bool:
        make(path)
        return True

    found = await run_authorizers([ask_user(question)], targets, context())
    assert str(found.refusal) == (
        f"[write:changed-during-read] {path.name} was refused by policy"
        " (it changed while it was being checked)."
    )


@pytest.mark.parametrize("kind", ["file", "folder", "link", "missing"])
async def test_what_stays_as_it_is_goes_on(kind: str, tmp_path: Path) -> None:
    path = planted(tmp_path, kind)
    scope = FileScope(project_dir=tmp_path, writable_dirs=["."])
    targets = targets_of(scope, "Write", {"file_path": str(path)}) or ()

    def question(_target: Target) -> bool:
        if kind != "missing":
            path.stat()
        if kind == "folder":
            (path / "new").touch()  # others may work in it meanwhile
        return True

    assert (await run_authorizers([ask_user(question)], targets, context())).allowed


async def test_a_change_of_anything_that_the_text_may_mean_counts(tmp_path: Path) -> None:
    for name in ("a", " a"):
        (tmp_path / name).touch()
        scope = FileScope(project_dir=tmp_path, writable_dirs=["."])
        targets = targets_of(scope, "Odd", {"file_path": " a"}) or ()
        path = tmp_path / name
        found = await run_authorizers(
            [ask_user(lambda _, path=path: path.write_text("new") > 0)], targets, context()
        )
        assert found.refusal is not None
        assert found.refusal.code == "changed-during-read"


async def test_what_cant_be_looked_at_before_the_question_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def closed(path: str) -> Any:
        raise PermissionError(path)

    monkeypatch.setattr("agent_kit.policy.target.os.stat", closed)
    found = await text(ask_user(lambda _: True))
    assert found and found.startswith("[read:changed-during-read]")


# --- the end ------------------------------------------------------------------------------------

ABORTED = "[read:aborted] a was refused by policy (the call was stopped)."


async def test_a_stopped_call_is_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    within = context()
    asyncio.get_running_loop().call_later(0.02, within.abort.set)
    began = time.monotonic()
    never = threading.Event()
    assert await text(ask_user(lambda _: never.wait(20)), within=within) == ABORTED
    assert time.monotonic() - began < 5
    never.set()
    assert await text(Own(is_sync), within=within) == ABORTED  # the next isn't even asked
    assert not caplog.records
    fresh = context()
    asyncio.get_running_loop().call_later(0.02, fresh.abort.set)
    assert await text(Own(sleeps), within=fresh) == ABORTED


async def test_an_answer_that_comes_as_the_call_is_stopped_is_not_heard() -> None:
    within = context()

    async def authorize(*_: Any) -> Answer:
        within.abort.set()
        return allow()

    assert await text(Own(authorize), within=within) == ABORTED


async def test_a_caller_that_is_cancelled_takes_the_question_with_it() -> None:
    cancelled = asyncio.Event()

    async def question(_target: Target) -> bool:
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.set()
        return True

    running = asyncio.ensure_future(run(ask_user(question)))
    await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.wait_for(cancelled.wait(), 5)
    await asyncio.sleep(0)
    assert not _ABANDONED


def test_a_process_ends_though_an_authorizer_never_does() -> None:
    code = """
import asyncio, threading, time
from agent_kit.policy import *
class Own:
    id = "own"
    timeout = 0.05
    def authorize(self, *_):
        time.sleep(0.3 if self.short else 30)
async def main(short):
    own = Own()
    own.short = short
    target = Target(action=Action.READ, requested="/a", absolute="/a", resolved="/a", display_path="a", tool="Read")
    found = await run_authorizers([own], [target], AuthorizerContext(project_dir="/"))
    print(found.refusal)
asyncio.run(main(True))
time.sleep(0.5)  # the loop is gone when it answers
asyncio.run(main(False))
"""
    began = time.monotonic()
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert found.stdout.splitlines() == [FAILED, FAILED]
    assert "Traceback" not in found.stderr
    assert time.monotonic() - began < 20


async def test_the_log_never_reaches_the_model(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = await run(Own(throws(ValueError("/secret"))))
    assert "/secret" in caplog.text
    assert "/secret" not in str(found)
