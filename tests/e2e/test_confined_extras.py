"""What a confined session may be given beside its folders: git, an account, a CLI, a sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, SessionConfig, build_session_options, plan_session
from agent_kit.sdk.locations import bundled_cli
from agent_kit.session import flag_settings
from agent_kit.testing import AnsweredBy, SessionRun, ToolCall, run_session, tree
from agent_kit_sources import sources

pytestmark = pytest.mark.e2e

FILES = (
    "a course/sources/syllabus.md=canary(syllabus)",
    "a course/drafts/note.md=old",
    "home/.claude/settings.json={}",
)
SPEC = AgentSpec(name="confined", tools=["Bash"], extensions=[sources(dir="sources")])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path.resolve() / "a world", FILES)


def config(root: Path, backend: Any, *, key: str = "sk-real", **more: Any) -> SessionConfig:
    return SessionConfig(
        project_dir=root / "a course",
        run_dir=root / "run",
        extra_writable_dirs=["drafts"],
        confinement="required",
        confinement_backend=backend,
        env={"HOME": str(root / "home"), "ANTHROPIC_API_KEY": key},
        **more,
    )


async def play(root: Path, config: SessionConfig, *commands: str) -> SessionRun:
    calls = [ToolCall("Bash", {"command": command}) for command in commands]
    options = build_session_options(SPEC, config)
    run = await run_session(options, [*calls, "Done."], home=root / "home")
    assert run.unplayed == ()
    assert run.outside == ()
    return run


def answers(run: SessionRun) -> list[str]:
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN] * len(run.calls), run.calls
    return [call.result or "" for call in run.calls]


# --- what Landlock takes, told ---------------------------------------------------------------------


async def test_the_model_is_told_where_landlock_refuses_what_the_scope_opens(root: Path) -> None:
    tree(root, ["a course/drafts/keys/k=x", "a course/drafts/open/a=x"])
    new = [{"file_path": f"drafts/{name}", "content": "x"} for name in ("n", "open/n")]
    run = await run_session(
        build_session_options(SPEC, config(root, "landlock", denied_paths=["drafts/keys"])),
        [*(ToolCall("Write", each) for each in new), "Done."],
        home=root / "home",
    )
    assert [call.is_error for call in run.calls] == [True, False]
    assert run.saw("Of `drafts` itself the system may refuse listing, Glob, Grep and new files")


# --- the CLI's own sandbox ------------------------------------------------------------------------

INSISTS = json.dumps({"sandbox": {"enabled": True, "failIfUnavailable": True}})
PLACES = {"user": "home/.claude/settings.json", "project": "a course/.claude/settings.json"}


def write_settings(file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(INSISTS)


@pytest.mark.parametrize("place", PLACES)
async def test_commands_run_although_settings_switch_the_clis_own_sandbox_on(
    root: Path, backend: str, place: str
) -> None:
    write_settings(root / PLACES[place])
    run = await play(
        root,
        config(root, backend, setting_sources=["user", "project"]),
        "cat sources/syllabus.md; echo new > drafts/c.md",
    )
    assert answers(run) == ["canary(syllabus)"]
    assert (root / "a course/drafts/c.md").read_text() == "new\n"
    assert not any("andbox" in line for line in run.stderr), run.stderr


@pytest.mark.parametrize("place", PLACES)
async def test_without_the_pin_that_sandbox_does_not_start_inside(
    root: Path, backend: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the settings are read, and mean something."""
    monkeypatch.setattr(flag_settings, "_NO_SANDBOX", {})
    write_settings(root / PLACES[place])
    with pytest.raises(Exception, match="sandbox") as caught:
        await play(root, config(root, backend, setting_sources=["user", "project"]), "true")
    assert "sandbox required but unavailable" in "".join(getattr(caught.value, "__notes__", ()))


def test_where_nothing_confines_the_session_that_sandbox_is_left_alone(root: Path) -> None:
    settings = {
        how: plan_session(
            AgentSpec(name="free"), SessionConfig(project_dir=root / "a course", confinement=how)
        ).settings
        for how in ("off", "required")
    }
    assert "sandbox" not in settings["off"]
    assert settings["required"]["sandbox"] == {"enabled": False}


