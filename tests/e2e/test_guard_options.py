"""Options that one already has, bare and guarded; and a whole session in a workspace."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    create_sdk_mcp_server,
    tool,
)

from agent_kit import (
    AgentSpec,
    FilePermission,
    SessionConfig,
    build_session_options,
    check_options,
    content_check,
    guard_options,
    read_trail,
)
from agent_kit.testing import AnsweredBy, Say, SessionRun, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e

REFUSED = (AnsweredBy.GATE, AnsweredBy.RULES)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tree(
        tmp_path,
        [
            "home/",
            "p/drafts/a.md=control-draft",
            "p/drafts/.env=canary-drafts-env",
            "p/.env=canary-env",
            "p/notes.md=canary-notes",
            "out/secret.txt=canary-outside",
        ],
    )


def read(path: object) -> ToolCall:
    return ToolCall("Read", {"file_path": str(path)})


async def play(place: Path, options: ClaudeAgentOptions, *calls: Any, **more: Any) -> SessionRun:
    run = await run_session(options, [*calls, Say("Done.")], home=place / "home", **more)
    assert run.unplayed == ()
    return run


def guarded(place: Path, options: ClaudeAgentOptions, **fields: Any) -> ClaudeAgentOptions:
    config = SessionConfig(
        project_dir=place / "p",
        run_dir=place / "run",
        extra_writable_dirs=["drafts"],
        denied_paths=["**/.env"],
        **{"confinement": "off", **fields},
    )
    return guard_options(options, config)


# --- options that one already has -------------------------------------------------------------


class Host:
    """A host's own options, as one writes them, and what its callbacks saw."""

    def __init__(self, place: Path, **fields: Any) -> None:
        self.before: list[str] = []
        self.after: list[str] = []
        self.asked: list[str] = []
        self.options = ClaudeAgentOptions(
            cwd=place / "p",
            env={"HOME": str(place / "home")},
            hooks={
                "PreToolUse": [HookMatcher(hooks=[self._pre])],
                "PostToolUse": [HookMatcher(matcher="Read", hooks=[self._post])],
            },
            **{"allowed_tools": ["Read", "Write", "Edit", "Grep", "Glob"], **fields},
        )

    async def _pre(self, payload: Any, *_: Any) -> dict[str, Any]:
        self.before.append(payload["tool_name"])
        return {}

    async def _post(self, payload: Any, *_: Any) -> dict[str, Any]:
        self.after.append(payload["tool_name"])
        return {}


CALLS = ("p/.env", "p/drafts/.env", "p/notes.md", "out/secret.txt")


@pytest.mark.parametrize("lock", [False, True], ids=["bare", "guarded"])
async def test_bare_options_leak_and_guarded_ones_do_not(place: Path, lock: bool) -> None:
    host = Host(place)
    options = guarded(place, host.options) if lock else host.options
    calls = [*(read(place / name) for name in CALLS), read(place / "p/drafts/a.md")]
    run = await play(place, options, *calls)
    assert [call.lock in REFUSED for call in run.calls] == [lock] * 4 + [False]
    for canary in ("canary-env", "canary-drafts-env", "canary-notes", "canary-outside"):
        assert run.saw(canary) is not lock
    assert run.saw("control-draft")
    # What the CLI's rules refuse first reaches no hook; every other call reaches the host's.
    rules = [call.lock for call in run.calls].count(AnsweredBy.RULES)
    assert len(host.before) == 5 - rules
    assert host.after == ["Read"] * (1 if lock else 5)


@pytest.mark.parametrize("lock", [False, True], ids=["bare", "guarded"])
async def test_a_mention_in_a_prompt(place: Path, lock: bool) -> None:
    host = Host(place)
    options = guarded(place, host.options) if lock else host.options
    run = await run_session(
        options,
        [] if lock else [Say("Done.")],
        prompt="What is in @notes.md ?",
        home=place / "home",
    )
    assert run.saw("canary-notes") is not lock


