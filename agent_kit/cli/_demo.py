"""``agent-kit demo``: the project, the session, the proof. Here the SDK is loaded."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from claude_agent_sdk import ClaudeSDKError

from agent_kit import SessionPlan, plan_session
from agent_kit.cli._agent import course_config, course_spec
from agent_kit.cli._course import INJECTION, SUBMISSION, Course, build_course
from agent_kit.cli._play import play
from agent_kit.cli._proof import Check, prove, prove_live
from agent_kit.cli._screen import Screen
from agent_kit.cli._story import STORY
from agent_kit.sdk.gate import GateLog
from agent_kit.session.options import options_from_plan
from agent_kit.testing import ScriptedModel, cli_env

__all__ = ["run_demo"]

_LIMIT: Final = 60.0  # seconds for the scripted session, which takes about 4
_LIVE_LIMIT: Final = 600.0  # seconds for a real one

_PARTS: Final = (
    ("course/sources/", "originals, among them a link out and a hard link to a closed file"),
    ("course/drafts/", "the agent writes here"),
    ("course/knowledge/", "pages, reached only through the knowledge_* tools"),
    ("course/memory/", "notes about the person, reached only through its own tools"),
)


def run_demo(screen: Screen, *, question: str | None = None, keep: bool = False) -> int:
    """Run the demo and show it; the exit status. With ``question`` the real model is asked.

    The folder is removed afterwards unless ``keep``.
    """
    started = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="agent-kit-demo-")).resolve()
    try:
        course = build_course(root)
        (root / "tmp").mkdir()
        return asyncio.run(
            _scripted(screen, course, started)
            if question is None
            else _live(screen, course, question, started)
        )
    except TimeoutError:
        screen.error("The session did not end in time.")
        return 1
    except (ClaudeSDKError, OSError) as error:
        screen.error(f"The session failed: {error}")
        return 1
    finally:
        if keep:
            screen.section(f"The folder stays: {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)


async def _scripted(screen: Screen, course: Course, started: float) -> int:
    log = GateLog()
    with ScriptedModel(STORY.script) as model:
        plan = plan_session(
            course_spec(), course_config(course, _env(course, cli_env(model, course.home)))
        )
        _introduce(screen, course, plan, "a scripted model that obeys everything it reads")
        played = await play(options_from_plan(plan, log=log), STORY.prompts, screen, limit=_LIMIT)
        return _conclude(screen, course, prove(course, STORY, model, played, log), started)


async def _live(screen: Screen, course: Course, question: str, started: float) -> int:
    log = GateLog()
    plan = plan_session(course_spec(), course_config(course, _env(course, {})))
    _introduce(screen, course, plan, "the real model, with your key")
    played = await play(options_from_plan(plan, log=log), [question], screen, limit=_LIVE_LIMIT)
    status = _conclude(screen, course, prove_live(course, played, log), started)
    return 1 if played.failed else status


def _env(course: Course, env: dict[str, str]) -> dict[str, str]:
    """The CLI's environment: nothing of the runner's own configuration, and no trace left."""
    return {
        **env,
        "HOME": str(course.home),
        "CLAUDE_CONFIG_DIR": str(course.home / ".claude"),
        "CLAUDE_CODE_TMPDIR": str(course.root / "tmp"),
    }


def _introduce(screen: Screen, course: Course, plan: SessionPlan, model: str) -> None:
    screen.title(f"An agent on the real Claude Code CLI{_cli_version()}, with {model}.")
    screen.section(f"The project, made for this run in {course.root}")
    screen.rows(_PARTS)
    screen.paragraph(f"The submission {SUBMISSION} holds more than an essay:", style="bold")
    screen.paragraph(INJECTION, indent=4, style="dim")
    screen.section("The locks")
    screen.locks(plan.locks)


def _conclude(screen: Screen, course: Course, checks: Sequence[Check], started: float) -> int:
    screen.section("The proof: each closed file holds a random text of its own, a canary")
    screen.rows((canary.text, canary.name, canary.closed or "") for canary in course.closed)
    screen.gap()
    for check in checks:
        screen.check(check.ok, check.text, check.details)
    failed = sum(not check.ok for check in checks)
    verdict = f"{failed} of {len(checks)} claims do not hold." if failed else "Every claim holds."
    screen.section(f"{verdict} ({time.monotonic() - started:.1f} s)")
    return 1 if failed else 0


def _cli_version() -> str:
    """The bundled CLI's version, which the SDK keeps to itself; empty when it is not there."""
    try:
        from claude_agent_sdk._cli_version import __cli_version__
    except ImportError:
        return ""
    return f" {__cli_version__}"
