"""The seatbelt profile's text, judged as macOS' language is described, and the table of check-mac.

No Mac is needed, and nothing here shows what a Mac does: that is ``make check-mac``'s part.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_kit.confine import check_mac
from agent_kit.confine.check_mac import COMMANDS, ROWS, check, main, report
from agent_kit.confine.seatbelt import Seatbelt, profile
from agent_kit.confine.view import ConfinedView, Mount, Sight

# Which operations a command asks for, on its first and its second word.
NEEDS = {
    "read": [("file-read-data", 0)],
    "list": [("file-read-data", 0)],
    "change": [("file-write-data", 0)],
    "make": [("file-write-create", 0)],
    "folder": [("file-write-create", 0)],
    "remove": [("file-write-unlink", 0)],
    "move": [("file-write-unlink", 0), ("file-write-create", 1), ("file-write-unlink", 1)],
    "link": [("file-link", 0), ("file-write-create", 1)],
    "signal": [("signal", 0)],
    "socket": [("system-socket", 0), ("network-outbound", 0)],
    "tcp": [("system-socket", 0), ("network-outbound", 0)],
}
RULE = re.compile(r"\((allow|deny) ([a-z*\- ]+?)((?: \(.*\))?)\)")


def allows(text: str, operation: str, path: str) -> bool:
    """The last rule that matches decides; links are resolved. Digits are a port of this machine."""
    path, verdict = path if path.isdigit() else os.path.realpath(path), False
    for line in text.splitlines()[1:]:
        rule = RULE.fullmatch(line)
        assert rule is not None, line
        kind, names, filters = rule.groups()
        if any(re.fullmatch(name.replace("*", ".*"), operation) for name in names.split()):
            if names == "default" or not filters or matches(filters, path):
                verdict = kind == "allow"
    return verdict


def matches(filters: str, path: str) -> bool:
    if "target same-sandbox" in filters or "global-name" in filters:
        return False
    if "remote ip" in filters or "local ip" in filters:
        return path.isdigit()
    if "socket-domain" in filters:
        return ("AF_INET" if path.isdigit() else "AF_UNIX") in filters
    literals = re.findall(r'\(literal "([^"]*)"\)', filters)
    below = re.findall(r'\(subpath "([^"]*)"\)', filters)
    return path in literals or any(path == top or path.startswith(f"{top}/") for top in below)


def simulated(words: Sequence[str], folder: str) -> str:
    """A made-up runner: alone everything works; inside, what the profile's text allows."""
    if words[0] != "/usr/bin/sandbox-exec":
        return "did\n"
    text, script, on = words[2], words[5], words[7:]
    does = next(name for name, command in COMMANDS.items() if command in script)
    needed = NEEDS[does]
    if all(allows(text, operation, on[each]) for operation, each in needed):
        return "did\n"
    return "refused\n"


def bad(run: check_mac.Runner) -> list[str]:
    return [f"{each.row.does} {' '.join(each.row.on)}" for each in check(run) if not each.good]


