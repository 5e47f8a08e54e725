"""However a confined session ends: what it wrote is there, and nothing of the confinement is."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hosts import ANYBODY, Host, World, made_world, processes, until

pytestmark = pytest.mark.e2e


@pytest.fixture
def world() -> Iterator[World]:
    yield from made_world(Path(tempfile.gettempdir()), os.getuid())


# A plain command that names the file is refused by the rules.
PLANT = "name=drafts/CLAU; cp drafts/note.md ${name}DE.md"
LASTING = (
    f"{PLANT}; chmod 6755 drafts/note.md; setsid nohup tail -f /dev/null >/dev/null 2>&1 &"
    ' mkdir -p "$CLAUDE_CONFIG_DIR"/shut/in && chmod 0 "$CLAUDE_CONFIG_DIR"/shut;'
    " echo written > drafts/c.md; tail -f /dev/null"
)


def begun(world: World, backend: str, session: str, command: str = LASTING) -> Host:
    """A session whose command has written something and doesn't end."""
    call = ("Bash", {"command": command, "timeout": 600_000})
    host = world.begin(call, backend=backend, session_id=session)
    until(lambda: (world.drafts / "c.md").exists() or host.process.poll() is not None)
    assert host.process.poll() is None, host.log.read_text()
    return host


def below(process: int) -> Iterator[tuple[int, str]]:
    """The processes below one, the nearest first: number and command line."""
    found = [process]
    for each in found:
        children = Path(f"/proc/{each}/task/{each}/children").read_text().split()
        found += map(int, children)
        if each != process:
            words = Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ")
            yield each, words.decode(errors="replace")


def reads_messages(process: int) -> bool:
    """Whether it hands the host's messages on: of its kind, it alone says nothing anywhere."""
    return os.path.realpath(f"/proc/{process}/fd/2") == os.devnull


# Whom to end: the word on its command line, and which of those that have it.
VICTIMS = {
    "the host": ("", 0),
    "the launcher": ("launcher.main(", 0),
    "the launcher's second process": ("launcher.main(", 1),
    "the confinement": ("of the backend", 0),
    "the CLI": ("_bundled/claude", -1),
}
# With Landlock the watcher is a child of the launcher's second process, and the same program.
STARTS = {"bubblewrap": ("bwrap", 0), "landlock": ("launcher.main(", 2)}


def victim(host: Host, who: str, backend: str) -> int:
    word, which = VICTIMS[who]
    if not word:
        return host.process.pid
    if who == "the confinement":
        word, which = STARTS[backend]
    found = [
        process
        for process, words in below(host.process.pid)
        if word in words and not reads_messages(process)
    ]
    if who.startswith("the launcher"):
        assert len(found) == (3 if backend == "landlock" else 2), found
    return found[which]


def assert_tidy(world: World, session: str) -> None:
    folder = world.session_folder(session)
    until(lambda: not folder.exists(), folder)
    until(lambda: not processes(session), processes(session))
    assert str(world.root) not in Path("/proc/self/mountinfo").read_text()
    assert not folder.parent.exists()


def assert_written(world: World, session: str) -> None:
    assert (world.drafts / "c.md").read_text() == "written\n"
    assert sorted(path.name for path in world.drafts.iterdir()) == ["c.md", "note.md"]
    assert not stat.S_IMODE((world.drafts / "note.md").stat().st_mode) & 0o6000
    assert [path.read_text() for path in world.root.rglob("*.removed/0-CLAUDE.md")] == ["old"]
    (transcript,) = world.home.rglob(f"{session}.jsonl")
    assert "drafts/c.md" in transcript.read_text()


@pytest.mark.parametrize("who", VICTIMS)
def test_a_session_whose_part_is_killed_is_as_tidy_as_any(
    world: World, backend: str, who: str
) -> None:
    session = str(uuid.uuid4())
    host = begun(world, backend, session)
    os.kill(victim(host, who, backend), signal.SIGKILL)
    assert_tidy(world, session)
    assert_written(world, session)


