"""Sockets: those of the host's other programs, of both kinds, and the network of this machine."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_kit.testing import SessionRun
from tests.attacks.ways import script
from tests.attacks.world import BACKENDS, World, bash

pytestmark = pytest.mark.e2e


class Servers:
    """Listeners of the host; ``heard`` has what came to each."""

    def __init__(self, world: World, more: ExitStack) -> None:
        self.heard: list[str] = []
        self.places: dict[str, str] = {}
        self._more = more
        self.abstract = f"agent-kit-attack-{uuid.uuid4().hex[:9]}"
        for name, path in (
            ("out", world.root / "out/s"),
            ("sources", world.course / "sources/s"),
            ("drafts", world.drafts / "s"),
        ):
            self._serve(f"path {name}", socket.AF_UNIX, socket.SOCK_STREAM, self._short(path))
            self._serve(
                f"datagram {name}", socket.AF_UNIX, socket.SOCK_DGRAM, self._short(path) + "d"
            )
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            self._serve(
                f"abstract {kind.name}", socket.AF_UNIX, kind, f"\0{self.abstract}{kind.name}"
            )
        self._serve("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._serve("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._serve("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        self._serve("udp6", socket.AF_INET6, socket.SOCK_DGRAM, ("::1", 0))

    def _short(self, path: Path) -> str:
        """A path of a socket holds 107 bytes: through a descriptor of its folder."""
        folder = os.open(path.parent, os.O_PATH)
        self._more.callback(os.close, folder)
        self.places[path.name + str(path.parent)] = str(path)
        return f"/proc/self/fd/{folder}/{path.name}"

    def _serve(self, name: str, family: int, kind: int, address: Any) -> None:
        server = self._more.enter_context(socket.socket(family, kind))
        server.bind(address)
        server.settimeout(0.1)
        if kind != socket.SOCK_DGRAM:
            server.listen()
        self.places[name] = repr(server.getsockname())
        self.done = threading.Event()
        self._more.callback(self.done.set)
        threading.Thread(target=self._listen, args=(name, server, kind), daemon=True).start()

    def _listen(self, name: str, server: socket.socket, kind: int) -> None:
        while server.fileno() >= 0:
            try:
                if kind == socket.SOCK_DGRAM:
                    server.recv(100)
                else:
                    server.accept()[0].close()
                self.heard.append(name)
            except TimeoutError:
                continue
            except OSError:
                return


@contextmanager
def servers(world: World) -> Iterator[Servers]:
    with ExitStack() as more:
        yield Servers(world, more)


# How each kind is reached. ``A`` is the address.
WAYS = {
    "connect": "s.connect(A); s.send(b'x')",
    "send to": "s.sendto(b'x', A)",
    "send a message": "s.sendmsg([b'x'], [], 0, A)",
    "from a thread": "import threading; t = threading.Thread(target=lambda: (s.connect(A), s.send(b'x'))); t.start(); t.join()",
    "without waiting": "s.setblocking(False); s.connect_ex(A); import time; time.sleep(.05); s.send(b'x')",
    "from a child": """
if os.fork() == 0:
    try: s.connect(A); s.send(b'x')
    finally: os._exit(0)
os.wait()""",
}
TRY = """
import socket
def tries(family, kind, A, extra=0):
    for way in WAYS.values():
        try:
            with socket.socket(family, kind, extra) as s: exec(way, dict(s=s, A=A, os=os))
        except Exception as error: pass
U, S, G, Q = socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET
for top in ("../out", "sources", "drafts"):
    for here in (top + "/s", os.path.realpath(top) + "/s", "/proc/self/cwd/" + top + "/s", "/proc/self/root" + os.path.realpath(top) + "/s"):
        tries(U, S, here); tries(U, G, here + "d"); tries(U, Q, here)
