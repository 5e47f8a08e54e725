"""Ways to reach a file, as data: one row is one way, whatever the number of files it is tried on.

A way is a command for a shell. ``$P`` is a file, ``$D`` its folder, ``$N`` a fresh name in the
writable folder. It prints what is in the file, or the names in its folder, as they are. Each is tried
on an open file as well, and must print that: else it would be no way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Way", "lines", "pythons", "script"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """``needs``: the program that it is made with. ``heavy``: it is tried on fewer files.

    ``works``: it reaches an open file inside a confinement, too. What no confinement lets anybody do
    has no such control.
    """

    family: str
    command: str
    needs: str = ""
    heavy: bool = False
    works: bool = True


def lines(family: str, text: str, *, needs: str = "", works: bool = True) -> tuple[Way, ...]:
    """One way a line. A line's first word says what it needs, unless it is given."""
    found = (line.strip() for line in text.splitlines())
    return tuple(
        Way(
            family=family,
            command=line,
            needs=needs or _program(line),
            works=works,
            heavy="$D" in line and any(word in line for word in _WALKS),
        )
        for line in found
        if line
    )


_WALKS = ("find ", "tar ", "cp -r", "diff -r", "git ", "grep -R")  # through links and all
_BUILT_IN = frozenset("cd coproc echo eval exec for mapfile printf read source trap while".split())


def _program(line: str) -> str:
    word = line.split(maxsplit=1)[0]
    return word if word.isidentifier() and word not in _BUILT_IN else ""


def pythons(family: str, text: str, *, works: bool = True) -> tuple[Way, ...]:
    """One way a block; blocks are parted by empty lines."""
    return tuple(
        Way(family=family, command=script(block), needs="python3", heavy=True, works=works)
        for block in _blocks(text)
    )


def script(block: str) -> str:
    """A command that runs a Python program. It has the paths, the C library, and ``say``."""
    return f"python3 -IS - <<'END'\n{_PRELUDE}{block}\nEND\n"


_PRELUDE = """\
import ctypes, os, sys
P, D, N = (os.environ[name] for name in "PDN")
libc = ctypes.CDLL(None, use_errno=True)
def say(text):
    sys.stdout.write(text if isinstance(text, str) else bytes(text).decode(errors="replace"))
    sys.stdout.flush()
def reached(WHAT):
    say("can" + f"ary({WHAT})")
def done(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""


def _blocks(text: str) -> Iterator[str]:
    for block in text.strip("\n").split("\n\n"):
        yield block.strip("\n")
