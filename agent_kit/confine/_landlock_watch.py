"""The watcher: stays outside a Landlock confinement and answers what depends on a path in memory.

Standard library only, and little of it: it is loaded by the program that starts a confined CLI. The
filter hands it three kinds of calls. What a call says is copied once, judged, and then carried out
*here*, on what was judged; the caller's memory may change as it likes meanwhile.

* A new Unix socket is one that is connected already, to nobody: nothing can be reached with it.
* Connecting it puts a socket in its place that the watcher has connected, if its path is in the
  view. Other sockets' connections are the kernel's business: the filter decided which exist.
* Modes, owners and times change where the view says "write".

It is let go when the CLI has ended, and takes with it what the CLI has started.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import errno
import fcntl
import os
import select
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator, Mapping
    from typing import Final, NoReturn
else:  # the same, without enumerations: they take longer to load
    import _signal as signal

__all__ = ["HOST_ENDED", "Sights", "Watcher", "end_children", "pass_on_signals"]

_RECEIVE, _SEND, _VALID, _ADD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_NOTICE: Final = struct.Struct("<QIIiIQ6Q")  # id, process, flags; call, machine, place, arguments
_ADDED: Final = struct.Struct("<QIIII")
_ANSWER: Final = struct.Struct("<QqiI")
_CONTINUE: Final = 1
_SET: Final = 1  # SECCOMP_ADDFD_FLAG_SETFD: in the place of the descriptor of that number
_HERE: Final = -100  # AT_FDCWD
_EMPTY: Final = 0x1000  # AT_EMPTY_PATH
_NOFOLLOW: Final = 0x100  # AT_SYMLINK_NOFOLLOW
_CLOSES: Final = 0o2000000  # close on exec, in a socket's type and in a descriptor's flags
_SPECIAL_BITS: Final = 0o6000  # set user id, set group id
HOST_ENDED: Final = signal.SIGUSR2  # the signal that says so
_LONGEST: Final = 4096  # bytes of a path
_LONGEST_ADDRESS: Final = 128

_libc: Final = ctypes.CDLL(None, use_errno=True)


class Sights:
    """Where can be written, by the nearest path above; and the Unix sockets of the view."""

    __slots__ = ("sockets", "writable")

    def __init__(self, writable: Mapping[str, bool], sockets: frozenset[str]) -> None:
        self.writable, self.sockets = writable, sockets

    def writes(self, path: str) -> bool:
        """Whether the view lets ``path`` (absolute, links resolved) be changed."""
        while path not in self.writable:
            if path in ("", "/"):
                return False
            path = path.rpartition("/")[0] or "/"
        return self.writable[path]


class _Notice:
    """One call of a confined process, which waits for the answer."""

    __slots__ = ("arguments", "id", "process")

    def __init__(self, number: int, process: int, arguments: tuple[int, ...]) -> None:
        self.id, self.process, self.arguments = number, process, arguments

    def number(self, index: int) -> int:
        """An argument that is a C int."""
        low = self.arguments[index] & 0xFFFFFFFF
        return low - (1 << 32) if low >> 31 else low


class _Answer:
    __slots__ = ("flags", "value")

    def __init__(self, value: int = 0, flags: int = 0) -> None:
        self.value, self.flags = value, flags


class Watcher:
    """Answers until the CLI ends. ``names``: the call that each number of this machine stands for."""

    def __init__(self, listener: int, sights: Sights, names: Mapping[int, str]) -> None:
        self._listener = listener
        self._sights = sights
        self._names = names

    def watch(self, child: int) -> int:
        """Serve until ``child`` ends; end what it has left. Returns how it ended, as ``wait`` says."""
        ended = os.pidfd_open(child)
        polled = select.poll()
        polled.register(self._listener, select.POLLIN)
        polled.register(ended, select.POLLIN)
        while True:
            ready = dict(polled.poll())
            if ended in ready:
                return self._finish(child)
            if ready.get(self._listener, 0) & select.POLLIN:
                self._answer_one()
            else:  # nobody is left who could ask
                polled.unregister(self._listener)

    def _finish(self, child: int) -> int:
        _, status = os.waitpid(child, 0)
        os.close(self._listener)  # whoever still asks is refused
        end_children()
        return status

    def _answer_one(self) -> None:
        raw = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, raw)
        except OSError:  # the caller was ended, or interrupted
            return
        fields = _NOTICE.unpack(raw)
        answer, error = self._judged(fields[3], _Notice(fields[0], fields[1], fields[6:]))
        with contextlib.suppress(OSError):  # it did not wait
            said = _ANSWER.pack(fields[0], answer.value, -error, answer.flags)
            fcntl.ioctl(self._listener, _SEND, said)

    def _judged(self, call: int, notice: _Notice) -> tuple[_Answer, int]:
        try:
            return _KINDS[self._names[call]](self, notice), 0
        except OSError as refused:
            return _Answer(), refused.errno or errno.EACCES
        except Exception:  # noqa: BLE001 - whatever it is, the call is not carried out
            return _Answer(), errno.EACCES

    # --- Unix sockets ---------------------------------------------------------------------------

    def socket(self, notice: _Notice) -> _Answer:
        kept, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        with contextlib.closing(kept), contextlib.closing(other):
            kind = notice.number(1)
            kept.setblocking(not kind & os.O_NONBLOCK)
            return _Answer(self._give(notice, kept.fileno(), kind & _CLOSES))

    def connect(self, notice: _Notice) -> _Answer:
        size = min(notice.arguments[2], _LONGEST_ADDRESS)
        address = _memory(notice, notice.arguments[1], size)
        if int.from_bytes(address[:2], "little") != _socket.AF_UNIX:
            return _Answer(flags=_CONTINUE)  # no Unix socket that could be connected exists inside
        path = address[2:].partition(b"\0")[0]
        with _opened(notice, _HERE, path, 0) as file:
            if _place(file) not in self._sights.sockets:
                raise PermissionError(errno.EACCES, "not in the view")
            return self._connected(notice, file)

    def _connected(self, notice: _Notice, file: int) -> _Answer:
        target = notice.number(0)
        flags = _flags(notice, target)
        made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        with contextlib.closing(made):
            made.setblocking(False)  # a full queue is the caller's to wait for
            made.connect(f"/proc/self/fd/{file}")
            made.setblocking(not flags & os.O_NONBLOCK)
            self._give(notice, made.fileno(), flags & _CLOSES, place=target)
        return _Answer()

    def _give(self, notice: _Notice, file: int, closes: int, place: int | None = None) -> int:
        """A descriptor of ours becomes one of theirs. Returns its number there."""
        flags, number = (0, 0) if place is None else (_SET, place)
        added = bytearray(_ADDED.pack(notice.id, flags, file, number, closes))
        return int(fcntl.ioctl(self._listener, _ADD, added))

    # --- modes, owners, times -------------------------------------------------------------------

    @contextlib.contextmanager
    def _changed(
        self, notice: _Notice, folder: int, place: int | None, flags: int
    ) -> Iterator[int]:
        """The file that a call names, as a descriptor, when the view lets it be changed."""
        path = None if place is None else _text(notice, place)
        with _opened(notice, folder, path, flags) as file:
            if not self._sights.writes(_place(file)):
                raise PermissionError(errno.EACCES, "not writable in the view")
            fcntl.ioctl(self._listener, _VALID, struct.pack("<Q", notice.id))
            yield file

    def mode(self, notice: _Notice, folder: int, place: int | None, at: int, flags: int) -> _Answer:
        """Change a mode; ``at`` is the argument's index."""
        mode = notice.arguments[at] & 0o7777
        with self._changed(notice, folder, place, flags) as file:
            if mode & _SPECIAL_BITS and not os.path.isdir(f"/proc/self/fd/{file}"):
                raise PermissionError(errno.EPERM, "it would lend its owner's rights")
            os.chmod(f"/proc/self/fd/{file}", mode)
        return _Answer()

    def owner(
        self, notice: _Notice, folder: int, place: int | None, at: int, flags: int
    ) -> _Answer:
        """Change owner and group; ``at`` is the index of the first."""
        with self._changed(notice, folder, place, flags) as file:
            user, group = notice.number(at), notice.number(at + 1)
            _checked(_libc.fchownat(file, b"", user, group, _EMPTY))
        return _Answer()

    def times(
        self, notice: _Notice, folder: int, place: int | None, at: int, flags: int, form: str = "4q"
    ) -> _Answer:
        """Change times; ``at`` is the index of the argument that points to them, in ``form``."""
        when = None
        if address := notice.arguments[at]:
            found = struct.unpack(form, _memory(notice, address, struct.calcsize(form)))
            when = struct.pack("4q", *_FORMS[form](found))
        with self._changed(notice, folder, place, flags) as file:
            _checked(_libc.utimensat(file, b"", when, _EMPTY))
        return _Answer()


