"""One file from the web: asked for, followed through redirects, and read to its end, within limits.

Each host on the way is judged anew, by its name, its port and every address that it has; each
connection is used once. Nothing is sent but the request for the file: no cookie, no referer, no
credentials.
"""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import httpcore2

from agent_kit.store import StoreError
from agent_kit_sources.downloading import refusals
from agent_kit_sources.downloading.connecting import Clock, JudgedBackend, judged
from agent_kit_sources.downloading.options import Downloads, Network, Progress
from agent_kit_sources.downloading.urls import Url, matches, redirected

__all__ = ["MAX_REDIRECTS", "Fetched", "check_url", "fetch"]

MAX_REDIRECTS = 5
"""Most redirects of one download."""

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_SHOWN_EACH: Final = 64 * 1024  # bytes between two calls of the progress function
_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")

_log = logging.getLogger("agent_kit.tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A file as it came. ``url`` is where it came from in the end.

    ``type`` is its media type as the server says, ``""`` for none; ``disposition`` the server's header.
    """

    url: Url
    data: bytes = field(repr=False)
    type: str
    disposition: str


def check_url(url: Url, downloads: Downloads, network: Network) -> None:
    """What can be said of a URL before anything is looked up. Raises StoreError."""
    if not downloads.past_proxy and (variable := network.proxy()) is not None:
        raise refusals.proxied(variable)
    if not matches(url.host, downloads.hosts):
        raise refusals.not_allowed(url.host)
    if url.port not in downloads.ports:
        raise refusals.port(url.port, downloads.ports)


def fetch(url: Url, downloads: Downloads, network: Network) -> Fetched:
    """The file at a URL, whole. Raises StoreError, with a sentence for the model."""
    clock = Clock(seconds=downloads.seconds, idle=downloads.idle_seconds)
    trusted = _once(lambda: network.trust(network.env))
    for _ in range(MAX_REDIRECTS + 1):
        check_url(url, downloads, network)
        backend = JudgedBackend(judged(url, network, clock), clock)
        with _answered(url, backend, clock, trusted) as answer:
            onward = _onward(url, answer)
            if onward is None:
                return _kept(url, answer, downloads)
            url = onward
    raise refusals.too_many_turns(MAX_REDIRECTS)


def _once(make: Callable[[], ssl.SSLContext]) -> Callable[[], ssl.SSLContext]:
    """The same context each time, made when it is first needed."""
    made: list[ssl.SSLContext] = []

    def get() -> ssl.SSLContext:
        if not made:
            try:
                made.append(make())
            except OSError:
                raise refusals.no_certificates() from None
        return made[0]

    return get


@contextmanager
def _answered(
    url: Url, backend: JudgedBackend, clock: Clock, trusted: Callable[[], ssl.SSLContext]
) -> Iterator[httpcore2.Response]:
    """The answer to a request, its body unread. What fails meanwhile is a StoreError."""
    with (
        _said(url, clock),
        httpcore2.HTTPConnection(
            httpcore2.Origin(url.scheme.encode(), url.host.encode(), url.port),
            ssl_context=trusted() if url.scheme == "https" else None,
            network_backend=backend,
        ) as connection,
    ):
        answer = connection.handle_request(_request(url))
        backend.head_is_here()
        yield answer


def _request(url: Url) -> httpcore2.Request:
    headers: list[tuple[bytes | str, bytes | str]] = [
        ("Host", url.place),
        ("User-Agent", "agent-kit"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    asked = httpcore2.URL(
        scheme=url.scheme.encode(),
        host=url.host.encode(),
        port=url.port,
        target=url.target.encode(),
    )
    return httpcore2.Request("GET", asked, headers=headers)


@contextmanager
def _said(url: Url, clock: Clock) -> Iterator[None]:
    """Turns what goes wrong on the network into sentences: the errors' own texts name addresses."""
    try:
        yield
    except StoreError:
        raise
    except httpcore2.TimeoutException:
        raise clock.late() from None
    except httpcore2.ConnectError as error:
        is_tls = isinstance(error.__cause__, ssl.SSLError)
        raise (refusals.untrusted if is_tls else refusals.unreachable)(url.host) from None
    except ssl.SSLError:
        raise refusals.untrusted(url.host) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError):
        raise refusals.broken(url.host) from None


def _onward(url: Url, answer: httpcore2.Response) -> Url | None:
    """Where a redirect leads, ``None`` for another answer."""
    location = _header(answer, "location")
    if answer.status not in _REDIRECTS or not location:
        return None
    return redirected(url, location)


def _kept(url: Url, answer: httpcore2.Response, downloads: Downloads) -> Fetched:
    if answer.status != 200:
        raise refusals.status(answer.status)
    if _header(answer, "content-encoding").strip().lower() not in ("", "identity"):
        raise refusals.packed()
    said = _header(answer, "content-type").partition(";")[0].strip().lower()
    return Fetched(
        url=url,
        data=_body(answer, downloads),
        type=said if _TYPE.fullmatch(said) else "",
        disposition=_header(answer, "content-disposition"),
    )


def _body(answer: httpcore2.Response, downloads: Downloads) -> bytes:
    """The bytes, counted as they come: what the server announces only ends it earlier."""
    total = _announced(answer)
    data = bytearray()
    tell = _Teller(downloads.progress, total)
    if total is not None and total > downloads.max_bytes:
        raise refusals.too_large(downloads.max_bytes)
    tell(0)
    for piece in answer.iter_stream():
        if len(data) + len(piece) > downloads.max_bytes:
            raise refusals.too_large(downloads.max_bytes)
        data += piece
        tell(len(data))
    tell(len(data), is_last=True)
    return bytes(data)


def _announced(answer: httpcore2.Response) -> int | None:
    """The bytes that the server says there are."""
    length = _header(answer, "content-length")
    return int(length) if re.fullmatch("[0-9]{1,20}", length) else None


class _Teller:
    """Calls the progress function, not too often. What it raises doesn't stop a download."""

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self._progress = progress
        self._total = total
        self._told: int | None = None

    def __call__(self, count: int, *, is_last: bool = False) -> None:
        is_soon = self._told is not None and count - self._told < _SHOWN_EACH
        if self._progress is None or count == self._told or (is_soon and not is_last):
            return
        self._told = count
        try:
            self._progress(count, self._total)
        except Exception:  # noqa: BLE001 - it is the host's own
            _log.exception("the progress function of downloads failed")
            self._progress = None


def _header(answer: httpcore2.Response, name: str) -> str:
    """The first header with a name, ``""`` without one."""
    found: Mapping[bytes, bytes] = {key.lower(): value for key, value in reversed(answer.headers)}
    value = found.get(name.encode(), b"")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
