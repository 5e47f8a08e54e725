"""Bodies of skills and commands on the real CLI: each door seen open without the kit, and shut by it."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, SystemMessage

from agent_kit import AgentSpec, FileScope, SessionConfig, options_from_plan, plan_session
from agent_kit.sdk.catalogue import find_commands
from agent_kit.sdk.commands import Commands, Place, refused_command
from agent_kit.session.builtin_commands import BUILTIN_COMMANDS, BUNDLED_SKILLS
from agent_kit.testing import Say, SessionRun, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e

SECRET = "canary-closed-file"
OPEN = "canary-open-file"
HEAD = "---\ndescription: d\n---\n"
MANIFEST = 'plug/.claude-plugin/plugin.json={"name": "plug"}'
SKILLS, COMMANDS = "course/.claude/skills", "course/.claude/commands"


@dataclass(frozen=True, kw_only=True)
class Door:
    """Files of the project and of the plugin, and the call that brings a closed file."""

    files: tuple[str, ...]
    skill: str
    args: str | None = None
    before: tuple[ToolCall, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)  # after the session was planned


READ_BELOW = (ToolCall("Read", {"file_path": "below/x.md"}),)

DOORS = {
    "a project's command": Door(files=(f"{COMMANDS}/evil.md={HEAD}see @../out.txt",), skill="evil"),
    "in a folder": Door(files=(f"{COMMANDS}/a/b.md=see @../out.txt",), skill="a:b"),
    "a project's skill": Door(
        files=(f"{SKILLS}/evil/SKILL.md={HEAD}see @../out.txt",), skill="evil"
    ),
    "by its other name": Door(
        files=(f"{SKILLS}/evil/SKILL.md=---\nname: Good\ndescription: d\n---\nsee @../out.txt",),
        skill="Good",
    ),
    "with a slash": Door(files=(f"{COMMANDS}/evil.md=see @../out.txt",), skill=" /evil "),
    "a link": Door(files=(f"{COMMANDS}/evil.md => ../../../out.txt",), skill="evil"),
    "a skill that is a link": Door(
        files=(f"{SKILLS}/evil/SKILL.md => ../../../../out.txt",), skill="evil"
    ),
    "a folder's name": Door(
        files=("course/closed.txt=" + SECRET, f"{SKILLS}/k @closed.txt/SKILL.md={HEAD}x"),
        skill="k @closed.txt",
    ),
    "the folder above": Door(
        files=(f".claude/skills/evil/SKILL.md={HEAD}see @../out.txt",), skill="evil"
    ),
    "a folder below": Door(
        files=(
            "course/below/x.md=x",
            f"course/below/.claude/skills/evil/SKILL.md={HEAD}see @../out.txt",
        ),
        skill="evil",
        before=READ_BELOW,
    ),
    "a variable": Door(
        files=(f"{COMMANDS}/evil.md=@${{CLAUDE_PROJECT_DIR}}/../out.txt",), skill="evil"
    ),
    "changed after planning": Door(
        files=(f"{COMMANDS}/it.md={HEAD}fine",),
        skill="it",
        changed={f"{COMMANDS}/it.md": f"{HEAD}see @../out.txt"},
    ),
    "a plugin's, changed": Door(
        files=(f"plug/commands/it.md={HEAD}fine",),
        skill="plug:it",
        changed={"plug/commands/it.md": f"{HEAD}see @../out.txt"},
    ),
    # the body is fine, the arguments are the model's
    "arguments after an @": Door(
        files=(f"plug/commands/it.md={HEAD}Read @$ARGUMENTS",), skill="plug:it", args="../out.txt"
    ),
    "one of them": Door(
        files=(f"plug/skills/it/SKILL.md={HEAD}Read @../$1.txt",), skill="plug:it", args="x 'out'"
    ),
    "a named one": Door(
        files=("plug/commands/it.md=---\narguments: [a, file]\n---\nRead @$file",),
        skill="plug:it",
        args="x ../out.txt",
    ),
    "two that make one": Door(
        files=(f"plug/commands/it.md={HEAD}Read $0$1",), skill="plug:it", args="@.. /out.txt"
    ),
    "as a shell reads them": Door(
        files=(f"plug/commands/it.md={HEAD}Read @$0",), skill="plug:it", args="A=1 ../o'u't.txt; x"
    ),
    "a variable in them": Door(
        files=(f"plug/commands/it.md={HEAD}fine",),
        skill="plug:it",
        args="@${CLAUDE_PROJECT_DIR}/../out.txt",
    ),
    "the skill's folder in them": Door(
        files=(f"plug/skills/it/SKILL.md={HEAD}fine",),
        skill="plug:it",
        args="@${CLAUDE_SKILL_DIR}/../../../out.txt",
    ),
}
# $0$1 with "/out.txt" makes "@../out.txt".


def _world(root: Path, files: tuple[str, ...]) -> None:
    tree(
        root,
        ["home/", f"out.txt={SECRET}", f"course/open.md={OPEN}", MANIFEST, *files],
    )


def _options(root: Path, door: Door, *, kit: bool, **spec: Any) -> ClaudeAgentOptions:
    plugins = [str(root / "plug")]
    if kit:
        config = SessionConfig(
            project_dir=root / "course",
            run_dir=root / "run",
            env={"HOME": str(root / "home")},
            extra_readable_dirs=["."],
            denied_paths=["closed.txt"],
            confinement="off",
        )
        plan = plan_session(
            AgentSpec(name="skills", plugins=plugins, tools=["Skill"], **spec), config
        )
        options = options_from_plan(plan)
    else:
        options = ClaudeAgentOptions(
            cwd=str(root / "course"),
            plugins=[{"type": "local", "path": path} for path in plugins],
            tools=["Read", "Skill"],
            allowed_tools=["Read", "Skill"],
            setting_sources=["project"],
        )
    for name, text in door.changed.items():
        (root / name).write_text(text)
    return options


def _call(skill: str, args: str | None = None) -> ToolCall:
    return ToolCall("Skill", {"skill": skill} | ({} if args is None else {"args": args}))


async def _run(root: Path, door: Door, *, kit: bool, **spec: Any) -> SessionRun:
    _world(root, door.files)
    script = [*door.before, _call(door.skill, door.args), Say("Done.")]
    options = _options(root, door, kit=kit, **spec)
    run = await run_session(options, script, home=root / "home")
    assert run.unplayed == ()
    assert not any(call.is_error for call in run.calls[:-1])
    return run


@pytest.mark.parametrize("kit", [True, False], ids=["guarded", "control"])
@pytest.mark.parametrize("name", DOORS)
async def test_no_skill_brings_what_is_closed(tmp_path: Path, name: str, kit: bool) -> None:
    run = await _run(tmp_path, DOORS[name], kit=kit)
    assert run.saw(SECRET) == (not kit)
    assert run.calls[-1].is_error == kit


# What must stay usable: files, call, and whether its mention is attached.
USABLE = {
    "a project's skill": Door(files=(f"{SKILLS}/it/SKILL.md={HEAD}see @open.md",), skill="it"),
    "a project's command": Door(files=(f"{COMMANDS}/a/it.md={HEAD}see @open.md",), skill="a:it"),
    "a plugin's, with an argument": Door(
        files=(
            f"plug/commands/it.md={HEAD}Read @$ARGUMENTS, mail ada@example.org, use @dataclass",
        ),
        skill="plug:it",
        args="open.md",
    ),
    "a plugin's in a folder": Door(
        files=(f"plug/commands/a/b/it.md={HEAD}Read @$0",), skill="plug:a:b:it", args="'open.md' x"
    ),
    "by its other name": Door(
        files=("plug/skills/it/SKILL.md=---\nname: It\ndescription: d\n---\nsee @open.md",),
        skill="It",
    ),
}


@pytest.mark.parametrize("name", USABLE)
async def test_a_skill_that_mentions_open_files_works(tmp_path: Path, name: str) -> None:
    run = await _run(tmp_path, USABLE[name], kit=True)
    assert not run.calls[-1].is_error
    assert run.saw(OPEN)


@pytest.mark.parametrize("named", [True, False])
async def test_a_bundled_skill_is_there_only_by_name(tmp_path: Path, named: bool) -> None:
    door = Door(files=(), skill="dataviz")
    run = await _run(tmp_path, door, kit=True, skills=["dataviz"] if named else [])
    assert run.calls[-1].is_error == (not named)


@pytest.mark.parametrize("kit", [True, False], ids=["guarded", "control"])
async def test_a_projects_skill_opens_no_tool(tmp_path: Path, kit: bool) -> None:
    """Its ``allowed-tools`` would let a tool run that the session opens for one host only."""
    header = "---\ndescription: d\nallowed-tools: WebFetch\n---\n"
    _world(tmp_path, (f"{SKILLS}/it/SKILL.md={header}x",))
    fetch = ToolCall("WebFetch", {"url": "http://elsewhere.invalid/x", "prompt": "p"})
    config = SessionConfig(
        project_dir=tmp_path / "course",
        run_dir=tmp_path / "run",
        extra_readable_dirs=["."],
        confinement="off",
    )
    plan = plan_session(
        AgentSpec(name="skills", tools=["Skill", "WebFetch(domain:example.org)"]), config
    )
    assert "it" not in plan.skills
    assert any("'it' is not offered" in note and "WebFetch" in note for note in plan.notes)
    options = options_from_plan(plan)
    if not kit:
        settings = json.loads(options.settings or "")
        del settings["skillOverrides"]
        options.hooks, options.skills, options.settings = {}, ["it"], json.dumps(settings)
    script = [fetch, _call("it"), fetch, Say("Done.")]
    run = await run_session(options, script, home=tmp_path / "home")
    first, skill, second = run.calls
    assert skill.is_error == kit
    assert first.is_error
    assert (first.result == second.result) == kit


async def test_the_tables_hold_every_skill_and_command_of_this_cli(tmp_path: Path) -> None:
    tree(tmp_path, ["home/", "course/"])
    options = ClaudeAgentOptions(cwd=str(tmp_path / "course"), setting_sources=[])
    run = await run_session(options, [Say("Done.")], home=tmp_path / "home")
    first = next(m for m in run.messages if isinstance(m, SystemMessage) and m.subtype == "init")
    assert {*first.data["skills"]} == BUNDLED_SKILLS
    assert {*first.data["slash_commands"]} == BUNDLED_SKILLS | BUILTIN_COMMANDS


# --- the CLI as the oracle -------------------------------------------------------------------------

BODY = (
    *("@", "@$ARGUMENTS", "$ARGUMENTS", "$0", "$1", "@$0", "@$1", "@$ARGUMENTS[1]", "$n", "@$m"),
    *(
        " ",
        "\n",
        "/",
        "../",
        "../\x01.txt",
        "\x01",
        ".txt",
        '"',
        '@"',
        "\\$0",
        "#L1",
        ",",
        "(",
        "$n/",
    ),
    *("${CLAUDE_PROJECT_DIR}/", "@${CLAUDE_PROJECT_DIR}/../", "@${CLAUDE_SKILL_DIR}/../"),
)
ARGS = (
    *(
        "@",
        "../\x01.txt",
        "../\x01.txt",
        "@../\x01.txt",
        "\x01.txt",
        "../",
        "\x01",
        ".txt",
        " ",
        " ",
    ),
    *(
        "\t",
        "'a b'",
        "'../\x01.txt'",
        '"@../\x01.txt"',
        "''",
        ",",
        "\u00e9",
        "~",
        "\u00a0",
        "x",
        "/",
    ),
)
SHELL = ("'", '"', "\\", "$0", ";", "a=", "|", "`", "#", "{", "if ", "\n", "!", "(", "[", "${")
HEADERS = (
    HEAD,
    "",
    "---\narguments: n m\n---\n",
    "---\ndescription: a: b: c\narguments: [n, m]\n---\n",
    "---\narguments:\n  - n\n  - m\nargument-hint: [a] @b\n---\n",
    "---\r\narguments: n\r\n---\r\n",
)


def _cases(count: int) -> list[tuple[str, str, str, str]]:
    """Name, file, text and arguments of commands that are made at random."""
    chosen = random.Random(3)
    cases = []
    for number in range(count):
        key = f"k{number:03d}"
        pieces = ARGS + SHELL if number % 3 == 0 else ARGS
        text = "".join(chosen.choices(BODY, k=chosen.randint(1, 6)))
        args = "".join(chosen.choices(pieces, k=chosen.randint(0, 5)))
        if "\x01" not in text + args:
            text += chosen.choice(["@$1/\x01.txt", " @$ARGUMENTS/\x01.txt", " @../\x01.txt"])
        text, args = text.replace("\x01", key), args.replace("\x01", key)
        name, file = chosen.choice(
            [
                (key, f"{COMMANDS}/{key}.md"),
                (key, f"{SKILLS}/{key}/SKILL.md"),
                (f"plug:{key}", f"plug/commands/{key}.md"),
                (f"plug:{key}", f"plug/skills/{key}/SKILL.md"),
            ]
        )
        cases.append((name, file, chosen.choice(HEADERS) + text, args))
    return cases


def test_whatever_the_cli_attaches_is_refused(tmp_path: Path) -> None:
    cases = _cases(200)
    _world(tmp_path, ())
    for number, (_, file, text, _) in enumerate(cases):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(text.encode())
        for place in (f"k{number:03d}.txt", f"course/k{number:03d}.txt", f"course/k{number:03d}"):
            (tmp_path / place).write_text(f"canary({number})")
    options = _options(tmp_path, Door(files=(), skill=""), kit=False)
    script = [*(_call(name, args) for name, _, _, args in cases), Say("Done.")]
    run = asyncio.run(run_session(options, script, home=tmp_path / "home", timeout=240))
    seen = " ".join(request.text for request in run.requests)
    attached = {int(number) for number in re.findall(r"canary\((\d+)\)", seen)}

    course, plug = str(tmp_path / "course"), str(tmp_path / "plug")
    readable = (f"{course}/.claude", plug)
    scope = FileScope(project_dir=course, also_readable=readable, home=str(tmp_path / "home"))
    found = find_commands(
        [
            Place(folder=plug, plugin="plug", trusted=True),
            Place(folder=f"{course}/.claude"),
        ]
    )
    commands = Commands(offered=frozenset(each.name for each in found), found=found)
    refused = {
        number
        for number, (name, _, _, args) in enumerate(cases)
        if refused_command(scope, commands, name, args, course) is not None
    }
    assert [cases[number] for number in sorted(attached - refused)] == []
    assert len(attached) > 15  # the cases are worth something
    assert len(cases) - len(refused) > 60  # and not refused altogether
