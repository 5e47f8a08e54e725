"""Proves the seatbelt profile on a Mac: ``make check-mac``. It has not been run on one yet.

Every row is a small shell command in a throwaway folder. It runs twice: by itself, where it must
work, and through ``sandbox-exec`` with the profile of a view, where it must work or be refused as the
row says. A command that doesn't even start is neither.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_kit.confine.seatbelt import Seatbelt
from agent_kit.confine.view import ConfinedView, Mount, Sight

__all__ = ["COMMANDS", "ROWS", "Result", "Row", "Runner", "check", "main", "report"]

Runner = Callable[[Sequence[str], str], str]
"""Runs a command line in a working folder, and returns what it writes to standard output."""

COMMANDS: Final = {
    "read": 'cat "$1" > /dev/null',
    "list": 'ls "$1" > /dev/null',
    "change": 'echo more >> "$1"',
    "make": 'echo new > "$1"',
    "folder": 'mkdir "$1"',
    "remove": 'rm "$1"',
    "move": 'mv "$1" "$2"',
    "link": 'ln "$1" "$2"',
    "signal": 'kill -0 "$1"',
    "socket": 'nc -w 2 -U "$1" < /dev/null > /dev/null',
    "tcp": 'nc -w 2 -z 127.0.0.1 "$1"',
}
"""What a row does, as shell text."""
_LOOKS: Final = ("read", "list", "signal", "socket", "tcp")  # the others change the folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``does`` is one of :data:`COMMANDS`, ``on`` its words: paths relative to the throwaway folder,
    ``{port}`` and ``{pid}``. ``works``: inside; else it must be refused there. ``network``: with a
    view that has it."""

    does: str
    on: tuple[str, ...]
    works: bool
    why: str
    network: bool = False


def _row(does: str, on: str, works: bool, why: str, *, network: bool = False) -> Row:
    return Row(does=does, on=tuple(on.split()), works=works, why=why, network=network)


ROWS: Final = (
    _row("read", "project/sources/data.csv", True, "an open folder is read"),
    _row("list", "project/sources", True, "and listed"),
    _row("read", "project/sources/inner-link", True, "a link within it"),
    _row("read", "project/drafts/note.md", True, "a writable folder is read"),
    _row("change", "project/drafts/note.md", True, "and written"),
    _row("make", "project/drafts/new.md", True, "also new files"),
    _row("folder", "project/drafts/new", True, "and new folders"),
    _row("move", "project/drafts/note.md project/drafts/other.md", True, "names change within it"),
    _row("remove", "project/drafts/note.md", True, "files are removed there"),
    _row("make", "own/tmp/x", True, "the session's temporary folder"),
    _row("socket", "own/broker", True, "the broker's socket"),
    _row("read", "project/README.md", False, "no folder opens it"),
    _row("list", "project", False, "nor the project folder itself"),
    _row("list", "home", False, "the person's home is closed"),
    _row("read", "home/.netrc", False, "and what is in it"),
    _row("read", "project/sources/way-out", False, "a link that leads outside"),
    _row("read", "project/sources/salaries.csv", False, "a denied file in an open folder"),
    _row("read", "project/sources/closed/marks.csv", False, "a file in a denied folder"),
    _row("list", "project/sources/closed", False, "a denied folder"),
    _row("change", "project/sources/data.csv", False, "a folder that is only read"),
    _row("make", "project/sources/new.csv", False, "nothing new in it"),
    _row("folder", "project/sources/new", False, "no folder either"),
    _row("remove", "project/sources/data.csv", False, "nothing goes away there"),
    _row("make", "project/new.md", False, "nothing new in the project folder"),
    _row("make", "home/.bashrc", False, "nor in the home"),
    _row("change", "project/drafts/CLAUDE.md", False, "a control file in a writable folder"),
    _row("remove", "project/drafts/CLAUDE.md", False, "it stays"),
    _row("move", "project/drafts/CLAUDE.md project/drafts/x", False, "under its own name"),
    _row("move", "project/drafts/note.md project/drafts/CLAUDE.md", False, "and is not replaced"),
    _row("read", "project/drafts/deep/secret.txt", False, "a denied file in a writable folder"),
    _row("move", "project/drafts/deep/secret.txt project/drafts/x", False, "it keeps its name"),
    _row("move", "project/drafts/deep project/drafts/x", False, "and so does the folder above it"),
    _row("link", "project/drafts/deep/secret.txt project/drafts/x", False, "no second name for it"),
    _row("link", "project/README.md project/drafts/x", False, "nor for what no folder opens"),
    _row("socket", "own/other", False, "another socket of the host"),
    _row("tcp", "{port}", False, "a server of this machine"),
    _row("signal", "{pid}", False, "a process outside gets no signal"),
    _row("tcp", "{port}", True, "with the network, a server of this machine", network=True),
    _row("socket", "own/broker", True, "and the broker's socket", network=True),
    _row("socket", "own/other", False, "but no other socket of the host", network=True),
    _row("read", "project/README.md", False, "and no more files", network=True),
)
_FILES: Final = (
    "project/README.md",
    "project/sources/data.csv",
    "project/sources/salaries.csv",
    "project/sources/closed/marks.csv",
    "project/drafts/note.md",
    "project/drafts/CLAUDE.md",
    "project/drafts/deep/secret.txt",
    "home/.netrc",
)
_LINKS: Final = (
    ("project/sources/way-out", "../README.md"),
    ("project/sources/inner-link", "data.csv"),
)
_MOUNTS: Final = (
    ("own/tmp", Sight.WRITE, True),
    ("project/drafts", Sight.WRITE, True),
    ("project/drafts/CLAUDE.md", Sight.READ, False),
    ("project/drafts/deep/secret.txt", Sight.NOTHING, False),
    ("project/sources", Sight.READ, True),
    ("project/sources/closed", Sight.NOTHING, True),
    ("project/sources/salaries.csv", Sight.NOTHING, False),
)
_NEEDS_MACOS: Final = (
    "check-mac needs macOS: it proves the seatbelt profile with that system's own sandbox-exec.\n"
)
_SECONDS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row, and what its command came to: ``"did"``, ``"refused"``, or what else it wrote."""

    row: Row
    alone: str
    inside: str

    @property
    def good(self) -> bool:
        """It works alone, so that a refusal is the profile's; and inside it is as the row says."""
        return self.alone == "did" and self.inside == ("did" if self.row.works else "refused")