try: os.symlink("../../out/s", "drafts/sl"); os.symlink("../../out/sd", "drafts/sld")
except OSError: pass
tries(U, S, "drafts/sl"); tries(U, G, "drafts/sld")
for kind in (S, G, Q): tries(U, kind, "\\0" + ABSTRACT + kind.name)
tries(socket.AF_INET, S, ("127.0.0.1", TCP)); tries(socket.AF_INET, G, ("127.0.0.1", UDP))
tries(socket.AF_INET, S, ("0.0.0.0", TCP)); tries(socket.AF_INET, S, ("localhost", TCP))
tries(socket.AF_INET6, S, ("::1", TCP6)); tries(socket.AF_INET6, G, ("::1", UDP6))
tries(socket.AF_INET6, S, ("::ffff:127.0.0.1", TCP)); tries(socket.AF_INET6, G, ("::ffff:127.0.0.1", UDP))
tries(socket.AF_INET, S, ("127.0.0.1", TCP), 262)
say("tried")
"""
SHELL = """
timeout 2 bash -c 'echo x > /dev/tcp/127.0.0.1/{tcp}'
timeout 2 bash -c 'echo x > /dev/udp/127.0.0.1/{udp}'
curl -s -m 2 http://127.0.0.1:{tcp}/
curl -s -m 2 --noproxy '*' http://127.0.0.1:{tcp}/
curl -s -m 2 -g 'http://[::1]:{tcp6}/'
curl -s -m 2 --unix-socket ../out/s http://x/
curl -s -m 2 --unix-socket drafts/s http://x/
curl -s -m 2 --abstract-unix-socket {abstract}SOCK_STREAM http://x/
perl -MIO::Socket::INET -e 'print IO::Socket::INET->new("127.0.0.1:{tcp}") ? 1 : 0'
git ls-remote git://127.0.0.1:{tcp}/x
openssl s_client -connect 127.0.0.1:{tcp} < /dev/null
ssh -o BatchMode=yes -p {tcp} 127.0.0.1
node -e 'require("net").connect({tcp}, "127.0.0.1").on("error", () => 0)'
"""


def attack(world: World, found: Servers) -> list[str]:
    ports = {
        name: int(found.places[name].split(", ")[1].rstrip(")"))
        for name in ("tcp", "udp", "tcp6", "udp6")
    }
    head = f"WAYS, ABSTRACT = {WAYS!r}, {found.abstract!r}\n"
    head += "".join(f"{name.upper()} = {port}\n" for name, port in ports.items())
    lines = SHELL.strip().format(**ports, abstract=found.abstract).splitlines()
    return ["export P=x D=x N=x; " + script(head + TRY), *lines]


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_socket_of_the_host_can_be_reached(world: World, backend: str) -> None:
    with servers(world) as found:
        run = world.run(world.confined(backend), [bash(each) for each in attack(world, found)])
        assert "tried" in (run.calls[0].result or "")
        assert found.heard == []


def test_without_the_kernel_lock_every_socket_is_reached(world: World) -> None:
    with servers(world) as found:
        world.run(world.unconfined(), [bash(each) for each in attack(world, found)])
        names = {name for name in found.places if "/" not in name}
        assert set(found.heard) == names


@pytest.mark.parametrize("backend", BACKENDS)
def test_with_the_network_open_the_hosts_unix_sockets_stay_shut(world: World, backend: str) -> None:
    with servers(world) as found:
        options = world.confined(backend, confine_network=False)
        world.run(options, [bash(each) for each in attack(world, found)])
        assert {"tcp", "udp"} <= set(found.heard)  # a control
        shut = {name for name in found.heard if not name.startswith(("tcp", "udp"))}
        assert shut == set()


# What the broker is asked for that is not the model: it must go nowhere else, and bring no key.
REQUESTS = (
    "GET http://127.0.0.1:{tcp}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{tcp}\\r\\n\\r\\n",
    "CONNECT 127.0.0.1:{tcp} HTTP/1.1\\r\\nHost: 127.0.0.1:{tcp}\\r\\n\\r\\n",
    "GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{tcp}\\r\\n\\r\\n",
    "GET //127.0.0.1:{tcp}/ HTTP/1.1\\r\\nHost: x\\r\\nX-Forwarded-Host: 127.0.0.1:{tcp}\\r\\n\\r\\n",
    "GET @127.0.0.1:{tcp}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
    "GET /../../@127.0.0.1:{tcp} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
    "POST /v1/messages HTTP/1.1\\r\\nHost: x\\r\\nHost: 127.0.0.1:{tcp}\\r\\nContent-Length: 0\\r\\n\\r\\n",
    "OPTIONS * HTTP/1.1\\r\\nHost: 127.0.0.1:{tcp}\\r\\n\\r\\n",
    "GET file:///etc/shadow HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
)
BROKER = """
import socket
for path in __import__("glob").glob(os.path.dirname(os.environ["CLAUDE_CONFIG_DIR"]) + "/*") + [os.environ.get("ANTHROPIC_UNIX_SOCKET", "")]:
    for text in REQUESTS:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(1); s.connect(path); s.send(text.encode()); say(s.recv(4096))
        except OSError as error: pass
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_broker_leads_to_the_model_alone(world: World, backend: str) -> None:
    with servers(world) as found:
        port = found.places["tcp"].split(", ")[1].rstrip(")")
        texts = [each.replace("{tcp}", port).replace("\\r\\n", "\r\n") for each in REQUESTS]
        code = f"REQUESTS = {texts!r}\n{BROKER}"
        run: SessionRun = world.run(
            world.confined(backend), [bash("export P=x D=x N=x; " + script(code))]
        )
        assert found.heard == []
        assert "HTTP/1.1" in (run.calls[0].result or "")  # it does answer
        for key in ("sk-made-up", "canary(realkey)"):
            assert not run.saw(key)
        assert "root:" not in (run.calls[0].result or "")