def test_by_its_text_the_profile_holds_the_whole_table() -> None:
    assert bad(simulated) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (r'\(deny file-write-unlink .*drafts/deep"\)\)\n?', "move project/drafts/deep project/"),
        (r"\(deny file-read\* .*salaries.*\n", "read project/sources/salaries.csv"),
        (r"\(deny file-read\* .*closed.*\n", "list project/sources/closed"),
        (r"\(deny file-write\* .*CLAUDE.*\n", "change project/drafts/CLAUDE.md"),
        (r"\(allow network-outbound .*broker.*\n", "socket own/broker"),
        (r"\(allow network-outbound \(remote ip .*\n", "tcp {port}"),
        (r"\(allow system-socket \(socket-domain AF_INET\).*\n", "tcp {port}"),
        (r"\(allow file-read\* file-write\* .*drafts.*\n", "make project/drafts/new.md"),
    ],
)
def test_the_table_finds_a_profile_that_lacks_a_rule(
    line: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def lacking(view: ConfinedView) -> str:
        text, count = re.subn(line, "", profile(view))
        taken.append(count)
        return text.rstrip("\n")

    monkeypatch.setattr("agent_kit.confine.seatbelt.profile", lacking)
    assert any(each.startswith(found) for each in bad(simulated)), bad(simulated)
    assert max(taken) == 1


def test_the_table_finds_a_network_rule_that_opens_every_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wide(view: ConfinedView) -> str:
        return profile(view) + ("\n(allow network*)" if view.network else "")

    monkeypatch.setattr("agent_kit.confine.seatbelt.profile", wide)
    assert bad(simulated) == ["socket own/other"]


def test_a_profile_that_opens_all_or_nothing_fails_on_every_row_of_the_other_kind() -> None:
    def always(said: str) -> check_mac.Runner:
        return lambda words, _: said if words[0].endswith("sandbox-exec") else "did\n"

    assert len(bad(always("did\n"))) == sum(not row.works for row in ROWS)
    assert len(bad(always("refused\n"))) == sum(row.works for row in ROWS)


def test_a_command_that_does_not_start_counts_for_nothing() -> None:
    crash = "status -6 "
    assert len(bad(lambda *_: crash)) == len(ROWS)
    inside = lambda words, _: crash if words[0].endswith("sandbox-exec") else "did\n"  # noqa: E731
    assert len(bad(inside)) == len(ROWS)
    alone = lambda words, folder: (  # noqa: E731
        simulated(words, folder) if words[0].endswith("sandbox-exec") else "refused\n"
    )
    assert len(bad(alone)) == len(ROWS)


def test_alone_every_command_of_the_table_works_here_too() -> None:
    def here(words: Sequence[str], folder: str) -> str:
        if words[0] == "/usr/bin/sandbox-exec":
            return simulated(words, folder)
        return check_mac._really(words, folder)

    bare = {each.row.does for each in check(here) if each.alone != "did"}
    assert bare <= {"socket", "tcp"}  # those need macOS' nc


def test_what_must_be_refused_is_done_by_a_command_that_works_elsewhere() -> None:
    working = {row.does for row in ROWS if row.works}
    refused = {row.does for row in ROWS if not row.works}
    assert refused - working == {"link", "signal"}  # nothing inside needs to do these
    assert set(COMMANDS) == set(NEEDS) == working | refused


def test_on_a_mac_the_table_is_printed_and_the_status_says_whether_all_is_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(simulated, "darwin") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == f"{len(ROWS)} of {len(ROWS)} rows are as they should be."
    assert "ok   read project/README.md: is refused, no folder opens it" in told
    assert main(lambda *_: "did\n", "darwin") == 1
    assert (
        "BAD  read project/README.md: is refused, no folder opens it  (alone: did; inside: did)"
        in capsys.readouterr().out
    )
    assert report([]).endswith("0 of 0 rows are as they should be.\n")


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac runs it")
def test_elsewhere_one_sentence_says_that_it_needs_a_mac() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent_kit.confine.check_mac"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "check-mac needs macOS: it proves the seatbelt profile with that system's own sandbox-exec.\n"
    )
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert "\t$(BIN)/python -m agent_kit.confine.check_mac\n" in makefile


def test_without_the_names_in_the_root_no_program_would_start() -> None:
    text = profile(ConfinedView(mounts=(), cwd="/w", tmp="/t"))
    assert '(allow file-read* (literal "/"))' in text.splitlines()
    assert not allows(text, "file-read-data", "/home")


def test_no_terminal_and_no_disk_is_a_device_that_any_program_needs() -> None:
    text = profile(ConfinedView(mounts=(), cwd="/w", tmp="/t"))
    for operation in ("file-read-data", "file-write-data"):
        assert allows(text, operation, "/dev/null")
        for device in ("/dev/tty", "/dev/ttys001", "/dev/rdisk0", "/dev/bpf0"):
            assert not allows(text, operation, device)


def test_at_a_terminal_no_command_of_the_table_waits_for_an_answer() -> None:
    program = "from agent_kit.confine import check_mac; print(check_mac._really(['cat'], '/'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="typed",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "typed" not in done.stdout


def test_a_path_behind_a_link_is_written_as_the_system_judges_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    name = str(tmp_path / "link/own")
    view = ConfinedView(
        mounts=(Mount(path=name, sight=Sight.WRITE),), cwd="/w", tmp=name, sockets=(f"{name}.s",)
    )
    text = profile(view)
    assert f'(subpath "{tmp_path.resolve()}/real/own")' in text
    assert f'(remote unix-socket (literal "{tmp_path.resolve()}/real/own.s"))' in text
    assert "/link/" not in text


def test_the_notes_say_that_the_profile_has_not_been_run_and_what_the_keychain_means() -> None:
    run, keychain = Seatbelt().notes(ConfinedView(mounts=(), cwd="/w", tmp="/t"))
    assert "has not been run on a Mac" in run
    for words in ("keychain", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "expose_account"):
        assert words in keychain


def test_it_says_that_the_launcher_needs_linux_on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.delattr("os.pidfd_open")
    assert "needs Linux" in (Seatbelt().available() or "")
