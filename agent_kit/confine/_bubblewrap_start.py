"""Becomes bubblewrap, and lets the program inside begin when what is mounted is what was planned.

Run as ``python -I -S _bubblewrap_start.py FD BWRAP PROGRAM WORDS…``. ``FD`` holds the description,
marshalled (see :mod:`agent_kit.confine.bubblewrap`): bubblewrap's words in groups, each with the path that
it needs, and the system-call filter. Standard library only; nothing is looked up in the working
folder or on ``PATH``.

Bubblewrap would make an empty file on the host where a covered one has gone, end where a folder has,
and mount what a link leads to where one has come in a folder's place. So a group counts only while
its path is there and is still a real one. What becomes of a path while bubblewrap works is judged at
its end: a shell inside waits until a process outside has looked at every mount.

Keys of the kernel know no namespace: the session gets a keyring of its own, and a system-call filter
refuses the calls. It refuses sockets of families that know no namespace either (``AF_VSOCK``), too.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import errno
import fcntl
import marshal
import os
import resource
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn

if TYPE_CHECKING or __package__:
    from agent_kit.confine import _mounted as mounted
else:  # it runs alone: the package is not there, its neighbours are
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import _mounted as mounted

FAILED: Final = 126
_JOIN_SESSION_KEYRING: Final = 1
# There are none, or a container's rules.
_NO_KEYS: Final = (errno.ENOSYS, errno.EPERM, errno.EACCES)
_HELD_BACK: Final = 64  # descriptors that are left for other things

# What runs inside first, on descriptor 9: a shell knows no number of two digits.
_GATE: Final = 9
_WAIT: Final = 'printf . >&9 && read -r AGENT_KIT_GO <&9 && exec 9>&- && exec "$@"; exit 126'


def main(arguments: list[str]) -> NoReturn:
    """Become ``arguments[1]`` with what the descriptor ``arguments[0]`` holds, then the rest."""
    try:
        with os.fdopen(int(arguments[0]), "rb") as text:
            described = marshal.loads(text.read())  # noqa: S302 - the host's
        kept = _Sources()
        groups = [group for needed, group in described["words"] if kept.has(needed)]
        words = [word for group in groups for word in _copied(group)]
        plan = mounted.planned(words, kept.identity)
        if described["keyctl"] is not None:
            _have_own_keyring(described["keyctl"])
        _look_later(plan)
        if described["filter"]:
            words += ["--seccomp", str(_readable(described["filter"]))]
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file holds what its process held
        program = ("/bin/sh", "-c", _WAIT, "sh", *arguments[2:])
        os.execv(  # noqa: S606 - what the host described
            arguments[1], [arguments[1], "--args", str(_handle(words)), "--", *program]
        )
    except BaseException as error:  # noqa: BLE001 - whatever it is, nothing runs unconfined
        _say(error)
        os._exit(FAILED)


def _say(why: object) -> None:
    with contextlib.suppress(OSError):  # nobody may be listening
        os.write(2, f"agent-kit: the confined program could not be started: {why}\n".encode())


def _copied(group: list[str]) -> list[str]:
    """The words of a group; a file that is to be copied is opened, one that has gone is left out."""
    if group[0] != mounted.COPY:
        return group
    try:
        file = os.open(group[1], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    above = fcntl.fcntl(file, fcntl.F_DUPFD, _GATE + 1)  # that number is taken later
    os.close(file)
    return ["--file", str(above), group[2]]


class _Sources:
    """What is at the paths of the plan now. Held open, so that no other file gets the same number."""

    def __init__(self) -> None:
        self._found: dict[str, mounted.Identity | None] = {}
        self._left = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _HELD_BACK

    def has(self, path: str) -> bool:
        """Whether a path of the plan is there, itself and not through a link; ``""``: none."""
        return not path or self._real(path) is not None

    def identity(self, path: str) -> mounted.Identity | None:
        """Device and number of a source, links followed where the plan didn't resolve them."""
        if path in self._found:
            return self._found[path]
        with contextlib.suppress(OSError):
            return mounted.identity(os.stat(path))
        return None

    def _real(self, path: str) -> mounted.Identity | None:
        if path not in self._found:
            self._found[path] = self._opened(path)
        return self._found[path]

    def _opened(self, path: str) -> mounted.Identity | None:
        try:
            file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        found, status = None, os.fstat(file)
        if not stat.S_ISLNK(status.st_mode) and os.readlink(f"/proc/self/fd/{file}") == path:
            found = mounted.identity(status)
        if found is None or file > self._left:
            os.close(file)
        return found


def _look_later(plan: mounted.Plan) -> None:
    """A process that looks when the shell inside says that all is mounted, and lets it go on."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    ours.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)  # who writes is told by the kernel
    if os.fork() == 0:
        try:
            theirs.close()
            _look(plan, ours)
        except BaseException as error:  # noqa: BLE001 - the shell then hears of an end
            _say(error)
        os._exit(0)
    ours.close()
    os.dup2(theirs.detach(), _GATE)
    os.set_inheritable(_GATE, True)  # it may have had this number before


def _look(plan: mounted.Plan, ours: _socket.socket) -> None:
    text, extra, _, _ = ours.recvmsg(1, _socket.CMSG_SPACE(12))
    if not text:  # bubblewrap failed, and has said why
        return
    process = struct.unpack("3i", extra[0][2][:12])[0]
    if faults := mounted.faults(plan, process):
        raise RuntimeError(
            f"what is mounted is not what was planned ({'; '.join(faults[:3])}): something moved"
            " meanwhile, start it again"
        )
    ours.send(b"\n")


def _have_own_keyring(keyctl: int) -> None:
    """A session keyring with nothing in it, in place of the one that the host's processes share."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(keyctl, _JOIN_SESSION_KEYRING, None) < 0:
        code = ctypes.get_errno()
        if code not in _NO_KEYS:
            raise OSError(code, f"a keyring: {os.strerror(code)}")


def _handle(words: list[str]) -> int:
    """A descriptor that bubblewrap reads the words from."""
    return _readable(b"".join(os.fsencode(word) + b"\0" for word in words))


def _readable(text: bytes) -> int:
    handle = os.memfd_create("agent-kit", 0)
    os.write(handle, text)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


if __name__ == "__main__":
    main(sys.argv[1:])
