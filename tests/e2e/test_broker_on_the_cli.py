"""Whole sessions of the real CLI through the broker: it never has the key, and the model gets it.

No sandbox is around the CLI here: what holds, holds because the key is not in the process.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from agent_kit.confine.broker import running
from agent_kit.confine.upstream import inside_env, made_up_key, upstream_from
from agent_kit.testing import Say, ScriptedModel, ToolCall, cli_env

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the CLI's memory in /proc"),
]

REAL = "sk-ant-the-hosts-" + "own-key-a1b2c3"  # in one piece nowhere in this file
KINDS = {"ANTHROPIC_API_KEY": "x-api-key", "ANTHROPIC_AUTH_TOKEN": "authorization"}


class Model(ScriptedModel):
    """The scripted model, and the headers of what it got."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.heads: list[Mapping[str, str]] = []

    def _answer(self, method: str, path: str, headers: Mapping[str, str], text: str) -> Any:
        self.heads.append(dict(headers))
        return super()._answer(method, path, headers, text)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short: a Unix socket's path holds 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ak-", ignore_cleanup_errors=True) as found:
        root = Path(found).resolve()
        (root / "home").mkdir()
        (root / "course").mkdir()
        (root / "course" / "a.md").write_text("an allowed text")
        yield root


@contextmanager
def brokered(
    model: Model, folder: Path, *, kind: str = "ANTHROPIC_API_KEY", tcp: bool = False
) -> Iterator[dict[str, str]]:
    """A broker before ``model``, and the environment of a CLI inside."""
    env = {**cli_env(model, folder / "home"), "IS_SANDBOX": "1", "ANTHROPIC_API_KEY": ""}
    env[kind] = REAL
    made_up = made_up_key()
    if tcp:
        sock = socket.create_server(("127.0.0.1", 0))
        where: dict[str, Any] = {"port": sock.getsockname()[1]}
    else:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(folder / "model.sock"))
        sock.listen()
        where = {"socket": str(folder / "model.sock")}
    # What is left to the CLI beside the broker is the model as a proxy: it notes what it is asked.
    inside = {**env, **inside_env(env, key=made_up, **where)}
    with running(sock, upstream_from(env), key=made_up):
        yield inside


async def session(env: Mapping[str, str], folder: Path) -> ResultMessage:
    options = ClaudeAgentOptions(
        cwd=str(folder / "course"),
        env=dict(env),
        tools=["Bash", "Read"],
        allowed_tools=["Bash", "Read"],
        setting_sources=[],
    )
    async with ClaudeSDKClient(options) as client:
        await client.query("Go.")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                return message
    raise AssertionError("no result")


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command})


LOOK = 'env; tr "\\0" "\\n" < /proc/$PPID/environ; tr "\\0" " " < /proc/$PPID/cmdline'


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tcp", [False, True], ids=["socket", "port"])
async def test_a_session_runs_with_a_made_up_key_and_the_model_gets_the_real_one(
    tcp: bool, kind: str, folder: Path
) -> None:
    steps = [bash(LOOK), ToolCall("Read", {"file_path": "a.md"}), Say("Done.")]
    with Model(steps) as model:
        with brokered(model, folder, kind=kind, tcp=tcp) as env:
            result = await session(env, folder)
        assert (result.is_error, result.result) == (False, "Done.")
        assert (model.unplayed, model.outside) == ((), ())
        found = {head[KINDS[kind]].removeprefix("Bearer ") for head in model.heads}
        assert found == {REAL}
        assert {request.path for request in model.requests} == {"/v1/messages?beta=true"}
        assert model.saw("an allowed text")
        assert model.saw(f"{kind}={env[kind]}")  # the control: what was looked at holds a key
        assert env[kind] != REAL
        assert not model.saw(REAL)


async def test_the_memory_of_the_cli_holds_the_made_up_key_and_not_the_real_one(
    folder: Path,
) -> None:
    seen: dict[str, bool] = {}

    def looks(turn: Any) -> Any:
        if not seen:
            keys = {"made-up": env["ANTHROPIC_API_KEY"], "real": REAL}
            seen.update(in_memory(cli_process(), keys))
            return bash("true")
        return Say("Done.")

    with Model(looks) as model, brokered(model, folder) as env:
        result = await session(env, folder)
        assert model.error is None
    assert result.result == "Done."
    assert seen == {"made-up": True, "real": False}


