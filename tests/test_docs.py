"""The documentation says what the code has."""

from __future__ import annotations

import dataclasses
import doctest
import re
from pathlib import Path

import pytest

from agent_kit import AgentSpec, FileScope, SessionConfig, Subagent
from agent_kit.session.isolation import ISOLATION, NESTED_MEMORY
from agent_kit.session.pins import PROJECT_ENV
from agent_kit.session.settings import UNCHECKED_SETTINGS

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
    assert list(table) == [field.name for field in fields] or set(table) == {f.name for f in fields}
    for field in fields:
        required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        assert (table[field.name] == "required") == required, field.name
        if field.default is not dataclasses.MISSING and field.default not in (None,):
            shown = repr(field.default).replace("'", '"')
            assert table[field.name].strip("`") in (shown, "this machine's"), field.name


def test_every_isolation_setting_stands_in_the_table() -> None:
    table = {row[0].strip("`"): row[2].strip("`") for row in rows("What is kept out, and what opens it")}
    known = {row.setting: row.unlock for row in ISOLATION}
    assert known.items() <= table.items()
    assert {*table.values()} == {*known.values(), NESTED_MEMORY, PROJECT_ENV, UNCHECKED_SETTINGS}


def test_the_readme_shows_what_the_doctest_gives() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0


def test_the_readme_has_the_example_table_of_the_tests() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:Write|Edit|Read|Grep) .* \| (?:allowed|denied).* \|$", readme, re.M)
    assert len(rows) == 9
