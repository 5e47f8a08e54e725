"""Which sessions are confined, by what, and what stands in for a confinement that can't be had."""

from __future__ import annotations

import os
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_kit import ConfigError, ConfinementUnavailableError, SessionConfig, Subagent
from agent_kit.confine import _places
from agent_kit.confine.commands import NOT_APART
from agent_kit.confine.landlock import Landlock
from agent_kit.confine.view import Sight
from agent_kit.session.confinement import own_folder
from agent_kit.session.tools import COMMAND_TOOLS


@dataclass(frozen=True)
class Nowhere:
    """A backend that works on no machine."""

    name: str = "nowhere"
    own_tmp: bool = True

    def available(self) -> str:
        return "it is made up: install nothing."


@pytest.fixture
def no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_kit.confine.choice.BACKENDS", {"nowhere": Nowhere()})


@pytest.mark.usefixtures("no_backend")
def test_confinement_that_is_required_and_not_there_is_an_error(world) -> None:
    with pytest.raises(ConfinementUnavailableError, match="required.*it is made up"):
        world.plan(confinement="required")
    lock = world.plan(confinement="auto").locks["kernel"]
    assert not lock.on
    assert "it is made up: install nothing." in lock.reason
    assert world.plan(confinement="auto").notes[0] == f"lock 4, the kernel, is off: {lock.reason}"
    assert not any("lock 4" in note for note in world.plan(confinement="off").notes)


@pytest.mark.parametrize(
    ("confinement", "on"), [("off", False), ("auto", True), ("required", True)]
)
def test_the_kernel_lock_is_on_when_it_is_asked_for(world, confinement: str, on: bool) -> None:
    plan = world.plan(confinement=confinement)
    assert plan.locks["kernel"].on is on
    assert (plan.confinement is not None) is on


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_a_backend_that_is_named_is_the_one(world, name: str) -> None:
    plan = world.plan(confinement="auto", confinement_backend=name)
    assert name in plan.locks["kernel"].reason
    with pytest.raises(ConfinementUnavailableError, match="seatbelt"):
        world.plan(confinement="auto", confinement_backend="seatbelt")


@pytest.mark.usefixtures("no_backend")
@pytest.mark.parametrize("tool", [*sorted(COMMAND_TOOLS), "a_tool_of_a_later_CLI"])
@pytest.mark.parametrize("confinement", ["auto", "off"])
def test_a_session_that_can_run_commands_is_not_built_unconfined(
    world, tool: str, confinement: str
) -> None:
    for name in (tool, f"{tool}(ls)"):
        for spec in (
            {"tools": [name]},
            {"subagents": {"a": Subagent(description="d", prompt="p", tools=["Read", name])}},
        ):
            with pytest.raises(ConfinementUnavailableError, match=tool):
                world.plan(spec=spec, confinement=confinement)
            plan = world.plan(spec=spec, confinement=confinement, allow_unconfined_commands=True)
            assert tool in plan.tools.names