def test_a_session_that_ends_by_itself_leaves_nothing(world: World, backend: str) -> None:
    session = str(uuid.uuid4())
    command = LASTING.removesuffix("; tail -f /dev/null")
    run = world.run(("Bash", {"command": command}), backend=backend, session_id=session)
    assert run["locks"] == ["ran"], run["results"]
    assert_tidy(world, session)
    assert_written(world, session)


def test_what_is_left_when_everything_was_killed_goes_with_the_next_session(
    world: World, backend: str
) -> None:
    session = str(uuid.uuid4())
    host = begun(world, backend, session)
    both = (
        victim(host, "the launcher", backend),
        victim(host, "the launcher's second process", backend),
    )
    os.kill(host.process.pid, signal.SIGSTOP)
    for process in both:
        os.kill(process, signal.SIGSTOP)  # neither can do the other's part
    for process in both:
        os.kill(process, signal.SIGKILL)
    host.process.kill()
    until(lambda: not [each for each in processes(session).values() if "tail" in each])
    assert world.session_folder(session).exists()
    assert (world.drafts / "CLAUDE.md").exists()
    world.run(backend=backend)
    assert_tidy(world, session)
    assert_written(world, session)


def test_a_session_is_resumed_after_everything_was_killed(world: World, backend: str) -> None:
    session = str(uuid.uuid4())
    host = begun(world, backend, session)
    both = (
        victim(host, "the launcher", backend),
        victim(host, "the launcher's second process", backend),
    )
    for process in (host.process.pid, *both):
        os.kill(process, signal.SIGSTOP)
    for process in both:
        os.kill(process, signal.SIGKILL)
    host.process.kill()
    run = world.run(backend=backend, resume=session)
    assert "drafts/c.md" in run["requests"][0]
    assert_tidy(world, session)


def test_what_a_living_session_planted_is_gone_before_the_next_one_reads_it(
    world: World, backend: str
) -> None:
    session = str(uuid.uuid4())
    host = begun(world, backend, session)
    assert (world.drafts / "CLAUDE.md").exists()
    notes = world.run(backend=backend, what="plan")["notes"]
    assert any(f"session {session} is running" in note for note in notes), notes
    world.run(backend=backend)
    assert not (world.drafts / "CLAUDE.md").exists()
    assert host.process.poll() is None
    host.process.kill()
    assert_tidy(world, session)
    assert [path.read_text() for path in world.root.rglob("*.removed/0-CLAUDE.md")] == ["old"]


def test_a_living_session_is_left_alone_by_the_next(world: World, backend: str) -> None:
    session = str(uuid.uuid4())
    host = begun(world, backend, session)
    world.run(backend=backend)
    assert world.session_folder(session).exists()
    assert [each for each in processes(session).values() if "launcher.main(" in each]
    host.process.kill()
    assert_tidy(world, session)


def test_a_session_can_not_run_twice_at_the_same_time(world: World, backend: str) -> None:
    session = str(uuid.uuid4())
    host = begun(world, backend, session)
    with pytest.raises(AssertionError, match="the same session is still running"):
        world.run(backend=backend, resume=session)
    assert host.process.poll() is None
    host.process.kill()
    assert_tidy(world, session)
    assert_written(world, session)


def test_what_an_ordinary_user_s_command_shuts_is_removed_as_well(backend: str) -> None:
    for world in made_world(Path(tempfile.gettempdir()), os.getuid() or ANYBODY):
        session = str(uuid.uuid4())
        begun(world, backend, session).process.kill()
        assert_tidy(world, session)
        assert_written(world, session)


@pytest.fixture(params=["anybody"] if os.getuid() else ["root", "anybody"])  # who can be had here
def anyones(request: pytest.FixtureRequest) -> Iterator[World]:
    user = 0 if request.param == "root" else os.getuid() or ANYBODY
    yield from made_world(Path(tempfile.gettempdir()), user)


