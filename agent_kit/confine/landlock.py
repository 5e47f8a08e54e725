"""The view held by Landlock: no privileges, no namespaces, and so inside containers as well.

Landlock holds what can be read, listed, executed, written, created, renamed and removed. What it
has no word for is held beside it: a system-call filter refuses what no honest work on files needs,
and a watcher outside carries out what depends on a path in memory: modes, owners and times, and
connections to Unix sockets. What the three leave open is in :func:`limits`.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from agent_kit.confine import _landlock_filter
from agent_kit.confine.backend import ConfinementUnavailableError, Launch
from agent_kit.confine.landlock_rules import Group, Rule, TooManyRules, make_rules
from agent_kit.confine.view import ConfinedView, Sight

__all__ = ["Landlock", "abi_version", "limits"]

_CREATE_RULESET: Final = 444
_VERSION: Final = 1  # LANDLOCK_CREATE_RULESET_VERSION

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_MAKE_FIFO, _MAKE_SYM, _REFER, _TRUNCATE, _IOCTL = 1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 15

# Which kernel rights a group is. No sockets, devices or commands to devices are made by anybody.
_RIGHTS: Final = {
    Group.CONTENT: _READ_FILE | _EXECUTE,  # what can be read can be copied and run anyway
    Group.NAMES: _READ_DIR,
    Group.CHANGE: _WRITE_FILE
    | _TRUNCATE
    | _REMOVE_DIR
    | _REMOVE_FILE
    | _MAKE_DIR
    | _MAKE_REG
    | _MAKE_FIFO
    | _MAKE_SYM
    | _REFER,  # moving within writable folders; a file never gains rights by it
}
FILE_RIGHTS: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
READING: Final = _READ_FILE | _READ_DIR
"""The kernel's rights to read files and list folders, and to run nothing."""
_HANDLED: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}

# Beside the view. Of /proc, the machine and the CLI's own process; another process's folder tells
# its command line, so no other one is there.
_READ: Final = Group.CONTENT | Group.NAMES
_MACHINE: Final = (
    Rule(path="/dev/null", groups=_READ | Group.CHANGE),
    Rule(path="/dev/zero", groups=_READ | Group.CHANGE),
    Rule(path="/dev/full", groups=_READ | Group.CHANGE),
    Rule(path="/dev/random", groups=_READ),
    Rule(path="/dev/urandom", groups=_READ),
    Rule(path="/proc/self", groups=_READ),
    Rule(path="/proc/cpuinfo", groups=_READ),
    Rule(path="/proc/filesystems", groups=_READ),
    Rule(path="/proc/loadavg", groups=_READ),
    Rule(path="/proc/meminfo", groups=_READ),
    Rule(path="/proc/stat", groups=_READ),
    Rule(path="/proc/sys", groups=_READ),
    Rule(path="/proc/uptime", groups=_READ),
    Rule(path="/proc/version", groups=_READ),
)

_OLD: Final = (
    (2, "before ABI 2 (Linux 5.19) nothing can be moved from one folder to another"),
    (3, "before ABI 3 (Linux 6.2) files are not emptied by name: truncate is refused altogether"),
    (6, "before ABI 6 (Linux 6.12) other processes of the same user can be sent signals"),
)
_ALWAYS: Final = (
    "whether any file exists, its size, times and owner, and where a link leads, can be asked inside",
    "nothing inside can offer a Unix socket, a named queue, shared memory or a pseudo-terminal",
    "processes inside see no other process in /proc but the CLI",
    "what a file is allowed counts for all its names: hard links are the business of the view",
)
_NO_NETWORK: Final = "without the network, no connection inside the machine can be made either"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landlock:
    """The backend. There is nothing to set."""

    @property
    def name(self) -> str:
        return "landlock"

    @property
    def own_tmp(self) -> bool:
        return False

    def available(self) -> str | None:
        """Why it doesn't work here, and what would change that: it is tried once a process."""
        return _tried()

    def launch(self, view: ConfinedView) -> Launch:
        """The command line. Paths alone are handed over, through the descriptor.

        Raises :class:`ConfinementUnavailableError` when closed entries lie among too many others.
        """
        try:
            text = marshal.dumps(_described(view))
        except TooManyRules as error:
            raise ConfinementUnavailableError(
                f"landlock can't hold this session: {error}. Move what is closed out of that folder,"
                " or install bubblewrap."
            ) from error
        return Launch(argv=(*_start(), "{fd}", "--"), text=text)

    def hindered(self, view: ConfinedView) -> tuple[str, ...]:
        """Folders that the view opens and that can't be fully used: what is closed in them is why."""
        return make_rules(_resolved(view)).hindered

    def notes(self, view: ConfinedView) -> tuple[str, ...]:
        """In plain sentences, what is lost or left open with this view on this machine."""
        rules = make_rules(_resolved(view))
        other = [
            f"{m.path}: is seen under its own name, {m.source}" for m in view.mounts if m.source
        ]
        return (*rules.notes, *other, *limits(abi_version(), network=view.network))


