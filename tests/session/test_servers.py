"""Servers of MCP: tools that are named but can't be there, and scripts that are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool

from agent_kit.session.extensions import Active
from agent_kit.session.servers import (
    file_tool_faults,
    file_tool_notes,
    key_faults,
    missing_scripts,
    other_servers,
)

GREETER = {"greeter": {"command": "greeter"}}
NAMED = {"mcp__greter__greet": {"path": "read"}}
SERVERS = json.dumps({"mcpServers": {"own": {"command": "own"}}})


def asked(
    world, *extensions: Any, named: Any = NAMED, sources: Any = ("project",), **fields: Any
) -> Any:
    spec = world.spec(mcp_servers=GREETER, extensions=extensions, **fields.pop("spec", {}))
    active = Active(
        extensions=extensions, contributions=tuple(each.brings for each in extensions), inactive={}
    )
    config = world.config(mcp_file_tools=named, **fields)
    others = other_servers(spec, config, active, Path(world.project), world.home, sources)
    given = (spec, config, active, others)
    return file_tool_faults(*given), [*file_tool_notes(*given)]


def test_a_server_that_is_misspelt_in_mcp_file_tools_is_a_fault(world, part) -> None:
    (fault,), notes = asked(world)
    assert (fault.field, fault.value) == ("mcp_file_tools", "mcp__greter__greet")
    assert "did you mean mcp__greeter__" in fault.remedy
    assert notes == []
    (fault,), _ = asked(world, named={"mcp__zzz__x__y": {"path": "read"}})
    assert "mean" not in fault.remedy


def test_servers_of_the_spec_and_of_extensions_are_known(world, part) -> None:
    named = {f"mcp__{name}": {"path": "read"} for name in ("greeter__greet", "kb__x", "kb__x__y")}
    assert asked(world, part(mcp_servers={"kb": {"command": "x"}}), named=named) == ([], [])
    faults, _ = asked(world, part(name="other"), named=named)
    assert [fault.value for fault in faults] == ["mcp__kb__x", "mcp__kb__x__y"]


@pytest.mark.parametrize(
    ("files", "fields"),
    [
        ((f"project/.mcp.json={SERVERS}",), {}),
        ((f".mcp.json={SERVERS}",), {}),
        ((f"project/p/.mcp.json={SERVERS}",), {"spec": {"plugins": ["p"]}}),
        (("project/p/.mcp.json={",), {"spec": {"plugins": ["p"]}}),
        (
            (f"project/p/.claude-plugin/plugin.json={SERVERS}",),
            {"spec": {"plugins": ["p"]}},
        ),
        ((), {"sources": ("user",)}),
        ((), {"sources": ("local",)}),
    ],
    ids=repr,
)
def test_where_others_may_bring_the_server_it_is_a_note(
    world, files: tuple[str, ...], fields: dict[str, Any]
) -> None:
    world.has(*files)
    faults, (note,) = asked(world, **fields)
    assert faults == []
    assert "mcp__greter__greet" in note
    assert "did you mean mcp__greeter__" in note
    (fault,), notes = asked(world, strict_mcp_config=True, **fields)
    assert (fault.value, notes) == ("mcp__greter__greet", [])


def test_a_server_that_the_project_has_is_known_where_the_project_is_loaded(world) -> None:
    world.has(f"project/.mcp.json={SERVERS}")
    named = {"mcp__own__read": {"path": "read"}}
    assert asked(world, named=named) == ([], [])
    (fault,), notes = asked(world, named=named, sources=())
    assert (fault.value, notes) == ("mcp__own__read", [])


def test_a_plugin_without_servers_leaves_it_a_fault(world, part) -> None:
    world.has('project/p/.claude-plugin/plugin.json={"name": "p"}')
    plugin = part(plugin_dir=world.project / "p")
    for extensions, spec in (((), {"plugins": ["p"]}), ((plugin,), {})):
        (fault,), notes = asked(world, *extensions, spec=spec)
        assert (fault.value, notes) == ("mcp__greter__greet", [])
    world.has(f"project/p/.mcp.json={SERVERS}")
    assert asked(world, plugin)[0] == []


def test_a_script_that_is_not_there_is_the_first_absolute_path(tmp_path: Path) -> None:
    there, gone = tmp_path / "there.py", tmp_path / "gone.py"
    there.touch()
    servers = {
        "a": {"command": "python3", "args": ["-u", str(gone), str(there)]},
        "b": {"command": "python3", "args": [str(there), str(gone)]},
        "c": {"command": "python3", "args": ["gone.py", 5]},
        "d": {"command": "python3", "args": str(gone)},
        "e": lambda: {},
        "f": {"type": "http", "url": "https://a.example"},
    }
    assert [*missing_scripts(servers)] == [("a", str(gone))]


@pytest.mark.parametrize(
    "text",
    [
        "${ANTHROPIC_API_KEY}",
        "x${ANTHROPIC_AUTH_TOKEN:-none}",
        "\\u0024{\\u0041NTHROPIC\\u005fAPI_KEY}",
    ],
)
@pytest.mark.parametrize("field", ["args", "env", "url"])
def test_a_file_that_gives_the_clis_key_to_a_server_is_a_fault(
    tmp_path: Path, text: str, field: str
) -> None:
    file = tmp_path / ".mcp.json"
    held = {"args": '["-c", "%s"]', "env": '{"K": "%s"}', "url": '"%s"'}[field] % text
    file.write_text(f'{{"mcpServers": {{"s": {{"command": "sh", "{field}": {held}}}}}}}')
    (fault,) = key_faults([str(file), str(tmp_path / "gone")])
    assert (fault.field, fault.value) == ("mcp_servers", str(file))
    file.write_text(file.read_text().replace("NTHROPIC", "OTHER"))
    assert not key_faults([str(file)])


# --- tools that are misspelt, of servers that can be asked -----------------------------------------


@tool("forget_page", "d", {})
async def forget_page(_arguments: Any) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("made", [True, False], ids=["value", "function"])
@pytest.mark.parametrize("field", ["interrupt_on", "mcp_file_tools"])
def test_a_misspelt_tool_of_a_server_of_this_process_is_a_fault_of_the_options(
    world, faults, field: str, made: bool
) -> None:
    value: Any = True if field == "interrupt_on" else {"path": "read"}
    servers = {
        "kb": KB if made else lambda: KB,
        "notes": {"command": "notes"},
    }
    spec = {"mcp_servers": servers}

    def build(name: str) -> Any:
        return world.options(spec=spec, **{field: {name: value}})

    assert faults(lambda: build("mcp__kb__forget_pages")) == [(field, "mcp__kb__forget_pages")]
    for name in ("mcp__kb__forget_page", "mcp__kb__zzz", "mcp__notes__forget_page"):
        assert build(name)


KB = create_sdk_mcp_server("kb", tools=[forget_page])
