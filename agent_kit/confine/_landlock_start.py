"""Starts a program inside a Landlock confinement, and watches it from outside.

Run as ``python -I -S _landlock_start.py FD -- PROGRAM WORDS…``. ``FD`` holds the description,
marshalled (see :mod:`agent_kit.confine.landlock`). Standard library only; nothing is looked up in the
working folder or on ``PATH``. This process becomes the watcher; its child confines itself and then
becomes the program. Whatever goes wrong before that ends both with status 126 and one sentence:
the program is never started with less.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import marshal
import os
import resource
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, Final, NoReturn
else:  # the same, without enumerations: they take longer to load
    import _signal as signal

if TYPE_CHECKING:
    from agent_kit.confine import _landlock_hold as hold
    from agent_kit.confine import _landlock_watch as watch
else:  # it runs alone: the package is not there, its neighbours are
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import _landlock_hold as hold
    import _landlock_watch as watch

FAILED: Final = 126

_PDEATHSIG, _SUBREAPER, _BOUNDING_DROP, _AMBIENT = 1, 36, 24, 47
_AMBIENT_CLEAR: Final = 4
_KILL: Final = 9
_OVERRIDE, _OWNER = 1, 3  # CAP_DAC_OVERRIDE, CAP_FOWNER

# A root's files may belong to anybody (a project mounted into a container): it keeps what it needs
# to use them as before. Landlock and the watcher hold against both.
_KEPT: Final = 1 << _OVERRIDE | 1 << _OWNER


def main(arguments: list[str]) -> NoReturn:
    """Start ``arguments[2:]`` inside what the descriptor ``arguments[0]`` describes."""
    try:
        described = _read(int(arguments[0]))
        program = arguments[2:]
        status = _run(described, program)
    except BaseException as error:  # noqa: BLE001 - whatever it is, nothing runs unconfined
        _fail(error)
    _end_like(status)


def _read(file: int) -> dict[str, Any]:
    with os.fdopen(file, "rb") as text:
        found: dict[str, Any] = marshal.loads(text.read())  # noqa: S302 - the host's
    return found


def _fail(error: BaseException) -> NoReturn:
    said = str(error) or type(error).__name__
    with contextlib.suppress(OSError):  # nobody may be listening
        os.write(2, f"agent-kit: the confined program could not be started: {said}\n".encode())
    os._exit(FAILED)


def _run(described: dict[str, Any], program: list[str]) -> int:
    """Both processes. Returns how the program ended, as ``wait`` says."""
    host = os.getppid()
    _die_with(host, _KILL)
    hold.control(_SUBREAPER, 1)
    _drop_capabilities()
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    watcher = os.getpid()
    if (child := os.fork()) == 0:
        try:
            _become(described, program, theirs, watcher)
        except BaseException as error:  # noqa: BLE001 - as above
            _fail(error)
    try:
        theirs.close()
        watch.pass_on_signals(child)
        _die_with(host, watch.HOST_ENDED)  # from here on it can tidy up first
        return _watch(described, ours, child)
    except BaseException:
        os.kill(child, _KILL)
        raise


def _die_with(parent: int, number: int) -> None:
    """Be sent a signal when the parent ends. Raises when it has ended."""
    hold.control(_PDEATHSIG, number)
    if os.getppid() != parent:
        raise RuntimeError("the process that starts it has ended")


# --- outside --------------------------------------------------------------------------------------


def _watch(described: dict[str, Any], ours: _socket.socket, child: int) -> int:
    pinned = os.open(f"/proc/{child}", os.O_PATH)  # a rule stands on it as long as it is in use
    ours.send(b"!")
    listener = _received(ours)
    if listener is None:  # it has said why
        return os.waitpid(child, 0)[1]
    _let_go(pinned, listener, ours.fileno())
    sights = watch.Sights(described["writable"], frozenset(described["sockets"]))
    watcher = watch.Watcher(listener, sights, described["asked"])
    ours.send(b"!")
    ours.close()
    return watcher.watch(child)


def _received(ours: _socket.socket) -> int | None:
    text, extra, _, _ = ours.recvmsg(1, 64)
    if not text:
        return None
    return int(struct.unpack("i", extra[0][2][:4])[0])


def _let_go(*kept: int) -> None:
    """The watcher holds nothing of the host's open but what it says something on."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    _close_all_but(*kept)


def _close_all_but(*kept: int) -> None:
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in kept:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(number)


def _end_like(status: int) -> NoReturn:
    """End as the program did."""
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


# --- inside ---------------------------------------------------------------------------------------


def _become(
    described: dict[str, Any], program: list[str], theirs: _socket.socket, watcher: int
) -> NoReturn:
    """Confine this process and become the program."""
    _die_with(watcher, _KILL)
    if theirs.recv(1) != b"!":
        raise RuntimeError("nobody will watch it")
    if not os.path.isabs(program[0]):
        raise ValueError(f"{program[0]} is no absolute path")
    _close_all_but(theirs.fileno())
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that is inherited
    os.setsid()  # no terminal, so none that words could be put into
    os.chdir(described["cwd"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hold.give_up_rights()
    hold.restrict_files(described)
    listener = hold.watched_filter(described["filter"])
    theirs.sendmsg([b"!"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))])
    if theirs.recv(1) != b"!":
        raise RuntimeError("nobody watches it")
    if path := os.environ.get("PATH"):
        os.environ["PATH"] = os.pathsep.join(filter(_is_seen, path.split(os.pathsep)))
    os.execv(program[0], program)  # noqa: S606 - what the host described


def _is_seen(folder: str) -> bool:
    """Whether programs are looked for in a folder: a shell ends its search at what it may not run."""
    try:
        os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
    except OSError:
        return False
    return True


def _drop_capabilities() -> None:
    """Root keeps the use of files, nothing else; anybody else keeps nothing."""
    kept = _KEPT if os.geteuid() == 0 else 0
    for number in range(64):
        if not kept >> number & 1 and hold.libc.prctl(_BOUNDING_DROP, number, 0, 0, 0) < 0:
            break  # there are no more, or it may not: capset and no new privileges are what counts
    hold.libc.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    version = struct.pack("II", 0x20080522, 0)
    held = bytearray(24)
    buffer = (ctypes.c_char * 24).from_buffer(held)
    hold.checked(hold.libc.capget(version, buffer), "capget")
    low = struct.unpack("6I", held)[1] & kept
    hold.checked(hold.libc.capset(version, struct.pack("6I", low, low, 0, 0, 0, 0)), "capset")


if __name__ == "__main__":
    main(sys.argv[1:])
