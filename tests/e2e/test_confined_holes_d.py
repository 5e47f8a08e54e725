"""What a command must not leave behind, however it hides it; and what it must not learn of the CLI."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.confine._walking import remove_tree
from agent_kit.testing import tree
from tests.e2e.hosts import ANYBODY, World, made_world, until

pytestmark = pytest.mark.e2e


@pytest.fixture
def world() -> Iterator[World]:
    yield from made_world(Path(tempfile.gettempdir()), os.getuid())


@pytest.fixture
def anybody() -> Iterator[World]:
    yield from made_world(Path(tempfile.gettempdir()), os.getuid() or ANYBODY)


def ran(world: World, backend: str, script: str, **more: object) -> str:
    """What a script said in a session; on the command line the rules would see its names."""
    (world.drafts / "run.py").write_text(script)
    session = str(uuid.uuid4())
    call = ("Bash", {"command": "CLI=$PPID python3 drafts/run.py"})
    run = world.run(call, backend=backend, session_id=session, **more)
    assert run["locks"] == ["ran"], run["results"]
    until(lambda: not world.session_folder(session).exists())
    (transcript,) = world.home.rglob(f"{session}.jsonl")
    assert "drafts/run.py" in transcript.read_text()
    said: str = run["results"][0]
    return said


def steering(world: World) -> list[str]:
    names = (".claude", ".git", "CLAUDE.md", "AGENTS.md")
    return [str(each) for each in world.project.rglob("*") if each.name in names]


PLANT = """
import os
os.makedirs("drafts/.claude/hooks")
os.makedirs("drafts/x/.git/hooks")
for name in ("drafts/.claude/settings.json", "drafts/x/.git/hooks/pre-commit"):
    open(name, "w").write("{}")
"""


def test_folders_that_may_not_be_written_are_taken_away(anybody: World, backend: str) -> None:
    script = f"{PLANT}\nfor name in ('.claude/hooks', '.claude', 'x/.git', 'x'):"
    said = ran(anybody, backend, f"{script}\n    os.chmod('drafts/' + name, 0o500)\nprint('MADE')")
    assert "MADE" in said
    assert steering(anybody) == []
    kept = list(anybody.root.rglob("*.removed/*/settings.json"))
    assert [each.read_text() for each in kept] == ["{}"]
    assert stat.S_IMODE((anybody.drafts / "x").stat().st_mode) == 0o500


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs another file system")
def test_what_can_not_be_copied_goes_from_one_file_system_to_another(
    world: World, backend: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        assert os.stat(other).st_dev != world.drafts.stat().st_dev
        script = (
            f"{PLANT}\nfor name in ('.claude/pipe', 'x/.git/pipe'): os.mkfifo('drafts/' + name)"
        )
        said = ran(world, backend, f"{script}\nprint('MADE')", run_dir=f"{other}/run")
        assert "MADE" in said
        assert steering(world) == []
        (kept,) = Path(other).rglob("settings.json")
        (told,) = Path(other).rglob("list.txt")
        assert told.read_text().count("not all of it could be kept") == 2
        assert kept.read_text() == "{}"


DEEP = """
import os
os.chdir("drafts")
for _ in range({depth}):
    os.mkdir("{name}")
    os.chdir("{name}")
os.mkdir(".claude")
open("CLAUDE.md", "w").write("deep")
with open("lent", "wb") as file:
    file.write(open("/bin/true", "rb").read())
try:
    os.chmod("lent", 0o4755)
except OSError as error:
    print(error)
print("MADE")
"""


@pytest.mark.parametrize("depth, name", [(25, "d" * 200), (3_000, "d")])
def test_what_lies_below_the_longest_path_is_taken_away_as_well(
    world: World, backend: str, depth: int, name: str
) -> None:
    assert "MADE" in ran(world, backend, DEEP.format(depth=depth, name=name))
    here = os.open(world.drafts, os.O_RDONLY)
    for _ in range(depth):
        here, above = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    assert os.listdir(here) == ["lent"]
    assert not os.stat("lent", dir_fd=here).st_mode & 0o6000
    os.close(here)
    above = os.open(world.drafts, os.O_RDONLY)
    remove_tree(above, name)  # too deep for the one that removes the world
    os.close(above)


def test_a_name_that_is_no_text_keeps_nothing_from_being_done(world: World, backend: str) -> None:
    script = f"{PLANT}\nos.makedirs(b'drafts/\\xff/.claude')\nprint('MADE')"
    assert "MADE" in ran(world, backend, script)
    assert steering(world) == []
    (told,) = world.root.rglob("*.removed/list.txt")
    assert len(told.read_text().splitlines()) == 3


LOOK = """
import os
parent = os.environ["CLI"]
words = open(f"/proc/{parent}/cmdline").read().split("\\0")
settings = open(words[words.index("--settings") + 1]).read()
print("READ" if '"ANTHROPIC_BASE_URL"' in settings else "")
texts = [settings, " ".join(words), str(os.environ)]
places = (os.environ["TMPDIR"], os.environ["CLAUDE_CONFIG_DIR"], os.getcwd())
for path in [os.path.join(top, f) for place in places for top, _, fs in os.walk(place) for f in fs]:
    try:
        texts.append(open(path, errors="replace").read())
    except OSError:
        pass
start = "sk-ant-" + "confined-"
print("FOUND" if any(start in text for text in texts) else "NOT FOUND", len(texts) > 5)
try:
    open(f"/proc/{parent}/environ")
except PermissionError:
    print("SHUT")
"""


@pytest.mark.parametrize("named", [False, True])
def test_no_command_reads_the_key_that_opens_the_broker(
    world: World, backend: str, named: bool
) -> None:
    """``named``: the project's settings have a key of their own, which isn't taken."""
    if named:
        env = {
            "ANTHROPIC_API_KEY": "sk-of-the-project",
            "ANTHROPIC_AUTH_TOKEN": "sk-of-the-project",
        }
        tree(world.root, [f"a course/.claude/settings.json={json.dumps({'env': env})}"])
    sources = {"setting_sources": ["project"]} if named else {}
    said = ran(world, backend, LOOK, **sources)
    assert said.splitlines() == ["READ", "NOT FOUND True", "SHUT"]


@pytest.mark.parametrize("confinement", ["required", "off"])
def test_the_settings_are_no_file_that_a_command_can_change(
    tmp_path: Path, confinement: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given on the command line, the CLI would write them to its temporary folder."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    root = tree(tmp_path.resolve(), ["w/README.md=x", "home/.claude/settings.json={}"])
    config = SessionConfig(
        project_dir=root / "w",
        run_dir=root / "run",
        confinement=confinement,
        expose_account=True,
        env={"HOME": str(root / "home"), "ANTHROPIC_API_KEY": ""},
    )
    options = build_session_options(AgentSpec(name="short", tools=["Read"]), config)
    given = str(options.settings)
    assert given.startswith("{") == (confinement == "off")
    assert confinement == "off" or given.startswith(f"{root}/run/host/")
