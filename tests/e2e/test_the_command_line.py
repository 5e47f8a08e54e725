"""What the CLI is started with: long settings in a file, and no secret where others can read it."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit.testing import AnsweredBy, CallRecord, Say, ToolCall, Turn, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

SECRET = "s3cret-value-of-a-server"

# A server of one tool that says how long its secret is.
SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        result = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": [{"name": "length", "description": "d", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        text = f"length {len(os.environ.get('SERVER_SECRET', ''))}"
        result = {"content": [{"type": "text", "text": text}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def children() -> dict[int, str]:
    """The command lines of everything that this process started, and of what those started."""
    parents, lines = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text("utf-8", "replace")
                lines[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().decode("utf-8", "replace")
                )
            except OSError:
                continue  # it ended meanwhile
            parents[int(folder.name)] = int(text.rpartition(")")[2].split()[1])
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return {pid: lines[pid] for pid in own if pid != os.getpid() and pid in lines}


needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")


@needs_proc
def test_a_server_s_secret_is_on_no_command_line_and_the_server_works(course: Course) -> None:
    program = course.out / "server.py"
    program.write_text(SERVER, "utf-8")
    servers = {
        "box": {
            "type": "stdio",
            "command": sys.executable,
            "args": [str(program)],
            "env": {"SERVER_SECRET": SECRET},
        },
        "web": {
            "type": "http",
            "url": "http://127.0.0.1:9/mcp",
            "headers": {"Authorization": f"Bearer {SECRET}"},
        },
    }
    lines: list[str] = []

    def script(turn: Turn) -> ToolCall | Say:
        lines.extend(children().values())
        return ToolCall("mcp__box__length", {}) if turn.number == 0 else Say("Done.")

    run = course.session(script, spec={"mcp_servers": servers})
    assert run.calls[0].lock is AnsweredBy.RAN
    assert f"length {len(SECRET)}" in (run.calls[0].result or "")
    assert any("--input-format" in line for line in lines), "the CLI itself was not looked at"
    assert not any(SECRET in line for line in lines)
    assert not run.saw(SECRET)
    files = [path for path in course.run_dir.rglob("*") if path.is_file()]
    holding = [path for path in files if SECRET in path.read_text("utf-8", "replace")]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holding)


@needs_proc
def test_the_agent_reads_neither_the_servers_file_nor_the_settings(
    course: Course, refused: Callable[[CallRecord], bool]
) -> None:
    servers = {"web": {"type": "http", "url": "http://127.0.0.1:9/x", "headers": {"A": SECRET}}}
    many = [f"private/{at:05}.txt" for at in range(400)]

    def script(turn: Turn) -> ToolCall | tuple[ToolCall, ...] | Say:
        if turn.number:
            return Say("Done.")
        paths = [str(path) for path in course.run_dir.rglob("*") if path.is_file()]
        assert any("settings" in path for path in paths)
        assert any("mcp" in path for path in paths)
        reads = [course.call("Read", file_path=path) for path in paths]
        return (*reads, course.call("Grep", pattern=".", path=str(course.run_dir)))

    run = course.session(script, spec={"mcp_servers": servers}, denied_paths=many)
    assert len(run.calls) >= 3
    assert all(refused(call) for call in run.calls)
    assert not run.saw(SECRET)


@needs_proc
def test_settings_of_more_than_thirty_thousand_characters_hold(
    course: Course, refused: Callable[[CallRecord], bool]
) -> None:
    """Each file is open but for its own rule: without it the CLI would read it."""
    names = [f"sources/part-{at:04}.md" for at in range(600)]
    tree(course.root, [f"course/{name}=canary(part-{at})" for at, name in enumerate(names)])
    options = course.options(denied_paths=names)
    assert isinstance(options.settings, str)
    path = Path(options.settings)
    assert path.is_relative_to(course.run_dir / "host")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    text = path.read_text("utf-8")
    assert len(text) > 30_000
    lines: list[str] = []

    def script(turn: Turn) -> Any:
        if turn.number:
            return Say("Done.")
        lines.extend(children().values())
        reads = [course.call("Read", file_path=name) for name in (names[0], names[299], names[-1])]
        glob = course.call("Glob", pattern="part-*", path="sources")
        return (*reads, glob, course.call("Read", file_path="sources/syllabus.md"))

    run = course.run(options, script)
    *closed, listing, control = run.calls
    assert all(refused(call) and call.lock is AnsweredBy.RULES for call in closed)
    assert "part-" not in (listing.result or "")
    assert control.lock is AnsweredBy.RAN
    assert course.seen(run) == {"syllabus"}
    streamed = [line for line in lines if "--input-format" in line]
    [cli] = [line for line in streamed if "_verbatim_start" not in line]
    assert len(streamed) == 2  # what hands on the host's messages has the same words
    assert all(len(line) < 20_000 for line in streamed)
    assert cli.split("\0")[0].split()[0].endswith("claude")
    assert json.loads(text)["disableAllHooks"] is True
