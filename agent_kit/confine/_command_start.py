"""Runs one command of a confined CLI in a Landlock domain of its own, nested in the confinement.

Run as ``python -I -S _command_start.py N PATH… COMMAND``, by the CLI (its
``CLAUDE_CODE_SHELL_PREFIX``), for commands of the Bash and Monitor tools, hooks and stdio MCP servers.
Nothing is written that lies in none of the ``N`` absolute paths. Standard library only, and little of
it: every command waits for what this loads. The names of the environment come disguised
(:mod:`agent_kit.confine.first_program`): what they would load is not loaded before the domain is there.

A process in a nested domain may not trace one outside of it. So a command can't open the CLI's
``/proc/<pid>/fd``, ``mem`` or ``environ``, nor fetch its descriptors: it can't speak to the host in
the CLI's place, and what stands for the key is the CLI's alone. Abstract Unix sockets of others are
out of its reach, too (Linux 6.12 and newer). What may be written is less than what the CLI may: not
the transcript and the sign-in. What can be read is the business of the confinement outside. When the
domain can't be made, no command runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final, NoReturn

FAILED: Final = 126
KEY_START: Final = "sk-ant-confined-"  # how every made-up key begins
KEY_DIGITS: Final = 48  # hexadecimal, that follow

_NO_NEW_PRIVS: Final = 38
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # Landlock's calls; the same number on every machine
_VERSION, _PATHS = 1, 1  # LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_PATH_BENEATH
_MAKE_BLOCK: Final = 1 << 11  # nobody makes block devices: it is allowed nowhere
# Writing, removing and making, by the ABI from which on a kernel knows the word.
_CHANGES: Final = ((1, 1 << 1 | 0b1_0111_1111 << 4), (2, 1 << 13), (3, 1 << 14))
_OF_FILES: Final = 1 << 1 | 1 << 14  # of these, what a file can have
_ABSTRACT: Final = 1  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
_SHELLS: Final = ("/bin/bash", "/usr/bin/bash", "/bin/zsh", "/usr/bin/zsh", "/bin/sh")


def main(words: list[str]) -> NoReturn:
    """Become a shell that runs the last word, a command line, and writes in the paths alone."""
    try:
        os.closerange(3, 1 << 16)
        last = 1 + int(words[0])
        _nest(words[1:last])
        _undisguise()
        for name in [name for name, value in os.environ.items() if _holds_key(value)]:
            del os.environ[name]
        _have_home()
        shell = _shell()
        # With what has a name, and nothing else: an entry of the environment may have none.
        words = [shell, "-c", _without_key(words[last])]
        os.execve(shell, words, os.environ)  # noqa: S606 - what the CLI was asked to run
    except BaseException as error:  # noqa: BLE001 - whatever it is, no command runs beside the CLI
        sys.stderr.write(f"agent-kit: the command could not be started: {error}\n")
        os._exit(FAILED)


def _holds_key(text: str) -> bool:
    """Whether a made-up key is in a text. The CLI writes its variables into a server's command line,
    and into its environment, where an ``.mcp.json`` says ``${ANTHROPIC_API_KEY}``."""
    return any(
        len(rest) >= KEY_DIGITS and not rest[:KEY_DIGITS].strip("0123456789abcdef")
        for rest in text.split(KEY_START)[1:]
    )


def _without_key(command: str) -> str:
    if _holds_key(command):
        raise ValueError("it holds the key that the CLI has, which is for nobody else")
    return command


def _undisguise() -> None:
    """Give the environment its names back, unless they are plain: a script has started this."""
    given = {name: value for name, value in os.environb.items() if name != b"LC_CTYPE"}
    if all(name[0] & 0x80 for name in given):  # but for what this interpreter has set itself
        os.environb.clear()
        for name, value in given.items():
            os.environb[bytes((name[0] & 0x7F,)) + name[1:]] = value


def _have_home() -> None:
    """A home to write to: the person's is not there, or not all of it, and programs keep caches.

    Where none can be made, the command has what it was given.
    """
    given = os.environ.get("HOME")
    if given and _can_write(given):
        return
    home = os.path.join(os.environ.get("TMPDIR", "/tmp"), "home")  # noqa: S108 - inside
    with contextlib.suppress(OSError):
        os.makedirs(home, mode=0o700, exist_ok=True)
        os.environ["HOME"] = home


def _can_write(folder: str) -> bool:
    """Whether a file can be made in a folder. Not every file system has files without a name."""
    name = os.path.join(folder, f".agent-kit-{os.getpid()}-{os.urandom(8).hex()}")
    return _opens(folder, os.O_TMPFILE) or (_opens(name, os.O_CREAT | os.O_EXCL) and _removed(name))


def _opens(path: str, flags: int) -> bool:
    try:
        os.close(os.open(path, flags | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _shell() -> str:
    """The shell that the CLI itself takes: the person's, where it knows it."""
    own = os.environ.get("SHELL", "")
    known = os.path.isabs(own) and os.path.basename(own) in ("bash", "zsh")
    return next(path for path in ((own,) if known else ()) + _SHELLS if os.access(path, os.X_OK))


def _nest(paths: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def call(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
        return result

    abi = call(libc.syscall(_CREATE, None, 0, _VERSION))
    changes = sum(rights for since, rights in _CHANGES if abi >= since)
    attributes = struct.pack("Q", _MAKE_BLOCK | changes)
    if abi >= 6:  # with the network open, the host's abstract sockets would be in reach
        attributes += struct.pack("QQ", 0, _ABSTRACT)
    ruleset = call(libc.syscall(_CREATE, attributes, len(attributes), 0))
    for file, rights in _opened(paths, changes):
        call(libc.syscall(_ADD, ruleset, _PATHS, struct.pack("<Qi", rights, file), 0))
        os.close(file)
    call(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    call(libc.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)


def _opened(paths: list[str], changes: int) -> Iterator[tuple[int, int]]:
    """What is at these paths itself, each with the rights for it; what leads elsewhere gets none."""
    for path in paths:
        try:
            file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            mode, name = os.fstat(file).st_mode, os.readlink(f"/proc/self/fd/{file}")
        except OSError:
            continue
        if stat.S_ISLNK(mode) or name != path:
            os.close(file)
        else:
            yield file, changes if stat.S_ISDIR(mode) else changes & _OF_FILES


if __name__ == "__main__":
    main(sys.argv[1:])
