"""The view as a mount namespace of its own, built by bubblewrap. Nothing of it outlives the session.

What isn't mounted doesn't exist inside. The root of the namespace is empty and read-only, processes
have a number space of their own, and with no network the loopback device is the session's alone, so
that abstract Unix sockets of the host can't be reached either.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from agent_kit.confine._landlock_filter import ARCHES, KEY_CALLS, assemble_beside
from agent_kit.confine._mounted import COPY
from agent_kit.confine.backend import Launch
from agent_kit.confine.programs import all_on_path, hidden_from_path, is_the_systems
from agent_kit.confine.system import is_system
from agent_kit.confine.view import ConfinedView, Mount, Sight

__all__ = ["DOCKER_FLAGS", "PODMAN_FLAGS", "Bubblewrap"]

_SPACES: Final = ("--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-uts")
_GUARDS: Final = ("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_INSTALL: Final = "install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap)."
# What lets it work in a container: the calls that make namespaces and mounts, a /proc with nothing
# covered (the kernel mounts no second one beside one that is), and no profile that forbids mounts.
DOCKER_FLAGS: Final = (
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    " --security-opt apparmor=unconfined"
)
PODMAN_FLAGS: Final = "--security-opt unmask=ALL --security-opt label=disable"
_ALLOW: Final = (
    "let it make user namespaces. On a machine: sysctl -w user.max_user_namespaces=10000, and where"
    " these exist kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0."
    f" In a container: docker run {DOCKER_FLAGS} …, or podman run {PODMAN_FLAGS} …"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """The backend. ``program`` is where ``bwrap`` is; by default the first one on ``PATH`` that is the
    system's: it is run on the host, and a session may write in folders that are on ``PATH``."""

    program: str | None = None

    @property
    def name(self) -> str:
        return "bubblewrap"

    @property
    def own_tmp(self) -> bool:
        """The namespace has a ``/tmp`` of its own."""
        return True

    def available(self) -> str | None:
        """Why it doesn't work here: it is tried once a process."""
        program, others = _found()
        if program := self.program or program:
            return _tried(program)
        there = f"{', '.join(others)} {_NOT_THE_SYSTEMS}" if others else "there is no bwrap"
        return hidden_from_path("bwrap") or f"{there}: {_INSTALL}"

    def hindered(self, view: ConfinedView) -> tuple[str, ...]:
        """A root's writable folders that belong to others: in the namespace it is a user like any."""
        if os.geteuid() != 0:
            return ()
        return tuple(m.path for m in view.mounts if m.sight is Sight.WRITE and _foreign(m.path))

    def notes(self, view: ConfinedView) -> tuple[str, ...]:
        """In plain sentences, what can't be written, and what isn't kept apart."""
        foreign = (
            f"{folder} belongs to another user: root can't write there inside; give it to root, or use"
            " confinement_backend='landlock'"
            for folder in self.hindered(view)
        )
        others = () if self.program else _found()[1]
        return (
            *foreign,
            *(f"{each} {_NOT_THE_SYSTEMS}" for each in others),
            *(() if os.uname().machine in ARCHES else (_NO_FILTER,)),
        )

    def launch(self, view: ConfinedView) -> Launch:
        """The command line. It holds paths and nothing secret; the mounts come from a descriptor."""
        program = self.program or _found()[0] or "/usr/bin/bwrap"
        return Launch(
            argv=(*_start(), "{fd}", os.path.abspath(program)),
            text=marshal.dumps(_described(view)),
        )


def _found() -> tuple[str | None, list[str]]:
    """The program, and those on ``PATH`` that are passed over."""
    found = list(dict.fromkeys(all_on_path("bwrap", None)))
    good = [each for each in found if is_the_systems(each)]
    return next(iter(good), None), [each for each in found if each not in good]


_NOT_THE_SYSTEMS: Final = "is passed over, since others than the system can write it"


def _described(view: ConfinedView) -> dict[str, Any]:
    """What the start program is told. The filter is of the machine's own processor, if it is known."""
    machine = os.uname().machine
    keys = KEY_CALLS.get(machine)
    return {
        "words": [*_arguments(view)],
        "filter": assemble_beside(machine),
        "keyctl": None if keys is None else keys.keyctl,
    }


def _start() -> tuple[str, ...]:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bubblewrap_start.py")
    return (os.path.abspath(sys.executable), "-I", "-S", program)


def _foreign(path: str) -> bool:
    try:
        return os.stat(path).st_uid != 0
    except OSError:  # made at the start, by root
        return False


_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"  # not the host's


