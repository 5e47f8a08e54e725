"""Instruction files beside a file that is read: every kind, in every folder of the scope.

Each kind has a folder of its own in each folder of the scope, with a file that the session reads, an
instruction file with a canary, and a closed target with another. One session reads them all; the
control is the same session with the lock open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.testing import Say, SessionRun, ToolCall, run_session, tree
from agent_kit_sources import sources

pytestmark = pytest.mark.e2e

# The folders of the scope, relative to the project, and whether files beside those that are read
# there are instructions to a CLI without the lock: outside the project they are not.
FOLDERS = {"reading": True, "drafts": True, "sources": True, "../shared": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Instruction files of one kind, and what of them is loaded where nothing stops it.

    ``entries`` are of :func:`tree`, below a folder of their own. ``{own}`` is the canary of the
    instruction file, ``{target}`` the name of the closed file, from the project.
    """

    entries: tuple[str, ...]
    opens: tuple[str, ...]  # "own", "target": which canaries


OWN, TARGET, BOTH = ("own",), ("target",), ("own", "target")
UP = "../../"  # from a kind's folder to the project
RULES = ".claude/rules"
KINDS = {
    "CLAUDE.md": Kind(entries=("CLAUDE.md={own}",), opens=OWN),
    "AGENTS.md": Kind(entries=("AGENTS.md={own}",), opens=OWN),
    "CLAUDE.local.md": Kind(entries=("CLAUDE.local.md={own}",), opens=OWN),
    "dotted": Kind(entries=(".claude/CLAUDE.md={own}",), opens=OWN),
    "rule": Kind(entries=(f"{RULES}/r.md={{own}}",), opens=OWN),
    "deep rule": Kind(entries=(f"{RULES}/a/b/r.md={{own}}",), opens=OWN),
    "rule for files": Kind(entries=(f'{RULES}/r.md=---\npaths: "**/*.md"\n---\n{{own}}',), opens=OWN),
    "linked CLAUDE.md": Kind(entries=(f"CLAUDE.md => {UP}{{target}}",), opens=TARGET),
    "linked AGENTS.md": Kind(entries=(f"AGENTS.md => {UP}{{target}}",), opens=TARGET),
    "linked CLAUDE.local.md": Kind(entries=(f"CLAUDE.local.md => {UP}{{target}}",), opens=TARGET),
    "linked rule": Kind(entries=(f"{RULES}/r.md => {UP}../../{{target}}",), opens=TARGET),
    "linked rules": Kind(entries=(f"{RULES} => {UP}../{{target}}.d",), opens=TARGET),
    "linked .claude": Kind(entries=(f".claude => {UP}{{target}}.e",), opens=TARGET),
    "CLAUDE.md imports": Kind(entries=(f"CLAUDE.md={{own}} @{UP}{{target}}",), opens=BOTH),
    "AGENTS.md imports": Kind(entries=(f"AGENTS.md={{own}} @{UP}{{target}}",), opens=BOTH),
    "local imports": Kind(entries=(f"CLAUDE.local.md={{own}} @{UP}{{target}}",), opens=BOTH),
    "dotted imports": Kind(entries=(f".claude/CLAUDE.md={{own}} @../{UP}{{target}}",), opens=BOTH),
    "rule imports": Kind(entries=(f"{RULES}/r.md={{own}} @../../{UP}{{target}}",), opens=BOTH),
    "import by a link": Kind(
        entries=(f"x.md => {UP}{{target}}", "CLAUDE.md={own} @x.md"), opens=BOTH
    ),
    "import of an import": Kind(
        entries=(f"x.md=@{UP}{{target}}", "CLAUDE.md={own} @x.md"), opens=BOTH
    ),
}  # fmt: skip
CASES = [(folder, kind) for folder in FOLDERS for kind in KINDS]


def name(folder: str, kind: str, part: str) -> str:
    """A canary."""
    return f"canary({folder.strip('./')}-{kind.replace(' ', '-')}-{part})"


def entries(folder: str, kind: str) -> Iterator[str]:
    here = f"course/{folder}/{kind}".replace("course/../", "")
    target = f"closed/{name(folder, kind, 'target')[7:-1]}.md"
    for entry in KINDS[kind].entries:
        text = entry.replace("{own}", name(folder, kind, "own"))
        up = "../../course/" if folder.startswith("../") else UP
        yield f"{here}/{text.replace(UP, up).replace('{target}', target)}"
    yield f"{here}/read me.md=an open file: {name(folder, kind, 'open')}"
    canary = name(folder, kind, "target")
    for place in ("", ".d/r.md", ".e/CLAUDE.md", ".e/rules/r.md"):
        yield f"course/{target}{place}={canary}"


def session_on(root: Path, chain: str, unlock: tuple[str, ...]) -> SessionConfig:
    tree(root, ["home/", f"course/{chain}=canary(chain)"])
    tree(root, [entry for folder, kind in CASES for entry in entries(folder, kind)])
    return SessionConfig(
        project_dir=root / "course",
        extra_readable_dirs=["reading", str(root / "shared")],
        extra_writable_dirs=["drafts"],
        run_dir=root / "run",
        env={"HOME": str(root / "home")},
        setting_sources=["project", "local"],
        unlock=unlock,
        confinement="off",
    )


async def read_everything(root: Path, chain: str, unlock: tuple[str, ...] = ()) -> SessionRun:
    config = session_on(root, chain, unlock)
    spec = AgentSpec(name="reader", extensions=[sources()])
    reads = tuple(
        ToolCall("Read", {"file_path": f"{folder}/{kind}/read me.md"}) for folder, kind in CASES
    )
    options = build_session_options(spec, config)
    run = await run_session(options, [reads, Say("Done.")], home=root / "home")
    assert run.unplayed == ()
    assert not [call for call in run.calls if call.is_error]
    return run


def seen(run: SessionRun, folder: str, kind: str) -> tuple[str, ...]:
    return tuple(part for part in ("own", "target") if run.saw(name(folder, kind, part)))


# The file of the project's own chain. A CLI without the lock takes AGENTS.md only where the project
# has no CLAUDE.md.
CHAIN = pytest.mark.parametrize("chain", ["CLAUDE.md", "AGENTS.md"])


@CHAIN
async def test_nothing_beside_a_file_is_loaded_with_it(chain: str, tmp_path: Path) -> None:
    run = await read_everything(tmp_path, chain)
    assert {case: seen(run, *case) for case in CASES} == dict.fromkeys(CASES, ())
    assert all(run.saw(name(folder, kind, "open")) for folder, kind in CASES)
    assert run.saw("canary(chain)")  # the project's own chain stays


@CHAIN
async def test_unlocked_everything_is_loaded(chain: str, tmp_path: Path) -> None:
    """The control, kind by kind."""
    run = await read_everything(tmp_path, chain, unlock=("nested_memory",))
    expected = {
        (folder, kind): KINDS[kind].opens
        if FOLDERS[folder] and (chain == "AGENTS.md" or "AGENTS.md" not in kind)
        else ()
        for folder, kind in CASES
    }
    assert {case: seen(run, *case) for case in CASES} == expected
    assert run.saw("canary(chain)")