# Each way to a file that lends its owner's rights, and what it leaves in ``drafts``.
LENT = {
    "chmod": "cp /bin/true drafts/lent && chmod 6755 drafts/lent",
    "u+s": "cp /bin/true drafts/lent && chmod u+s drafts/lent",
    "g+s": "cp /bin/true drafts/lent && chmod g+s drafts/lent",
    "install": "install -m 4755 /bin/true drafts/lent",
    "a moved file": "mkdir drafts/a && cp /bin/true drafts/a/b && chmod 4755 drafts/a/b &&"
    " mv drafts/a/b drafts/lent",
    "a folder that is not to be listed": "mkdir drafts/shut && cp /bin/true drafts/shut/lent &&"
    " chmod 4755 drafts/shut/lent && chmod 0311 drafts/shut",
    "made so": "python3 -c \"import os; os.umask(0); os.open('drafts/lent', os.O_CREAT | os.O_RDWR,"
    ' 0o6755)"',
    "a control file": "name=drafts/AGENT; cp /bin/true ${name}S.md && chmod 4755 ${name}S.md",
}


@pytest.mark.parametrize("way", LENT)
def test_no_file_is_left_that_lends_its_owner_s_rights(
    anyones: World, backend: str, way: str
) -> None:
    call = ("Bash", {"command": f"{LENT[way]} && echo MADE; true"})
    run = anyones.run(call, backend=backend)
    assert run["locks"] == ["ran"], run["results"]
    assert ("MADE" in run["results"][0]) == (backend == "bubblewrap"), run["results"]
    until(lambda: not anyones.session_folder("any").parent.exists())
    assert lending(anyones.root) == []


def lending(top: Path) -> list[Path]:
    """The files below ``top`` that lend their owner's rights. The root who runs this sees all."""
    return [
        path
        for path in top.rglob("*")
        if stat.S_ISREG(path.lstat().st_mode) and path.lstat().st_mode & 0o6000
    ]


def test_a_file_that_lent_rights_before_the_session_still_does(
    anyones: World, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = anyones.drafts / "old"
    shutil.copy("/bin/true", old)
    anyones.own()
    old.chmod(0o6755)
    monkeypatch.setattr(anyones, "own", lambda *_: None)  # a change of owner takes the bits away
    time.sleep(1.5)  # a file that changed in the second before counts as the session's
    run = anyones.run(("Bash", {"command": "ls -l drafts"}), backend=backend)
    assert run["locks"] == ["ran"], run["results"]
    assert stat.S_IMODE(old.stat().st_mode) == 0o6755


DEVICES = "mknod drafts/null c 1 3; mknod drafts/disk b 8 0; mknod drafts/none c 0 0; ls drafts"


def test_no_command_makes_a_device(anyones: World, backend: str) -> None:
    run = anyones.run(("Bash", {"command": DEVICES}), backend=backend)
    assert run["locks"] == ["ran"], run["results"]
    kinds = {path.name: stat.S_IFMT(path.lstat().st_mode) for path in anyones.drafts.iterdir()}
    # a device of number 0 is what a union of file systems takes for a gap: there is nothing behind it
    gap = {"none": stat.S_IFCHR} if backend == "bubblewrap" else {}
    assert kinds == {"note.md": stat.S_IFREG, **gap}, run["results"]


CAPABLE = (
    "cp /bin/true drafts/able; python3 -c \"import os; os.setxattr('drafts/able',"
    " 'security.capability', bytes.fromhex('0100000280000000' + '00' * 12))\";"
    " unshare -Ur python3 -c \"import os; os.setxattr('drafts/able',"
    " 'security.capability', bytes.fromhex('0100000280000000' + '00' * 12))\"; true"
)


def test_no_command_gives_a_file_the_capabilities_of_a_root(anyones: World, backend: str) -> None:
    run = anyones.run(("Bash", {"command": CAPABLE}), backend=backend)
    assert run["locks"] == ["ran"], run["results"]
    names = os.listxattr(anyones.drafts / "able")
    given = b"" if not names else os.getxattr(anyones.drafts / "able", "security.capability")
    # one that counts in a namespace of this user's alone says so, and names the user
    assert not given or (given[3] == 3 and int.from_bytes(given[20:24], "little")), given