# How a call says two times, and what that is in seconds and nanoseconds.
_FORMS: Final[Mapping[str, Callable[[tuple[int, ...]], tuple[int, ...]]]] = {
    "4q": lambda t: t,
    "=4q": lambda t: (t[0], t[1] * 1000, t[2], t[3] * 1000),  # microseconds
    "2q": lambda t: (t[0], 0, t[1], 0),
}

_KINDS: Final[Mapping[str, Callable[[Watcher, _Notice], _Answer]]] = {
    "socket": Watcher.socket,
    "connect": Watcher.connect,
    "chmod": lambda w, n: w.mode(n, _HERE, n.arguments[0], 1, 0),
    "fchmod": lambda w, n: w.mode(n, n.number(0), None, 1, 0),
    "fchmodat": lambda w, n: w.mode(n, n.number(0), n.arguments[1], 2, 0),
    "fchmodat2": lambda w, n: w.mode(n, n.number(0), n.arguments[1], 2, n.number(3)),
    "chown": lambda w, n: w.owner(n, _HERE, n.arguments[0], 1, 0),
    "lchown": lambda w, n: w.owner(n, _HERE, n.arguments[0], 1, _NOFOLLOW),
    "fchown": lambda w, n: w.owner(n, n.number(0), None, 1, 0),
    "fchownat": lambda w, n: w.owner(n, n.number(0), n.arguments[1], 2, n.number(4)),
    "utimensat": lambda w, n: w.times(n, n.number(0), n.arguments[1] or None, 2, n.number(3)),
    "futimesat": lambda w, n: w.times(n, n.number(0), n.arguments[1] or None, 2, 0, "=4q"),
    "utimes": lambda w, n: w.times(n, _HERE, n.arguments[0], 1, 0, "=4q"),
    "utime": lambda w, n: w.times(n, _HERE, n.arguments[0], 1, 0, "2q"),
}