def limits(abi: int, *, network: bool) -> tuple[str, ...]:
    """What this backend leaves open, or takes away, whatever the view."""
    old = (sentence for needed, sentence in _OLD if abi < needed)
    return (*_ALWAYS, *old, *(() if network else (_NO_NETWORK,)))


def _start() -> tuple[str, ...]:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_landlock_start.py")
    return (os.path.abspath(sys.executable), "-I", "-S", program)


def _resolved(view: ConfinedView) -> ConfinedView:
    return replace(view, system=tuple(sorted({os.path.realpath(path) for path in view.system})))


def _described(view: ConfinedView) -> dict[str, Any]:
    """What the start program is told. Rights are the kernel's numbers."""
    view = _resolved(view)
    abi, machine = abi_version(), os.uname().machine
    rules = (*make_rules(view).rules, *_MACHINE)
    return {
        "abi": abi,
        "handled": handled(abi),
        "file_rights": FILE_RIGHTS,
        "rules": [(rule.path, _rights(rule.groups)) for rule in rules],
        "writable": dict(_writable(view)),
        "sockets": [_in_its_real_folder(path) for path in view.sockets],
        "network": view.network,
        "filter": _landlock_filter.assemble(machine, network=view.network, abi=abi),
        "asked": _landlock_filter.asked(machine),
        "cwd": view.cwd,
    }


def handled(abi: int) -> int:
    """The rights that a Landlock of this version holds."""
    return _HANDLED[max(known for known in _HANDLED if known <= max(abi, 1))]


def _in_its_real_folder(path: str) -> str:
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _rights(groups: Group) -> int:
    return sum(rights for group, rights in _RIGHTS.items() if group & groups)


def _writable(view: ConfinedView) -> Iterator[tuple[str, bool]]:
    """Where the watcher changes modes and times, by the nearest path above."""
    if view.tmp:
        yield view.tmp, True
    for path in view.system:
        yield path, False
    for mount in view.mounts:
        writes = mount.sight is Sight.WRITE
        yield mount.path, writes and not mount.source
        if mount.source:
            yield mount.source, writes


@cache
def abi_version() -> int:
    """What this kernel's Landlock can do; 0 when there is none, or it can't be used."""
    return max(_asked()[0], 0)


def _asked() -> tuple[int, int]:
    """The ABI's number, or less than 0 and the error's."""
    if not sys.platform.startswith("linux"):
        return -1, errno.ENOSYS
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(_CREATE_RULESET, None, 0, _VERSION), ctypes.get_errno()


_WHY: Final = {
    errno.ENOSYS: "this kernel has no Landlock: use Linux 5.13 or newer, built with it.",
    errno.EOPNOTSUPP: "Landlock is switched off: put landlock into the kernel's lsm= parameter.",
    errno.EPERM: "the container forbids Landlock: use a newer container engine, or allow landlock_*"
    " in its seccomp profile.",
}


@cache
def _tried() -> str | None:
    if not sys.platform.startswith("linux"):
        return "Landlock is part of Linux."
    if os.uname().machine not in _landlock_filter.ARCHES:
        return f"the system-call filter is not written for {os.uname().machine}: use bubblewrap."
    abi, code = _asked()
    if abi < 1:
        return _WHY.get(code, f"Landlock can't be used ({os.strerror(code)}).")
    return _trial()


def _trial() -> str | None:
    """Start a program inside a small view, and let it do what the watcher has to carry out."""
    with tempfile.TemporaryDirectory() as folder:
        own = os.path.realpath(folder)
        view = ConfinedView(mounts=(), cwd=own, tmp=own, system=("/usr", "/bin", "/lib", "/lib64"))
        launch = Landlock().launch(view)
        handle = os.memfd_create("agent-kit")
        try:
            os.write(handle, launch.text or b"")
            os.lseek(handle, 0, os.SEEK_SET)
            return _outcome([word.replace("{fd}", str(handle)) for word in launch.argv], handle)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"a first confined program could not be run ({error})."
        finally:
            os.close(handle)


def _outcome(start: list[str], handle: int) -> str | None:
    done = subprocess.run(  # noqa: S603 - our own program
        [*start, "/bin/sh", "-c", "chmod 700 . && ! ls /"],
        env={**os.environ, "PATH": "/usr/local/bin:/usr/bin:/bin"},  # whatever the host's says
        pass_fds=[handle],
        capture_output=True,
        timeout=20,
        check=False,
    )
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
    return (
        f"a first confined program failed ({said}): in a container, allow seccomp and landlock_*;"
        " elsewhere, kernel.yama.ptrace_scope must be 0 or 1."
    )
