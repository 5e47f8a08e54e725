"""Runs one command of a confined CLI in a Landlock domain of its own, nested in the confinement.

Run as ``python -I -S _command_start.py COMMAND``, by the CLI (its ``CLAUDE_CODE_SHELL_PREFIX``), for
commands of the Bash and Monitor tools, hooks and stdio MCP servers. Standard library only.

A process in a nested domain may not trace one outside of it. So a command can't open the CLI's
``/proc/<pid>/fd``, ``mem`` or ``environ``, nor fetch its descriptors: it can't speak to the host in
the CLI's place, and what stands for the key is the CLI's alone. Abstract Unix sockets of others are
out of its reach, too (Linux 6.12 and newer). Nothing else is taken away: files are the business of
the confinement outside. When the domain can't be made, no command runs.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Final, NoReturn

FAILED: Final = 126
KEY_START: Final = "sk-ant-confined-"  # how every made-up key begins

_NO_NEW_PRIVS: Final = 38
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # Landlock's calls; the same number on every machine
_VERSION, _PATHS = 1, 1  # LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_PATH_BENEATH
_MAKE_BLOCK: Final = 1 << 11  # a domain must forbid something: block devices, which nobody makes
_REFER: Final = 1 << 13  # from ABI 2 on: a domain that doesn't speak of it moves nothing elsewhere
_ABSTRACT: Final = 1  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
_SHELLS: Final = ("/bin/bash", "/usr/bin/bash", "/bin/zsh", "/usr/bin/zsh", "/bin/sh")


def main(words: list[str]) -> NoReturn:
    """Become a shell that runs ``words[0]``, a command line."""
    try:
        os.closerange(3, 1 << 16)
        _nest()
        for name in [name for name, value in os.environ.items() if value.startswith(KEY_START)]:
            del os.environ[name]
        _have_home()
        shell = _shell()
        os.execv(shell, [shell, "-c", words[0]])  # noqa: S606 - what the CLI was asked to run
    except BaseException as error:  # noqa: BLE001 - whatever it is, no command runs beside the CLI
        sys.stderr.write(f"agent-kit: the command could not be started: {error}\n")
        os._exit(FAILED)


def _have_home() -> None:
    """A home to write to: the person's is not there, or not all of it, and programs keep caches."""
    try:
        os.close(os.open(os.environ.get("HOME", ""), os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        home = os.path.join(os.environ.get("TMPDIR", "/tmp"), "home")  # noqa: S108 - inside
        os.makedirs(home, mode=0o700, exist_ok=True)
        os.environ["HOME"] = home


def _shell() -> str:
    """The shell that the CLI itself takes: the person's, where it knows it."""
    own = os.environ.get("SHELL", "")
    known = os.path.isabs(own) and os.path.basename(own) in ("bash", "zsh")
    return next(path for path in ((own,) if known else ()) + _SHELLS if os.access(path, os.X_OK))


def _nest() -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def call(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
        return result

    abi = call(libc.syscall(_CREATE, None, 0, _VERSION))
    moves = _REFER if abi >= 2 else 0
    attributes = struct.pack("Q", _MAKE_BLOCK | moves)
    if abi >= 6:  # with the network open, the host's abstract sockets would be in reach
        attributes += struct.pack("QQ", 0, _ABSTRACT)
    ruleset = call(libc.syscall(_CREATE, attributes, len(attributes), 0))
    if moves:  # what may be moved where is the business of the confinement outside
        root = os.open("/", os.O_PATH)
        call(libc.syscall(_ADD, ruleset, _PATHS, struct.pack("<Qi", moves, root), 0))
        os.close(root)
    call(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    call(libc.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)


if __name__ == "__main__":
    main(sys.argv[1:])