def view_of(top: str, *, network: bool = False) -> ConfinedView:
    """The view whose profile is proved; ``top`` is the throwaway folder, its links resolved."""
    return ConfinedView(
        mounts=tuple(
            Mount(path=f"{top}/{name}", sight=sight, folder=folder)
            for name, sight, folder in _MOUNTS
        ),
        cwd=f"{top}/project",
        tmp=f"{top}/own/tmp",
        network=network,
        sockets=(f"{top}/own/broker",),
    )


def check(run: Runner) -> list[Result]:
    """Every row's result. No command sees what another one changed."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made, contextlib.ExitStack() as servers:
        top = os.path.realpath(made)
        _make(top)
        for name in ("broker", "other"):
            servers.enter_context(_serving(socket.AF_UNIX, f"{top}/own/{name}"))
        port = servers.enter_context(_serving(socket.AF_INET, ("127.0.0.1", 0)))[1]
        results = []
        for row in ROWS:
            inside = Seatbelt().launch(view_of(top, network=row.network)).argv
            said = []
            for prefix in ((), inside):
                said.append(run([*prefix, *_words(row, top, port)], f"{top}/project").strip())
                if row.does not in _LOOKS:
                    _make(top)
            results.append(Result(row=row, alone=said[0], inside=said[1]))
        return results


def _words(row: Row, top: str, port: int) -> list[str]:
    script = f"if {{ {COMMANDS[row.does]}; }} 2> /dev/null; then echo did; else echo refused; fi"
    known = {"{port}": str(port), "{pid}": str(os.getpid())}
    return ["/bin/sh", "-c", script, "sh", *(known.get(on, f"{top}/{on}") for on in row.on)]


def _make(top: str) -> None:
    for name in ("project", "home", "own/tmp"):
        shutil.rmtree(f"{top}/{name}", ignore_errors=True)
        os.makedirs(f"{top}/{name}")
    for name in _FILES:
        os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
        Path(top, name).write_text("text\n", encoding="utf-8")
    for name, target in _LINKS:
        os.symlink(target, f"{top}/{name}")


@contextlib.contextmanager
def _serving(family: int, address: str | tuple[str, int]) -> Iterator[tuple[str, int]]:
    """A server that takes every connection and ends it. Yields its address."""
    listening = socket.socket(family)
    listening.bind(address)
    listening.listen()

    def answer() -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                listening.accept()[0].close()

    threading.Thread(target=answer, daemon=True).start()
    try:
        yield listening.getsockname()
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def report(results: Sequence[Result]) -> str:
    """The table, a line a row, and a last line with the count."""
    lines = []
    for each in results:
        row = each.row
        wanted = "works" if row.works else "is refused"
        shown = (
            f"{'ok ' if each.good else 'BAD'}  {row.does} {' '.join(row.on)}: {wanted}, {row.why}"
        )
        told = f"  (alone: {each.alone or 'nothing'}; inside: {each.inside or 'nothing'})"
        lines.append(shown + ("" if each.good else told))
    bad = sum(not each.good for each in results)
    lines.append(f"{len(results) - bad} of {len(results)} rows are as they should be.")
    return "\n".join(lines) + "\n"


def _really(words: Sequence[str], folder: str) -> str:
    """The runner on a Mac. What doesn't start says nothing, or what kept it from that."""
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            words,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp"},  # noqa: S108 - never written to
            stdin=subprocess.DEVNULL,  # at a terminal, rm and mv would ask
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "still running"
    return done.stdout or f"status {done.returncode} {done.stderr}"


def main(run: Runner = _really, platform: str = sys.platform) -> int:
    """0 when the profile holds, 1 when it doesn't, 2 where it can't be tried."""
    if platform != "darwin":
        sys.stderr.write(_NEEDS_MACOS)
        return 2
    results = check(run)
    sys.stdout.write(report(results))
    return 0 if all(each.good for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
