"""What the CLI's own shell reads before a command is kept apart from the CLI: nothing of the agent's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.confine import commands
from agent_kit.confine.first_program import MACHINES
from agent_kit.session import pins, plan
from agent_kit.testing import SessionRun, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e

BACKENDS = ("bubblewrap", "landlock")
# Outside of the domain of a command the CLI's own environment can be read: that is the sign.
PROOF = "cat /proc/$PPID/environ >> {out} 2>/dev/null"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path, ["course/drafts/d.md=d", "home/.claude/projects/"])


def config(root: Path, backend: str, home: Path, **more: Any) -> SessionConfig:
    return SessionConfig(
        workspace=root / "course",
        run_dir=root / "run",
        confinement="required",
        confinement_backend=backend,
        env={"HOME": str(home), "ANTHROPIC_API_KEY": "sk-made-up", "SHELL": "/bin/bash"}
        | more.pop("env", {}),
        **more,
    )


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command})


async def play(root: Path, home: Path, made: SessionConfig, *commands: str) -> SessionRun:
    options = build_session_options(AgentSpec(name="shells", tools=["Bash"]), made)
    script = [bash(command) for command in commands]
    return await run_session(options, script, home=home, timeout=120)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pinned", [True, False])
async def test_settings_that_a_command_makes_change_no_shell_of_the_cli(
    root: Path, backend: str, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CLI reads a new ``.claude/settings.json`` while it runs. Unpinned (the control) it obeys."""
    if not pinned:
        less = tuple(name for name in pins.PINNED_ENV if name != "BASH_ENV")
        monkeypatch.setattr(pins, "PINNED_ENV", less)
    course, home = root / "course", root / "home"
    out = course / "drafts/out.txt"
    (course / "drafts/env.sh").write_text(PROOF.format(out=out))
    settings = json.dumps({"env": {"BASH_ENV": str(course / "drafts/env.sh")}})
    plant = f"mkdir -p .claude; echo '{settings}' > .claude/settings.json"
    (course / "drafts/plant.sh").write_text(plant)  # a rule refuses a command that says so itself
    made = config(root, backend, home)
    await play(root, home, made, "sh drafts/plant.sh", *["sleep 2"] * 4, "true")
    assert (out.exists() and bool(out.stat().st_size)) is not pinned


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pinned", [True, False])
async def test_a_home_in_a_writable_folder_is_read_by_no_shell_of_the_cli(
    root: Path, backend: str, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell whose input is a socket reads ``~/.bashrc``, unless it is below another one."""
    if not pinned:
        monkeypatch.setattr(pins, "_SHELL_LEVEL", {})
    home = root / "course"
    (root / "claude").mkdir()
    made = config(root, backend, home, env={"CLAUDE_CONFIG_DIR": str(root / "claude")})
    out = home / "drafts/out.txt"
    (home / "drafts/plant.sh").write_text(f"echo '{PROOF.format(out=out)}' > {home}/.bashrc")
    await play(root, home, made, "sh drafts/plant.sh", "true", "true")
    assert (out.exists() and bool(out.stat().st_size)) is not pinned


MARK = "made-by-the-server"


def server(**fields: Any) -> str:
    return json.dumps({"mcpServers": {"s": {"command": "sh", **fields}}})


async def with_server(root: Path, backend: str, text: str, env: dict[str, str]) -> Path:
    """What a project's own server left behind in a session that only waits for it."""
    (root / "course/.mcp.json").write_text(text)
    made = config(root, backend, root / "home", env=env, confined_tools=["sh"])
    await play(root, root / "home", made, "sleep 1")
    return root / "course/drafts"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("machines", [MACHINES, frozenset()], ids=["static", "script"])
async def test_what_a_projects_server_has_loaded_is_loaded_in_its_domain_alone(
    root: Path, backend: str, machines: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``LD_DEBUG`` has the loader write down what it loads. A script (the control) begins with that
    for its own interpreter, beside the CLI."""
    monkeypatch.setattr(commands, "MACHINES", machines)
    drafts = root / "course/drafts"
    env = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(drafts / "loaded")}
    await with_server(root, backend, server(args=["-c", f"echo > {drafts}/{MARK}"], env=env), {})
    assert (drafts / MARK).exists()
    told = "".join(path.read_text() for path in drafts.glob("loaded.*"))
    python = commands.interpreter()
    assert python is not None
    assert "needed by" in told
    assert (f"needed by {python[1]}" in told) is not bool(machines)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_the_key_is_not_written_into_a_servers_command_line(
    root: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the plan refuses, let through: a file may have changed since."""
    monkeypatch.setattr(plan, "key_faults", lambda _files: [])
    drafts = root / "course/drafts"
    told = {"K": "x${ANTHROPIC_API_KEY}", "L": "${LANG}"}
    line = f'echo "K=$K L=$L" > {drafts}/'
    await with_server(root, backend, server(args=["-c", f"{line}env"], env=told), {"LANG": "C"})
    assert (drafts / "env").read_text() == "K= L=C\n"
    words = ["-c", f"{line}args", "${ANTHROPIC_API_KEY}"]
    await with_server(root, backend, server(args=words), {})
    assert not (drafts / "args").exists()
