"""Which requests from inside are passed on to the model's endpoint, and as what. No connections."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import h11

from agent_kit.confine.upstream import Upstream

__all__ = [
    "BAD",
    "CLOSED_BETAS",
    "PASSED_HEADERS",
    "ROUTES",
    "Headers",
    "Judge",
    "Refusal",
    "Route",
    "of_the_message",
]

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A request that is passed on; a query may follow the path. ``path`` is below the endpoint."""

    method: str
    path: str
    why: str


ROUTES: Final = (
    Route(method="POST", path="/v1/messages", why="the conversation, and titles and searches"),
    Route(
        method="POST",
        path="/v1/messages/count_tokens",
        why="the CLI has a long attachment counted before it sends it",
    ),
)

CLOSED_BETAS: Final = (
    ("code-execution-", "runs commands in a place that no lock of this session holds"),
    ("environments-", "starts sessions elsewhere"),
    ("files-api-", "reads and writes the files of the account"),
    ("managed-agents-", "starts sessions elsewhere"),
    ("mcp-client-", "has the endpoint connect to a server that the request names"),
    ("mcp-servers-", "has the endpoint connect to a server that the request names"),
    ("mcp-tunnels-", "has the endpoint connect to a server that the request names"),
    ("message-batches-", "leaves work and its results in the account"),
    ("skills-", "reads and writes the skills of the account"),
    ("web-fetch-", "has the endpoint fetch addresses that the request names"),
)
"""Beginnings of ``anthropic-beta`` values with which a message is more than a message."""

PASSED_HEADERS: Final = (
    ("accept", "what the answer may be"),
    ("accept-encoding", "how it may be packed"),
    ("anthropic-*", "the version of the API, and beta features, which are looked at"),
    ("content-encoding", "how the body is packed"),
    ("content-length", "how long it is"),
    ("content-type", "what it is"),
    ("user-agent", "the CLI's name and version"),
    ("x-app", "the kind of CLI"),
    ("x-claude-code-*", "the session, and the subagent"),
    ("x-stainless-*", "what the CLI runs on, and how often it has tried"),
)
"""What the CLI sends (measured on 2.1.317 and 2.1.332). With the real key beside it, another header could
make another request of a message (``x-http-method-override``), so others stay behind, without a word: a
later CLI's would be about it, not about the conversation. The host's custom headers are added as they are.
"""

# Of one connection, not of the message.
_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_FRAMING: Final = frozenset({b"content-length"})  # without it the body would be another request
_BETAS: Final = re.compile(rb"[ \t]*[a-z0-9-]+[ \t]*(?:,[ \t]*[a-z0-9-]+[ \t]*)*")
_OURS: Final = frozenset(("authorization", "cookie", "expect", "host", "x-api-key"))
# The CLI's own values win over custom headers of these names.
_THEIRS: Final = frozenset(("anthropic-beta", "user-agent"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer of the broker's own."""

    status: HTTPStatus
    kind: str  # of the Messages API's errors
    sentence: str


BAD: Final = Refusal(
    status=HTTPStatus.BAD_REQUEST,
    kind="invalid_request_error",
    sentence="the broker can't read this request.",
)
_NO_KEY: Final = Refusal(
    status=HTTPStatus.UNAUTHORIZED,
    kind="authentication_error",
    sentence="the broker takes this session's own key alone.",
)
_CLOSED: Final = Refusal(
    status=HTTPStatus.FORBIDDEN,
    kind="permission_error",
    sentence="the broker passes on the model's requests alone: "
    + ", ".join(f"{route.method} {route.path}" for route in ROUTES)
    + ".",
)
_CLOSED_BETA: Final = Refusal(
    status=HTTPStatus.FORBIDDEN,
    kind="permission_error",
    sentence="the broker passes on no request with a beta feature that is more than a message: "
    + ", ".join(f"{start}*" for start, _ in CLOSED_BETAS)
    + ".",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Knows the endpoint and what requests from inside must look like: the made-up key, the host."""

    upstream: Upstream
    key: bytes
    host: bytes

    def refusal(self, request: h11.Request) -> Refusal | None:
        """Why a request is not passed on; ``None`` when it is."""
        names = [name for name, _ in request.headers]
        if request.http_version != b"1.1" or _values(request, b"host") != [self.host]:
            return BAD
        if b"content-length" in names and b"transfer-encoding" in names:
            return BAD
        if not self._has_key(request):
            return _NO_KEY
        path = request.target.partition(b"?")[0]
        if (request.method, path) not in _OPEN:
            return _CLOSED
        if any(_is_closed(beta) for beta in _values(request, b"anthropic-beta")):
            return _CLOSED_BETA
        if not all(map(_BETAS.fullmatch, _values(request, b"anthropic-beta"))):
            return BAD
        return None

    def _has_key(self, request: h11.Request) -> bool:
        """Whether there is a key, and no other: with their own, one could speak to an account of
        one's own."""
        given = _values(request, b"x-api-key")
        for value in _values(request, b"authorization"):
            scheme, _, token = value.partition(b" ")
            given.append(token.strip() if scheme.lower() == b"bearer" else b"")
        return bool(given) and all(hmac.compare_digest(key, self.key) for key in given)

    def onward(self, request: h11.Request) -> h11.Request:
        """The request as the endpoint gets it."""
        base = urlsplit(self.upstream.base_url)
        return h11.Request(
            method=request.method,
            target=base.path.encode() + request.target,
            headers=self._headers(request, base.netloc),
        )

    def _headers(self, request: h11.Request, host: str) -> Headers:
        own = {
            name.encode(): value.encode("latin-1")
            for name, value in (("host", host), *self.upstream.headers)
            if name not in _THEIRS or not _values(request, name.encode())
        }
        own |= {} if _values(request, b"content-length") else {b"transfer-encoding": b"chunked"}
        kept = [
            (name, value)
            for name, value in of_the_message(request)
            if name not in own and name.decode() not in _OURS and _is_passed(name.decode())
        ]
        return [*own.items(), *kept]


_OPEN: Final = frozenset((route.method.encode(), route.path.encode()) for route in ROUTES)


_WHOLE_NAMES: Final = frozenset(name for name, _ in PASSED_HEADERS if name[-1] != "*")
_FAMILIES: Final = tuple(name[:-1] for name, _ in PASSED_HEADERS if name[-1] == "*")


def _is_passed(name: str) -> bool:
    return name in _WHOLE_NAMES or name.startswith(_FAMILIES)


def _is_closed(betas: bytes) -> bool:
    starts = tuple(start.encode() for start, _ in CLOSED_BETAS)
    return any(beta.strip().lower().startswith(starts) for beta in betas.split(b","))


def _values(message: h11.Request, name: bytes) -> list[bytes]:
    return [value for each, value in message.headers if each == name]


def of_the_message(message: h11.Request | h11.Response) -> Headers:
    """The headers that go on to the next hop; ``Connection`` may name more that don't."""
    dropped = {name.encode() for name in _HOP}
    for name, value in message.headers:
        if name == b"connection":
            dropped |= {each.strip().lower() for each in value.split(b",")} - _FRAMING
    return [(name, value) for name, value in message.headers if name not in dropped]