# --- git ------------------------------------------------------------------------------------------

GIT = (
    "git -c safe.directory='*' log --format=%s",
    "echo more > .git/more || git -c safe.directory='*' tag later",
)


@pytest.fixture
def repository(root: Path) -> Path:
    project = root / "a course"
    clean = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=N", "-c", "user.email=n@invalid")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "canary(commit)")):
        subprocess.run(["git", *words], cwd=project, env=clean, check=True)
    return project / ".git"


def state(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


async def test_git_reads_the_projects_history_and_changes_nothing_of_it(
    root: Path, backend: str, repository: Path
) -> None:
    before = state(repository)
    asked = config(root, backend, confined_git=True, confined_tools=["git"])
    run = await play(root, asked, GIT[0], f"{GIT[1]}; true")
    assert (run.calls[0].result or "").strip() == "canary(commit)"
    assert state(repository) == before


async def test_git_is_not_there_unless_it_is_asked_for(
    root: Path, backend: str, repository: Path
) -> None:
    run = await play(root, config(root, backend, confined_tools=["git"]), f"{GIT[0]} 2>&1; true")
    assert not run.saw("canary(commit)")
    assert "not a git repository" in (run.calls[0].result or "")


# --- an account -----------------------------------------------------------------------------------

ACCOUNT = json.dumps(
    {
        "claudeAiOauth": {
            "accessToken": "canary(account)",
            "refreshToken": "made-up",
            "expiresAt": 4_102_444_800_000,
            "scopes": ["user:inference"],
            "subscriptionType": "max",
        }
    }
)


async def test_an_exposed_account_is_inside_with_the_network_and_the_session_is_resumed(
    root: Path, backend: str
) -> None:
    tree(root, [f"home/.claude/.credentials.json={ACCOUNT}"])
    session = str(uuid.uuid4())
    show = 'cat "$CLAUDE_CONFIG_DIR/.credentials.json"; echo; wc -l < /proc/self/net/dev'
    for fields in ({"session_id": session}, {"resume": session}):
        given = config(root, backend, key="", expose_account=True, **fields)
        plan = plan_session(SPEC, given)
        assert plan.confinement is not None
        assert plan.confinement.view.network
        assert any(
            "what the CLI signs in with is inside, and the network open" in note
            for note in plan.notes
        )
        run = await play(root, given, show)
        assert "canary(account)" in (run.calls[0].result or ""), run.calls
    assert run.requests[0].saw("canary(account)")
    kept = (root / "home/.claude/.credentials.json").read_text()
    assert json.loads(kept)["claudeAiOauth"]["accessToken"] == "canary(account)"


async def test_an_account_that_is_not_exposed_stays_outside(root: Path, backend: str) -> None:
    """With a key, that is: without one the session is refused."""
    tree(root, [f"home/.claude/.credentials.json={ACCOUNT}"])
    run = await play(root, config(root, backend), 'ls -A "$CLAUDE_CONFIG_DIR"; true')
    assert ".credentials.json" not in (run.calls[0].result or "")


# --- a CLI of one's own ---------------------------------------------------------------------------


async def test_a_cli_of_ones_own_runs_from_a_path_with_spaces(root: Path, backend: str) -> None:
    bundled = bundled_cli()
    assert bundled is not None
    own = root / "my own programs" / "the cli"
    own.parent.mkdir()
    try:
        os.link(bundled, own)
    except OSError:  # another disk
        own.write_bytes(Path(bundled).read_bytes())
        own.chmod(0o755)
    (own.parent / "secret").write_text("canary(beside)")
    run = await play(
        root,
        config(root, backend, cli_path=own),
        f"cat sources/syllabus.md; readlink /proc/$PPID/exe; cat {str(own.parent)!r}/sec*; true",
    )
    assert run.saw("canary(syllabus)")
    assert not run.saw("canary(beside)")
    plan = plan_session(SPEC, config(root, backend, cli_path=own))
    assert plan.confinement is not None
    assert plan.confinement.cli == str(own)
