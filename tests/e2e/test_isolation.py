"""What of the runner's and the project's own configuration reaches the agent, and what keeps it out.

A home with everything in it that the CLI loads from one, and a project likewise, a canary in each
thing. What runs (hooks, servers) leaves a file behind. Measured in a home that has trusted the
project and in one that hasn't.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit.sdk.locations import CliLocations
from agent_kit.testing import SessionRun, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

SDK = tuple(int(part) for part in metadata.version("claude-agent-sdk").split("."))
pytestmark = pytest.mark.e2e

HOOK_EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse")
READ = {"file_path": "sources/syllabus.md"}


def hooks(course: Course, owner: str) -> dict[str, Any]:
    """Hooks that leave a file behind and say a canary."""
    say = f"echo 'canary({owner}hook)'"
    return {
        event: [
            {
                "hooks": [
                    {"type": "command", "command": f"touch {course.root}/ran-{owner}hook; {say}"}
                ]
            }
        ]
        for event in HOOK_EVENTS
    }


def server(course: Course, owner: str) -> dict[str, Any]:
    return {"command": "sh", "args": ["-c", f"touch {course.root}/ran-{owner}server"]}


def front(name: str) -> str:
    return f"---\nname: {name}\ndescription: canary({name})\n---\nBody."


def settings(course: Course, owner: str, **more: Any) -> str:
    return json.dumps(
        {"language": f"canary({owner}language)", "hooks": hooks(course, owner), **more}
    )


def prepare(course: Course, *, trusted: bool) -> Course:
    places = CliLocations({"HOME": str(course.home)})
    own = Path(places.tool_results_dir(course.project, "x")).parents[1].relative_to(course.root)
    account = {
        "mcpServers": {"u": server(course, "user")},
        "projects": {
            str(course.project): {
                "hasTrustDialogAccepted": trusted,
                "mcpServers": {"l": server(course, "local")},
            }
        },
    }
    tree(
        course.root,
        [
            f"home/.claude.json={json.dumps(account)}",
            f"{own}/memory/MEMORY.md=canary(automemory)",
            "home/.gitconfig=[user]\nname = canary(gitname)\nemail = a@b.c\n",
            # the user's
            "home/.claude/settings.json="
            + settings(course, "user", env={"ANTHROPIC_MODEL": "canary(userenv)"}),
            "home/.claude/CLAUDE.md=canary(userclaude)",
            "home/.claude/rules/r.md=canary(userrule)",
            "home/.claude/skills/userskill/SKILL.md=" + front("userskill"),
            "home/.claude/commands/usercommand.md=" + front("usercommand"),
            "home/.claude/agents/useragent.md=" + front("useragent"),
            # the project's
            "course/.claude/settings.json=" + settings(course, "project"),
            "CLAUDE.md=canary(aboveclaude)",
            "course/CLAUDE.md=canary(projectclaude)",
            "course/.claude/rules/r.md=canary(projectrule)",
            "course/.claude/skills/projectskill/SKILL.md=" + front("projectskill"),
            "course/.claude/commands/projectcommand.md=" + front("projectcommand"),
            "course/.claude/agents/projectagent.md=" + front("projectagent"),
            f"course/.mcp.json={json.dumps({'mcpServers': {'p': server(course, 'project')}})}",
            # the runner's own in this project
            "course/.claude/settings.local.json=" + settings(course, "local"),
            "course/CLAUDE.local.md=canary(localclaude)",
        ],
    )
    git = "git init -q . && git add CLAUDE.md && git commit -qm 'canary(gitcommit)'"
    env = {**os.environ, "HOME": str(course.home)}
    subprocess.run(git, shell=True, cwd=course.project, env=env, check=True)
    return course


USER = {"userlanguage", "userenv", "userclaude", "userrule", "useragent"}
USER_MORE = {"userskill", "usercommand", "userhook"}
PROJECT = {"projectclaude", "aboveclaude", "projectagent"}
PROJECT_MORE = {"projectlanguage", "projectskill", "projectcommand", "projectrule"}
LOCAL = {"localclaude"}
LOCAL_MORE = {"locallanguage"}
WHATEVER_THE_SOURCES = {"automemory", "gitname", "gitcommit"}

# sources: what must be seen, what may be, and which servers start
KIT = {
    (): (set(), set(), set()),
    ("project",): (PROJECT | {"projectlanguage"}, PROJECT_MORE, {"projectserver"}),
    ("project", "local"): (
        PROJECT | LOCAL | {"locallanguage"},
        PROJECT_MORE | LOCAL_MORE,
        {"projectserver", "localserver"},
    ),
    ("user", "project"): (
        (USER | PROJECT) - {"userlanguage"} | {"projectlanguage"},  # the project's setting wins
        USER | USER_MORE - {"userhook"} | PROJECT_MORE,
        {"userserver", "projectserver"},
    ),
}
TRUST = pytest.mark.parametrize("trusted", [False, True], ids=["untrusted", "trusted"])


def started(course: Course, expected: set[str]) -> set[str]:
    """What ran, once all that is expected had its time."""
    until = time.monotonic() + 5
    while True:
        found = {path.name.removeprefix("ran-") for path in course.root.glob("ran-*")}
        if found >= expected or time.monotonic() > until:
            return found
        time.sleep(0.05)


def seen(course: Course, run: SessionRun) -> set[str]:
    """What was seen beside the file that every session here reads, the control."""
    found = course.seen(run)
    assert "syllabus" in found
    return found - {"syllabus"}


def kit(course: Course, **config: Any) -> SessionRun:
    """With the preset that tells of git, and the tool that lists agents."""
    script = [course.call("Read", **READ), "Done."]
    return course.session(script, spec={"preset": "claude_code", "tools": ["Agent"]}, **config)


def bare(course: Course, sources: list[str] | None) -> SessionRun:
    options = course.bare(
        setting_sources=sources,
        tools=["Read", "Skill", "Agent"],
        system_prompt={"type": "preset", "preset": "claude_code"},
    )
    return course.run(options, [course.call("Read", **READ), "Done."])


@TRUST
@pytest.mark.parametrize("sources", KIT, ids=lambda sources: "+".join(sources) or "nothing")
def test_a_session_loads_what_its_sources_say_and_nothing_else(
    sources: tuple[str, ...], trusted: bool, course: Course
) -> None:
    run = kit(prepare(course, trusted=trusted), setting_sources=sources)
    must, may, servers = KIT[sources]
    found = seen(course, run)
    assert found >= must
    assert found <= must | may
    assert started(course, servers) == servers


def test_the_spec_s_own_sources_are_the_project_s(course: Course) -> None:
    run = kit(prepare(course, trusted=True))
    must, may, servers = KIT[("project",)]
    assert must <= seen(course, run) <= must | may
    assert started(course, servers) == servers


def test_no_server_of_the_project_starts_with_a_strict_configuration(course: Course) -> None:
    kit(prepare(course, trusted=True), strict_mcp_config=True)
    assert started(course, set()) == set()


# The setting that is unlocked, and what comes in then.
UNLOCKED = {
    "auto_memory": ({"automemory"}, set()),
    "git_instructions": ({"gitname", "gitcommit"}, set()),
    "project_hooks": ({"projecthook"}, {"projecthook"}),
}


@pytest.mark.parametrize("name", UNLOCKED)
def test_each_setting_keeps_something_out(name: str, course: Course) -> None:
    """Unlocked, it comes in: so the setting is what keeps it out."""
    run = kit(prepare(course, trusted=False), unlock=[name])
    came, ran = UNLOCKED[name]
    must, may, servers = KIT[("project",)]
    found = seen(course, run)
    assert found >= must | came
    assert found <= must | may | came
    assert started(course, servers | ran) == servers | ran


def test_auto_memory_is_kept_out_of_a_session_without_sources_as_well(course: Course) -> None:
    run = kit(prepare(course, trusted=True), setting_sources=[], unlock=["auto_memory"])
    assert seen(course, run) == {"automemory"}


def test_a_host_s_settings_do_not_undo_the_isolation(course: Course) -> None:
    run = kit(
        prepare(course, trusted=True),
        setting_sources=[],
        settings={"autoMemoryEnabled": True, "includeGitInstructions": True},
    )
    assert seen(course, run) == set()


def test_connectors_of_the_account_are_off_unless_unlocked(course: Course) -> None:
    """There is no account here: that the CLI is told is all that can be seen."""
    assert course.plan().settings["disableClaudeAiConnectors"] is True
    assert "disableClaudeAiConnectors" not in course.plan(unlock=["claude_ai_connectors"]).settings


@TRUST
def test_without_the_kit_everything_comes_in(trusted: bool, course: Course) -> None:
    run = bare(prepare(course, trusted=trusted), None)
    everything = (USER | USER_MORE | PROJECT | LOCAL | WHATEVER_THE_SOURCES) - {"userlanguage"} | {
        "locallanguage",
        "projecthook",
        "localhook",
        "projectskill",
        "projectcommand",
    }
    if SDK < (0, 2, 189):  # CLI 2.1.317 tells the model of skills only when it looks for them
        everything -= {"projectskill", "projectcommand", "userskill", "usercommand"}
    assert seen(course, run) >= everything
    ran = {"userhook", "projecthook", "localhook", "userserver", "projectserver"}
    assert started(course, ran) >= ran


def test_without_the_kit_no_sources_still_let_the_runner_s_memory_in(course: Course) -> None:
    run = bare(prepare(course, trusted=False), [])
    assert seen(course, run) == WHATEVER_THE_SOURCES


def test_a_separate_config_folder_has_nothing_of_the_runner_s(course: Course) -> None:
    prepare(course, trusted=True)
    own = course.root / "own-config"
    run = kit(
        course,
        config_dir=str(own),
        setting_sources=["user", "project"],
        unlock=["auto_memory"],
    )
    assert not seen(course, run) & (USER | USER_MORE | {"automemory"})
    assert started(course, {"projectserver"}) == {"projectserver"}
    assert (own / "projects").is_dir()


@pytest.fixture
def course(new_course: Callable[[], Course]) -> Course:
    return new_course()
