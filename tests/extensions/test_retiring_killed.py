"""A retirement that is killed before any of its steps, in a real process."""

from __future__ import annotations

import pytest

from tests.killing import killed_everywhere

# Retires one original again and again, each time in a child that is killed before its next system
# call of the kinds that change the disk, and reports what is found, before and after the next write.
KILLER = """
import json, os, shutil, signal, sys
from pathlib import Path
from agent_kit import AgentSpec, SessionConfig, plan_session
from agent_kit.testing import tree
from agent_kit_sources import sources
import filelock

base = Path(sys.argv[1])
STEPS = ("link", "unlink", "rename", "replace", "fsync", "mkdir", "rmdir", "open", "write")

def tools(root):
    plan = plan_session(
        AgentSpec(name="keeper", extensions=[sources()]),
        SessionConfig(project_dir=root / "course", run_dir=root / "run",
                      extra_writable_dirs=["drafts"], env={"HOME": str(root / "home")}),
    )
    found = {t.name: t for t in plan.contributions[0].mcp_servers["sources"].args[1]}
    plan.guard()  # loads what is loaded at the first call
    return found

def prepared(root):
    shutil.rmtree(root, ignore_errors=True)
    tree(root, ["course/sources/", "course/drafts/a.md=one", "home/"])
    found = tools(root)
    save = {"file": "drafts/a.md", "name": "week1/a.md"}
    assert not found["save_to_sources"].call(save)["is_error"]
    return found

def child(found, limit):
    die_before(limit, STEPS)
    answer = found["retire_source"].call({"file": "sources/week1/a.md", "reason": "wrong"})
    assert not answer["is_error"], answer

def texts(folder):
    return sorted(p.read_text() for p in folder.rglob("*a.md"))

def state(root):
    folder = root / "course/sources"
    held = json.loads((folder / ".sources.json").read_text())
    retired = held.get("retired", {})
    return {
        "originals": texts(folder / "week1"),
        "retired": texts(folder / ".retired"),
        "known": sorted(held["files"]),
        "noted": sorted(e["path"] for e in retired.values() if "moving" not in e),
        "right": all((folder / place).is_file() for place, e in retired.items()
                     if "moving" not in e),
        "left": sorted(p.name for p in folder.rglob(".tmp-*")),
    }

results = []
for limit in range(300):
    root = base / str(limit)
    found = prepared(root)
    killed = is_killed(lambda: child(found, limit))
    before = state(root)
    save = {"file": "drafts/a.md", "name": "later.md"}
    assert not tools(root)["save_to_sources"].call(save)["is_error"]
    results.append({"killed": killed, "before": before, "after": state(root)})
    shutil.rmtree(root)
    if not killed:
        break
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, list[str]]]]:
    """What was found after each kill; the last retirement was let through."""
    return killed_everywhere(KILLER, str(tmp_path_factory.mktemp("killed")), least=15)


def test_there_is_the_original_or_the_retired_one_wherever_it_is_killed(killed) -> None:
    found = {(*row["before"]["originals"], "|", *row["before"]["retired"]) for row in killed}
    assert found == {("one", "|"), ("|", "one")}
    assert all(row["before"]["right"] for row in killed)


def test_the_manifest_is_right_once_somebody_writes(killed) -> None:
    kept = {"known": ["later.md", "week1/a.md"], "noted": []}
    moved = {"known": ["later.md"], "noted": ["week1/a.md"]}
    for row in killed:
        after = row["after"]
        expected = kept if after["originals"] else moved
        assert {name: after[name] for name in expected} == expected
        assert after["originals"] == row["before"]["originals"]
        assert after["right"]


def test_nothing_half_done_is_left_once_somebody_writes(killed) -> None:
    assert {tuple(row["after"]["left"]) for row in killed} == {()}
