"""run_session on the real CLI."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultDeny,
    ProcessError,
    ResultMessage,
    TaskNotificationMessage,
)

from agent_kit.testing import (
    AnsweredBy,
    Say,
    Script,
    ScriptedModel,
    SessionTimeoutError,
    ToolCall,
    Turn,
    cli_env,
    run_session,
    tree,
)

pytestmark = pytest.mark.e2e

CANARY = "canary-7f3a"
FILE_TOOLS = ["Read", "Write", "Edit", "Glob", "Grep", "Bash", "Agent"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tree(tmp_path / "work", [f"open.txt={CANARY} é", "other.txt=second", "sub/x.txt=x"])


def options(work: Path, **more: Any) -> ClaudeAgentOptions:
    more.setdefault("tools", FILE_TOOLS)
    more.setdefault("allowed_tools", ["Bash", "Glob", "Grep", "Read"])
    return ClaudeAgentOptions(cwd=work, setting_sources=[], **more)


def read(path: object) -> ToolCall:
    return ToolCall("Read", {"file_path": str(path)})


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "a test"})


def wait(seconds: int, mark: str = "") -> ToolCall:
    """A command that takes a while; the CLI refuses a plain ``sleep``."""
    return bash(f"python3 -c 'import time; time.sleep({seconds})' {mark}")


def agent(prompt: str, *steps: Any, background: bool) -> ToolCall:
    call = {"description": "d", "prompt": prompt, "subagent_type": "general-purpose"}
    return ToolCall("Agent", {**call, "run_in_background": background}, script=list(steps))


# --- calls and what the model sees -----------------------------------------------------------


async def test_a_canary_that_the_agent_reads_is_seen(work: Path) -> None:
    run = await run_session(options(work), [read("open.txt"), "The end."], prompt="Look.")
    [call] = run.calls
    assert (call.tool, call.input, call.agent) == ("Read", {"file_path": "open.txt"}, None)
    assert (call.lock, call.is_error) == (AnsweredBy.RAN, False)
    assert call.result is not None
    assert CANARY in call.result
    assert run.saw(f"{CANARY} é")
    assert run.where(f"{CANARY} é")
    assert run.text == "The end."
    assert run.unplayed == ()
    assert run.outside == ()


async def test_a_canary_that_nobody_reads_is_not_seen(work: Path) -> None:
    run = await run_session(options(work), [read("other.txt")])
    assert run.saw("second")
    assert not run.saw(CANARY)


async def test_parallel_calls_are_answered_together(work: Path) -> None:
    together = (read("open.txt"), read("other.txt"), read("missing.txt"))
    run = await run_session(options(work), [together, "The end."])
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN, AnsweredBy.RAN, AnsweredBy.TOOL]
    assert len([request for request in run.requests if not request.side]) == 2


async def test_a_function_decides_by_what_it_saw(work: Path) -> None:
    def script(turn: Turn) -> ToolCall | Say:
        match turn.number:
            case 0:
                assert turn.prompt == "Find it."
                return ToolCall("Grep", {"pattern": CANARY})
            case 1:
                return read(turn.results[0].text.splitlines()[-1])
            case _:
                return Say(turn.results[0].text)

    run = await run_session(options(work), script, prompt="Find it.")
    assert run.calls[1].input == {"file_path": "open.txt"}
    assert CANARY in run.text


async def test_prompts_are_sent_one_after_the_other(work: Path) -> None:
    script: Script = ["one", read("other.txt"), "two"]
    run = await run_session(options(work), script, prompt=["first", "second"])
    assert [(each.prompt, each.text) for each in run.prompts] == [
        ("first", "one"),
        ("second", "two"),
    ]
    assert run.text == "two"
    assert all(each.lock is AnsweredBy.RAN for each in run.prompts)


async def test_an_agent_without_tools_plays_its_script(work: Path) -> None:
    run = await run_session(options(work, tools=[]), ["hello"])
    assert run.text == "hello"


async def test_a_result_that_the_model_never_got_is_recorded(work: Path) -> None:
    run = await run_session(options(work, max_turns=1), [read("open.txt"), "never"])
    assert run.calls[0].lock is AnsweredBy.RAN
    assert CANARY in (run.calls[0].result or "")
    assert not run.saw(CANARY)
    assert run.unplayed == ("never",)


async def test_sessions_at_the_same_time_keep_apart(work: Path) -> None:
    runs = await asyncio.gather(
        run_session(options(work), [read("open.txt"), "one"]),
        run_session(options(work), [read("other.txt"), "two"]),
    )
    assert [run.text for run in runs] == ["one", "two"]
    assert [run.saw(CANARY) for run in runs] == [True, False]


# --- subagents -------------------------------------------------------------------------------


async def test_a_subagent_in_the_foreground_plays_its_own_script(work: Path) -> None:
    script: Script = [
        agent("look there", read("open.txt"), "found it", background=False),
        "The end.",
    ]
    run = await run_session(options(work), script)
    main, inner = run.calls
    assert (main.tool, main.agent, main.agent_id) == ("Agent", None, None)
    assert "found it" in (main.result or "")
    assert (inner.tool, inner.agent, inner.lock) == ("Read", "general-purpose", AnsweredBy.RAN)
    assert inner.agent_id in {request.agent for request in run.requests}
    assert run.saw(CANARY)
    assert run.text == "The end."
    assert run.unplayed == ()


async def test_a_background_subagent_is_waited_for_when_asked(work: Path) -> None:
    inner = agent("slowly", wait(1), read("open.txt"), "found it", background=True)
    script: Script = [inner, "The end.", "I heard."]
    run = await run_session(options(work), script, wait_for_background=True)
    assert [call.tool for call in run.calls] == ["Agent", "Bash", "Read"]
    assert run.calls[2].agent == "general-purpose"
    assert run.saw(CANARY)
    assert run.saw("found it")
    assert run.text == "The end."
    assert run.unplayed == ()
    assert [m.status for m in run.messages if isinstance(m, TaskNotificationMessage)] == [
        "completed"
    ]


async def test_a_background_subagent_is_left_when_nobody_waits(work: Path) -> None:
    script: Script = [agent("slowly", wait(20), read("open.txt"), background=True), "The end."]
    run = await run_session(options(work), script, timeout=15)
    assert run.text == "The end."
    assert not run.saw(CANARY)
    assert run.unplayed[-1] == read("open.txt")


async def test_subagents_at_the_same_time_keep_to_their_scripts(work: Path) -> None:
    pair = (
        agent("task", read("open.txt"), "A", background=False),
        agent("task two", read("other.txt"), "B", background=True),
    )
    run = await run_session(options(work), [pair, "The end."], wait_for_background=True)
    reads = {call.input["file_path"]: call.agent_id for call in run.calls if call.tool == "Read"}
    assert set(reads) == {"open.txt", "other.txt"}
    assert len(set(reads.values())) == 2
    assert run.unplayed == ()


async def test_a_subagent_is_scripted_by_its_prompt(work: Path) -> None:
    call = ToolCall("Agent", {"description": "d", "prompt": "the cat", "run_in_background": False})
    subagents = {"cat": [read("open.txt")], "dog": [read("other.txt")]}
    run = await run_session(options(work), [call], subagents=subagents)
    assert [call.input.get("file_path") for call in run.calls] == [None, "open.txt"]


async def test_a_subagent_is_scripted_by_its_type(work: Path) -> None:
    agents = {"auditor": AgentDefinition(description="Audits.", prompt="Audit.")}
    given = {"description": "d", "prompt": "Look.", "run_in_background": False}
    call = ToolCall("Agent", {**given, "subagent_type": "auditor"})
    subagents = {"auditor": [read("open.txt")], "reviewer": [read("other.txt")]}
    run = await run_session(options(work, agents=agents), [call], subagents=subagents)
    assert [(call.tool, call.agent) for call in run.calls] == [("Agent", None), ("Read", "auditor")]
    assert run.unplayed == (read("other.txt"),)


# --- which lock answered ---------------------------------------------------------------------


async def deny(payload: Any, tool_use_id: str | None, context: Any) -> Any:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": {**specific, "permissionDecisionReason": "The gate says no."}}


async def old_deny(payload: Any, tool_use_id: str | None, context: Any) -> Any:
    return {"decision": "block", "reason": "The gate says no."}


async def silent_deny(payload: Any, tool_use_id: str | None, context: Any) -> Any:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": specific}


async def ask(payload: Any, tool_use_id: str | None, context: Any) -> Any:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "ask"}
    return {"hookSpecificOutput": specific}


async def fail(payload: Any, tool_use_id: str | None, context: Any) -> Any:
    raise LookupError("inner detail")


async def nothing(payload: Any, tool_use_id: str | None, context: Any) -> Any:
    return {}


async def hang(payload: Any, tool_use_id: str | None, context: Any) -> Any:
    await asyncio.sleep(30)


def gate(hook: Any, **more: Any) -> dict[str, Any]:
    matcher = HookMatcher(hooks=[hook], on_failure="block", **more)
    return {"hooks": {"PreToolUse": [matcher]}}


async def say_no(tool: str, tool_input: dict[str, Any], context: Any) -> PermissionResultDeny:
    return PermissionResultDeny(message="A person says no.")


async def break_down(tool: str, tool_input: dict[str, Any], context: Any) -> PermissionResultDeny:
    raise LookupError("inner detail")


def rules(work: Path, rule: str) -> dict[str, Any]:
    return {"settings": json.dumps({"permissions": {"deny": [rule.format(work=work)]}})}


WRITE = ToolCall("Write", {"file_path": "new.txt", "content": "x"})


@pytest.mark.parametrize(
    ("call", "more", "lock"),
    [
        (read("open.txt"), gate(nothing), AnsweredBy.RAN),
        (read("{work}/open.txt"), gate(deny), AnsweredBy.GATE),
        (read("open.txt"), gate(deny), AnsweredBy.GATE),  # the CLI gives the bare reason here
        (ToolCall("Grep", {"pattern": "x"}), gate(deny), AnsweredBy.GATE),
        (read("open.txt"), gate(old_deny), AnsweredBy.GATE),
        (read("open.txt"), gate(silent_deny), AnsweredBy.GATE),
        (read("open.txt"), gate(fail), AnsweredBy.GATE),
        (read("open.txt"), gate(hang, timeout=1), AnsweredBy.GATE),
        (read("open.txt"), gate(ask), AnsweredBy.RULES),  # nobody to ask
        (read("open.txt"), "Read(/{work}/open.txt)", AnsweredBy.RULES),
        (ToolCall("Grep", {"pattern": "x", "path": "sub"}), "Read(/{work}/sub)", AnsweredBy.RULES),
        (bash("rm x"), "Bash(rm:*)", AnsweredBy.RULES),
        (agent("p", background=False), "Agent(general-purpose)", AnsweredBy.RULES),
        (WRITE, {}, AnsweredBy.RULES),  # needs permission, nobody to ask
        (WRITE, {"permission_mode": "dontAsk"}, AnsweredBy.RULES),
        (WRITE, {"can_use_tool": say_no}, AnsweredBy.RULES),
        (WRITE, {"can_use_tool": break_down}, AnsweredBy.RULES),
        (WRITE, {"permission_mode": "acceptEdits"}, AnsweredBy.RAN),
        (bash("exit 3"), {}, AnsweredBy.TOOL),
        (read("missing.txt"), {}, AnsweredBy.TOOL),
        (ToolCall("Read", {"path": "open.txt"}), gate(deny), AnsweredBy.TOOL),  # malformed
        (ToolCall("NoSuchTool"), gate(deny), AnsweredBy.TOOL),
    ],
)
@pytest.mark.filterwarnings("ignore::claude_agent_sdk.CanUseToolShadowedWarning")
async def test_the_lock_that_answered_is_named(
    work: Path, call: ToolCall, more: Any, lock: AnsweredBy
) -> None:
    given = {
        key: value.replace("{work}", str(work)) if isinstance(value, str) else value
        for key, value in call.input.items()
    }
    opts = options(work, **(rules(work, more) if isinstance(more, str) else more))
    run = await run_session(opts, [ToolCall(call.name, given, script=call.script)])
    assert run.calls[0].lock is lock, run.calls[0]
    assert run.calls[0].is_error is (lock is not AnsweredBy.RAN)


async def test_a_gate_in_a_subagent_is_named(work: Path) -> None:
    async def deny_reads(payload: Any, tool_use_id: str | None, context: Any) -> Any:
        return await (deny if payload["tool_name"] == "Read" else nothing)(payload, None, None)

    script: Script = [agent("p", read("open.txt"), background=False)]
    run = await run_session(options(work, **gate(deny_reads)), script)
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN, AnsweredBy.GATE]
    assert not run.saw(CANARY)


async def test_a_blocked_prompt_makes_no_request_and_the_next_one_goes_on(work: Path) -> None:
    async def block(payload: Any, tool_use_id: str | None, context: Any) -> Any:
        bad = CANARY in payload["prompt"]
        return {"decision": "block", "reason": "Not that."} if bad else {}

    hooks: Any = {"UserPromptSubmit": [HookMatcher(hooks=[block], on_failure="block")]}
    prompts = [f"{CANARY} please", "Good."]
    run = await run_session(options(work, hooks=hooks), ["hello"], prompt=prompts)
    assert run.blocked_prompt == "Not that."
    assert [(each.blocked, each.text, each.lock) for each in run.prompts] == [
        ("Not that.", "", AnsweredBy.PROMPT_GATE),
        (None, "hello", AnsweredBy.RAN),
    ]
    assert not run.saw(CANARY)


async def test_a_prompt_that_nobody_blocks_has_no_reason(work: Path) -> None:
    run = await run_session(options(work), ["hello"])
    assert run.blocked_prompt is None


# --- the environment -------------------------------------------------------------------------


async def test_what_the_host_has_set_does_not_reach_the_session(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedModel(["from the decoy"]) as decoy:
        host = {
            "ANTHROPIC_BASE_URL": decoy.url,
            "ANTHROPIC_AUTH_TOKEN": CANARY,
            "ANTHROPIC_MODEL": "no-such-model",
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "CLAUDE_CODE_SIMPLE": "1",
            "CLAUDE_CONFIG_DIR": str(tree(tmp_path / "config", ["CLAUDE.md=" + CANARY])),
            "CLAUDECODE": "1",
            "HTTPS_PROXY": decoy.url,
            "http_proxy": decoy.url,
        }
        for name, value in host.items():
            monkeypatch.setenv(name, value)
        opts = ClaudeAgentOptions(cwd=work, tools=["Bash"], allowed_tools=["Bash"])
        run = await run_session(opts, [bash("env"), "hello"])
        assert decoy.requests == ()
    assert run.text == "hello"
    assert run.calls[0].lock is AnsweredBy.RAN
    assert not run.saw(CANARY)
    assert not run.saw("no-such-model")
    assert sorted(os.listdir(work)) == ["open.txt", "other.txt", "sub"]
    assert os.listdir(tmp_path / "config") == ["CLAUDE.md"]
    assert {name: os.environ[name] for name in host} == host


async def test_a_session_reaches_no_other_host(work: Path) -> None:
    fetch = "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.invalid/x\")'"
    run = await run_session(options(work), [bash(fetch)])
    assert run.outside == ("http://example.invalid/x",)
    assert run.calls[0].lock is AnsweredBy.TOOL


async def test_the_home_is_the_one_that_was_given(work: Path, tmp_path: Path) -> None:
    given = tree(tmp_path / "home", [".claude/CLAUDE.md=" + CANARY])
    other = tree(tmp_path / "other", [".claude/CLAUDE.md=other-canary"])
    opts = ClaudeAgentOptions(cwd=work, tools=["Read"], env={"HOME": str(other)})
    run = await run_session(opts, home=given)
    assert (run.saw(CANARY), run.saw("other-canary")) == (True, False)
    run = await run_session(opts)
    assert (run.saw(CANARY), run.saw("other-canary")) == (False, True)


async def test_without_a_home_nothing_of_the_person_is_there(work: Path) -> None:
    opts = ClaudeAgentOptions(cwd=work, tools=["Bash"], allowed_tools=["Bash"])
    run = await run_session(opts, [bash("echo $HOME")])
    home = Path(run.calls[0].result or "")
    assert home.name.startswith("agent-kit-home-")
    assert not home.exists()


async def test_the_environment_of_the_options_reaches_the_session_but_not_its_endpoint(
    work: Path,
) -> None:
    env = {
        "MY_OWN": "mine",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_API_KEY": CANARY,
    }
    run = await run_session(options(work, env=env), [bash("env"), "hello"])
    assert run.text == "hello"
    assert run.saw("MY_OWN=mine")
    assert not run.saw(CANARY)


async def test_the_options_are_left_as_they_are(work: Path) -> None:
    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[nothing])]}
    opts = options(work, hooks=hooks, env={"A": "b"})
    before = repr(opts)
    await run_session(opts, [read("open.txt")])
    assert repr(opts) == before
    assert opts.hooks is hooks
    assert opts.stderr is None


async def test_the_callbacks_of_the_options_still_work(work: Path) -> None:
    asked: list[str] = []
    lines: list[str] = []

    async def remember(tool: str, tool_input: dict[str, Any], context: Any) -> Any:
        asked.append(tool)
        return PermissionResultDeny(message="no")

    opts = options(work, can_use_tool=remember, stderr=lines.append, allowed_tools=[])
    opts.settings = str(work / "missing.json")
    with pytest.raises(ProcessError):
        await run_session(opts, [])
    assert any("missing.json" in line for line in lines)
    opts.settings = None
    await run_session(opts, [WRITE])
    assert asked == ["Write"]


async def test_a_program_can_connect_by_itself(work: Path, tmp_path: Path) -> None:
    with ScriptedModel([read("open.txt"), "hello"]) as model:
        opts = options(work, env=cli_env(model, tmp_path))
        async with ClaudeSDKClient(opts) as client:
            await client.query("Go.")
            last = [message async for message in client.receive_response()][-1]
    assert isinstance(last, ResultMessage)
    assert last.result == "hello"
    assert model.saw(CANARY)
    assert (tmp_path / ".claude.json").exists()


# --- what can go wrong -----------------------------------------------------------------------


async def test_a_session_that_does_not_end_is_ended(work: Path) -> None:
    script, start = [read("open.txt"), wait(120, CANARY)], time.monotonic()
    with pytest.raises(SessionTimeoutError, match=r"within 12 s: .* 2 requests, 2 calls\. Last"):
        await run_session(options(work), script, timeout=12)  # a busy machine takes its time
    assert time.monotonic() - start < 120
    assert not any(CANARY in command for command in commands())


def commands() -> list[str]:
    """The command lines of all processes (Linux)."""
    lines = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines.append((folder / "cmdline").read_bytes().decode("utf-8", "replace"))
    return lines


async def test_what_a_script_raises_comes_out(work: Path) -> None:
    def script(turn: Turn) -> str:
        raise LookupError("in the script")

    with pytest.raises(LookupError, match="in the script"):
        await run_session(options(work), script, timeout=20)


async def test_an_error_of_the_sdk_says_how_far_the_session_came(work: Path) -> None:
    opts = options(work, settings=str(work / "missing.json"))
    with pytest.raises(ProcessError) as caught:
        await run_session(opts, [])
    [note] = caught.value.__notes__
    assert "0 prompts sent, 0 requests" in note
    assert "missing.json" in note


async def test_the_record_of_a_given_model_outlives_an_error(work: Path) -> None:
    model = ScriptedModel([read("open.txt"), wait(30)])
    with model, pytest.raises(SessionTimeoutError):
        await run_session(options(work), model=model, timeout=2)
    assert model.saw(CANARY)


async def test_a_script_beside_a_model_is_an_error(work: Path) -> None:
    with ScriptedModel() as model:
        with pytest.raises(TypeError, match="not both"):
            await run_session(options(work), [], model=model)
        with pytest.raises(TypeError, match="not both"):
            await run_session(options(work), subagents={}, model=model)
        assert model.requests == ()


async def test_options_that_are_none_are_an_error_in_one_sentence() -> None:
    with pytest.raises(TypeError, match=r"^The options are ClaudeAgentOptions, not a dict\.$"):
        await run_session({}, [])  # type: ignore[arg-type]
