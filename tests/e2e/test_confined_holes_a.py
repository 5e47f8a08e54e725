"""What a confinement must hold when folders move, can't be listed, go, or lie among the system's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.confine import system
from agent_kit.testing import SessionRun, ToolCall, run_session, tree
from agent_kit_knowledge import knowledge
from tests.e2e.hosts import ANYBODY, World, made_world

pytestmark = pytest.mark.e2e


@pytest.fixture
def root() -> Iterator[Path]:
    """Not below /tmp, which is another one inside."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # noqa: S108
        yield tree(Path(folder).resolve(), ["home/.claude/settings.json={}"])


def built(
    root: Path, backend: str, script: str, project: str = "w", spec: Any = None, **more: Any
) -> ClaudeAgentOptions:
    """A session that can run ``script``: a command line with closed names in it would be refused."""
    (root / project / "drafts").mkdir(exist_ok=True)
    (root / project / "drafts/run.sh").write_text(f"{script}\n")
    env = {"HOME": str(root / "home"), "ANTHROPIC_API_KEY": "sk-real", **more.pop("env", {})}
    config = SessionConfig(
        project_dir=root / project,
        run_dir=root / "run",
        confinement="required",
        confinement_backend=backend,
        env=env,
        **more,
    )
    return build_session_options(spec or AgentSpec(name="holes", tools=["Bash"]), config)


async def said(root: Path, options: ClaudeAgentOptions) -> str:
    """What the session's script said."""
    call = ToolCall("Bash", {"command": "sh drafts/run.sh"})
    run: SessionRun = await run_session(options, [call, "Done."], home=root / "home")
    assert run.unplayed == ()
    return run.calls[0].result or ""


async def test_a_folder_with_a_closed_file_in_it_keeps_its_name(root: Path, backend: str) -> None:
    """Whatever else lies in it. The next session would find the file under another name."""
    tree(
        root,
        (
            "w/data/private.csv=canary(csv)",
            "w/data/kb/p.md=canary(page)",
            "w/data/z/.claude/settings.local.json={}",
            "w/free/f.md=f",
            "w/free/g.md=g",
        ),
    )
    spec = AgentSpec(name="holes", tools=["Bash"], extensions=[knowledge(dir="data/kb")])
    fields: dict[str, Any] = {
        "spec": spec,
        "extra_writable_dirs": ["."],
        "denied_paths": ["data/private.csv", "**/settings.local.json"],
    }
    moves = "mv data data2; mv free/f.md free/h.md; mkdir -p data/kb; echo forged > data/kb/x.md"
    await said(root, built(root, backend, moves, **fields))
    assert (root / "w/free/h.md").exists()  # a control
    script = "cat data*/private.csv data*/kb/*"
    text = await said(root, built(root, backend, script, **fields))
    assert "canary" not in text
    assert not (root / "w/data2").exists()
    assert [path.name for path in (root / "w/data/kb").iterdir()] == ["p.md"]


@pytest.fixture
def world() -> Iterator[World]:
    yield from made_world(Path(tempfile.gettempdir()), os.getuid() or ANYBODY)


@pytest.mark.parametrize("mode", ["300", "600"])
def test_a_folder_that_was_shut_in_one_session_shows_nothing_in_the_next(
    world: World, backend: str, mode: str
) -> None:
    open_up = "chmod 700 drafts/d; cat drafts/d/.env drafts/d/n.md"
    tree(
        world.root,
        (
            "a course/drafts/d/.env=canary(shut)",
            "a course/drafts/d/n.md=canary(note)",
            f"a course/drafts/first.sh={open_up}; chmod {mode} drafts/d\n",
            f"a course/drafts/second.sh={open_up}\n",
        ),
    )
    first = world.run(("Bash", {"command": "sh drafts/first.sh"}), backend=backend)
    assert "canary(note)" in first["results"][0]  # a control
    assert (world.drafts / "d").stat().st_mode & 0o777 == int(mode, 8)
    second = world.run(("Bash", {"command": "sh drafts/second.sh"}), backend=backend)
    for run in (first, second):
        assert "canary(shut)" not in "".join(run["requests"])
    assert "canary(note)" not in second["results"][0]


SYSTEMS = (
    "usr/share/open.txt=canary(open)",
    "usr/share/secret=canary(secret)",
    "usr/src/app/.env=canary(env)",
    "usr/src/app/README.md=canary(readme)",
    "usr/src/app/knowledge/k.md=canary(knowledge)",
    "usr/src/app/drafts/d.md=canary(draft)",
)


async def test_a_project_among_the_systems_folders_is_seen_as_anywhere(
    root: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, SYSTEMS)
    table = (*system.SYSTEM, str(root / "usr"))
    monkeypatch.setattr(system, "SYSTEM", table)
    monkeypatch.setattr("agent_kit.session.confinement.SYSTEM", table)
    script = (
        "cat .env README.md knowledge/k.md drafts/d.md; echo new > drafts/new.md;"
        f" cat {root}/usr/share/open.txt {root}/usr/share/secret"
    )
    options = built(
        root,
        backend,
        script,
        "usr/src/app",
        extra_writable_dirs=["drafts"],
        denied_paths=[str(root / "usr/share/secret")],
    )
    text = await said(root, options)
    assert "canary(draft)" in text
    assert "canary(open)" in text
    assert (root / "usr/src/app/drafts/new.md").read_text() == "new\n"
    for closed in ("env", "readme", "knowledge", "secret"):
        assert f"canary({closed})" not in text


@pytest.mark.parametrize("gone", [".env", "sub/CLAUDE.md", "sub"])
async def test_what_has_gone_since_the_plan_stays_gone_and_the_session_runs(
    root: Path, backend: str, gone: str
) -> None:
    tree(root, ["w/.env=canary(env)", "w/sub/CLAUDE.md=rules", "w/sub/.env=canary(sub)"])
    script = "echo ran; cat .env sub/.env"
    options = built(root, backend, script, extra_writable_dirs=["."], denied_paths=["**/.env"])
    path = root / "w" / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    text = await said(root, options)
    assert "ran" in text.splitlines()
    assert "canary" not in text
    assert not path.exists()


WORK: dict[str, tuple[str, Callable[[], bool]]] = {
    "a virtual environment": (
        "/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'print(6 * 7)'",
        lambda: os.path.exists("/usr/bin/python3"),
    ),
    "what pip asks for": (
        "cat /etc/debian_version && echo 42",
        lambda: os.path.exists("/etc/debian_version"),
    ),
    "Java": (
        "/usr/bin/java -version 2>&1 && echo 42",
        lambda: os.path.exists("/usr/bin/java"),
    ),
}


@pytest.mark.parametrize("work", WORK)
async def test_honest_work_with_the_systems_programs_is_done(
    root: Path, backend: str, work: str
) -> None:
    command, is_here = WORK[work]
    if not is_here():
        pytest.skip("this machine hasn't got it")
    tree(root, ["w/drafts/d.md=x"])
    options = built(root, backend, f"cd drafts; {command}", extra_writable_dirs=["drafts"])
    assert "42" in (await said(root, options)).splitlines()