@pytest.mark.parametrize("lock", [False, True], ids=["bare", "guarded"])
async def test_a_write_outside_the_writable_folders(place: Path, lock: bool) -> None:
    host = Host(place)
    options = guarded(place, host.options) if lock else host.options
    write = ToolCall("Write", {"file_path": str(place / "p/new.md"), "content": "x"})
    own = ToolCall("Write", {"file_path": str(place / "p/drafts/new.md"), "content": "x"})
    await play(place, options, write, own)
    assert (place / "p/new.md").exists() is not lock
    assert (place / "p/drafts/new.md").exists()


async def test_a_hosts_hook_that_rewrites_is_judged_on_what_it_made(place: Path) -> None:
    async def redirect(*_: Any) -> dict[str, Any]:
        changed = {"file_path": str(place / "out/secret.txt")}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": changed}}

    options = Host(place).options
    hooks = {"PreToolUse": [HookMatcher(hooks=[redirect])]}
    bare = dataclasses.replace(options, hooks=hooks)
    call = read(place / "p/drafts/a.md")
    assert (await play(place, bare, call)).saw("canary-outside")
    run = await play(place, guarded(place, bare), call)
    assert run.calls[0].lock == AnsweredBy.GATE
    assert not run.saw("canary-outside")


async def test_the_host_is_asked_after_the_kit_and_may_refuse_more(place: Path) -> None:
    asked: list[str] = []

    async def can_use_tool(name: str, given: dict[str, Any], _: Any) -> Any:
        asked.append(Path(given["file_path"]).name)
        if given["file_path"].endswith("no.md"):
            return PermissionResultDeny(message="not-this-one")
        return PermissionResultAllow()

    host = Host(place, allowed_tools=["Read"], can_use_tool=can_use_tool)
    names = ("p/drafts/yes.md", "p/drafts/no.md", "out/new.md")
    calls = [ToolCall("Write", {"file_path": str(place / name), "content": "x"}) for name in names]
    run = await play(place, guarded(place, host.options), *calls)
    assert [(place / name).exists() for name in names] == [True, False, False]
    assert asked == ["yes.md", "no.md"]
    assert run.saw("not-this-one")


async def test_a_hosts_changed_input_does_not_leave_the_scope(place: Path) -> None:
    async def can_use_tool(name: str, given: dict[str, Any], _: Any) -> PermissionResultAllow:
        changed = {**given, "file_path": str(place / "out/new.md")}
        return PermissionResultAllow(updated_input=changed)

    options = ClaudeAgentOptions(
        cwd=place / "p",
        tools=["Read", "Write"],
        env={"HOME": str(place / "home")},
        can_use_tool=can_use_tool,
    )
    call = ToolCall("Write", {"file_path": str(place / "p/drafts/new.md"), "content": "x"})
    await play(place, options, call)
    assert (place / "out/new.md").exists()
    (place / "out/new.md").unlink()
    await play(place, guarded(place, options), call)
    assert not (place / "out/new.md").exists()
    assert not (place / "p/drafts/new.md").exists()


async def test_a_rule_that_interrupts_asks_the_hosts_own_callback(place: Path) -> None:
    asked: list[tuple[str, str | None]] = []

    async def can_use_tool(name: str, given: dict[str, Any], context: Any) -> Any:
        asked.append((name, context.decision_reason))
        if given["file_path"].endswith("a.md"):
            return PermissionResultDeny(message="the host says no")
        return PermissionResultAllow()

    host = Host(place, allowed_tools=["Read"], can_use_tool=can_use_tool)
    (place / "p/drafts/b.md").write_text("control-other")
    rules = [FilePermission(operations=["read"], paths=["drafts/**"], mode="interrupt")]
    options = guarded(place, host.options, permissions=rules)
    run = await play(place, options, read(place / "p/drafts/a.md"), read(place / "p/drafts/b.md"))
    assert [name for name, _ in asked] == ["Read", "Read"]
    assert all("only when a person agrees" in str(reason) for _, reason in asked)
    assert "the host says no" in (run.calls[0].result or "")
    assert not run.saw("control-draft")
    assert run.saw("control-other")


