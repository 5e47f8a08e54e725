"""A small HTTP server on 127.0.0.1, in threads of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, TypeAlias

__all__ = ["Answer", "LoopbackServer"]

_POLL = 0.02  # seconds until stop() is noticed
_IDLE = 60  # seconds that an idle connection is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer: content type, body, status."""

    kind: str
    body: bytes
    status: int = 200

    @classmethod
    def json(cls, value: object, *, status: int = 200) -> Self:
        return cls(kind="application/json", body=json.dumps(value).encode(), status=status)


Respond: TypeAlias = Callable[[str, str, Mapping[str, str], str], Answer]
"""Method, path, headers (lower-case names) and body to an answer. Called from server threads."""


class LoopbackServer:
    """Serves ``respond`` on a free port of 127.0.0.1 from its making until ``stop``."""

    def __init__(self, respond: Respond) -> None:
        self._http = _Http(respond)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(_POLL,), name="scripted-model", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def stop(self) -> None:
        """Close the port. Open connections end when their client does."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up in the middle of an answer is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    timeout = _IDLE
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base names it
        """Quiet: the requests are in the record."""

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        text = raw.decode("utf-8", "replace")
        answer = self.server.respond(self.command, self.path, headers, text)
        self.send_response(answer.status)
        self.send_header("content-type", answer.kind)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    # The base class looks the methods up by these names.
    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_CONNECT = _serve  # noqa: N815
