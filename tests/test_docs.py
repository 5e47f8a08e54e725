"""The documentation says what the code has."""

from __future__ import annotations

import dataclasses
import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agent_kit
from agent_kit import (
    AgentSpec,
    FileScope,
    Mode,
    SessionConfig,
    SessionPlan,
    Subagent,
    ToolOnlyDir,
    explain_file_scope,
)
from agent_kit.confine.bubblewrap import DOCKER_FLAGS, PODMAN_FLAGS
from agent_kit.session.isolation import ISOLATION, NESTED_MEMORY, SCHEDULED_TASKS
from agent_kit.session.pins import PROJECT_ENV
from agent_kit.session.settings import UNCHECKED_SETTINGS
from agent_kit.store import MarkdownStore

ROOT = Path(__file__).parents[1]
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    section = CONFIGURATION.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    lines = [line for line in lines[1:] if not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("value", [SessionConfig, AgentSpec, Subagent, FileScope])
def test_every_field_stands_in_the_table_with_its_default(value: type) -> None:
    table = {row[0].strip("` "): row[2] for row in rows(value.__name__)}
    fields = [field for field in dataclasses.fields(value) if field.init]
    assert list(table) == [field.name for field in fields]
    for field in fields:
        required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        assert (table[field.name] == "required") == required, field.name
        if field.default is not dataclasses.MISSING and field.default is not None:
            shown = repr(field.default).replace("'", '"')
            assert table[field.name].strip("`") in (shown, "this machine's"), field.name


def test_every_isolation_setting_stands_in_the_table() -> None:
    table = {
        row[0].strip("`"): row[2].strip("`") for row in rows("What is kept out, and what opens it")
    }
    known = {row.setting: row.unlock for row in ISOLATION}
    assert known.items() <= table.items()
    others = {NESTED_MEMORY, SCHEDULED_TASKS, PROJECT_ENV, UNCHECKED_SETTINGS}
    assert {*table.values()} == {*known.values(), *others}


def test_the_readme_shows_what_the_doctest_gives() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0


def test_every_field_of_the_plan_stands_in_its_table() -> None:
    named = {name for row in rows("SessionPlan") for name in re.findall(r"`(\w+)`", row[0])}
    assert named == {field.name for field in dataclasses.fields(SessionPlan)} | {"host_dir"}


def test_the_readme_has_the_example_table_of_the_tests() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\| ((?:Write|Edit|Read|Grep) .*?) \| (allowed|denied).*\|$", readme, re.MULTILINE
    )
    assert lines == [
        ("Write knowledge/index.md", "denied"),
        ("Edit drafts/newsletter.md", "allowed"),
        ("Edit sources/syllabus.pdf", "denied"),
        ("Write README.md", "denied"),
        ("Read sources/syllabus.md", "allowed"),
        ("Read README.md", "denied"),
        ("Read agent.config.json", "denied"),
        ('Grep "exam" in sources/', "allowed"),
        ('Grep "exam" (no path) · Grep "password" in .', "denied"),
    ]
    scope = FileScope(
        project_dir="/work/course",
        writable_dirs=["drafts"],
        searchable_dirs=["sources", "drafts"],
        read_only_dirs=["sources"],
        denied_paths=["agent.config.json"],
        tool_only_dirs=[ToolOnlyDir(dir="knowledge", instead="the knowledge_* tools")],
    )
    for call, expected in lines:
        for one in call.split(" · "):
            tool, rest = one.split(" ", 1)
            if tool == "Grep":
                given = {"path": rest.split(" in ")[1]} if " in " in rest else {}
            else:
                given = {"file_path": rest}
            assert (
                str(explain_file_scope(scope, tool, given).verdict)
                == {"allowed": "allow", "denied": "deny"}[expected]
            ), one


def test_every_public_name_is_listed_before_it_is_used() -> None:
    code = "import agent_kit; print(set(agent_kit.__all__) - set(dir(agent_kit)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_the_container_flags_are_those_that_the_backend_names() -> None:
    assert f"docker run {DOCKER_FLAGS} …\n" in CONFIGURATION
    assert f"podman run {PODMAN_FLAGS} …\n" in CONFIGURATION


def test_the_first_example_of_the_rules_is_a_config() -> None:
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    block = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102 - the documentation's own
    config = names["config"]
    assert isinstance(config, SessionConfig)
    assert [rule.mode for rule in config.permissions] == ["allow", "deny", "interrupt"]


def test_the_modes_and_authorizers_of_the_documentation_are_those_there_are() -> None:
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    modes = re.findall(r"^\| `(\w+)` \|", text.split("\n## Modes\n")[1], re.MULTILINE)
    assert modes == [str(mode) for mode in Mode]
    section = text.split("\n## Authorizers\n")[1].split("\n## ")[0]
    for name in re.findall(r"^\| `(\w+)\(", section, re.MULTILINE):
        assert callable(getattr(agent_kit, name))


def test_the_examples_of_the_page_on_pages_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "pages.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").write_text("[[a]]", encoding="utf-8")
    names = {
        "folder": tmp_path,
        "vault": tmp_path / "vault",
        "MyStore": lambda name: MarkdownStore(tmp_path / "mine" / name),
    }
    for block in blocks:
        exec(block, names)  # noqa: S102 - our own
    assert len(blocks) == 5
    assert (tmp_path / "export" / "note" / "a.md").is_file()
