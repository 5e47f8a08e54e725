"""Where the CLI keeps its things: as measured on CLI 2.1.332."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool

from agent_kit.sdk.locations import CliLocations
from agent_kit.testing import Say, ToolCall, run_session

ENCODED = {
    "/work/course": "-work-course",
    "/work/my_course.v2": "-work-my-course-v2",
    "/w/a b/ü": "-w-a-b--",
    "/w/e\u0301": "-w-e-",  # the letter stays, the accent goes: no form is changed
    "/w/日本": "-w---",
    "/w/😀": "-w---",  # two UTF-16 units
    "/W/Ab9": "-W-Ab9",
    "/": "-",
    "/w/٣": "-w--",  # a digit, and none of ASCII's
}


@pytest.mark.parametrize(("project", "name"), ENCODED.items())
def test_a_projects_folder_is_its_path_with_a_dash_for_each_odd_unit(
    project: str, name: str
) -> None:
    places = CliLocations({"HOME": "/home/ada"})
    assert (
        places.tool_results_dir(Path(project), "id")
        == f"/home/ada/.claude/projects/{name}/id/tool-results"
    )


def test_a_long_name_is_cut_and_gets_a_checksum() -> None:
    places = CliLocations({"HOME": "/h"})
    exactly = "/" + "a" * 199
    assert Path(places.tool_results_dir(Path(exactly), "id")).parts[4] == "-" + "a" * 199
    longer = Path(places.tool_results_dir(Path(exactly + "b"), "id")).parts[4]
    assert longer.startswith("-" + "a" * 199 + "-")
    assert longer != Path(places.tool_results_dir(Path(exactly + "c"), "id")).parts[4]
    assert longer[201:].isalnum()


def test_the_sdk_counts_the_same_for_plain_names() -> None:
    from claude_agent_sdk._internal.sessions import _sanitize_path

    places = CliLocations({"HOME": "/h"})
    for path in ("/work/course", "/" + "long/" * 60, "/w/a.b_c"):
        assert Path(places.tool_results_dir(Path(path), "id")).parts[4] == _sanitize_path(
            path.rstrip("/")
        )


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.claude"),
        ({"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/cfg"}, "/cfg"),
        ({"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/cfg/"}, "/cfg"),
    ],
)
def test_the_config_folder_is_the_one_that_is_set_or_the_homes(
    env: dict[str, str], folder: str
) -> None:
    assert str(CliLocations(env).config_dir) == folder


def test_account_files_are_looked_for_in_three_folders() -> None:
    files = CliLocations({"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/cfg"}).account_files()
    assert set(files) == {
        f"{folder}/{name}"
        for folder in ("/home/ada", "/home/ada/.claude", "/cfg")
        for name in (".credentials.json", ".claude.json")
    }


def test_background_tasks_write_below_the_temporary_folder() -> None:
    tasks = CliLocations({"HOME": "/h"}).task_outputs_dir(Path("/work/course"), "id")
    assert tasks == f"/tmp/claude-{os.getuid()}/-work-course/id/tasks"
    moved = CliLocations({"HOME": "/h", "CLAUDE_CODE_TMPDIR": "/t"}).task_outputs_dir(
        Path("/w"), "id"
    )
    assert moved == f"/t/claude-{os.getuid()}/-w/id/tasks"


def big_server() -> object:
    @tool("big", "Gives a long text.", {})
    async def big(_: dict[str, object]) -> dict[str, object]:
        return {"content": [{"type": "text", "text": "long canary " * 20_000}]}

    return create_sdk_mcp_server("kb", tools=[big])


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["plain", "año 日本e\u0301 😀", "x" * 120 + "/" + "y" * 120])
@pytest.mark.parametrize("separate", [False, True])
async def test_on_the_cli_a_long_result_lies_in_that_folder_and_can_be_read(
    world, name: str, separate: bool
) -> None:
    project = world.root / name
    project.mkdir(parents=True)
    session = str(uuid.uuid4())
    fields = {"config_dir": str(world.root / "cfg é")} if separate else {}
    config = {
        "project_dir": project,
        "session_id": session,
        "spec": {"mcp_servers": {"kb": big_server}, "tools": ["Read"]},
        **fields,
    }
    results = Path(world.plan(**config).scope.tool_results_dir or "")

    def script(turn):
        if turn.number == 0:
            return ToolCall("mcp__kb__big", {})
        if turn.number == 1:
            (stored,) = results.iterdir()
            return ToolCall("Read", {"file_path": str(stored), "limit": 1})
        return Say("x")

    run = await run_session(world.options(**config), script, home=world.home)
    assert [call.is_error for call in run.calls] == [False, False], run.calls[1].result
    assert str(results) in (run.calls[0].result or "")