@cache
def _tried(program: str) -> str | None:
    trial = [program, *_SPACES, *_GUARDS, "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc"]
    try:
        done = subprocess.run(  # noqa: S603 - a program of the system
            [*trial, "--", "true"],
            capture_output=True,
            timeout=20,
            check=False,
            env={**os.environ, "PATH": f"{os.path.dirname(program)}:{_PATH}"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} could not be run ({error}): {_INSTALL}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines() or [str(done.returncode)]
    why = said[-1].removeprefix("bwrap: ").replace(": ", ", ")
    return f"{program} failed ({why}): {_ALLOW}"


_Argument = tuple[str, tuple[str, ...]]
"""Words for bubblewrap, and the path that must still be there when it starts; ``""``: none."""


def _arguments(view: ConfinedView) -> Iterator[_Argument]:
    yield "", (*_SPACES, *_GUARDS, *(() if view.network else ("--unshare-net",)))
    real = {path: os.path.realpath(path) for path in view.system}
    seen = view.uncovered(real.values())
    yield from (("", _system(path)) for path in view.system if real[path] in seen)
    yield "", ("--proc", "/proc", *_of_proc(), "--dev", "/dev")
    yield "", ("--tmpfs", "/tmp")  # noqa: S108 - inside
    placed = [(mount.path, _mount(mount, view)) for mount in (*view.whole, *_pinned(view))]
    links = (link for link in view.links if not is_system(link[0]))  # those are there already
    placed += [(name, ("", ("--symlink", target, name))) for name, target in links]
    yield from (argument for _, argument in sorted(placed))
    for path in view.sockets:
        yield "", ("--bind", path, path)
    for mount in view.whole:  # last: a single file may have been put into one
        if mount.sight is Sight.NOTHING and mount.folder:
            yield _needed(mount, view), ("--remount-ro", mount.path)
    yield "", ("--remount-ro", "/", "--chdir", view.cwd)


def _of_proc() -> Iterator[str]:
    """The machine's part of ``/proc``, read-only, and what is for its root alone covered.

    Who is root outside would write its settings: the kernel asks for the user, not for rights.
    """
    for name in sorted(os.listdir("/proc")):
        path = f"/proc/{name}"
        mode = 0 if name.isdecimal() else os.lstat(path).st_mode
        if stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and mode & 0o222):
            yield from ("--ro-bind", path, path)
        elif stat.S_ISREG(mode) and (name in _TELLS or not mode & 0o004):
            yield from ("--ro-bind", "/dev/null", path)


_TELLS: Final = ("kallsyms", "key-users", "keys", "sched_debug")  # of others, and of the kernel
_NO_FILTER: Final = (
    "the system-call filter is not written for this machine: keys that the kernel keeps for the user's"
    " processes, and sockets of families such as AF_VSOCK, can be used inside"
)


def _pinned(view: ConfinedView) -> list[Mount]:
    """The folders between a writable one and what is mounted in it, each mounted onto itself.

    A mount moves with the folder that it lies in, and a mount point can't be renamed: without these
    a covered file would get a name at which the host doesn't look for it.
    """
    known = {mount.path: mount.sight for mount in view.whole}
    found: set[str] = set()
    for path in known:
        between = []
        while (path := os.path.dirname(path)) not in known and path != "/":
            between.append(path)
        if known.get(path) is Sight.WRITE:
            found.update(between)
    return [Mount(path=path, sight=Sight.WRITE) for path in found]


def _system(path: str) -> tuple[str, ...]:
    """A small file is copied: each mount costs as much time as all the others before it."""
    if os.path.islink(path) and _leads_to_system(path, os.readlink(path)):
        return ("--symlink", os.readlink(path), path)  # /bin -> usr/bin
    with contextlib.suppress(OSError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode) and found.st_size <= _SMALL and os.access(path, os.R_OK):
            return (COPY, path, path)
    return ("--ro-bind-try", path, path)


_SMALL: Final = 256 * 1024  # bytes


def _leads_to_system(path: str, target: str) -> bool:
    """Whether a link leads down from where it is, to what is there inside as well."""
    down = not os.path.isabs(target) and ".." not in target.split("/")
    return down and is_system(os.path.join(os.path.dirname(path), target))


def _needed(mount: Mount, view: ConfinedView) -> str:
    """The host's path without which a mount is left out: what is shown there, or what is covered.

    ``""`` for a working folder that nothing opens: it is made inside, whatever the host has.
    """
    if mount.sight is Sight.NOTHING:
        return "" if mount.path == view.cwd else mount.path
    return mount.source or mount.path


def _mount(mount: Mount, view: ConfinedView) -> _Argument:
    if mount.sight is not Sight.NOTHING:
        bind = "--bind" if mount.sight is Sight.WRITE else "--ro-bind"
        words: tuple[str, ...] = (bind, mount.source or mount.path, mount.path)
    elif mount.folder:
        words = ("--tmpfs", mount.path)
    else:
        words = ("--ro-bind", "/dev/null", mount.path)
    return _needed(mount, view), words
