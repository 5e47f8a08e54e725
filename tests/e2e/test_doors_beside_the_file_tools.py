"""Every known door beside the file tools: shut with the kit's measure, open without that one measure.

One table. A row says what the CLI does (measured on 2.1.332), and is either tried here, on a world
of its own, with the measure on and with it off; or names the tests that try it, their control
included. What the CLI was seen *not* to do stands in a second table: no measure of the kit holds it,
so a new CLI that does it must fail here first.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    ResultMessage,
)

from agent_kit import Subagent
from agent_kit.sdk.locations import CliLocations
from agent_kit.testing import ScriptedModel, SessionRun, ToolCall, cli_env, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e
HERE = Path(__file__).parent

Options = Callable[[ClaudeAgentOptions], ClaudeAgentOptions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A door that is tried here.

    ``world`` are entries of :func:`tree` and ``fields`` the configuration, with the places of
    ``Course.text``. The measure is switched off by ``off`` (fields of the configuration) or by
    ``undo`` (what is taken out of the options); ``both`` is taken out in either case, so that
    another lock doesn't hide it. ``comes`` are the canaries that are seen then, ``ran`` whether the
    file ``ran`` is left behind, and ``makes`` names what is there then; ``open`` are seen in either
    case.
    """

    says: str
    measure: str
    script: tuple[Any, ...]
    world: tuple[str, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    off: Mapping[str, Any] = field(default_factory=dict)
    undo: Options | None = None
    both: Options | None = None
    repository: bool = False
    comes: frozenset[str] = frozenset()
    ran: bool = False
    makes: str = ""
    open: frozenset[str] = frozenset()


# --- what is taken out ------------------------------------------------------------------------


def no_gate(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    hooks: Any = {k: v for k, v in (options.hooks or {}).items() if k != "PreToolUse"}
    return replace(options, hooks=hooks)


def no_denials(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    text = str(options.settings)
    settings = json.loads(text if text.startswith("{") else Path(text).read_text(encoding="utf-8"))
    settings["permissions"]["deny"] = []
    return replace(options, settings=json.dumps(settings))


def one_more_skill(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    assert isinstance(options.skills, list)
    return replace(options, skills=[*options.skills, "simplify"])


async def defer(_payload: Any, _use_id: str | None, _context: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}


# --- calls ------------------------------------------------------------------------------------


def call(tool: str, /, **fields: Any) -> ToolCall:
    return ToolCall(tool, fields)


def skill(name: str, args: str = "") -> ToolCall:
    return call("Skill", skill=name, **({"args": args} if args else {}))


def agent(kind: str, *script: Any, **more: Any) -> ToolCall:
    fields = {"description": "d", "prompt": "Go on.", "subagent_type": kind, **more}
    steps = (*script, "Nothing.")
    return ToolCall(
        "Agent",
        {**fields, "run_in_background": False},
        script=lambda turn: steps[turn.number] if turn.number < len(steps) else None,
    )


def read(path: str) -> ToolCall:
    return call("Read", file_path=path)


README = frozenset({"readme"})
PLUGIN = 'out/plug/.claude-plugin/plugin.json={"name": "plug"}'
TOUCH = "touch <root>/ran"
HOOKS = json.dumps({"PreToolUse": [{"hooks": [{"type": "command", "command": TOUCH}]}]})
HOOKY = f"---\nname: hooky\ndescription: d\nhooks: {HOOKS}\n---\ncanary(hooky)"
ISOLATED = "---\nname: evil\ndescription: d\nisolation: worktree\n---\nGo."
# A session's id, and the folder with the outputs of its background tasks.
SESSION, OTHER = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"

DOORS = {
    "skill arguments, no sources": Door(
        says="Mentions in the model's args of Skill are attached, with no source loaded, too.",
        measure="the gate judges Skill",
        script=(skill("sources:cite", "see @README.md @<out>/secret.txt"),),
        fields={"setting_sources": []},
        undo=no_gate,
        comes=frozenset({"readme", "outside"}),
    ),
    "skill arguments, verbatim prompts": Door(
        says="verbatim_prompts doesn't reach the args of Skill.",
        measure="the gate judges Skill",
        script=(skill("sources:cite", "see @README.md @~/secret.txt"),),
        fields={"prompt_mentions": "off"},
        undo=no_gate,
        comes=frozenset({"readme", "home"}),
    ),
    "skill arguments, a denied file": Door(
        says="Of such mentions only files under a Read deny rule stay closed.",
        measure="the deny rules",
        script=(skill("sources:cite", "see @agent.config.json @drafts/.env"),),
        both=no_gate,
        undo=no_denials,
        comes=frozenset({"config", "draftsenv"}),
    ),
    "a skill of the CLI's own": Door(
        says="Mentions in the args of some of the CLI's bundled skills are attached, too.",
        measure="the options name the session's own skills, and no other",
        script=(skill("simplify", "see @README.md"),),
        both=no_gate,
        undo=one_more_skill,
        comes=README,
    ),
    "hooks in a skill": Door(
        says="Hooks in a skill's front matter run.",
        measure="disableAllHooks in the flag settings",
        world=(
            PLUGIN,
            f"out/plug/skills/hooky/SKILL.md={HOOKY}",
        ),
        spec={"plugins": ["<out>/plug"]},
        script=(skill("plug:hooky"), read("sources/syllabus.md")),
        off={"unlock": ["project_hooks"]},
        ran=True,
        open=frozenset({"hooky", "syllabus"}),
    ),
    "isolation in an agent's file": Door(
        says="An agent's own file may ask for a copy of the repository.",
        measure="the gate judges Agent, and copies are closed",
        world=(
            f"course/.claude/agents/evil.md={ISOLATED}",
        ),
        repository=True,
        spec={"subagents": {"helper": Subagent(description="d", prompt="p")}, "extensions": []},
        fields={"extra_readable_dirs": ["."], "denied_paths": ["agent.config.json"]},
        script=(
            agent("evil", call("Grep", pattern="canary", output_mode="content", path=".")),
        ),
        off={"allow_worktrees": True},
        makes="course/.claude/worktrees",
        comes=frozenset({"config"}),
    ),
    "outputs of another session's tasks": Door(
        says="Background tasks write below the CLI's temporary folder, beside other sessions'.",
        measure="only this session's folder is readable",
        world=(
            f"<tasks {SESSION}>/a.output=canary(owntask)",
            f"<tasks {OTHER}>/b.output=canary(othertask)",
        ),
        fields={"env": {"CLAUDE_CODE_TMPDIR": "<root>/tmp"}, "session_id": SESSION},
        script=(
            (read(f"<root>/<tasks {SESSION}>/a.output"), read(f"<root>/<tasks {OTHER}>/b.output")),
        ),
        off={"extra_readable_dirs": ["<root>/tmp"]},
        comes=frozenset({"othertask"}),
        open=frozenset({"owntask"}),
    ),
}  # fmt: skip


# Doors that other files try, with a control of their own. A file alone: all of it is about the door.
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "bodies of skills and commands, called by Skill or by a prompt": (
        "test_skills_and_commands.py",
        "test_slash_commands.py::test_without_the_kit_the_body_is_expanded",
        "test_slash_commands.py::test_nothing_of_a_body_was_seen",
    ),
    "skill arguments": (
        "test_a_whole_session.py::test_no_closed_file_came_with_a_skill",
        "test_a_whole_session.py::test_without_the_gate_a_skill_s_arguments_bring_files",
    ),
    "isolation of an Agent": (
        "test_subagents.py::test_no_subagent_works_in_a_copy_of_the_repository",
        "test_subagents.py::test_without_the_kit_a_copy_of_the_repository_has_the_denied_files",
    ),
    "the project's env, apiKeyHelper and other commands, hooks": (
        "test_pins.py::test_the_conversation_and_the_key_stay_and_no_command_runs",
        "test_pins.py::test_locked_each_door_is_shut",
        "test_pins.py::test_unlocked_each_door_is_open",
    ),
    "the project's PATH": ("test_prepared_projects.py::test_a_projects_path_names_no_program",),
    "instruction files beside a file that is read": (
        "test_nested_memory.py::test_nothing_beside_a_file_is_loaded_with_it",
        "test_nested_memory.py::test_unlocked_everything_is_loaded",
    ),
    "built-in slash commands": (
        "test_slash_commands.py::test_no_command_of_the_cli_runs",
        "test_slash_commands.py::test_without_the_kit_a_prompt_writes_the_runners_settings_and_into_home",
    ),
    "task notifications": ("test_task_notifications.py",),
    "prompts that the agent schedules for itself": ("test_scheduled_tasks.py",),
    "a trusted home: the project's permissions count": (
        "test_hostile_project.py::test_a_closed_file_stays_closed",
        "test_hostile_project.py::test_without_the_kit_the_project_opens_the_session",
    ),
    "can_use_tool is not asked for Skill and Agent": (
        "test_doors_beside_the_file_tools.py::test_can_use_tool_is_no_bound_for_skill_and_agent",
    ),
    "a hook that defers": (
        "test_doors_beside_the_file_tools.py::test_a_hook_that_defers_refuses_the_call",
        "test_doors_beside_the_file_tools.py::test_beside_the_gate_a_hook_that_defers_ends_the_run",
    ),
    "control files for the next session": (
        "test_control_files.py::test_what_no_tool_could_write_steers_no_later_session",
        "test_control_files.py::test_control_files_that_may_be_written_do_steer_later_sessions",
    ),
}
# What the CLI was seen not to do.
NO_DOOR: Mapping[str, tuple[str, ...]] = {
    "every kind of prompt reaches the prompt hook": (
        "test_doors_beside_the_file_tools.py::test_every_kind_of_prompt_reaches_the_prompt_hook",
    ),
    "a mention in an Agent's prompt is not expanded": (
        "test_doors_beside_the_file_tools.py::test_what_the_cli_does_not_do",
    ),
    "a subagent can't exceed its tools": (
        "test_doors_beside_the_file_tools.py::test_what_the_cli_does_not_do",
    ),
    "a forked skill gets no Bash, and no body runs a command": (
        "test_doors_beside_the_file_tools.py::test_what_the_cli_does_not_do",
    ),
    "agents' files in an untrusted home": (
        "test_hostile_project.py::test_a_closed_file_stays_closed",
        "test_hostile_project.py::test_no_hook_of_the_project_ran",
    ),
    "servers of ~/.claude.json, and of .mcp.json when the configuration is strict": (
        "test_isolation.py::test_a_session_loads_what_its_sources_say_and_nothing_else",
        "test_isolation.py::test_no_server_of_the_project_starts_with_a_strict_configuration",
    ),
    "Glob's braces and Grep's glob and type don't widen": (
        "test_file_tools.py::test_a_call_on_what_is_closed_is_refused",
        "test_doors_beside_the_file_tools.py::test_what_the_cli_does_not_do",
    ),
    "a file swapped for a link after a Read is not attached again": (
        "test_doors_beside_the_file_tools.py::test_a_swapped_file_is_not_attached_again",
    ),
}


# --- the doors that are tried here ------------------------------------------------------------


def filled(course: Course, value: Any) -> Any:
    """``value`` with the places filled in, wherever it holds texts."""
    if isinstance(value, str):
        for session in (SESSION, OTHER):
            places = CliLocations({"HOME": str(course.home), "CLAUDE_CODE_TMPDIR": str(course.root / "tmp")})  # fmt: skip
            folder = str(places.task_outputs_dir(course.project, session))
            value = value.replace(f"<tasks {session}>", str(Path(folder).relative_to(course.root)))
        return course.text(value)
    if isinstance(value, Mapping):
        return {key: filled(course, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(filled(course, each) for each in value)
    if isinstance(value, ToolCall):
        return ToolCall(value.name, filled(course, value.input), script=value.script)
    return value


def try_door(course: Course, door: Door, *, on: bool) -> tuple[set[str], bool]:
    """What of the closed files was seen, and whether a command ran."""
    tree(course.root, [filled(course, entry) for entry in door.world])
    if door.repository:
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
            person = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run(["git", *person, *words], cwd=course.project, check=True)
    config = filled(course, {**door.fields, **({} if on else door.off)})
    options = course.options(spec=filled(course, dict(door.spec)), **config)
    for change in (door.both, None if on else door.undo):
        options = options if change is None else change(options)
    run = course.run(options, [*filled(course, door.script), "Done."])
    seen = course.seen(run)
    assert door.open <= seen
    return seen - door.open, (course.root / "ran").exists()


@pytest.mark.parametrize("name", DOORS)
def test_with_its_measure_the_door_is_shut(name: str, course: Course) -> None:
    door = DOORS[name]
    seen, ran = try_door(course, door, on=True)
    assert not seen & door.comes
    assert not ran
    assert not (door.makes and (course.root / door.makes).exists())


@pytest.mark.parametrize("name", DOORS)
def test_without_that_one_measure_it_is_open(name: str, course: Course) -> None:
    door = DOORS[name]
    seen, ran = try_door(course, door, on=False)
    assert seen >= door.comes
    assert ran == door.ran
    assert (course.root / door.makes).exists()


def test_can_use_tool_is_no_bound_for_skill_and_agent(course: Course) -> None:
    """What the gate refuses here, nobody else would have been asked about."""
    asked: list[str] = []
    options = course.options(spec={"subagents": {"helper": Subagent(description="d", prompt="p")}})
    approve: Any = options.can_use_tool

    async def noted(tool: str, tool_input: dict[str, Any], context: Any) -> Any:
        asked.append(tool)
        return await approve(tool, tool_input, context)

    run = course.run(
        replace(no_gate(options), can_use_tool=noted),
        [
            skill("sources:cite", "@README.md"),
            agent("helper", course.call("Read", file_path="<out>/secret.txt")),
            "Done.",
        ],
    )
    assert course.seen(run) == README
    assert "Read" in asked  # it is asked about other tools
    assert not {"Skill", "Agent", "Task"} & {*asked}


def test_a_hook_that_defers_refuses_the_call(course: Course) -> None:
    hooks = {"PreToolUse": [defer]}
    run = course.session(
        [course.call("Read", file_path="sources/syllabus.md"), "Done."], hooks=hooks
    )
    assert run.calls[0].is_error
    assert run.text == "Done."


def test_beside_the_gate_a_hook_that_defers_ends_the_run(course: Course) -> None:
    """The control: the run is over, and what was asked for is open."""
    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[defer])]}
    model = [course.call("Read", file_path="README.md")]
    run = asyncio.run(_run(course, course.bare(hooks=hooks), model))
    (result,) = (each for each in run.messages if isinstance(each, ResultMessage))
    assert result.stop_reason == "tool_deferred"
    assert run.calls[0].result is None  # nobody has refused it: a resumed run asks once more
    assert len([request for request in run.requests if not request.side]) == 1


async def _run(course: Course, options: ClaudeAgentOptions, script: Any) -> SessionRun:
    from agent_kit.testing import run_session

    return await run_session(options, script, home=course.home)


# --- what the CLI does not do -----------------------------------------------------------------

FORKED = (
    "course/.claude/skills/forked/SKILL.md=---\nname: forked\ndescription: d\ncontext: fork\n"
    "allowed-tools: Bash, Read\n---\nDo it: !`touch <root>/ran`"
)
BODY = (
    "course/.claude/commands/body.md=---\ndescription: d\nallowed-tools: Bash\n---\n"
    "canary(body) !`touch <root>/ran`"
)
SMALL = AgentDefinition(description="d", prompt="p", tools=["Read"])


def test_what_the_cli_does_not_do(course: Course) -> None:
    """Without any lock of the kit's; the tools of the session are what bounds it."""
    tree(course.root, [course.text(FORKED), course.text(BODY)])
    bash = call("Bash", command=course.text(TOUCH), description="d")
    write = course.call("Write", file_path="<root>/ran", content="x")
    mention = ToolCall(
        "Agent",
        {"description": "d", "prompt": "Look at @README.md", "subagent_type": "small",
         "run_in_background": False},
        script=[(write, bash), "Nothing."],
    )  # fmt: skip
    options = course.bare(
        tools=["Read", "Skill", "Agent", "Glob", "Grep"],
        setting_sources=["project"],
        permission_mode="default",
        agents={"small": SMALL},
    )
    grep = {"pattern": "canary", "output_mode": "content", "path": "sources"}
    script = [
        skill("forked"),
        skill("body"),
        mention,
        (
            call("Grep", **grep, glob="{../private/*,/**}"),
            call("Grep", **grep, type="md --no-ignore ../private"),
            call("Glob", pattern="{letter,secret}.txt", path="sources"),
        ),
        course.call("Read", file_path="sources/syllabus.md"),
        "Done.",
    ]
    run = asyncio.run(_run(course, options, lambda turn: _played(turn, script, bash)))
    assert run.calls[-1].tool == "Read"
    assert not (course.root / "ran").exists()
    assert course.seen(run) <= {"syllabus", "body", "sourcename", "keyname", "exampem", "key"}
    assert "syllabus" in course.seen(run)
    refused = [call for call in run.calls if call.tool in ("Bash", "Write")]
    assert len(refused) >= 2
    assert all(call.is_error for call in refused)


def _played(turn: Any, script: list[Any], bash: ToolCall) -> Any:
    """The script of the main agent; a forked skill tries Bash."""
    if turn.agent is None:
        return script[turn.number] if turn.number < len(script) else None
    return bash if turn.number == 0 else "Nothing."


SWAPPED: dict[str, Callable[[Path], object]] = {
    "for a link": lambda file: (file.unlink(), file.symlink_to("../README.md")),
    "for another text": lambda file: file.write_text("canary(changed)", encoding="utf-8"),
}


@pytest.mark.parametrize("kind", SWAPPED)
def test_a_swapped_file_is_not_attached_again(kind: str, course: Course) -> None:
    """Nor is one that was changed in place: what the CLI might attach begins with that."""
    file = course.project / "drafts/newsletter.md"

    def script(turn: Any) -> Any:
        if turn.number == 0:
            return course.call("Read", file_path="drafts/newsletter.md")
        if turn.number == 1:
            SWAPPED[kind](file)
            later = time.time() + 60  # else the change could be overlooked
            os.utime(file, (later, later))
        return "Done."

    run = asyncio.run(_run_prompts(course, course.bare(), script, ["Look.", "And now?", "Again."]))
    assert len([request for request in run.requests if not request.side]) == 4
    assert course.seen(run) == {"newsletter"}


async def _run_prompts(
    course: Course, options: ClaudeAgentOptions, script: Any, prompts: list[str]
) -> SessionRun:
    from agent_kit.testing import run_session

    return await run_session(options, script, home=course.home, prompt=prompts)


def message(content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
        "session_id": "default",
        **more,
    }


PROMPTS = {
    "a block": message([{"type": "text", "text": "one-block"}]),
    "several blocks": message(
        [{"type": "text", "text": "first-block"}, {"type": "text", "text": "second-block"}]
    ),
    "synthetic": message("made-up", isSynthetic=True),
    "queued": message("queued-one"),
    "queued behind it": message("queued-two"),
}


async def test_every_kind_of_prompt_reaches_the_prompt_hook(course: Course) -> None:
    heard: list[str] = []

    async def hear(payload: Any, _use_id: str | None, _context: Any) -> dict[str, Any]:
        heard.append(json.dumps(payload.get("prompt")))
        return {}

    async def all_at_once() -> AsyncIterator[dict[str, Any]]:
        for each in PROMPTS.values():
            yield each

    with ScriptedModel(lambda _turn: "Done.") as model:
        hooks: Any = {"UserPromptSubmit": [HookMatcher(hooks=[hear])]}
        env = cli_env(model, course.home)
        async with (
            asyncio.timeout(30),
            ClaudeSDKClient(course.bare(hooks=hooks, env=env)) as client,
        ):
            await client.query(all_at_once())
            words = ("one-block", "second-block", "made-up", "queued-one", "queued-two")
            while not all(model.saw(word) for word in words):
                await asyncio.sleep(0.1)
    assert [word for word in words if word not in " ".join(heard)] == []


# --- completeness -----------------------------------------------------------------------------


def claims_of(file: str) -> set[str]:
    parsed = ast.parse((HERE / file).read_text(encoding="utf-8"))
    return {
        node.name
        for node in parsed.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


@pytest.mark.parametrize("name", [*ELSEWHERE, *NO_DOOR])
def test_the_tests_that_a_row_names_are_there(name: str) -> None:
    for pointer in {**ELSEWHERE, **NO_DOOR}[name]:
        file, _, test = pointer.partition("::")
        found = claims_of(file)
        assert found
        assert not test or test in found, pointer


def test_no_door_stands_in_two_tables_and_each_names_one_measure() -> None:
    assert len({*DOORS, *ELSEWHERE, *NO_DOOR}) == len(DOORS) + len(ELSEWHERE) + len(NO_DOOR)
    for door in DOORS.values():
        assert bool(door.off) != bool(door.undo)
        assert door.comes or door.ran
