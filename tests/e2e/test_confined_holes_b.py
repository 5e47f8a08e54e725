"""What a confined command writes steers nothing: no tidying up, no later session, no sign-in."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, ConfigError, SessionConfig, build_session_options, plan_session
from agent_kit.confine import _places
from agent_kit.testing import AnsweredBy, SessionRun, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = ("a course/drafts/note.md=old", "home/.claude/settings.json={}", "out/kept=mine")
    return tree(tmp_path.resolve() / "a world", files)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of this test's alone, where a session's own folder may be."""
    assert tmp_path.is_dir()  # which is not to lie in it
    folder = Path("/var/tmp") / f"kit {uuid.uuid4().hex[:8]}"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


def config(root: Path, backend: str | None, **more: Any) -> SessionConfig:
    key = {} if more.get("expose_account") else {"ANTHROPIC_API_KEY": "sk-real"}
    fields = {
        "project_dir": root / "a course",
        "run_dir": root / "run",
        "extra_writable_dirs": ["drafts"],
        "confinement": "required",
        "confinement_backend": backend,
        "env": {"HOME": str(root / "home"), **key, **more.pop("env", {})},
    }
    return SessionConfig(**{**fields, **more})


async def play(
    root: Path, backend: str, *commands: str, spec: dict[str, Any] | None = None, **more: Any
) -> SessionRun:
    options = build_session_options(
        AgentSpec(name="confined", tools=["Bash"], **(spec or {})), config(root, backend, **more)
    )
    calls = [ToolCall("Bash", {"command": command}) for command in commands]
    run = await run_session(options, [*calls, "Done."], home=root / "home")
    assert run.unplayed == ()
    for call in run.calls:
        assert call.lock is AnsweredBy.RAN, call
    return run


def said(run: SessionRun, call: int = 0) -> list[str]:
    return (run.calls[call].result or "").splitlines()


# --- tidying up ---------------------------------------------------------------------------------


def forged(root: Path, own: Path) -> dict[str, Any]:
    """A note that has a file brought to where its maker can't write, and one taken away."""
    session = own.name
    tree(own, (f"config/projects/-x/{session}.jsonl=forged",))
    tree(root, ("out/CLAUDE.md=mine",))
    own.chmod(0o700)
    own.parent.chmod(0o700)
    return {
        "own_folder": str(own),
        "config_dir": str(own / "config"),
        "runners_config": str(root / "out"),
        "copied_out": [f"projects/-x/{session}.jsonl"],
        "writable": [str(root / "out")],
        "control_names": ["claude.md"],
        "removed": str(root / "removed"),
        "known": [],
        "started": 0.0,
    }


def obeyed(root: Path) -> bool:
    found = [*root.rglob("out/projects/-x/*.jsonl"), *root.rglob("removed/*")]
    return bool(found) or not (root / "out/CLAUDE.md").exists()


@pytest.mark.parametrize("by", ["a session", "the kit"])
def test_a_note_that_a_session_left_where_sessions_live_is_not_obeyed(
    root: Path, temporary: Path, by: str
) -> None:
    """The same note in the kit's own place is (the control)."""
    own = temporary / f"agent-kit-{os.getuid()}" / str(uuid.uuid4())
    note = forged(root, own)
    place = own if by == "a session" else Path(_places.notes_folders()[0], own.name)
    place.parent.mkdir(mode=0o700, exist_ok=True)
    place.mkdir(mode=0o700, exist_ok=True)
    (place / "session.txt").write_text(repr(note))
    plan_session(AgentSpec(name="next", tools=["Bash"]), config(root, None))
    assert obeyed(root) is (by == "the kit")


@pytest.mark.parametrize(
    "change",
    [
        {"copied_out": ["../x.jsonl"]},
        {"copied_out": ["projects/../../x.jsonl"]},
        {"copied_out": ["settings.json"]},
        {"copied_out": ["projects/-x/another.jsonl"]},
        {"config_dir": "/etc"},
        {"own_folder": "/etc"},
    ],
    ids=str,
)
def test_a_note_speaks_of_its_own_session_alone(
    root: Path, temporary: Path, change: dict[str, Any]
) -> None:
    own = temporary / f"agent-kit-{os.getuid()}" / str(uuid.uuid4())
    place = tree(root, (f"notes/{own.name}/",)) / "notes" / own.name
    note = forged(root, own)
    _places.write_note(str(place), note)
    assert _places.read_note(str(place)) == note
    _places.write_note(str(place), {**note, **change})
    with pytest.raises(ValueError, match="no session's note"):
        _places.read_note(str(place))


