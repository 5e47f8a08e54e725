"""Starts a CLI inside a confinement, and stays outside until it ends.

Run as ``python -I -S -c START FOLDER DESCRIPTION WORDS…``, ``FOLDER`` being this one's: a module is
compiled once, a script at each start. The description is a file in the run folder's ``host/``
part, marshalled by the same interpreter (JSON takes long to load); it holds paths and the
made-up key, and no secret of the host's. Nothing is looked up in the working folder or on ``PATH``;
before the CLI runs only the standard library is loaded, and little of it, after that the broker.

What goes wrong before that ends the launcher with status 126 and one sentence: nothing is ever
started outside.

Two processes look after a session: the second starts the CLI and answers it, the first waits and
tidies up. Each does the other's part when that one is killed; what is left when both are, the user's
next session tidies up, which knows it by its lock.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import importlib
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import threading
    from collections.abc import Iterator
    from typing import Any, Final, NoReturn
else:  # the same, without enumerations: they take longer to load
    import _signal as signal

if TYPE_CHECKING or __package__:
    from agent_kit.confine import _bringing as bringing
    from agent_kit.confine import _places as places
    from agent_kit.confine import _tidying as tidying
else:  # it runs alone: the package is not there, its neighbours are
    import _bringing as bringing
    import _places as places
    import _tidying as tidying

START: Final = (
    "import sys; sys.path.append(sys.argv[1]); import launcher; sys.path.pop();"
    " sys.exit(launcher.main(sys.argv[2:]))"
)
FAILED: Final = 126
_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER


def main(arguments: list[str]) -> int:
    """Run the CLI with ``arguments[1:]`` as the description in the file ``arguments[0]`` says."""
    with contextlib.ExitStack() as undo:
        try:
            host = os.pidfd_open(os.getppid())  # first: it may end while this is being started
            description = _described(arguments[0])
            _check_host(description["host"])
            _subreap()
            _make_folders(description, undo)
            listening = _listen(description["broker"])
            noted = tidying.described_end(description, started=True)
            undo.callback(tidying.tidy_up, noted)
            places.write_note(description["place"], noted)
            undo.callback(tidying.attempt, tidying.end_descendants)
            first = os.pidfd_open(os.getpid())
            if second := os.fork():
                return _stand_by(second, listening, host)
            try:
                return _run(description, arguments[1:], listening, first)
            finally:
                if not _ended(first):
                    undo.pop_all()  # it does that
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing runs unconfined
            sys.stderr.write(f"agent-kit: the confined CLI could not be started: {error}\n")
            return FAILED


def _check_host(number: int) -> None:
    """Raises when the process that built the session has ended, and another is this one's parent."""
    if os.getppid() != number and not os.path.exists(f"/proc/{number}"):
        raise RuntimeError(
            "the process that built its options has ended (build them in the one that starts it)"
        )


def _run(
    description: dict[str, Any], words: list[str], listening: _socket.socket | None, first: int
) -> int:
    """The second process: the CLI, until it or the first process ends."""
    _subreap()
    child = _start(description, words)
    with _broker(description, listening) as broker:
        if first in _wait_for(first, os.pidfd_open(child)):
            os.kill(child, signal.SIGKILL)
        status = _status(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if (broker is None or broker.is_alive()) and not _ended(first):
            os._exit(status)  # the first process tidies up: to end in good order takes long
        return status


def _stand_by(second: int, listening: _socket.socket | None, host: int) -> int:
    """The first process: until the second ends, which it has to when the host does."""
    if listening is not None:
        listening.close()
    _pass_on_signals(second)
    ended = os.pidfd_open(second)
    if ended not in _wait_for(host, ended):
        os.kill(second, signal.SIGTERM)
        if not _wait_for(ended, seconds=_GRACE):
            os.kill(second, signal.SIGKILL)
    return _status(os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]))


def _status(code: int) -> int:
    """What a shell says of a process that ended so; less than 0: by a signal."""
    return code if code >= 0 else 128 - code


_GRACE: Final = 3.0  # seconds for the CLI to end by itself when the host has ended


def _wait_for(*processes: int, seconds: float | None = None) -> list[int]:
    """Those of some processes, given as descriptors, that have ended: wait for one of them."""
    polled = select.poll()
    for each in processes:
        polled.register(each, select.POLLIN)
    return [each for each, _ in polled.poll(None if seconds is None else seconds * 1000)]


def _ended(process: int) -> bool:
    return bool(_wait_for(process, seconds=0))


def _pass_on_signals(process: int) -> None:
    def passed_on(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, passed_on)


def _subreap() -> None:
    """Orphans become this process's children: it can end them."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def _described(file: str) -> dict[str, Any]:
    with open(file, "rb") as text:
        found: dict[str, Any] = marshal.load(text)  # noqa: S302 - the host's
    return found


# --- before -------------------------------------------------------------------------------------


def _make_folders(description: dict[str, Any], undo: contextlib.ExitStack) -> None:
    """The session's own folder, for this user alone. What killed sessions left goes."""
    place, own = description["place"], description["own_folder"]
    description["runners_config"] = _runners_config()
    _make_and_lock(place, own, description["project"])
    undo.callback(tidying.forget, place)
    _make_own(own)
    undo.callback(tidying.attempt, tidying.remove, own)
    places.write_note(place, tidying.described_end(description, started=False))
    for folder in description["made_folders"]:
        os.mkdir(folder, mode=0o700)
    for path, text in description["programs"].items():
        places.write_text(path, text)
        os.chmod(path, 0o700)
    for name in description["copied_in"]:
        source = os.path.join(description["runners_config"], name)
        bringing.copy_in(source, os.path.join(description["config_dir"], name))


