"""Confined sessions of a host that runs as an ordinary user, whoever runs these tests."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.hosts import ANYBODY, World, made_world, processes, until

pytestmark = pytest.mark.e2e


@pytest.fixture
def world() -> Iterator[World]:
    yield from made_world(Path(tempfile.gettempdir()), os.getuid() or ANYBODY)


def work(text: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (
        ("Bash", {"command": f"id -u; cat sources/syllabus.md; echo {text} > drafts/c.md"}),
        ("Read", {"file_path": "sources/syllabus.md"}),
        ("Write", {"file_path": "drafts/new.md", "content": text}),
        ("Read", {"file_path": "sources/.env"}),
    )


@pytest.mark.parametrize("own_config", [False, True], ids=["", "CLAUDE_CONFIG_DIR"])
def test_a_session_works_and_is_resumed(world: World, backend: str, own_config: bool) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(world.root / "own config")} if own_config else {}
    session = str(uuid.uuid4())
    for fields in ({"session_id": session}, {"resume": session}):
        run = world.run(*work(next(iter(fields))), backend=backend, env=env, **fields)
        first, second, third, fourth = run["results"]
        assert first.splitlines()[:2] == [str(world.user), "canary(syllabus)"], run
        assert "canary(syllabus)" in second
        assert run["locks"] == ["ran", "ran", "ran", "rules"], (third, fourth)
        assert run["unplayed"] == []
        assert not any("canary(env)" in text for text in run["requests"])
        texts = {path.name: path.read_text().strip() for path in world.drafts.iterdir()}
        assert texts == {"note.md": "old", **dict.fromkeys(("c.md", "new.md"), next(iter(fields)))}
        assert {path.stat().st_uid for path in world.drafts.iterdir()} == {world.user}
        assert {path.stat().st_gid for path in world.drafts.iterdir()} == {
            world.drafts.stat().st_gid
        }
    assert "drafts/new.md" in run["requests"][0]
    kept = world.root / "own config" if own_config else world.home / ".claude"
    transcripts = list(kept.rglob(f"{session}.jsonl"))
    assert [path.stat().st_uid for path in transcripts] == [world.user]
    until(lambda: not world.session_folder(session).exists())
    until(lambda: not processes(session), processes(session))


ACCOUNT = {
    "accessToken": "canary(account)",
    "refreshToken": "made-up",
    "expiresAt": 4_102_444_800_000,
    "scopes": ["user:inference"],
    "subscriptionType": "max",
}


def test_a_signed_in_session_with_settings_that_no_command_line_holds_is_resumed(
    world: World, backend: str
) -> None:
    (world.home / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": ACCOUNT}))
    session = str(uuid.uuid4())
    closed = [f"{world.project}/closed/a file of a rather long name {n}.md" for n in range(400)]
    for fields in ({"session_id": session}, {"resume": session}):
        run = world.run(
            ("Bash", {"command": 'cat "$CLAUDE_CONFIG_DIR/.credentials.json"'}),
            *work("anything"),
            backend=backend,
            env={"ANTHROPIC_API_KEY": ""},
            expose_account=True,
            denied_paths=["**/.env", *closed],
            **fields,
        )
        assert "canary(account)" in run["results"][0]
        assert run["locks"] == ["ran", "ran", "ran", "ran", "rules"], run["results"]
        assert len(run["settings"]) > 131_072
        assert "127.0.0.1" not in run["settings"]  # what the kit wrote is there again