@pytest.mark.parametrize("field", ["extra_writable_dirs", "extra_readable_dirs"])
@pytest.mark.parametrize("confinement", ["auto", "off"])
def test_no_session_opens_what_sessions_have_of_their_own(
    root: Path, temporary: Path, field: str, confinement: str
) -> None:
    own, notes = _places.own_folders()[0], _places.notes_folders()[0]
    Path(own).mkdir(mode=0o700)
    Path(own, "in").mkdir()
    Path(notes).mkdir(mode=0o700, exist_ok=True)
    spec = AgentSpec(name="a", tools=["Read", "Write"])
    around = (str(temporary), "/var/tmp", "/tmp") if field == "extra_writable_dirs" else ()
    for opened in (own, f"{own}/in", notes, *around):
        with pytest.raises(ConfigError) as caught:
            plan_session(spec, config(root, None, confinement=confinement, **{field: [opened]}))
        assert any("confined sessions" in fault.remedy for fault in caught.value.faults), opened
    (temporary / "beside").mkdir()
    beside = {field: [str(temporary / "beside")]}
    plan_session(spec, config(root, None, confinement=confinement, **beside))


@pytest.mark.parametrize("readable", [[], ["/var/tmp"]], ids=["", "in what is opened"])
@pytest.mark.usefixtures("temporary")
async def test_a_command_sees_no_note_and_no_other_session(
    root: Path, backend: str, readable: list[str]
) -> None:
    other = Path(_places.own_folders()[0], "another")
    for folder in (*_places.own_folders()[:1], *_places.notes_folders()[:1]):
        Path(folder).mkdir(mode=0o700, exist_ok=True)
    tree(other, ("config/x=canary(other)",))
    places = (_places.notes_folders()[0], str(other.parent), str(other / "config"))
    # A command line that names such a place is refused by the rules.
    words = " ".join(f'"$v{place.removeprefix("/var")}"' for place in places)
    run = await play(
        root,
        backend,
        f'v=/var; for f in {words}; do ls "$f"; cat "$f/x"; touch "$f/x" && echo MADE; done; echo on',
    )
    assert said(run)[-1] == "on"
    assert "MADE" not in said(run)
    assert not run.saw("canary(other)")


# --- the configuration folder -------------------------------------------------------------------

FORGE = (
    'for f in "$CLAUDE_CONFIG_DIR"/projects/*/*.jsonl "$CLAUDE_CONFIG_DIR"/.claude.json; do'
    ' echo forged >> "$f" && echo FORGED; mv "$f" "$f.old" && mv "$f.old" "$f" && echo FORGED;'
    ' cp "$f" drafts/copy && cp drafts/copy "$f" && echo FORGED; done;'
    " python3 -c \"import os; os.truncate(os.environ['CLAUDE_CONFIG_DIR'] + '/.claude.json', 0)\""
    ' && echo FORGED; mkdir "$CLAUDE_CONFIG_DIR/new" && echo FORGED;'
    ' ln drafts/note.md "$CLAUDE_CONFIG_DIR/settings.json" && echo FORGED; echo on'
)


