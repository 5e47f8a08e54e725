"""A course project full of canaries, and sessions on it that run on the real CLI.

The measure of every test here is the same: which canaries were in any request to the model. Each
closed file, and each closed name, holds one of its own; so does each open one, so that a session in
which nothing was seen at all fails as well.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import AgentSpec, SessionConfig, SessionPlan, build_session_options, plan_session
from agent_kit.testing import AnsweredBy, CallRecord, SessionRun, ToolCall, run_session, tree
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import sources

CANARY = re.compile(r"canary\([a-z0-9-]+\)")
FILE_TOOLS = ("Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep")

NOTEBOOK = (
    '{"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [],'
    ' "execution_count": null, "source": ["%s"]}], "metadata": {}, "nbformat": 4,'
    ' "nbformat_minor": 5}'
)

# What the agent may see: the canaries of these are the control.
OPEN = (
    "course/sources/syllabus.md=canary(syllabus) exam on Monday",
    "course/sources/canary(sourcename).md=a second one",
    "course/drafts/newsletter.md=canary(newsletter) old",
    "course/drafts/plan.ipynb=" + NOTEBOOK % "canary(plan) old",
)
CLOSED = (
    "course/README.md=canary(readme) old",
    'course/agent.config.json={"key": "canary(config) old"}',
    "course/.env=canary(env) old",
    "course/grades.ipynb=" + NOTEBOOK % "canary(grades) old",
    "course/private/canary(privatename).txt=canary(private) old",
    "course/private/letter.txt=canary(letter) old",
    "course/drafts/.env=canary(draftsenv) old",
    "course/sources/keys/canary(keyname).pem=canary(key) old",
    "course/sources/keys/exam.pem=canary(exampem) old",
    "course/knowledge/index.md=canary(knowledge) old",
    "course/memory/me.md=canary(memory) old",
    "out/secret.txt=canary(outside) old",
    "out/.env=canary(outenv) old",
    "out/book.ipynb=" + NOTEBOOK % "canary(outbook) old",
    "out/folder/canary(outname).txt=canary(outfolder) old",
    "home/secret.txt=canary(home) old",
    "home/.bashrc=# canary(bashrc) old",
    "home/.ssh/id_ed25519=canary(ssh) old",
)


class Course:
    """A prepared world: ``project`` and, outside of it, ``out`` and ``home``."""

    def __init__(self, root: Path) -> None:
        self.root = tree(root, [*OPEN, *CLOSED])
        self.project = root / "course"
        self.out = root / "out"
        self.home = root / "home"
        self.run_dir = root / "run"
        self._known = self._on_disk()

    # --- a session's parts --------------------------------------------------------------------

    def spec(self, **fields: Any) -> AgentSpec:
        fields.setdefault(
            "extensions",
            [sources(dir="sources"), knowledge(dir="knowledge"), memory(dir="memory")],
        )
        return AgentSpec(name="course-assistant", system_prompt="You help a teacher.", **fields)

    def config(self, **fields: Any) -> SessionConfig:
        fields.setdefault("extra_writable_dirs", ["drafts"])
        fields.setdefault("denied_paths", ["agent.config.json", "**/.env", "*.pem"])
        fields.setdefault("run_dir", str(self.run_dir))
        fields.setdefault("confinement", "off")  # locks 1 to 3 are judged by themselves
        env = {"HOME": str(self.home), **fields.pop("env", {})}
        return SessionConfig(project_dir=self.project, env=env, **fields)

    def plan(self, *, spec: Mapping[str, Any] = {}, **config: Any) -> SessionPlan:
        return plan_session(self.spec(**spec), self.config(**config))

    def options(self, *, spec: Mapping[str, Any] = {}, **config: Any) -> ClaudeAgentOptions:
        return build_session_options(self.spec(**spec), self.config(**config))

    def bare(self, **more: Any) -> ClaudeAgentOptions:
        """A session with every file tool and no lock at all: the control."""
        more.setdefault("tools", [*FILE_TOOLS, "ToolSearch", "Agent"])
        env = {"HOME": str(self.home), "IS_SANDBOX": "1", **more.pop("env", {})}
        more.setdefault("permission_mode", "bypassPermissions")
        more.setdefault("setting_sources", [])
        return ClaudeAgentOptions(
            cwd=str(self.project), env=env, max_buffer_size=64 * 1024 * 1024, **more
        )

    def run(self, options: ClaudeAgentOptions, script: Any, **more: Any) -> SessionRun:
        """One session in this world's home. Every step of ``script`` must have been played."""
        run = asyncio.run(run_session(options, script, home=self.home, **more))
        assert run.unplayed == ()
        assert run.outside == ()
        return run

    def session(
        self,
        script: Any,
        *,
        spec: Mapping[str, Any] = {},
        run: Mapping[str, Any] = {},
        **config: Any,
    ) -> SessionRun:
        """A whole session of the kit."""
        return self.run(self.options(spec=spec, **config), script, **run)

    # --- calls --------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """``text`` with the places ``<course>``, ``<out>``, ``<home>`` and ``<root>`` filled in."""
        places = {"course": self.project, "out": self.out, "home": self.home, "root": self.root}
        return re.sub(r"<(course|out|home|root)>", lambda m: str(places[m[1]]), text)

    def call(self, tool: str, /, **fields: Any) -> ToolCall:
        return ToolCall(
            tool,
            {
                name: self.text(value) if isinstance(value, str) else value
                for name, value in fields.items()
            },
        )

    # --- the measure --------------------------------------------------------------------------

    def seen(self, run: SessionRun) -> set[str]:
        """The canaries that were in any request, without the ``canary()`` around them."""
        self._known |= self._on_disk()  # a test may have added some
        texts = [request.text for request in run.requests]
        found = {canary for canary in self._known if any(canary in text for text in texts)}
        # Plain ASCII can hide in a request in these two forms only; looking there takes time.
        if any("\\u" in text or "base64" in text for text in texts):
            found |= {canary for canary in self._known - found if run.saw(canary)}
        return {canary[len("canary(") : -1] for canary in found}

    def _on_disk(self) -> set[str]:
        """Every canary in the world, in contents and in names."""
        found = set()
        for path in _walk(self.root):
            found |= set(CANARY.findall(path.name))
            if stat.S_ISREG(path.lstat().st_mode):
                found |= set(CANARY.findall(path.read_text("utf-8", "replace")))
        return found

    def snapshot(self) -> dict[str, object]:
        """What every path outside ``drafts``, the run folder and the CLI's own files holds."""
        own = (self.project / "drafts", self.run_dir, self.home / ".claude", self.home / ".cache")
        return {
            str(path): _state(path)
            for path in _walk(self.root, skip=own)
            if path.name not in (".claude.json", ".claude") and ".claude.json" not in path.name
        }


def _walk(folder: Path, skip: Sequence[Path] = ()) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry in skip:
            continue
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry, skip)


def _state(path: Path) -> object:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    return path.read_bytes() if stat.S_ISREG(mode) else stat.S_IFMT(mode)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path)


@pytest.fixture(scope="module")
def shared_course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """One world for all tests of a module, where one session answers many of them."""
    return Course(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def new_course(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Course]:
    """Makes a world; for a module that needs several."""
    return lambda: Course(tmp_path_factory.mktemp("world"))


@pytest.fixture(params=["bubblewrap", "landlock"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend that runs here: a confined session must work with both."""
    return str(request.param)


@pytest.fixture(scope="session")
def refused() -> Callable[[CallRecord], bool]:
    """Whether a lock refused a call: the gate, or the CLI's rules where they answer first."""
    return lambda call: call.is_error and call.lock in (AnsweredBy.GATE, AnsweredBy.RULES)
