"""A command of a confined CLI runs beside the CLI, not in its place."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_kit.confine import _command_start, commands
from agent_kit.confine import _places as places
from agent_kit.confine.commands import interpreter, start_programs, written
from agent_kit.confine.first_program import MACHINES, first_program
from agent_kit.confine.upstream import made_up_key
from agent_kit.confine.view import Mount, Sight

# As inside a confinement: nobody has a capability there, and one of root's reads any memory.
BARE = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all") if os.getuid() == 0 else ()


def started(command: str, *paths: str, **env: str) -> subprocess.CompletedProcess[str]:
    """``command``, started from a shell that waits for it: its parent stands for the CLI."""
    script = _command_start.__file__
    return subprocess.run(
        [
            *BARE,
            "/bin/sh",
            "-c",
            '"$@"; exit $?',
            "",
            sys.executable,
            "-I",
            "-S",
            script,
            str(len(paths or "/")),
            *(paths or "/"),
            command,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HELD": "canary(held)", **env},
    )


@pytest.mark.parametrize("name", ["environ", "mem", "maps", "fd/1", "root/etc/hostname", "cwd"])
def test_a_command_can_open_nothing_of_the_process_that_started_it(name: str) -> None:
    seen = started(f"head -c 1 /proc/$PPID/{name} >/dev/null && echo opened; echo ran")
    assert seen.stdout == "ran\n"
    inside = started("head -c 1 /proc/self/environ >/dev/null && echo opened")  # a control
    assert inside.stdout == "opened\n"


def test_without_the_domain_it_could() -> None:
    """The control."""
    seen = subprocess.run(
        ["/bin/sh", "-c", "/bin/sh -c 'head -c 4096 /proc/$PPID/environ; echo; true'; true"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "HELD": "canary(held)"},
    )
    assert "canary(held)" in seen.stdout


def test_a_command_knows_no_made_up_key_and_what_else_it_was_given() -> None:
    seen = started("env", ANTHROPIC_API_KEY=made_up_key(), OTHER="sk-of-a-server")
    assert "sk-ant-confined" not in seen.stdout
    assert "OTHER=sk-of-a-server" in seen.stdout


def test_a_key_within_a_text_is_a_key() -> None:
    seen = started("env", A=f"x{made_up_key()}y", B="sk-ant-confined-is how they begin")
    assert "A=" not in seen.stdout
    assert "B=sk-ant-confined-is how they begin\n" in seen.stdout
    seen = started(f"echo {made_up_key()}")
    assert (seen.returncode, seen.stdout) == (_command_start.FAILED, "")
    assert started("echo sk-ant-confined-is").stdout == "sk-ant-confined-is\n"


def test_a_command_line_ends_as_it_does_in_a_shell() -> None:
    assert started("echo 'a  b' | cat; exit 7").returncode == 7
    assert started("diff <(echo same) <(echo same) && echo same").stdout == "same\n"


def test_where_no_domain_can_be_made_no_command_runs() -> None:
    # A Landlock call of a number that no kernel has.
    text = Path(_command_start.__file__).read_text().replace("445, 446 ", "445, 9999 ")
    assert "9999" in text
    seen = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text, "0", "echo ran"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert seen.returncode == _command_start.FAILED
    assert seen.stdout == ""
    assert "could not be started" in seen.stderr


def test_the_programs_start_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    python = interpreter()
    assert python is not None
    written = start_programs(folder, python[0])
    put(written)
    run = [next(iter(written)), 'echo "it\'s" $0']
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.startswith("it's")


def put(programs: dict[str, str]) -> None:
    for path, text in programs.items():
        places.write_text(path, text)
        Path(path).chmod(stat.S_IRWXU)


def with_environment(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A command, started as the CLI starts a server that has an environment of its own."""
    python = interpreter()
    assert python is not None
    programs = start_programs(folder, python[0])
    put(programs)
    run = [next(iter(programs)), "echo A=$A L=$LC_CTYPE"]
    return subprocess.run(run, env=env, capture_output=True, text=True, check=False)


