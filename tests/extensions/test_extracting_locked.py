"""The child that reads a document is locked in: a parser that is taken over opens and reaches nothing.

The real child runs, with a reader of plain text that does what a taken-over one would. The control is
the same child without the lock.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agent_kit.confine.landlock import abi_version
from agent_kit.store import StoreCode, StoreError
from agent_kit_sources.extracting import Limits, running
from agent_kit_sources.extracting.running import extract

CANARY = "canary-of-the-host"
LIMITS = Limits(seconds=20.0)
_NUMBERS = count()

# What it does: name -> code, whose value is what it got. Each is run by itself, in the child.
ATTEMPTS = {
    "reads a file of the user's": "open(P['canary']).read()",
    "lists the user's folder": "repr(os.listdir(P['home']))",
    "reads through a link": "open(P['link']).read()",
    "reads the host's environment": "open(f'/proc/{os.getppid()}/environ').read()[:1] and 'got it'",
    "reads the password file": "open('/etc/passwd').read()",
    "opens the document anew": "open('/proc/self/fd/0').read() and 'got it'",
    "writes a file": "open(P['new'], 'w') and 'got it'",
    "empties a file": "os.truncate(P['spare'], 0) or 'got it'",
    "removes a file": "os.unlink(P['doomed']) or 'got it'",
    "renames a file": "os.rename(P['old'], P['renamed']) or 'got it'",
    "makes a folder": "os.mkdir(P['folder']) or 'got it'",
    "makes a link": "os.symlink('x', P['symlink']) or 'got it'",
    "changes a mode": "os.chmod(P['spare'], 0o777) or 'got it'",
    "changes a time": "os.utime(P['spare'], (1, 1)) or 'got it'",
    "connects on the loopback": "socket.create_connection(('127.0.0.1', P['port']), 5).recv(99).decode()",
    "sends a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9)) and 'got it'",
    "listens": "socket.create_server(('127.0.0.1', 0)) and 'got it'",
    "connects to a Unix socket": "CONNECT(P['unix'])",
    "connects to an abstract one": "CONNECT(P['abstract'])",
    "becomes another program": "os.set_inheritable(3, True) or os.execv('/bin/sh', ['sh', '-c', P['command']])",
    "signals its host": "os.kill(os.getppid(), 0) or 'got it'",
}  # fmt: skip

# What an older kernel's Landlock doesn't hold: the version from which it does.
SINCE = {"signals its host": 6}

PARSER = """
import os, socket, json
from .document import whole
P = json.loads({places!r})
def CONNECT(address):
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(address)
        return made.recv(99).decode()
def read(file, request):
    try:
        got = str(eval({code!r}))
    except BaseException as error:
        got = f"REFUSED {{type(error).__name__}}"
    return whole("text", got + " / " + file.read().decode(), "")
"""


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The user's files, and servers that greet whoever connects."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("canary", "spare", "doomed", "old"):
        (home / name).write_text(CANARY)
    (home / "link").symlink_to("canary")
    paths = {name: str(home / name) for name in ("canary", "spare", "doomed", "old", "link")}
    paths |= {name: str(home / name) for name in ("new", "renamed", "folder", "symlink", "ran")}
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(home / "unix"))
    abstract = socket.socket(socket.AF_UNIX)
    name = f"\0agent-kit-{os.getpid()}-{next(_NUMBERS)}"
    abstract.bind(name)
    loopback = socket.create_server(("127.0.0.1", 0))
    servers = [unix, abstract, loopback]
    threads = [threading.Thread(target=_greet, args=(server,), daemon=True) for server in servers]
    for server, thread in zip(servers, threads, strict=True):
        server.listen()
        thread.start()
    yield {
        **paths,
        "home": str(home),
        "unix": str(home / "unix"),
        "abstract": name,
        "port": loopback.getsockname()[1],
        "command": f": > {home}/ran",
    }
    for server, thread in zip(servers, threads, strict=True):
        with suppress(OSError):  # wakes the thread that waits in accept
            server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        server.close()


def _greet(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            with server.accept()[0] as client:
                client.sendall(CANARY.encode())


Parser = Callable[..., str]


@pytest.fixture
def taken_over(tmp_path: Path, places: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Parser:
    """Has the child read a text with a parser that runs this code first; what the host is told."""

    def run(code: str, early: str = "") -> str:
        kit = tmp_path / "kit"
        shutil.copytree(Path(running.__file__).parent, kit)
        parser = PARSER.format(places=json.dumps(places), code=code)
        (kit / "reading" / "text.py").write_text(parser)
        with (kit / "reading" / "answering.py").open("a") as answering:
            answering.write(early)
        monkeypatch.setattr(running, "CHILD", str(kit / "child.py"))
        document = tmp_path / "a.txt"
        document.write_text("the document")
        return _extracted(document)

    return run


def _extracted(path: Path) -> str:
    asked = {"part": "", "sheet": "", "encoding": "", "offset": 0, "suffix": path.suffix}
    handle = os.open(path, os.O_RDONLY)
    try:
        return extract(handle, asked, file=path.name, limits=LIMITS).text
    finally:
        os.close(handle)


def _state(home: str) -> dict[str, object]:
    return {
        path.name: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in Path(home).iterdir()
    }


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_parser_that_is_taken_over_gets_nothing(
    name: str, taken_over: Parser, places: dict[str, Any]
) -> None:
    if abi_version() < SINCE.get(name, 1):
        pytest.skip("this kernel's Landlock is older")
    before = _state(places["home"])
    text = taken_over(ATTEMPTS[name])
    assert text.startswith("REFUSED ")
    assert CANARY not in text
    assert text.endswith(" / the document")  # what it is there for it can read
    assert _state(places["home"]) == before


@pytest.mark.parametrize("name", ATTEMPTS)
def test_without_the_lock_it_gets_it(
    name: str, taken_over: Parser, places: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "lock_of_child", dict)
    if "execv" in ATTEMPTS[name]:  # it is another program then, and no child that answers
        with pytest.raises(StoreError):
            taken_over(ATTEMPTS[name])
        assert Path(places["ran"]).exists()
        return
    text = taken_over(ATTEMPTS[name])
    assert not text.startswith("REFUSED")
    assert text.endswith(" / the document")


def test_where_the_lock_cannot_be_put_on_nothing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = {**running.lock_of_child(), "abi": 99, "handled": 1 << 63}
    monkeypatch.setattr(running, "lock_of_child", lambda: described)
    document = tmp_path / "a.txt"
    document.write_text(CANARY)
    with pytest.raises(StoreError, match="could not be confined, so nothing was read") as caught:
        _extracted(document)
    assert caught.value.code is StoreCode.UNAVAILABLE


def test_a_library_that_starts_a_thread_is_not_left_outside_the_lock(
    taken_over: Parser,
) -> None:
    started = "import threading, time\nthreading.Thread(target=time.sleep, args=(9,)).start()\n"
    with pytest.raises(StoreError, match="could not be confined"):
        taken_over("1", early=started)


def test_on_a_kernel_without_it_a_document_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_kit.confine import alone, landlock

    monkeypatch.setattr(landlock, "abi_version", lambda: 0)
    alone.reading_lock.cache_clear()
    assert running.lock_of_child() == {}
    document = tmp_path / "a.txt"
    document.write_text("the document")
    try:
        assert _extracted(document) == "the document"
    finally:
        alone.reading_lock.cache_clear()
