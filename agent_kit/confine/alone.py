"""What a process of ours locks itself with before it reads what a stranger made.

No watcher stands beside it, as one does beside a confined CLI: it reads what it needs, writes nothing,
and makes no connection. It loads :data:`HOLD` by its path, so that it needs nothing else of the kit.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

from agent_kit.confine import _landlock_filter, landlock

__all__ = ["HOLD", "reading_lock"]

HOLD: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_landlock_hold.py")
"""The module whose functions put the lock on."""

# What any program loads its libraries by. Of /etc, tables of the system that libraries look at.
_SYSTEM: Final = (
    *("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32"),
    *("/usr/local/lib", "/usr/local/lib64", "/usr/share/zoneinfo", "/gnu/store", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/ssl/openssl.cnf"),
    *("/dev/null", "/dev/urandom"),
)


@cache
def reading_lock() -> dict[str, Any]:
    """The lock in JSON's types; empty where the kernel has no Landlock.

    ``rules`` are those of the system's libraries: the process adds the folders of its own, with the
    rights ``reading``. ``filter`` is the system-call filter in hexadecimal digits, empty on a kind of
    processor that it isn't written for.
    """
    abi, machine = landlock.abi_version(), os.uname().machine
    if abi < 1:
        return {}
    known = machine in _landlock_filter.ARCHES
    text = _landlock_filter.assemble(machine, network=False, abi=abi) if known else b""
    reading = landlock.READING
    return {
        "hold": HOLD,
        "abi": abi,
        "handled": landlock.handled(abi),
        "file_rights": landlock.FILE_RIGHTS,
        "network": False,
        "reading": reading,
        "rules": [(path, reading) for path in sorted({*map(os.path.realpath, _SYSTEM)})],
        "filter": text.hex(),
    }
