"""What the next session, or the host's next run, starts: no tool of this one writes it.

The controls write the same where nothing is started from it, and then start it: it runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import (
    AgentSpec,
    SessionConfig,
    build_session_options,
    guard_options,
    plan_session,
)
from agent_kit.confine.bubblewrap import Bubblewrap
from agent_kit.testing import Say, SessionRun, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e

KEY = {"ANTHROPIC_API_KEY": "sk-real"}
BOTH = pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
MANIFEST = {"name": "plug", "version": "1.0.0", "description": "d"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    plugin = f"w/plug/.claude-plugin/plugin.json={json.dumps(MANIFEST)}"
    return tree(tmp_path, ["home/", "w/a.md=a", plugin, "w/tools/server.sh=sleep 5\n"])


def config(root: Path, **more: Any) -> SessionConfig:
    fields = {"run_dir": root / "run", "env": KEY, "confinement": "off", **more}
    return SessionConfig(workspace=root / "w", **fields)


def planting(root: Path) -> dict[str, Any]:
    """A server that says on the disk that it ran, outside of what may be written."""
    return {"command": "sh", "args": ["-c", f"touch '{root}/ran'; sleep 5"]}


async def write(root: Path, options: ClaudeAgentOptions, file: str, text: str) -> SessionRun:
    path = str(root / "w" / file)
    calls = (
        ToolCall("Read", {"file_path": path}),
        ToolCall("Write", {"file_path": path, "content": text}),
    )
    found = await run_session(options, [*calls, Say("Done.")], home=root / "home")
    assert found.unplayed == ()
    assert not found.calls[0].is_error
    return found


async def two_sessions(
    root: Path,
    options: Callable[[], ClaudeAgentOptions],
    file: str,
    text: str,
    *,
    guarded: bool,
) -> None:
    """One writes, the next one starts. In the control another session writes."""
    other = build_session_options(AgentSpec(name="other"), config(root))
    first = await write(root, options() if guarded else other, file, text)
    assert first.calls[1].is_error is guarded
    await run_session(
        options(), [ToolCall("Read", {"file_path": "a.md"}), Say("Done.")], home=root / "home"
    )
    assert (root / "ran").exists() is not guarded


@BOTH
async def test_a_plugin_that_a_session_has_does_not_get_a_server(root: Path, guarded: bool) -> None:
    def options() -> ClaudeAgentOptions:
        return build_session_options(AgentSpec(name="a", plugins=["plug"]), config(root))

    text = json.dumps({**MANIFEST, "mcpServers": {"x": planting(root)}})
    file = "plug/.claude-plugin/plugin.json"
    await two_sessions(root, options, file, text, guarded=guarded)


@BOTH
async def test_the_script_of_a_server_stays_what_it_is(root: Path, guarded: bool) -> None:
    spec = AgentSpec(name="a", mcp_servers={"s": {"command": "sh", "args": ["tools/server.sh"]}})
    text = planting(root)["args"][1]

    def options() -> ClaudeAgentOptions:
        return build_session_options(spec, config(root))

    await two_sessions(root, options, "tools/server.sh", text, guarded=guarded)


@BOTH
async def test_a_cli_of_the_workspace_stays_what_it_is(root: Path, guarded: bool) -> None:
    real = Path(claude_agent_sdk.__file__).parent / "_bundled/claude"
    start = f'exec "{real}" "$@"\n'
    tree(root, [f"w/bin/claude=#!/bin/sh\n{start}"])
    (root / "w/bin/claude").chmod(0o755)

    def options() -> ClaudeAgentOptions:
        return build_session_options(AgentSpec(name="a"), config(root, cli_path="bin/claude"))

    text = f"#!/bin/sh\ntouch '{root}/ran'\n{start}"
    await two_sessions(root, options, "bin/claude", text, guarded=guarded)


@BOTH
async def test_a_file_of_servers_in_given_options_stays_what_it_is(
    root: Path, guarded: bool
) -> None:
    tree(root, ['w/conf/servers.json={"mcpServers": {}}'])

    def options() -> ClaudeAgentOptions:
        given = ClaudeAgentOptions(mcp_servers=str(root / "w/conf/servers.json"))
        return guard_options(given, config(root))

    text = json.dumps({"mcpServers": {"x": planting(root)}})
    await two_sessions(root, options, "conf/servers.json", text, guarded=guarded)


HOST = """
import asyncio, sys
from pathlib import Path
from lib.helpers import NAME
from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.testing import Say, ToolCall, run_session
w = Path(__file__).parent
config = SessionConfig(workspace=w, run_dir=w.parent / "run", confinement="off")
text = f"NAME = 'a'\\nfrom pathlib import Path\\nPath({str(w.parent / 'ran')!r}).touch()\\n"
path = str(w / sys.argv[1])
calls = [ToolCall("Read", {"file_path": path}), ToolCall("Write", {"file_path": path, "content": text})]
options = build_session_options(AgentSpec(name=NAME), config)
run = asyncio.run(run_session(options, [*calls, Say("Done.")], home=w.parent / "home"))
print(run.calls[1].is_error)
"""


@BOTH
def test_a_module_that_the_host_has_loaded_stays_what_it_is(root: Path, guarded: bool) -> None:
    """The control writes one that nobody has loaded yet."""
    tree(root, [f"w/agent.py={HOST}", "w/lib/helpers.py=NAME = 'a'\n", "w/lib/free.py=x = 1\n"])
    name = "helpers" if guarded else "free"
    words = [sys.executable, str(root / "w/agent.py"), f"lib/{name}.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(guarded)]
    load = ["-c", f"import sys; sys.path[:0] = [{str(root / 'w')!r}]; import lib.{name}"]
    subprocess.run([sys.executable, *load], check=True)
    assert (root / "ran").exists() is not guarded


async def test_a_confiner_that_a_command_leaves_on_path_is_not_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, [f"w/f=#!/bin/sh\n/usr/bin/touch '{root}/ran'\nexit 1\n", "w/node_modules/.bin/x=x"])
    folder = root / "w/node_modules/.bin"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    spec = AgentSpec(name="a", tools=["Bash"])
    confined = config(root, confinement="required", confinement_backend="bubblewrap")
    plant = "cp f node_modules/.bin/bwrap && chmod 755 node_modules/.bin/bwrap"
    options = build_session_options(spec, confined)
    script = [ToolCall("Bash", {"command": plant}), Say("Done.")]
    found = await run_session(options, script, home=root / "home")
    assert not found.calls[0].is_error
    plan = plan_session(spec, confined)
    assert plan.locks["kernel"].on
    assert any(f"{folder}/bwrap is passed over" in note for note in plan.notes)
    script = [ToolCall("Bash", {"command": "echo works"}), Say("Done.")]
    again = await run_session(build_session_options(spec, confined), script, home=root / "home")
    assert "works" in (again.calls[0].result or "")
    assert not (root / "ran").exists()
    assert Bubblewrap(program=f"{folder}/bwrap").available()  # a control
    assert (root / "ran").exists()
