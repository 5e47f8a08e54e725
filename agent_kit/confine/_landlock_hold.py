"""How a process puts Landlock and a system-call filter on itself, for good.

Standard library only, and nothing of the kit: whoever runs alone loads it by its path.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_NO_NEW_PRIVS: Final = 38
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # Landlock's calls; the same number on every machine
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_PATHS: Final = 1  # LANDLOCK_RULE_PATH_BENEATH
_LISTENER: Final = 8  # SECCOMP_FILTER_FLAG_NEW_LISTENER
_UNINTERRUPTED: Final = 32  # SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, since 5.19
_ALL_NETWORK, _ALL_SCOPES = 3, 3  # bind and connect; abstract sockets and signals

libc: Final = ctypes.CDLL(None, use_errno=True)


def control(option: int, value: int, more: int = 0) -> None:
    """``prctl``. Raises ``OSError``."""
    checked(libc.prctl(option, value, more, 0, 0), f"prctl {option}")


def checked(result: int, what: str) -> int:
    """The result of a call of the C library. Raises ``OSError`` where it failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def give_up_rights() -> None:
    """No program that is started gains any: without this nothing can be held."""
    control(_NO_NEW_PRIVS, 1)


def restrict_files(described: dict[str, Any]) -> None:
    """Hold this process, and all that it starts, to ``rules``: paths, and the kernel's rights there."""
    handled, abi = described["handled"], described["abi"]
    attributes = struct.pack("Q", handled)
    if abi >= 4:
        attributes += struct.pack("Q", _ALL_NETWORK if not described["network"] else 0)
    if abi >= 6:
        attributes += struct.pack("Q", _ALL_SCOPES)
    made = libc.syscall(_CREATE, attributes, len(attributes), 0)
    ruleset = checked(made, "Landlock")
    for path, rights in described["rules"]:
        _allow(ruleset, path, rights & handled, described["file_rights"])
    checked(libc.syscall(_RESTRICT, ruleset, 0), "Landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int, file_rights: int) -> None:
    """Give rights on what is at ``path`` itself; what has gone, or leads elsewhere, gets none."""
    if path == "/proc/self":
        path = f"/proc/{os.getpid()}"
    try:
        file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        found = os.fstat(file).st_mode
        if stat.S_ISLNK(found) or os.readlink(f"/proc/self/fd/{file}") != path:
            return
        rights &= -1 if stat.S_ISDIR(found) else file_rights
        rule = struct.pack("<Qi", rights, file)
        if rights:
            checked(libc.syscall(_ADD, ruleset, _PATHS, rule, 0), f"Landlock, {path}")
    finally:
        os.close(file)


def watched_filter(text: bytes) -> int:
    """Put the filter on. Returns the descriptor on which a watcher hears of calls."""
    for flags in (_LISTENER | _UNINTERRUPTED, _LISTENER):
        listener = _put_on(text, flags)
        if listener >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    return checked(listener, "the system-call filter")


def unwatched_filter(text: bytes) -> None:
    """Put the filter on. What it would ask a watcher about fails, as if the kernel had no such call."""
    checked(_put_on(text, 0), "the system-call filter")


def _put_on(text: bytes, flags: int) -> int:
    held = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("@HP", len(text) // 8, ctypes.addressof(held))
    return int(libc.syscall(_SECCOMP[os.uname().machine], 1, flags, program))