def _memory(notice: _Notice, address: int, size: int) -> bytes:
    """What a waiting process has at an address: one copy, maybe shorter than ``size``."""
    file = os.open(f"/proc/{notice.process}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, size, address)
    finally:
        os.close(file)


def _text(notice: _Notice, address: int) -> bytes:
    text, end, _ = _memory(notice, address, _LONGEST).partition(b"\0")
    if not end:
        raise OSError(errno.ENAMETOOLONG, "too long")
    return text


@contextlib.contextmanager
def _opened(notice: _Notice, folder: int, path: bytes | None, flags: int) -> Iterator[int]:
    """A descriptor of what a call names, good for nothing but to say what it is.

    ``path`` is relative to the descriptor ``folder``; ``None``: that descriptor itself.
    """
    at = "cwd" if folder == _HERE else f"fd/{folder}"
    base = f"/proc/{notice.process}/{at}".encode()
    itself = path is None or (not path and flags & _EMPTY)
    if not itself and not path:
        raise FileNotFoundError(errno.ENOENT, "empty")
    whole = base if itself else os.path.join(base, _theirs(notice, path or b""))
    how = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & _NOFOLLOW and not itself else 0)
    file = os.open(whole, how)
    try:
        yield file
    finally:
        os.close(file)


def _theirs(notice: _Notice, path: bytes) -> bytes:
    """A path as the caller means it: the C library changes modes through /proc/self/fd."""
    for own in (b"/proc/self/", b"/proc/thread-self/"):
        if path.startswith(own):
            return b"/proc/%d/" % notice.process + path[len(own) :]
    return path


def _place(file: int) -> str:
    return os.readlink(f"/proc/self/fd/{file}")


def _flags(notice: _Notice, number: int) -> int:
    """The flags of a socket of theirs."""
    if not os.readlink(f"/proc/{notice.process}/fd/{number}").startswith("socket:"):
        raise OSError(errno.ENOTSOCK, "no socket")
    with open(f"/proc/{notice.process}/fdinfo/{number}", encoding="ascii") as info:
        found = dict(line.split(":", 1) for line in info)
    return int(found["flags"], 8)


def _checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused by the system")


# --- the processes below ------------------------------------------------------------------------


def pass_on_signals(child: int) -> None:
    """What ends this process ends the CLI; orphans that have ended are not kept."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda number, _frame: _send(child, number))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: _reap(child))
    signal.signal(HOST_ENDED, lambda _number, _frame: _end())


def _end() -> NoReturn:
    """Whoever started this has ended: nothing that runs inside has a purpose any more."""
    end_children()
    os._exit(128 + signal.SIGKILL)


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _reap(child: int) -> None:
    """Take note of what has ended, all but the CLI itself."""
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitid(os.P_ALL, 0, how)) and found.si_pid != child:
            os.waitpid(found.si_pid, 0)


def end_children() -> None:
    """End every process below this one: it is their subreaper, so all of them become its children."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(ChildProcessError):
        while True:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                for process in _children():
                    _send(process, signal.SIGKILL)
                os.waitpid(-1, 0)


def _children() -> Iterator[int]:
    """The processes whose parent is this one."""
    own = str(os.getpid()).encode()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                if stat.read().rpartition(b")")[2].split()[1] == own:
                    yield int(name)