async def test_with_the_key_in_its_environment_the_memory_of_the_cli_holds_it(folder: Path) -> None:
    """The control."""
    seen: dict[str, bool] = {}

    def looks(turn: Any) -> Any:
        seen.update(in_memory(cli_process(), {"real": REAL}))
        return Say("Done.")

    with Model(looks) as model:
        env = {**cli_env(model, folder / "home"), "ANTHROPIC_API_KEY": REAL}
        await session(env, folder)
        assert model.error is None
    assert seen == {"real": True}


async def test_a_command_gets_nothing_but_the_models_requests_from_the_broker(
    folder: Path,
) -> None:
    code = """
import os, socket
for key in (os.environ["ANTHROPIC_API_KEY"], "sk-ant-another-account"):
    for line in ("GET /v1/files", "GET https://other.example/", "POST /v1/messages/count_tokens"):
        way = socket.socket(socket.AF_UNIX)
        way.connect(os.environ["ANTHROPIC_UNIX_SOCKET"])
        way.sendall((line + " HTTP/1.1\\r\\nHost: broker.invalid\\r\\nx-api-key: " + key
            + "\\r\\ncontent-length: 2\\r\\n\\r\\n{}").encode())
        print("answer", line, way.recv(9999).split()[1].decode())
"""
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    with Model([bash(command), Say("Done.")]) as model:
        with brokered(model, folder) as env:
            await session(env, folder)
        (result,) = model.results.values()
        assert re.findall(r"answer (.*) (\d+)", result.text) == [
            ("GET /v1/files", "403"),
            ("GET https://other.example/", "403"),
            ("POST /v1/messages/count_tokens", "200"),
            ("GET /v1/files", "401"),
            ("GET https://other.example/", "401"),
            ("POST /v1/messages/count_tokens", "401"),
        ]
        assert [r.path for r in model.requests if "messages?" not in r.path] == [
            "/v1/messages/count_tokens"
        ]


async def test_a_cli_with_another_key_hears_that_it_is_the_wrong_one(folder: Path) -> None:
    with Model([Say("Never said.")]) as model:
        with brokered(model, folder) as env:
            other = {"ANTHROPIC_API_KEY": made_up_key(), "CLAUDE_CODE_MAX_RETRIES": "0"}
            result = await session({**env, **other}, folder)
        assert result.is_error
        assert result.api_error_status == 401
        assert model.requests == ()


async def test_what_the_model_answers_in_place_of_a_message_reaches_the_cli(folder: Path) -> None:
    def fails(turn: Any) -> Any:
        raise ZeroDivisionError("told by the model")

    with Model(fails) as model:
        with brokered(model, folder) as env:
            result = await session(env, folder)
        assert isinstance(model.error, ZeroDivisionError)
    assert result.is_error
    assert "told by the model" in str(result.result)


# --- the CLI's memory -----------------------------------------------------------------------------

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def cli_process() -> int:
    """The CLI that this process has started."""
    children = [
        int(child)
        for thread in os.listdir("/proc/self/task")
        for child in Path(f"/proc/self/task/{thread}/children").read_text().split()
    ]
    (found,) = (pid for pid in children if b"stream-json" in _bytes(f"/proc/{pid}/cmdline"))
    return found


def _bytes(path: str) -> bytes:
    return Path(path).read_bytes()


def in_memory(pid: int, texts: Mapping[str, str]) -> dict[str, bool]:
    """Which texts are in a process's writable memory or its environment, in UTF-8 or UTF-16."""
    wanted = {name: (text.encode(), text.encode("utf-16-le")) for name, text in texts.items()}
    found = dict.fromkeys(wanted, False)
    for data in (_bytes(f"/proc/{pid}/environ"), *_memory(pid)):
        for name, forms in wanted.items():
            found[name] = found[name] or any(form in data for form in forms)
    return found


def _memory(pid: int) -> Iterator[bytes]:
    """Each run of pages that a process has in memory."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for start, pages in _runs(pid):
            try:
                yield os.pread(mem.fileno(), pages * PAGE, start)
            except OSError:  # it was given back meanwhile
                continue


def _runs(pid: int) -> Iterator[tuple[int, int]]:
    """The address and the number of the pages that are there, in writable areas: most are not."""
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            area, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            low, high = (int(each, 16) for each in area.split("-"))
            yield from _present(pagemap.fileno(), low, high)


def _present(pagemap: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    step = 8192 * PAGE
    for start in range(low, high, step):
        entries = os.pread(pagemap, min(step, high - start) // PAGE * 8, start // PAGE * 8)
        there = bytes(entry >> 6 & 3 != 0 for entry in entries[7::8])  # in memory, or swapped out
        for run in re.finditer(rb"\x01+", there):
            yield start + run.start() * PAGE, len(run.group())
