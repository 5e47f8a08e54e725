"""The kernel lock alone: every other lock is switched off, and commands try everything."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, PermissionResultAllow, ProcessError

from agent_kit import AgentSpec, SessionConfig, ToolOnlyDir, build_session_options
from agent_kit.extension import Contribution
from agent_kit.testing import SessionRun, ToolCall, run_session, tree
from tests.attacks.ways import BLIND, CHANGES, WAYS

pytestmark = pytest.mark.e2e

BACKENDS = ("bubblewrap", "landlock")
KEY = "sk-ant-canary(realkey)"
OPEN = "canary(open)"
CLOSED = {
    "outside": "out/secret.txt",
    "project": "course/README.md",
    "denied": "course/sources/.env",
    "denied folder": "course/sources/keys/exam.pem",
    "tools only": "course/knowledge/index.md",
    "home": "home/.ssh/id_ed25519",
    "hard link": "course/sources/twin.md",
}


@dataclass(frozen=True)
class Store:
    """An extension with a tools-only folder."""

    name: str = "store"
    plugin_dir: None = None
    provides: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def missing(self, _context: object, /) -> None:
        return None

    def contribute(self, _context: object, /) -> Contribution:
        return Contribution(tool_only_dirs=(ToolOnlyDir(dir="knowledge", instead="its tools"),))


class World:
    def __init__(self, root: Path) -> None:
        files = [f"{path}=canary({key.replace(' ', '')})" for key, path in CLOSED.items()][:-1]
        self.root = tree(root, [*files, f"course/sources/a.md={OPEN}", "course/drafts/d.md=d"])
        os.link(root / CLOSED["tools only"], root / CLOSED["hard link"])
        (root / "course/sources/link.md").symlink_to(root / CLOSED["outside"])
        self.home = root / "home"

    def options(self, **config: Any) -> ClaudeAgentOptions:
        """The kit's session with every lock but the kernel's taken off again."""
        options = build_session_options(
            AgentSpec(name="attacked", tools=["Bash"], extensions=[Store()]),
            SessionConfig(
                project_dir=self.root / "course",
                run_dir=self.root / "run",
                extra_readable_dirs=["sources"],
                extra_writable_dirs=["drafts"],
                denied_paths=["**/.env", "sources/keys"],
                env={"HOME": str(self.home), "ANTHROPIC_API_KEY": KEY},
                **config,
            ),
        )
        path = Path(options.settings or "")
        settings = json.loads(
            path.read_text()
            if not (options.settings or "").startswith("{")
            else options.settings or ""
        )
        settings["permissions"] = {"allow": ["Bash", "Read", "Edit", "Write", "Glob", "Grep"]}
        del settings["claudeMdExcludes"]
        text = json.dumps(settings)
        if not (options.settings or "").startswith("{"):
            path.write_text(text)
            text = str(path)

        async def allow(*_: object) -> PermissionResultAllow:
            return PermissionResultAllow()

        return replace(options, hooks={}, can_use_tool=allow, settings=text)

    def run(self, options: ClaudeAgentOptions, calls: list[ToolCall]) -> SessionRun:
        batches: list[Any] = [tuple(calls[at : at + 8]) for at in range(0, len(calls), 8)]
        return asyncio.run(run_session(options, [*batches, "Done."], home=self.home, timeout=300))

    def snapshot(self) -> dict[str, object]:
        return dict(self._states(self.root))

    def _states(self, folder: Path) -> Iterator[tuple[str, object]]:
        own = (self.root / "course/drafts", self.root / "run", self.home / ".claude/projects")
        for path in sorted(folder.iterdir()):
            if path in own or path.name == ".claude":
                continue
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode):
                yield str(path), os.readlink(path)
            elif stat.S_ISREG(found.st_mode):
                yield str(path), (path.read_bytes(), found.st_mode, found.st_nlink)
            elif stat.S_ISDIR(found.st_mode):
                yield str(path), found.st_mode
                yield from self._states(path)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "timeout": 20_000})


def tried(world: World) -> list[ToolCall]:
    """Every way to every closed file, and those that need no file."""
    commands = [
        way.format(path=world.root / path, name=f"n{number}-{at}")
        for at, path in enumerate(CLOSED.values())
        for number, way in enumerate(WAYS)
    ]
    return [bash(command) for command in (*commands, *BLIND)]


def seen(run: SessionRun) -> set[str]:
    names = {key.replace(" ", "") for key in CLOSED} - {"hardlink"} | {"realkey"}
    return {name for name in names if run.saw(f"canary({name})")}


def test_there_are_ways_enough() -> None:
    assert len(WAYS) * len(CLOSED) + len(BLIND) + len(CHANGES) * len(CLOSED) > 500


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_command_reaches_a_closed_file_or_the_key(world: World, backend: str) -> None:
    before = world.snapshot()
    options = world.options(confinement="required", confinement_backend=backend)
    run = world.run(options, [bash("cat sources/a.md"), *tried(world)])
    assert run.calls[0].result == OPEN  # commands do run
    assert len([call for call in run.calls if call.result is not None]) > 450
    assert seen(run) == set()
    assert world.snapshot() == before


def test_without_the_kernel_lock_commands_reach_all_of_it(world: World) -> None:
    """The control."""
    options = world.options(confinement="off", allow_unconfined_commands=True)
    run = world.run(options, [bash(f"cat {world.root / path}") for path in CLOSED.values()])
    assert {"outside", "project", "denied", "toolsonly", "home"} <= seen(run)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_command_changes_anything_outside_the_writable_folders(
    world: World, backend: str
) -> None:
    before = world.snapshot()
    options = world.options(confinement="required", confinement_backend=backend)
    commands = [way.format(path=world.root / path) for path in CLOSED.values() for way in CHANGES]
    commands += [way.format(path=world.root / "course/sources/a.md") for way in CHANGES]
    run = world.run(options, [*map(bash, commands), bash("echo new > drafts/new.md")])
    assert (world.root / "course/drafts/new.md").read_text() == "new\n"  # a control
    assert world.snapshot() == before
    assert seen(run) == set()


@pytest.mark.parametrize("backend", BACKENDS)
def test_commands_that_kill_everything_end_the_session_and_no_more(
    world: World, backend: str
) -> None:
    before = world.snapshot()
    options = world.options(confinement="required", confinement_backend=backend)
    with pytest.raises(ProcessError):
        world.run(options, [bash("kill -9 -1")])
    assert world.snapshot() == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_file_tools_are_held_by_the_kernel_alone(world: World, backend: str) -> None:
    before = world.snapshot()
    calls = []
    for path in CLOSED.values():
        file = str(world.root / path)
        calls += [
            ToolCall("Read", {"file_path": file}),
            ToolCall("Grep", {"pattern": "canary", "path": file, "output_mode": "content"}),
            ToolCall("Grep", {"pattern": "canary", "path": os.path.dirname(file)}),
            ToolCall("Glob", {"pattern": "*", "path": os.path.dirname(file)}),
            ToolCall("Write", {"file_path": file, "content": "x"}),
        ]
    options = world.options(confinement="required", confinement_backend=backend)
    run = world.run(options, [ToolCall("Read", {"file_path": "sources/a.md"}), *calls])
    assert run.saw(OPEN)
    assert seen(run) == set()
    assert world.snapshot() == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_would_steer_a_later_session_is_gone_when_this_one_ends(
    world: World, backend: str
) -> None:
    (world.root / "course/drafts/sub").mkdir()
    plant = (
        "echo canary > drafts/CLAUDE.md; mkdir -p drafts/sub/.claude drafts/.git/hooks;"
        " echo '{}' > drafts/sub/.claude/settings.json; echo x > drafts/.mcp.json;"
        " echo x > $CLAUDE_CONFIG_DIR/settings.json; echo x > $CLAUDE_CONFIG_DIR/CLAUDE.md;"
        " echo x > ~/.bashrc; echo kept > drafts/kept.md"
    )
    options = world.options(confinement="required", confinement_backend=backend)
    world.run(options, [bash(plant)])
    drafts = world.root / "course/drafts"
    left = {str(path.relative_to(drafts)) for path in drafts.rglob("*")}
    assert left == {"d.md", "kept.md", "sub"}
    assert not (world.home / ".bashrc").exists()
    assert not [
        p for p in (world.home / ".claude").rglob("*") if p.name in ("settings.json", "CLAUDE.md")
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_network_is_the_models_endpoint_alone(world: World, backend: str) -> None:
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(0.2)
        port = server.getsockname()[1]
        reach = f"timeout 3 bash -c 'echo hello > /dev/tcp/127.0.0.1/{port}' && echo reached"
        options = world.options(confinement="required", confinement_backend=backend)
        run = world.run(options, [bash(reach), bash("getent hosts example.org; echo done")])
        assert "reached" not in (run.calls[0].result or "")
        with pytest.raises(TimeoutError):
            server.accept()
        opened = world.options(
            confinement="required", confinement_backend=backend, confine_network=False
        )
        assert "reached" in (world.run(opened, [bash(reach)]).calls[0].result or "")
