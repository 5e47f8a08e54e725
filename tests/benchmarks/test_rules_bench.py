"""What rules and authorizers cost, and other engines beside them: the figures are what they say.

Nothing here depends on how fast anything is.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = ("folders", "endings", "mixed", "crowded")
CALLS = ("read", "read.allowed", "read.denied", "write", "grep", "grep.first", "glob", "link")
CHAINS = (
    "deny.read",
    "deny.write",
    "deny.glob",
    "refused.read",
    "chain.read",
    "chain.write",
    "all.read",
)
NAMES = ("deepagents", "casbin", "cedarpy")
SIZES = (100, 1000)

Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Both parts, by key."""
    file = tmp_path_factory.mktemp("bench") / "figures.json"
    parts = ("--only=rules", "--only=rule_engines")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--fast", "--json", str(file), *parts],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text("utf-8"))["rows"]
    assert len({row["key"] for row in found}) == len(found)
    for row in found:
        assert row["what"] in done.stdout
        assert math.isfinite(row["value"])
        assert row["samples"] >= 1
    return {row["key"]: row for row in found}


def test_each_call_with_rules_or_authorizers_is_bound_by_half_a_realpath(rows: Rows) -> None:
    found = {
        key: row["bound"]
        for key, row in rows.items()
        if key.startswith(("rules.", "authorizers.")) and row["bound"] is not None
    }
    assert found == dict.fromkeys(
        (
            *(f"rules.{family}.{call}" for family in FAMILIES for call in CALLS),
            *(f"authorizers.{chain}" for chain in CHAINS),
        ),
        0.5,
    )