def _make_and_lock(place: str, own: str, project: str) -> None:
    """Hold the session's place among the notes: two of one id never run at the same time."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        places.make(os.path.dirname(place))
        with contextlib.suppress(FileExistsError, FileNotFoundError):  # a neighbour tidies up
            tidying.tidy_up_after_others(own)
            tidying.take_from_neighbours(project, own)
            os.mkdir(place, mode=0o700)
            if places.lock(place) is not None:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the same session is still running: {place}")


_PATIENCE: Final = 5.0  # seconds


def _make_own(own: str) -> None:
    """The session's own folder. One with something in it that nothing is noted about is left alone."""
    with contextlib.suppress(OSError):
        os.rmdir(own)
    end = time.monotonic() + _PATIENCE
    while True:
        places.make(os.path.dirname(own))
        try:
            return os.mkdir(own, mode=0o700)
        except FileNotFoundError:  # a neighbour that ended took the folder of both away
            if time.monotonic() > end:
                raise
        except FileExistsError:
            said = f"{own} is there, and no session's: look at it, remove it"
            raise RuntimeError(said) from None


def _runners_config() -> str:
    """Where a CLI with the environment that the host gave would keep its configuration."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")


def _listen(broker: dict[str, Any] | None) -> _socket.socket | None:
    """The socket that the CLI inside asks the model through. Bound before the CLI is started."""
    if broker is None:
        return None
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    listening.bind(broker["socket"])
    listening.listen(128)
    return listening


@contextlib.contextmanager
def _broker(
    description: dict[str, Any], listening: _socket.socket | None
) -> Iterator[threading.Thread | None]:
    """Answer there while the CLI runs. What that needs is loaded only now: the CLI boots meanwhile."""
    if listening is None:
        yield None
        return
    import socket
    import threading

    sys.path += description["broker"]["paths"]
    loading = threading.Thread(target=_load_broker)
    loading.start()
    loading.join()
    from agent_kit.confine.broker import running
    from agent_kit.confine.upstream import upstream_from

    inner = socket.socket(fileno=listening.detach())
    with running(inner, upstream_from(os.environ), key=description["broker"]["key"]) as broker:
        yield broker


def _load_broker() -> None:
    """In a thread that gives way to the CLI, which boots and asks nothing yet. A thread of its own, since
    nobody but root can take the niceness back: the one that serves must not have it."""
    with contextlib.suppress(Exception):  # it is loaded anew, and says so
        os.nice(_LATER)  # on Linux this is of the thread alone
        importlib.import_module("agent_kit.confine.broker")


_LATER: Final = 10  # how much nicer it is


def _start(description: dict[str, Any], words: list[str]) -> int:
    """Start the CLI inside. Returns the number of the process."""
    if (child := os.fork()) == 0:
        try:
            _become(description, words)
        except BaseException as error:  # noqa: BLE001 - as above
            os.write(2, f"agent-kit: the confined CLI could not be started: {error}\n".encode())
        finally:
            os._exit(FAILED)
    _pass_on_signals(child)
    return child


def _become(description: dict[str, Any], words: list[str]) -> NoReturn:
    """Become what starts the CLI. What is a program of this folder's runs here: to start one more
    interpreter would take as long as all that it does."""
    launch, env = description["launch"], _environment(description)
    os.closerange(_TEXT if launch["text"] is None else _readable(launch["text"]) + 1, 1 << 20)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and that is inherited
        signal.signal(number, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(env)
    argv = [*(word.replace("{fd}", str(_TEXT)) for word in launch["argv"]), description["cli"]]
    folder, program = os.path.split(argv[3]) if argv[1:3] == ["-I", "-S"] else ("", "")
    if folder != os.path.dirname(os.path.abspath(__file__)):
        os.execv(argv[0], [*argv, *words])  # noqa: S606 - what the host described
    sys.path.append(folder)
    importlib.import_module(program.removesuffix(".py")).main([*argv[4:], *words])
    raise RuntimeError("it did not become the CLI")


_TEXT: Final = 3  # the descriptor that what the host described is read from


def _readable(text: bytes) -> int:
    """Let ``text`` be read from the descriptor ``_TEXT``. Returns that number."""
    handle = os.memfd_create("agent-kit")
    os.write(handle, text)
    os.lseek(handle, 0, os.SEEK_SET)
    if handle != _TEXT:
        os.dup2(handle, _TEXT)
    os.set_inheritable(_TEXT, True)
    return _TEXT


def _environment(description: dict[str, Any]) -> dict[str, str]:
    """What the CLI needs of the host's, and what the description sets."""
    names, starts = set(description["env_names"]), tuple(description["env_starts"])
    secret = description["env_secret"]
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in names
        or (name.startswith(starts) and not any(word in name.upper() for word in secret))
    }
    return {**kept, **description["env"]}