@pytest.mark.parametrize("apart", [True, False])
async def test_a_command_cannot_write_the_transcript_that_a_resumed_session_reads(
    root: Path, backend: str, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """Where nothing tells it what to write in, it can (the control)."""
    if not apart:
        monkeypatch.setattr("agent_kit.session.confinement.written", lambda *_: None)
    run = await play(root, backend, FORGE)
    assert ("FORGED" in said(run)) is not apart, said(run)[-4:]
    (transcript,) = (root / "home/.claude/projects").rglob("*.jsonl")
    lines = transcript.read_text().splitlines()
    assert ("forged" in lines) is not apart
    notes = plan_session(AgentSpec(name="a", tools=["Bash"]), config(root, backend)).notes
    assert any("commands write" in note for note in notes) is not apart


HONEST = {
    "a heredoc": ("cat > drafts/h <<'END'\n$x `y`\nEND\ncat drafts/h", "$x `y`"),
    "git": (
        (
            "cd drafts && git init -q g && cd g && echo a > a && git add a &&"
            " git -c user.name=n -c user.email=e@x commit -qm first && git log --oneline | wc -l"
        ),
        "1",
    ),
    "python": (
        (
            "python3 -c \"import tempfile, os; f = tempfile.NamedTemporaryFile(); f.write(b'x');"
            " os.makedirs('drafts/a/b'); os.rename('drafts/a/b', 'drafts/b'); print('moved')\""
        ),
        "moved",
    ),
    "the temporary folder": ("f=$(mktemp) && echo t > $f && cat $f && rm $f", "t"),
    "the machine's files": ("echo x > /dev/null; echo o | tee /dev/stderr >/dev/null; echo m", "m"),
    "its home": ("h=$HOME; mkdir -p $h/.cache && echo h > $h/.cache/x && cat $h/.cache/x", "h"),
    "a process of its own": ("cat <(echo p); echo q > >(cat)", "p"),
    "the shell as the CLI found it": (
        'ls "$CLAUDE_CONFIG_DIR"/shell-snapshots/*.sh > /dev/null && echo s',
        "s",
    ),
}


async def test_honest_commands_work_as_ever(root: Path, backend: str) -> None:
    run = await play(
        root,
        backend,
        *(command for command, _ in HONEST.values()),
        confined_tools=["python3", "git"],
    )
    for at, (what, (_, answer)) in enumerate(HONEST.items()):
        assert answer in said(run, at), (what, said(run, at))


async def test_a_command_in_the_background_writes_and_is_read(root: Path, backend: str) -> None:
    options = build_session_options(
        AgentSpec(name="confined", tools=["Bash", "Read"]), config(root, backend)
    )
    calls = [
        ToolCall("Bash", {"command": "echo back > drafts/b", "run_in_background": True}),
        ToolCall("Bash", {"command": "sleep 1; cd drafts; cat b"}),
        ToolCall("Bash", {"command": "pwd"}),
    ]
    run = await run_session(options, [*calls, "Done."], home=root / "home")
    assert said(run, 1)[-1] == "back"
    assert "background" in (run.calls[0].result or "")


ACCOUNT = {
    "accessToken": "made-up",
    "refreshToken": "made-up",
    "expiresAt": 4_102_444_800_000,
    "scopes": ["user:inference"],
    "subscriptionType": "max",
}


@pytest.mark.parametrize("apart", [True, False])
async def test_no_command_replaces_the_runners_sign_in(
    root: Path, backend: str, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    if not apart:
        monkeypatch.setattr("agent_kit.session.confinement.interpreter", lambda: None)
    text = json.dumps({"claudeAiOauth": ACCOUNT})
    kept = root / "home/.claude/.credentials.json"
    kept.write_text(text)
    replace = (
        'echo \'{"attackers": 1}\' > "$CLAUDE_CONFIG_DIR"/.credentials.json && echo REPLACED; :'
    )
    run = await play(root, backend, replace, expose_account=True)
    assert ("REPLACED" in (run.calls[0].result or "")) is not apart
    assert "attackers" not in kept.read_text()
    plan = plan_session(
        AgentSpec(name="a", tools=["Bash"]), config(root, backend, expose_account=True)
    )
    assert any("sign in again" in note for note in plan.notes) is not apart
    assert plan.confinement is not None
    assert (".credentials.json" in plan.confinement.copied_out) is apart


# --- links on the way ---------------------------------------------------------------------------


async def test_a_temporary_and_a_run_folder_behind_links_work(
    root: Path, backend: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "real").mkdir(mode=0o700)
    (temporary / "link").symlink_to("real")
    monkeypatch.setattr("tempfile.tempdir", str(temporary / "link"))
    (root / "runs").symlink_to("out")
    long = [f"{root}/a course/closed/a file of a rather long name {n}.md" for n in range(400)]
    run = await play(root, backend, "echo on", run_dir=root / "runs/run", denied_paths=long)
    assert said(run)[-1] == "on"
