"""``agent-kit doctor``: what it says is so, and its status is for scripts."""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from agent_kit.cli import _doctor
from agent_kit.cli._doctor import diagnose

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@dataclass(frozen=True)
class Backend:
    name: str
    reason: str | None

    def available(self) -> str | None:
        return self.reason


def test_it_says_which_locks_work_here(command: Run) -> None:
    ran = command("doctor", "--plain")
    assert ran.status == 0
    for lock in ("gate", "rules", "prompts", "kernel"):
        assert f"ok     {lock}: " in ran.out
    assert f"claude-agent-sdk {importlib.metadata.version('claude-agent-sdk')}" in ran.out


def test_for_programs_it_is_json(command: Run) -> None:
    ran = command("doctor", "--json")
    found = json.loads(ran.out)
    assert found["works"] is True
    assert [check["name"] for check in found["locks"]] == ["gate", "rules", "prompts", "kernel"]
    assert {"name", "works", "said", "remedy"} == set(found["parts"][0])


def test_without_a_backend_the_kernel_lock_fails_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nowhere = {"bubblewrap": Backend("bubblewrap", "there is no bwrap: install bubblewrap.")}
    monkeypatch.setattr(_doctor, "BACKENDS", nowhere)
    found = diagnose()
    assert not found.works
    assert [check.works for check in found.locks] == [True, True, True, False]
    part = next(check for check in found.parts if check.name == "bubblewrap")
    assert (part.works, part.remedy) == (False, "install bubblewrap.")


def test_of_landlock_alone_it_says_which_sessions_are_not_confined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = {"bubblewrap": Backend("bubblewrap", None), "landlock": Backend("landlock", None)}
    monkeypatch.setattr(_doctor, "BACKENDS", both)
    assert "session without commands" not in diagnose().locks[3].said
    both["bubblewrap"] = Backend("bubblewrap", "there is no bwrap: install bubblewrap.")
    kernel = diagnose().locks[3]
    assert kernel.works
    assert (
        "by landlock. By it alone a session without commands is not confined where" in kernel.said
    )


def test_programs_that_path_hides_are_named_with_the_folder_that_has_them(command: Run) -> None:
    ran = command("doctor", "--json", env={"PATH": "/nonexistent"})
    found = json.loads(ran.out)
    parts = {part["name"]: part for part in found["parts"]}
    assert parts["bubblewrap"]["said"] == "bwrap can't be found on PATH"
    assert parts["bubblewrap"]["remedy"].startswith("put /")
    assert parts["bubblewrap"]["remedy"].endswith("bin on PATH.")


def test_the_trial_of_landlock_needs_no_path(command: Run) -> None:
    found = json.loads(command("doctor", "--json", env={"PATH": "/nonexistent"}).out)
    (said,) = (part for part in found["parts"] if part["name"] == "landlock")
    (here,) = (part for part in diagnose().as_json()["parts"] if part["name"] == "landlock")
    assert said == here


def test_the_kernel_lock_says_what_puts_a_hidden_program_on_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden = Backend("bubblewrap", "bwrap can't be found on PATH: put /usr/bin on PATH.")
    monkeypatch.setattr(_doctor, "BACKENDS", {"bubblewrap": hidden})
    assert diagnose().locks[3].remedy == "put /usr/bin on PATH."


@pytest.mark.parametrize("container", [True, False])
def test_the_advice_for_containers_does_not_come_first(
    monkeypatch: pytest.MonkeyPatch, container: bool
) -> None:
    monkeypatch.setattr(_doctor, "BACKENDS", {"landlock": Backend("landlock", "no: do.")})
    monkeypatch.setattr(_doctor, "_in_container", lambda: container)
    found = diagnose()
    assert found.locks[3].remedy.startswith("see the backends below")
    assert ("docker run" in found.locks[3].remedy) is container
    part = next(check for check in found.parts if check.name == "landlock")
    assert (part.said, part.remedy) == ("no", "do.")


@pytest.mark.parametrize(("version", "works"), [("0.2.176", False), ("0.2.177", True)])
def test_an_sdk_whose_hooks_can_not_block_is_too_old(
    monkeypatch: pytest.MonkeyPatch, version: str, works: bool
) -> None:
    monkeypatch.setattr(_doctor.importlib.metadata, "version", lambda _: version)
    found = diagnose()
    assert found.locks[0].works is works
    assert ("pip install" in found.locks[0].remedy) is not works


def test_without_a_key_it_says_which_sessions_need_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (key,) = [check for check in diagnose().parts if check.name == "key"]
    assert not key.works
    assert (
        "any session needs a key or a sign-in, and a confined one with commands a key" in key.said
    )


def test_the_key_is_spoken_of_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    for name in ("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    found = diagnose()
    assert next(check for check in found.parts if check.name == "key").works
    assert "sk-canary" not in json.dumps(found.as_json())
