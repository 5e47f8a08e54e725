"""The view as a mount namespace of its own, built by bubblewrap. Nothing of it outlives the session.

What isn't mounted doesn't exist inside. The root of the namespace is empty and read-only, processes
have a number space of their own, and with no network the loopback device is the session's alone, so
that abstract Unix sockets of the host can't be reached either.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent_kit.confine.backend import Launch
from agent_kit.confine.programs import on_path
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
    """The backend. ``program`` is where ``bwrap`` is; by default the one on ``PATH``."""

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
        program = self.program or on_path("bwrap", None)
        if program is None:
            return f"there is no bwrap: {_INSTALL}"
        return _tried(program)

    def hindered(self, view: ConfinedView) -> tuple[str, ...]:
        """A root's writable folders that belong to others: in the namespace it is a user like any."""
        if os.geteuid() != 0:
            return ()
        return tuple(m.path for m in view.mounts if m.sight is Sight.WRITE and _foreign(m.path))

    def notes(self, view: ConfinedView) -> tuple[str, ...]:
        """In plain sentences, what can't be written."""
        return tuple(
            f"{folder} belongs to another user: root can't write there inside; give it to root, or use"
            " confinement_backend='landlock'"
            for folder in self.hindered(view)
        )

    def launch(self, view: ConfinedView) -> Launch:
        """The command line. It holds paths and nothing secret; the mounts come from a descriptor."""
        program = self.program or on_path("bwrap", None) or "bwrap"
        return Launch(
            argv=(os.path.abspath(program), "--args", "{fd}", "--"),
            env=view.env,
            text="\0".join(_arguments(view)) + "\0",
        )


def _foreign(path: str) -> bool:
    try:
        return os.stat(path).st_uid != 0
    except OSError:  # made at the start, by root
        return False


@cache
def _tried(program: str) -> str | None:
    trial = [program, *_SPACES, *_GUARDS, "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc"]
    try:
        done = subprocess.run(  # noqa: S603 - a program of the system
            [*trial, "--", "true"], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} could not be run ({error}): {_INSTALL}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines() or [str(done.returncode)]
    why = said[-1].removeprefix("bwrap: ").replace(": ", ", ")
    return f"{program} failed ({why}): {_ALLOW}"


def _arguments(view: ConfinedView) -> Iterator[str]:
    yield from (*_SPACES, *_GUARDS)
    if not view.network:
        yield "--unshare-net"
    for path in view.system:
        yield from _system(path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")  # noqa: S108 - inside
    bare = view.sight(view.cwd) is Sight.NOTHING
    if bare:  # it exists, and holds nothing but what is mounted in it
        yield from ("--tmpfs", view.cwd)
    for name, target in view.links:
        yield from ("--symlink", target, name)
    for mount in sorted((*view.mounts, *_pinned(view))):
        yield from _mount(mount)
    for path in view.sockets:
        yield from ("--bind", path, path)
    for path in _empty_folders(view, bare):  # last: a single file may have been put into one
        yield from ("--remount-ro", path)
    yield from ("--remount-ro", "/", "--chdir", view.cwd)


def _pinned(view: ConfinedView) -> list[Mount]:
    """The folders between a writable one and what is closed in it, each mounted onto itself.

    A mount moves with the folder that it lies in, and a mount point can't be renamed: without these
    a covered file would get a name at which the host doesn't look for it.
    """
    known = {mount.path: mount.sight for mount in view.mounts}
    found = set()
    for mount in view.mounts:
        folder = os.path.dirname(mount.path)
        while folder not in known and folder != "/":
            found.add(folder)
            folder = os.path.dirname(folder)
        if known.get(folder) is not Sight.WRITE:
            found -= {path for path in found if mount.path.startswith(f"{path}/")}
    return [Mount(path=path, sight=Sight.WRITE) for path in found]


def _empty_folders(view: ConfinedView, bare: bool) -> Iterator[str]:
    if bare:
        yield view.cwd
    for mount in view.mounts:
        if mount.sight is Sight.NOTHING and mount.folder:
            yield mount.path


def _system(path: str) -> Iterator[str]:
    if os.path.islink(path) and "/" not in os.readlink(path).strip("/"):
        yield from ("--symlink", os.readlink(path), path)  # /bin -> usr/bin
    else:
        yield from ("--ro-bind-try", path, path)


def _mount(mount: Mount) -> Iterator[str]:
    if mount.sight is Sight.NOTHING:
        if mount.folder:
            yield from ("--tmpfs", mount.path)
        else:
            yield from ("--ro-bind", "/dev/null", mount.path)
        return
    bind = "--bind" if mount.sight is Sight.WRITE else "--ro-bind"
    yield from (bind, mount.source or mount.path, mount.path)