async def test_what_a_host_makes_of_a_call_is_judged_by_the_rules_and_the_authorizers(
    place: Path,
) -> None:
    edits = iter(["drafts/final/x.md", "drafts/y.md", "drafts/z.md"])

    async def can_use_tool(_name: str, given: dict[str, Any], _context: Any) -> Any:
        changed = {"file_path": str(place / "p" / next(edits)), "content": given["content"]}
        return PermissionResultAllow(updated_input=changed)

    host = Host(place, allowed_tools=["Read"], can_use_tool=can_use_tool)
    rules = [FilePermission(operations=["write"], paths=["drafts/final/**"], mode="deny")]
    fields: dict[str, Any] = {"permissions": rules, "authorizers": [content_check("secret")]}
    options = guarded(place, host.options, **fields)
    new = [
        ToolCall("Write", {"file_path": str(place / "p/drafts/n.md"), "content": content})
        for content in ("fine", "fine", "fine")
    ]
    run = await play(place, options, *new)
    assert not (place / "p/drafts/final/x.md").exists()
    assert [call.is_error for call in run.calls] == [True, False, False]


async def test_what_a_host_makes_of_a_call_asks_where_a_rule_asks_about_it(place: Path) -> None:
    reasons: list[str | None] = []

    async def can_use_tool(_name: str, given: dict[str, Any], context: Any) -> Any:
        reasons.append(context.decision_reason)
        if len(reasons) > 1:
            return PermissionResultDeny(message="not there")
        changed = {**given, "file_path": str(place / "p/drafts/marks/x.md")}
        return PermissionResultAllow(updated_input=changed)

    host = Host(place, allowed_tools=["Read"], can_use_tool=can_use_tool)
    rules = [FilePermission(operations=["write"], paths=["drafts/marks/**"], mode="interrupt")]
    call = ToolCall("Write", {"file_path": str(place / "p/drafts/n.md"), "content": "x"})
    run = await play(place, guarded(place, host.options, permissions=rules), call)
    assert len(reasons) == 2
    assert "only when a person agrees" in str(reasons[1])
    assert "not there" in (run.calls[0].result or "")
    assert not (place / "p/drafts/marks/x.md").exists()
    (path,) = (place / "run/host").glob("*.decisions.jsonl")
    last = [*read_trail(path)][-1]
    assert (last["verdict"], last["answer"]) == ("deny", "rejected")
    assert "marks/x.md" in last["target"]


async def test_a_host_can_not_change_an_input_past_its_own_deny_rule(place: Path) -> None:
    """The CLI asks its deny rules about the first input, and not about what the host makes of it."""

    async def can_use_tool(_name: str, given: dict[str, Any], _context: Any) -> Any:
        if "left" in given["command"]:
            return PermissionResultAllow(updated_input=dict(given))
        return PermissionResultAllow(updated_input={"command": "mkdir drafts/made"})

    host = Host(
        place,
        tools=["Bash"],
        disallowed_tools=["Bash(mkdir:*)"],
        can_use_tool=can_use_tool,
    )
    options = guarded(place, host.options, allow_unconfined_commands=True)
    calls = [ToolCall("Bash", {"command": f"touch drafts/{what}"}) for what in ("a", "left")]
    run = await play(place, options, *calls)
    assert "closed in part" in (run.calls[0].result or "")
    assert not (place / "p/drafts/made").exists()
    assert (place / "p/drafts/left").exists()  # the control: what it leaves as it is runs


async def test_in_autonomous_mode_the_hosts_callback_answers_for_what_no_rule_asks_about(
    place: Path,
) -> None:
    asked: list[str] = []

    async def can_use_tool(name: str, _given: dict[str, Any], _context: Any) -> Any:
        asked.append(name)
        return PermissionResultAllow()

    host = Host(place, allowed_tools=["Read"], can_use_tool=can_use_tool)
    calls = [
        ToolCall("Write", {"file_path": str(place / path), "content": "x"})
        for path in ("p/drafts/n.md", "p/drafts/marks/n.md", "out/n.md")
    ]
    rules = [FilePermission(operations=["write"], paths=["drafts/marks/**"], mode="interrupt")]
    options = guarded(place, host.options, mode="autonomous", permissions=rules)
    run = await play(place, options, *calls)
    assert asked == ["Write"]
    assert [call.is_error for call in run.calls] == [False, True, True]
    assert "Nobody is there" in (run.calls[1].result or "")