def test_what_has_no_bound_is_told_beside_it(rows: Rows) -> None:
    assert {
        key
        for key, row in rows.items()
        if key.startswith(("rules.", "authorizers.")) and row["bound"] is None
    } == {
        *(f"rules.{family}.compile" for family in FAMILIES),
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_is_compared_whole_or_the_row_says_how_to_install_it(
    rows: Rows, name: str
) -> None:
    own = {key: row for key, row in rows.items() if key.startswith(f"engines.{name}.")}
    if set(own) == {f"engines.{name}.missing"}:
        assert "pip install 'agent-kit[compare]'" in own[f"engines.{name}.missing"]["note"]
        return
    assert {key for key in own if ".differs." not in key} == {
        f"engines.{name}.says",
        *(
            f"engines.{name}.{size}.{figure}"
            for size in SIZES
            for figure in ("none", "last", "all", "build", "agrees")
        ),
    }
    for size in SIZES:
        differ = sum(
            row["value"] for key, row in own.items() if key.startswith(f"engines.{name}.{size}.dif")
        )
        assert own[f"engines.{name}.{size}.agrees"]["value"] == 100 - differ / 2
    assert [row["key"] for row in own.values() if row["note"] == "unexplained"] == []


def test_the_kit_itself_is_told_beside_a_realpath_and_says_all_that_is_asked(rows: Rows) -> None:
    own = {key for key in rows if key.startswith("engines.agent_kit.")}
    assert own == {
        "engines.agent_kit.says",
        *(f"engines.agent_kit.{size}" for size in SIZES),
        *(f"engines.agent_kit.{size}.build" for size in SIZES),
    }
    says = rows["engines.agent_kit.says"]
    assert says["what"].endswith(f"of {says['value']:.0f}")
    assert says["note"] == ""


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import rule_engines

    return rule_engines


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import rules

    return rules


@pytest.mark.parametrize("size", SIZES)
def test_the_kit_answers_all_200_questions_as_gitignore_reads_the_rules(
    engines: ModuleType, size: int
) -> None:
    with engines._project() as project:
        asked = engines.questions(size, project)
        ask = engines._agent_kit(engines.rules(size, project), project)
        assert [q for q in asked if ask(q.path) != q.expected] == []
    assert len({q.path for q in asked}) == 200
    assert Counter(q.kind for q in asked) == {
        "plain": 100,
        "dot": 20,
        **dict.fromkeys(
            ("exception", "order", "case", "link", "spelling", "folder", "inside", "deeper"), 10
        ),
    }
    assert {q.expected for q in asked} == {"allow", "deny", "interrupt"}


def test_there_are_as_many_rules_as_said_and_none_is_there_twice(engines: ModuleType) -> None:
    for size in SIZES:
        listed = engines.rules(size, "/p")
        assert len(listed) == len({rule.paths for rule in listed}) == size


def test_an_engine_that_is_not_installed_says_how_to_install_it(
    engines: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.measure import FAST

    for name in ("casbin", "cedarpy", "deepagents.middleware.filesystem"):
        monkeypatch.setitem(sys.modules, name, None)
    found = {row.key: row.note for row in engines.measure(FAST)}
    for name in NAMES:
        assert [key for key in found if key.startswith(f"engines.{name}.")] == [
            f"engines.{name}.missing"
        ]
        assert "pip install 'agent-kit[compare]'" in found[f"engines.{name}.missing"]


def test_answers_that_differ_are_counted_by_the_kind_of_the_question(engines: ModuleType) -> None:
    from benchmarks.measure import FAST

    asked = [
        engines.Question(kind, path, "deny") for kind, path in (("dot", "/.a"), ("link", "/b"))
    ]
    order: list[str] = []

    def forgets_dots(path: str) -> str:
        order.append(path)
        return "allow" if "/." in path else "deny"

    samples, differ = engines.ask_all(lambda path: "deny", forgets_dots, asked, FAST)
    assert differ == {"dot": 1}
    assert len(samples.candidate) == 2
    assert list(dict.fromkeys(order)) == ["/.a", "/b"]


def test_a_difference_that_nobody_foresaw_is_called_unexplained(
    engines: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.measure import FAST

    # It answers as the kit does, but for what ends in /.env, a "dot", and what is below a link.
    def made(listed: Any, project: str) -> Any:
        ask = engines._agent_kit(listed, project)
        return lambda path: "interrupt" if path.endswith("/.env") or "/link" in path else ask(path)

    engine = engines.Engine("casbin", "none", made, differs={"dot": "it is a fake"})
    with engines._project() as project:
        found = {row.key: row for row in engines._compared(engine, 100, project, FAST)}
    assert found["engines.casbin.100.differs.dot"].note == "it is a fake"
    assert found["engines.casbin.100.differs.link"].note == "unexplained"
    assert found["engines.casbin.100.agrees"].value < 100


@pytest.mark.parametrize(
    ("pattern", "kind", "path"),
    [
        ("/p/data/**", "folder", "/p/data/*"),
        ("/p/a.md", "folder", "/p/a.md"),
        ("/p/src/*.x1", "glob", "/p/src/*.x1"),
        ("/**/name1", "regex", "^/(?:.*/)?name1$"),
    ],
)
def test_casbin_gets_a_pattern_for_the_matcher_that_can_say_it(
    engines: ModuleType, pattern: str, kind: str, path: str
) -> None:
    assert engines._as_casbin(pattern) == (kind, path)


@pytest.mark.parametrize(
    ("path", "matches"),
    [("/a.ext1", True), ("/x/y/a.ext1", True), ("/a.ext12", False), ("/x/aXext1", False)],
)
def test_a_pattern_for_any_depth_becomes_an_expression_of_the_same_meaning(
    engines: ModuleType, path: str, matches: bool
) -> None:
    assert (re.match(engines._regex("/**/*.ext1"), path) is not None) is matches


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("/p/data/**", 'resource in Folder::"/p/data"'),
        ("/**/*.ext1", 'context.path like "*/*.ext1"'),
        ("/p/{a,b}/**", 'resource in Folder::"/p/a" || resource in Folder::"/p/b"'),
    ],
)
def test_cedar_gets_a_folder_as_an_entity_and_a_pattern_as_like(
    engines: ModuleType, pattern: str, condition: str
) -> None:
    policy = engines._as_cedar(engines._rule(pattern, "interrupt"))
    assert policy == (
        '@id("interrupt") forbid (principal, action == Action::"read", resource) '
        f"when {{ {condition} }};"
    )


def test_cedar_gets_no_policy_for_a_class_of_characters(engines: ModuleType) -> None:
    assert engines._as_cedar(engines._rule("/p/[!a]x", "deny")) == ""


def test_what_is_added_is_the_difference_and_its_unit_the_realpath(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.measure import FAST

    taken = {"realpath": 10.0, "without": 2.0, "more": 5.0}
    monkeypatch.setattr(rules, "_block", lambda action, loops: taken[action()])
    monkeypatch.setattr(rules, "_loops", lambda action, block: 1)
    samples = rules._added(lambda: "realpath", lambda: "without", lambda: "more", FAST)
    row = samples.ratio("k", "w")
    assert (row.value, row.low, row.high) == (0.3, 0.3, 0.3)
    assert row.samples == FAST.blocks


def test_a_rule_list_has_its_size_and_only_its_last_rule_matches_the_file(
    rules: ModuleType,
) -> None:
    from agent_kit.policy import check_permissions
    from benchmarks.places import place

    with place() as at:
        for family in rules._FAMILIES:
            for last, says in ((None, "allow"), ("deny", "deny"), ("interrupt", "interrupt")):
                listed = family.rules(at, 1000, last)
                assert len(listed) == 1000
                assert check_permissions(listed, "read", at.file, project_dir=at.project) == says
            short = listed[:-1]
            assert check_permissions(short, "read", at.file, project_dir=at.project) == "allow"


def test_rules_that_say_something_else_than_the_row_are_not_measured(rules: ModuleType) -> None:
    from benchmarks.measure import FAST
    from benchmarks.places import place

    with place() as at:
        sets = rules._sets(at, rules._FOLDERS, "deny")
        with pytest.raises(AssertionError, match="isn't what it says"):
            rules._rules_row(
                "k", "w", at.scope(), at, rules._READ, sets, rules.RuleVerdict.ALLOW, FAST
            )


def test_an_authorizer_that_waits_is_not_measured(rules: ModuleType) -> None:
    async def waits() -> Any:
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="waits"):
        rules._run(waits())


def test_a_first_search_finds_nothing_remembered(rules: ModuleType) -> None:
    from benchmarks.places import place

    with place() as at:
        sets = rules._sets(at, rules._MIXED)
        tool, (_, call) = rules._GREP.tool, rules._GREP.call(at)
        rules._Gate(at.scope(), sets).ask(tool, call)
        known = [s._known for listed in sets.lists() for s in listed.subtrees.values()]
        assert any(known)
        rules._forget(sets)
        assert not any(known)
