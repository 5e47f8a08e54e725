"""What holds for each of the three extensions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit.extension import Contribution, Extension, ExtensionContext
from agent_kit.scope import ConfigError
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import Downloads, sources

Context = Callable[..., ExtensionContext]
EXTENSIONS = {
    "sources": sources(),
    "sources with downloads": sources(downloads=Downloads()),
    "knowledge": knowledge(),
    "knowledge read-only": knowledge(read_only=True),
    "memory": memory(dir="memory"),
}


@pytest.fixture(params=EXTENSIONS.values(), ids=EXTENSIONS.keys())
def extension(request: pytest.FixtureRequest, project: Path) -> Extension:
    for name in ("sources", "knowledge"):
        (project / name).mkdir()
    found: Extension = request.param
    return found


def test_it_is_an_extension_with_a_capability_of_its_name(extension: Extension) -> None:
    assert isinstance(extension, Extension)
    assert extension.provides == (extension.name,)
    assert extension.requires == ()


def test_its_folder_has_one_role(extension: Extension, context: Context, project: Path) -> None:
    made = extension.contribute(context())
    folder = str(project / extension.name)
    roles = {
        "read_only": made.read_only_dirs,
        "tool_only": tuple(entry.dir for entry in made.tool_only_dirs),
        "writable": made.writable_dirs,
        "readable": made.readable_dirs,
    }
    role = "read_only" if extension.name == "sources" else "tool_only"
    assert {name: dirs for name, dirs in roles.items() if dirs} == {role: (folder,)}


def test_two_sessions_share_nothing_that_is_made_for_one(
    extension: Extension, context: Context
) -> None:
    one, other = extension.contribute(context()), extension.contribute(context())
    assert one.api is not other.api


async def test_its_tools_describe_every_field(
    extension: Extension, context: Context, listed: Callable[[Contribution], Awaitable[Any]]
) -> None:
    tools = await listed(extension.contribute(context()))
    assert tools
    for tool in tools:
        assert tool.description
        assert_described(tool.input_schema)


def assert_described(schema: dict[str, Any]) -> None:
    """No record, and a description for each field: a free-form dict drops the whole server."""
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for field in schema["properties"].values():
        assert field["description"].endswith(".")
        assert field["type"] in ("string", "integer", "boolean", "array", "object")
        if field["type"] == "array" and field["items"]["type"] == "object":
            assert_described(field["items"])
        if field["type"] == "object":
            assert_described(field)


async def test_the_tools_that_change_nothing_are_named_and_hinted(
    extension: Extension, context: Context, listed: Callable[[Contribution], Awaitable[Any]]
) -> None:
    made = extension.contribute(context())
    hinted = {
        f"mcp__{extension.name}__{tool.name}"
        for tool in await listed(made)
        if tool.annotations.read_only_hint
    }
    assert hinted == set(made.read_only_tools)
    assert all(len(name) <= 64 for name in hinted)


async def test_the_prompt_names_every_tool_and_no_path_outside_the_project(
    extension: Extension,
    context: Context,
    project: Path,
    listed: Callable[[Contribution], Awaitable[Any]],
) -> None:
    made = extension.contribute(context())
    section = made.prompt_section or ""
    assert section.startswith("## ")
    assert str(project) not in section
    for tool in await listed(made):
        assert f"`{tool.name}`" in section


@pytest.mark.parametrize(
    "extension",
    [sources(dir=lambda _: 3), knowledge(dir=lambda _: 3), memory(dir=lambda _: 3)],
    ids=lambda extension: extension.name,
)
def test_a_function_that_gives_no_folder_is_a_fault_and_not_a_missing_extension(
    extension: Extension, context: Context
) -> None:
    assert extension.missing(context()) is None
    with pytest.raises(ConfigError) as caught:
        extension.contribute(context())
    assert [fault.field for fault in caught.value.faults] == [f"{extension.name}.dir"]


def test_planning_loads_neither_the_sdk_nor_mcp_nor_a_document_library(project: Path) -> None:
    code = """
import sys
from pathlib import Path
from types import SimpleNamespace
from agent_kit.extension import ExtensionContext
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import Downloads, sources
project = Path(sys.argv[1])
(project / "sources").mkdir()
context = ExtensionContext(config=SimpleNamespace(denied_paths=()), mode="guided",
    spec=SimpleNamespace(name="a"), project_dir=project, run_dir=project)
for extension in (sources(), knowledge(), memory(dir="m")):
    assert extension.missing(context) is None
    extension.contribute(context)
loaded = {"claude_agent_sdk", "mcp", "yaml", "frontmatter", "filelock", "platformdirs"}
print(sorted(loaded & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(project)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# The plugin folders

PLUGINS = {name: found.plugin_dir for name, found in EXTENSIONS.items() if found.plugin_dir}
_MENTION = re.compile(r"(?<![\w.])@[^\s]")


@pytest.mark.parametrize("plugin", sorted(set(PLUGINS.values())), ids=lambda path: path.parent.name)
def test_no_body_mentions_a_file_or_runs_a_command(plugin: Path) -> None:
    bodies = [*plugin.rglob("SKILL.md"), *plugin.glob("commands/*.md")]
    assert bodies
    for body in bodies:
        text = body.read_text(encoding="utf-8")
        assert not _MENTION.search(text)
        assert "!`" not in text


def test_own_notes_bring_no_skills_that_speak_of_missing_tools() -> None:
    assert knowledge(own_notes=True).plugin_dir is None


@pytest.mark.e2e
@pytest.mark.parametrize("plugin", sorted(set(PLUGINS.values())), ids=lambda path: path.parent.name)
def test_the_bundled_cli_finds_nothing_to_complain_about(plugin: Path, tmp_path: Path) -> None:
    import claude_agent_sdk

    cli = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    done = subprocess.run(
        [str(cli), "plugin", "validate", "--strict", "--json", str(plugin)],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["success"]) == (0, True), report
    if "provides" in report:  # CLI 2.1.317 does not tell
        assert report["provides"]["skills"] or report["provides"]["commands"]