@pytest.mark.parametrize("stops", [True, False])
async def test_a_host_that_stops_at_a_rules_question_ends_the_run(place: Path, stops: bool) -> None:
    async def can_use_tool(_name: str, _given: dict[str, Any], _context: Any) -> Any:
        return PermissionResultDeny(message="the host says stop", interrupt=stops)

    host = Host(place, allowed_tools=["Read"], can_use_tool=can_use_tool)
    rules = [FilePermission(operations=["read"], paths=["drafts/**"], mode="interrupt")]
    options = guarded(place, host.options, permissions=rules)
    run = await run_session(
        options, [read(place / "p/drafts/a.md"), Say("Done.")], home=place / "home"
    )
    assert len(run.requests) == (1 if stops else 2)
    assert not run.saw("control-draft")


async def test_a_host_hears_which_agent_a_rules_question_is_about(place: Path) -> None:
    asked: list[str | None] = []

    async def can_use_tool(_name: str, _given: dict[str, Any], context: Any) -> Any:
        asked.append(context.agent_id)
        return PermissionResultAllow()

    helper = AgentDefinition(description="d", prompt="p")
    host = Host(
        place,
        allowed_tools=["Read", "Agent"],
        agents={"helper": helper},
        can_use_tool=can_use_tool,
    )
    rules = [FilePermission(operations=["read"], paths=["drafts/**"], mode="interrupt")]
    start = ToolCall(
        "Agent",
        {"description": "d", "prompt": "p", "subagent_type": "helper", "run_in_background": False},
        script=[read(place / "p/drafts/a.md"), "Done."],
    )
    options = guarded(place, host.options, permissions=rules)
    run = await play(place, options, start, read(place / "p/drafts/a.md"))
    (agents_own,) = [call for call in run.calls if call.agent == "helper"]
    assert asked == [agents_own.agent_id, None]
    assert agents_own.agent_id is not None


async def test_servers_agents_and_prompt_of_the_host_are_there(place: Path) -> None:
    @tool("answer", "Answers", {})
    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "control-answer"}]}

    options = ClaudeAgentOptions(
        cwd=place / "p",
        env={"HOME": str(place / "home")},
        system_prompt="control-prompt",
        mcp_servers={"own": create_sdk_mcp_server("own", tools=[answer])},
        allowed_tools=["mcp__own__answer"],
    )
    run = await play(place, guarded(place, options), ToolCall("mcp__own__answer", {}))
    assert run.saw("control-prompt")
    assert run.saw("control-answer")


async def test_a_server_that_the_host_did_not_allow_stays_refused(place: Path) -> None:
    @tool("answer", "Answers", {})
    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "canary-answer"}]}

    servers = {"own": create_sdk_mcp_server("own", tools=[answer])}
    options = ClaudeAgentOptions(
        cwd=place / "p", env={"HOME": str(place / "home")}, mcp_servers=servers
    )
    run = await play(place, guarded(place, options), ToolCall("mcp__own__answer", {}))
    assert run.calls[0].is_error
    assert not run.saw("canary-answer")


async def test_a_projects_own_settings_do_not_win_over_the_guard(place: Path) -> None:
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": f"touch {place}/ran"}]}
    settings = {"hooks": {"PreToolUse": [hook]}}
    tree(place, ["p/.claude/settings.json=" + json.dumps(settings)])
    host = Host(place, setting_sources=["project"])
    call = read(place / "p/drafts/a.md")
    await play(place, host.options, call)
    assert (place / "ran").exists()
    (place / "ran").unlink()
    await play(place, guarded(place, host.options), call)
    assert not (place / "ran").exists()


@pytest.mark.parametrize(
    "undo",
    [
        lambda options: {"hooks": {}, "settings": "{}"},
        lambda options: {"extra_args": {"settings": "{}"}, "hooks": {}},
        lambda options: {"env": {**options.env, "CLAUDE_CODE_SIMPLE": "1"}, "settings": "{}"},
    ],
    ids=["settings", "extra_args", "no hooks at all"],
)
async def test_what_the_check_refuses_does_leak(
    place: Path, undo: Callable[[ClaudeAgentOptions], dict[str, Any]]
) -> None:
    """The control of ``check_options``: each of these opens a closed file on the real CLI."""
    whole = guarded(place, Host(place).options)
    check_options(whole)
    undone = dataclasses.replace(whole, **undo(whole))
    with pytest.raises(RuntimeError, match="gate, by"):
        check_options(undone)
    assert (await play(place, undone, read(place / "p/notes.md"))).saw("canary-notes")