def test_a_confined_session_that_can_run_commands_keeps_the_key_outside(world) -> None:
    spec = {"tools": ["Bash"]}
    with pytest.raises(ConfinementUnavailableError, match="Bash.*there is no key.*expose_account"):
        world.plan(spec=spec, confinement="auto")
    plan = world.plan(spec=spec, confinement="auto", env={"ANTHROPIC_API_KEY": "sk-1"})
    assert plan.confinement.brokered
    assert not plan.confinement.view.network
    assert world.plan(spec=spec, confinement="auto", expose_account=True).confinement.account
    assert world.plan(spec=spec, confinement="external").confinement is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"confined_tools": ["no-such-program"]}, "confined_tools"),
        ({"cli_path": "/nowhere/claude"}, "cli_path"),
        ({"confine_network": True}, "confine_network"),
    ],
)
def test_what_a_confinement_can_not_have_is_a_fault(world, fields, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        world.plan(confinement="auto", **fields)
    assert field in {fault.field for fault in caught.value.faults}


def test_an_unknown_tool_is_not_said_to_run_commands_for_certain(world) -> None:
    with pytest.raises(ConfinementUnavailableError) as caught:
        world.plan(spec={"tools": ["Bash", "Frobnicate"]}, confinement="auto")
    assert str(caught.value).startswith(
        "Bash, Frobnicate (a tool that this version of the kit doesn't know) can run commands, and the"
        " sign-in can't be kept from them: there is no key"
    )


SIGN_IN = "what the CLI signs in with is inside"


def test_of_a_sign_in_that_there_is_not_nothing_is_told(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_kit.session.confinement.start_programs", lambda *_: {})  # not apart

    def notes(**fields: Any) -> str:
        return "\n".join(world.plan(confinement="required", **fields).notes)

    commands = {"spec": {"tools": ["Bash"]}, "expose_account": True}
    assert SIGN_IN not in notes()
    assert "sign-in" not in notes()
    assert "network is open" not in notes()
    assert SIGN_IN not in notes(**commands)
    assert "the network is open inside: there is no key that a broker could hold" in notes(
        **commands
    )
    assert SIGN_IN in notes(env={"CLAUDE_CODE_OAUTH_TOKEN": "made-up"})
    world.has("home/.claude/.credentials.json={}")
    for fields in ({}, commands):
        assert SIGN_IN in notes(**fields)
        assert "a sign-in that the CLI renews inside is not brought back" in notes(**fields)
        assert "network is open inside" not in notes(**fields)
    assert SIGN_IN not in notes(env={"ANTHROPIC_API_KEY": "sk-1"})


def test_the_notes_say_once_what_inside_means(world) -> None:
    notes = world.plan(confinement="required").notes
    (said,) = [note for note in notes if "inside, which is all that the CLI" in note]
    assert "denied patterns are covered as they are at the start" in said


def test_a_session_is_confined_unless_somebody_says_otherwise(world) -> None:
    assert SessionConfig(project_dir=world.project).confinement == "auto"


def test_a_sign_in_that_commands_may_not_come_near_leaves_them_unconfined_if_that_was_allowed(
    world,
) -> None:
    spec = {"tools": ["Bash"]}
    plan = world.plan(spec=spec, confinement="auto", allow_unconfined_commands=True)
    assert plan.confinement is None
    assert plan.config.confinement == "auto"
    assert "there is no key" in plan.locks["kernel"].reason
    with pytest.raises(ConfinementUnavailableError, match="no key"):
        world.plan(spec=spec, confinement="required", allow_unconfined_commands=True)


def test_a_machine_without_a_cli_has_a_plan_all_the_same(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_kit.session.inside.bundled_cli", lambda: None)
    empty = {"PATH": str(world.root)}
    lock = world.plan(confinement="auto", env=empty).locks["kernel"]
    assert not lock.on
    assert "There is no CLI: install" in lock.reason
    with pytest.raises(ConfinementUnavailableError, match="no CLI"):
        world.plan(confinement="required", env=empty)


@pytest.fixture
def only_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_kit.confine.choice.BACKENDS", {"landlock": Landlock()})


@pytest.mark.usefixtures("only_landlock")
def test_landlock_confines_by_default_what_it_can_open_whole(world) -> None:
    world.has("project/open/")
    plan = world.plan(confinement="auto", extra_writable_dirs=["open"])
    assert plan.confinement.backend.name == "landlock"


@pytest.mark.usefixtures("only_landlock")
def test_what_landlock_would_take_from_honest_work_it_does_not_by_default(world) -> None:
    """A new file beside a denied one, or the listing of a folder above a denied folder."""
    world.has("project/open/.env=x", "project/read/keys/k=x")
    given = {
        "extra_writable_dirs": ["open"],
        "extra_readable_dirs": ["read"],
        "denied_paths": ["**/.env", "read/keys"],
    }
    plan = world.plan(confinement="auto", **given)
    assert plan.confinement is None
    for name in ("open", "read"):
        assert str(world.project / name) in plan.locks["kernel"].reason
    assert plan.notes[0] == f"lock 4, the kernel, is off: {plan.locks['kernel'].reason}"
    assert "something in them is closed. Install bubblewrap; or say" in plan.notes[0]
    asked = world.plan(confinement="required", **given)
    assert asked.confinement.backend.name == "landlock"
    key = {"ANTHROPIC_API_KEY": "sk-1"}
    commands = world.plan(spec={"tools": ["Bash"]}, confinement="auto", env=key, **given)
    assert commands.confinement.backend.name == "landlock"


def test_the_script_of_a_server_is_there_inside_and_no_other_argument(world) -> None:
    world.has("tools/server.py=x", "tools/config.json=x", "linked/")
    (world.root / "linked/s.py").symlink_to(world.root / "tools/server.py")
    words = ["-u", str(world.root / "linked/s.py"), str(world.root / "tools/config.json")]
    servers = {"s": {"command": sys.executable, "args": words}}
    plan = world.plan(spec={"mcp_servers": servers}, confinement="auto")
    view = plan.confinement.view
    script = os.path.realpath(world.root / "tools/server.py")
    assert view.sight(script) is Sight.READ
    assert view.sight(os.path.realpath(world.root / "tools/config.json")) is Sight.NOTHING
    assert (str(world.root / "linked/s.py"), script) in view.links
    assert any(script in note for note in plan.notes)


@pytest.mark.parametrize("words", [5, "/etc/hosts", {"/etc/hosts": 1}, [5, "\0/x"], None], ids=repr)
def test_arguments_that_are_no_list_name_no_script(world, words: Any) -> None:
    servers = {"s": {"command": sys.executable, "args": words}}
    plan = world.plan(spec={"mcp_servers": servers}, confinement="auto")
    assert plan.confinement.view.sight("/etc/shadow") is Sight.NOTHING
    assert not any("/etc/hosts" in note for note in plan.notes)


@pytest.mark.parametrize("name", ["my -tmp", "a/very" * 16])
def test_a_temporary_folder_that_is_no_place_for_it_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    session = str(uuid.uuid4())
    other = Path("/dev/shm")
    monkeypatch.setattr("tempfile.tempdir", str(other))
    assert own_folder(session) == other / f"agent-kit-{os.getuid()}" / session
    monkeypatch.setattr("tempfile.tempdir", f"{other}/{name}")
    assert own_folder(session) == Path("/var/tmp") / f"agent-kit-{os.getuid()}" / session


def test_a_folder_of_that_name_that_others_can_enter_is_passed_over(
    world, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squatted = Path("/dev/shm", f"kit-{uuid.uuid4().hex[:8]}")
    theirs = squatted / f"agent-kit-{os.getuid()}"
    monkeypatch.setattr("tempfile.tempdir", str(squatted))
    squatted.mkdir(mode=0o755)
    theirs.mkdir(mode=0o700)
    try:
        assert world.plan(confinement="required").confinement.own.path.parent == theirs
        theirs.chmod(0o755)
        own = world.plan(confinement="required").confinement.own.path
        assert own.parent.parent == Path("/var/tmp")
        monkeypatch.setattr(_places, "own_tops", lambda: (str(squatted),))
        with pytest.raises(ConfinementUnavailableError, match="open to others: remove it"):
            world.plan(confinement="required")
        assert "no place" in world.plan(confinement="auto").locks["kernel"].reason
    finally:
        theirs.rmdir()
        squatted.rmdir()


def test_a_place_for_notes_that_is_somebody_elses_is_passed_over(
    world, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir(mode=0o755)
    folders = [str(tmp_path / name / "notes") for name in ("first", "second")]
    monkeypatch.setattr(_places, "notes_folders", lambda: tuple(folders))
    os.symlink("/etc", folders[0])
    assert world.plan(confinement="required").confinement.place.startswith(folders[1])
    os.mkdir(folders[1], mode=0o755)
    with pytest.raises(ConfinementUnavailableError, match="is a link"):
        world.plan(confinement="required")


def test_more_rules_than_landlock_takes_are_a_confinement_that_can_not_be_had(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_kit.confine.landlock_rules.MAX_RULES", 120)
    world.has("project/open/.env=x", *(f"project/open/{n}=x" for n in range(150)))
    monkeypatch.setattr("agent_kit.confine.choice.BACKENDS", {"landlock": Landlock()})
    given = {"extra_readable_dirs": ["open"], "denied_paths": ["**/.env"]}
    with pytest.raises(ConfinementUnavailableError, match="install bubblewrap"):
        world.plan(confinement="required", **given)
    assert "install bubblewrap" in world.plan(confinement="auto", **given).locks["kernel"].reason


@pytest.mark.parametrize(
    ("env", "field"),
    [
        ({"HTTPS_PROXY": "socks5://127.0.0.1:1"}, "HTTPS_PROXY"),
        ({"ANTHROPIC_BASE_URL": "ftp://x"}, "ANTHROPIC_BASE_URL"),
        ({"SSL_CERT_FILE": "{broken}"}, "SSL_CERT_FILE"),
        ({"NODE_EXTRA_CA_CERTS": "{broken}"}, "NODE_EXTRA_CA_CERTS"),
        ({"CLAUDE_CODE_CLIENT_CERT": "{broken}"}, "CLAUDE_CODE_CLIENT_CERT"),
    ],
    ids=str,
)
def test_a_way_to_the_model_that_can_not_work_is_a_fault_of_the_plan(
    world, env: dict[str, str], field: str
) -> None:
    lines = ("-----BEGIN CERTIFICATE-----", "no", "-----END CERTIFICATE-----", "")
    (world.root / "broken.pem").write_text("\n".join(lines))
    env = {name: text.format(broken=world.root / "broken.pem") for name, text in env.items()}
    key = {"ANTHROPIC_API_KEY": "sk-1"}
    with pytest.raises(ConfigError) as caught:
        world.plan(confinement="auto", env={**key, **env})
    assert [fault.field for fault in caught.value.faults] == [field]
    assert world.plan(confinement="auto", env=key).confinement.brokered


def test_a_prefix_of_ones_own_is_said_not_to_be_used(world) -> None:
    plan = world.plan(confinement="auto", env={"CLAUDE_CODE_SHELL_PREFIX": "/opt/log"})
    assert any("CLAUDE_CODE_SHELL_PREFIX" in note for note in plan.notes)


def test_where_landlock_is_missing_the_plan_says_what_commands_could_do(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_kit.session.confinement.interpreter", lambda: None)
    plan = world.plan(confinement="auto", confinement_backend="bubblewrap")
    assert NOT_APART in plan.notes
    assert plan.confinement.env["CLAUDE_CODE_SHELL_PREFIX"] == ""