def test_nothing_that_an_environment_loads_is_loaded_before_the_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``LD_DEBUG`` has the loader tell what it loads, and for whom."""
    python = interpreter()
    assert python is not None
    loading = f"needed by {python[1]}"
    seen = with_environment(tmp_path, LD_DEBUG="files", PATH="/usr/bin:/bin")
    assert "needed by" in seen.stderr  # the shell inside the domain gets what it was given
    assert loading not in seen.stderr
    monkeypatch.setattr(commands, "MACHINES", frozenset())  # the control: a script
    assert loading in with_environment(tmp_path, LD_DEBUG="files", PATH="/usr/bin:/bin").stderr


@pytest.mark.parametrize("script", [False, True])
def test_a_command_has_the_environment_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: bool
) -> None:
    if script:
        monkeypatch.setattr(commands, "MACHINES", frozenset())
    seen = with_environment(tmp_path, A="one two", PATH="/usr/bin:/bin")
    assert seen.stdout.startswith("A=one two L=")


def test_what_has_no_name_in_an_environment_is_not_passed_on(tmp_path: Path) -> None:
    python = interpreter()
    assert python is not None
    programs = start_programs(tmp_path, python[0])
    put(programs)
    run = [
        "env",
        "-i",
        f"={made_up_key()}",
        "A=one",
        next(iter(programs)),
        "cat /proc/self/environ",
    ]
    seen = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "A=one" in seen.stdout
    assert "sk-ant-confined" not in seen.stdout
    control = subprocess.run(
        [*run[:-2], "/bin/cat", "/proc/self/environ"], capture_output=True, text=True
    )
    assert "sk-ant-confined" in control.stdout


def test_without_a_command_nothing_is_started(tmp_path: Path) -> None:
    python = interpreter()
    assert python is not None
    programs = start_programs(tmp_path, python[0])
    put(programs)
    assert subprocess.run([next(iter(programs))], check=False).returncode == _command_start.FAILED


def test_the_program_is_written_for_both_machines_and_no_other() -> None:
    for machine in MACHINES:
        assert first_program(["/bin/true"], machine).startswith(b"\x7fELF")
    with pytest.raises(KeyError):
        first_program(["/bin/true"], "mips")


def test_a_kernel_without_landlock_has_no_such_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "abi_version", lambda: 0)
    assert interpreter() is None


def test_a_command_moves_files_from_folder_to_folder(tmp_path: Path) -> None:
    """A domain that doesn't speak of moving forbids it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/file").write_text("moved")
    move = f"{sys.executable} -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])'"
    seen = started(f"{move} {tmp_path}/a/file {tmp_path}/b/file")
    assert seen.stderr == ""
    assert (tmp_path / "b/file").read_text() == "moved"


WAYS = (
    "echo x > {}/new",
    "echo x >> {}/file",
    "mkdir {}/made",
    "rm {}/file",
    "rmdir {}/empty",
    "mv {}/file {}/moved",
    "mv b/other {}/moved",
    "ln -s x {}/link",
    "ln b/other {}/hard",
    "mkfifo {}/fifo",
    "python3 -c \"import os; os.truncate('{}/file', 0)\"",
    "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('{}/socket')\"",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_command_changes_what_it_may_and_nothing_else(tmp_path: Path, way: str) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder / "empty").mkdir(parents=True)
        (tmp_path / folder / "file").write_text("old")
    (tmp_path / "b/other").write_text("other")
    paths = (os.path.realpath(tmp_path / "b"), "/dev")
    for folder, changes in (("a", False), ("b", True)):
        command = f"cd {tmp_path}; {way.replace('{}', folder)} && echo CHANGED; cat a/file"
        seen = started(command, *paths)
        assert ("CHANGED" in seen.stdout) is changes, seen
        assert "old" in seen.stdout


def test_a_folder_that_was_replaced_by_a_link_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "closed/in").mkdir(parents=True)
    (tmp_path / "a").symlink_to("closed")
    (tmp_path / "b").symlink_to("closed/in")
    paths = [f"{os.path.realpath(tmp_path)}/{name}" for name in ("a/in", "b", "gone")]
    seen = started(f"echo x > {tmp_path}/closed/in/x; echo on", *paths)
    assert seen.stdout == "on\n"
    assert "ermission denied" in seen.stderr


def test_where_no_file_has_no_name_a_home_is_known_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(path: str, flags: int, *mode: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no such thing")
        return real(path, flags, *mode)

    real = os.open
    monkeypatch.setattr(os, "open", without)
    assert _command_start._can_write(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert not _command_start._can_write(str(tmp_path / "gone"))


def test_commands_write_where_the_cli_does_but_for_its_configuration() -> None:
    mounts = {
        path: Mount(path=path, sight=sight)
        for path, sight in (
            ("/own/config", Sight.WRITE),
            ("/own/commands", Sight.READ),
            ("/w/d", Sight.WRITE),
            ("/w/d/.git", Sight.READ),
            ("/w/d/x/y", Sight.WRITE),
            ("/w/read", Sight.READ),
        )
    }
    found = written(mounts, "/own/config", "/tmp")
    assert found is not None
    assert {*found} - {"/dev", "/proc"} == {
        "/tmp",
        "/w/d",
        "/own/config/session-env",
        "/own/config/plugins/data",
    }
    assert written(mounts, "/own/config", "/own") is None