# --- a workspace ------------------------------------------------------------------------------

OPEN = ("README.md", "src/main.py", "src/credentials/forms.py", "id_rsa.pub", ".github/ci.yml")
CLOSED = (
    ".env",
    "app/.env.local",
    "prod.env",
    "certs/server.pem",
    "config/master.key",
    "id_ed25519",
    ".ssh/config",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".git-credentials",
    ".git/config",
    "terraform.tfstate",
    "my-service-account.json",
    "vault.kdbx",
    "config/secrets.yml",
    ".bash_history",
)


def canary(name: str) -> str:
    return f"canary-{CLOSED.index(name):03}-closed"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    files = [f"p/{name}=needle control-{at}-open" for at, name in enumerate(OPEN)]
    files += [f"p/{name}=needle {canary(name)}" for name in CLOSED]
    return tree(tmp_path, ["home/", "p/CLAUDE.md=control-instructions", *files])


def in_workspace(place: Path) -> ClaudeAgentOptions:
    config = SessionConfig(
        workspace=place / "p",
        run_dir=place / "run",
        env={"HOME": str(place / "home")},
        confinement="off",
    )
    return build_session_options(AgentSpec(name="worker"), config)


async def test_a_workspace_is_read_searched_and_written_and_its_secrets_stay_shut(
    workspace: Path,
) -> None:
    project = workspace / "p"
    grep = {"pattern": "needle", "output_mode": "content", "-n": True}
    closed = [read(project / name) for name in CLOSED]
    grep_closed = [
        ToolCall("Grep", {**grep, "path": str(project / name)}) for name in (".env", ".ssh")
    ]
    writes = {
        "new/file.md": True,
        "src/main2.py": True,
        "CLAUDE.md": False,
        ".claude/settings.json": False,
        ".git/hooks/pre-commit": False,
        ".mcp.json": False,
        "app/.env": False,
        "deploy.key": False,
    }
    before = {name: (project / name).read_text() for name in CLOSED}
    run = await play(
        workspace,
        in_workspace(workspace),
        *(read(project / name) for name in OPEN),
        ToolCall("Grep", grep),
        ToolCall("Glob", {"pattern": "**/*"}),
        *closed,
        *grep_closed,
        *(
            ToolCall("Write", {"file_path": str(project / name), "content": "new"})
            for name in writes
        ),
        ToolCall(
            "Edit",
            {
                "file_path": str(project / "README.md"),
                "old_string": "needle",
                "new_string": "thread",
            },
        ),
    )
    head, rest = run.calls[: len(OPEN) + 2], run.calls[len(OPEN) + 2 :]
    assert all(call.lock == AnsweredBy.RAN for call in head)
    assert all(call.lock in REFUSED for call in rest[: len(CLOSED) + 2])
    for at in range(len(OPEN)):
        assert run.saw(f"control-{at}-open")
    assert "control-1-open" in head[len(OPEN)].result
    assert [name for name in CLOSED if run.saw(canary(name))] == []
    written = {
        name: (project / name).is_file() and (project / name).read_text() == "new"
        for name in writes
    }
    assert written == writes
    assert (project / "README.md").read_text().startswith("thread")
    assert {name: (project / name).read_text() for name in CLOSED} == before
    assert run.saw("control-instructions")


async def test_without_the_table_the_secrets_are_read(workspace: Path) -> None:
    """The control: the same folder, written out without the table."""
    config = SessionConfig(
        project_dir=workspace / "p",
        run_dir=workspace / "run",
        env={"HOME": str(workspace / "home")},
        extra_writable_dirs=["."],
        confinement="off",
    )
    options = build_session_options(AgentSpec(name="worker"), config)
    names = [name for name in CLOSED if not name.startswith(".git/")]
    run = await play(workspace, options, *(read(workspace / "p" / name) for name in names))
    assert [name for name in names if not run.saw(canary(name))] == []


async def test_a_mention_of_a_secret_is_blocked(workspace: Path) -> None:
    run = await run_session(
        in_workspace(workspace), [], prompt="Look at @.env please", home=workspace / "home"
    )
    assert run.requests == ()
