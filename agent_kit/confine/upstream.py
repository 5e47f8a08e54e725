"""Where the model's requests go and with which key, and what a confined CLI has in place of both.

Everything here is read from an environment that is given, whole, and nothing is connected to. The
rules are the CLI's own as measured on 2.1.332 and 2.1.317: which sign-in wins, which proxy variable
is read first, which custom headers replace the CLI's.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from agent_kit.confine._command_start import KEY_DIGITS, KEY_START

if TYPE_CHECKING:
    import ssl

    from agent_kit.scope import Fault

__all__ = [
    "INSIDE_HOST",
    "KEY_NAMES",
    "REPLACED_ENV",
    "Upstream",
    "broker_reason",
    "inside_env",
    "made_up_key",
    "trust",
    "trust_faults",
    "upstream_from",
]

INSIDE_HOST: Final = "broker.invalid"
"""The host that the CLI inside takes the socket for. No name server knows it. With the endpoint's
own name the CLI asks https://api.anthropic.com past the socket, and without a network it waits 17 s
for that at its start."""

_DEFAULT: Final = "https://api.anthropic.com"
_SECRETS: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_AWS_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_GATEWAY_TOKEN",
    "CLAUDE_CODE_GATEWAY_TOKEN_FILE_DESCRIPTOR",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
)
REPLACED_ENV: Final = (*_SECRETS, "ANTHROPIC_BASE_URL", "ANTHROPIC_UNIX_SOCKET")
"""The variables that :func:`inside_env` always says something about."""

_PROVIDERS: Final = (
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_GATEWAY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
)
# Each is asked before any key: with one of them set, ANTHROPIC_API_KEY is not sent.
_ACCOUNTS: Final = (
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
)
_OFF: Final = ("", "0", "false", "no", "off")
KEY_NAMES: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_PROXIES: Final = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")  # the first one counts
# Of the connection: such a custom header is passed over.
_FRAMING: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]+")
_HIDDEN: Final = "…"  # in the place of a value that may be secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The model's endpoint as the host reaches it.

    * ``base_url``: ``http`` or ``https``, a host, perhaps a port and a path; no slash at its end.
    * ``headers``: names in lower case and values, the key among them. What they name replaces what
      the request says.
    * ``proxy``: the URL of an HTTP proxy on the way there. ``unix_socket``: a socket of the host
      that stands for the endpoint; then no proxy is used.
    * ``ca_file``, ``ca_dir``: what is trusted instead of the system's certificates;
      ``extra_ca_file``: what is trusted as well. ``client_cert``, ``client_key``: paths of PEM files.
    """

    base_url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    proxy: str | None = field(default=None, repr=False)
    unix_socket: str | None = None
    ca_file: str | None = None
    ca_dir: str | None = None
    extra_ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    client_key_passphrase: str | None = field(default=None, repr=False)


def upstream_from(env: Mapping[str, str]) -> Upstream:
    """The endpoint of a CLI with the environment ``env``, which is the whole of it.

    Raises ``ConfigError``, with every mistake in it and no secret, when a URL or a header is
    malformed. Whether there is a key at all is :func:`broker_reason`'s question.
    """
    base = (env.get("ANTHROPIC_BASE_URL") or _DEFAULT).strip().rstrip("/")
    socket = env.get("ANTHROPIC_UNIX_SOCKET") or None
    name, proxy = ("", None) if socket else _proxy(env, base)
    faults = [*_url_faults("ANTHROPIC_BASE_URL", base), *_header_faults(env)]
    faults += _url_faults(name, proxy) if proxy else ()
    if faults:
        from agent_kit.scope import ConfigError

        raise ConfigError(faults)
    return Upstream(
        base_url=base,
        headers=tuple(_headers(env).items()),
        proxy=proxy,
        unix_socket=socket,
        ca_file=_present(env, "SSL_CERT_FILE"),
        ca_dir=_present(env, "SSL_CERT_DIR"),
        extra_ca_file=_present(env, "NODE_EXTRA_CA_CERTS"),
        client_cert=_present(env, "CLAUDE_CODE_CLIENT_CERT"),
        client_key=_present(env, "CLAUDE_CODE_CLIENT_KEY"),
        client_key_passphrase=env.get("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE") or None,
    )


def made_up_key() -> str:
    """A key that opens one session's broker and nothing else."""
    return f"{KEY_START}{secrets.token_hex(KEY_DIGITS // 2)}"


def inside_env(
    env: Mapping[str, str], *, key: str, socket: str | None = None, port: int | None = None
) -> dict[str, str]:
    """What the CLI inside has in place of what ``env`` says; an empty text means: not set.

    ``key`` is the made-up one. The broker is at ``socket``, a path inside, or at ``port`` of
    127.0.0.1: exactly one of them, else ``ValueError``.
    """
    if (socket is None) == (port is None):
        raise ValueError("The broker is at a socket or at a port.")
    kind = KEY_NAMES[0] if env.get(KEY_NAMES[0]) or not env.get(KEY_NAMES[1]) else KEY_NAMES[1]
    found = {**dict.fromkeys(REPLACED_ENV, ""), kind: key}
    if socket is not None:
        return found | {
            "ANTHROPIC_BASE_URL": f"http://{INSIDE_HOST}",
            "ANTHROPIC_UNIX_SOCKET": socket,
        }
    direct = ",".join([*_no_proxy(env), "127.0.0.1"])
    names = dict.fromkeys(("NO_PROXY", "no_proxy"), direct)
    return found | names | {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}


def broker_reason(env: Mapping[str, str], config_dir: str | os.PathLike[str] | None) -> str | None:
    """Why a broker can't stand in for the sign-in of such a CLI; ``None`` when it can.

    ``config_dir`` is the runner's configuration folder, for a better sentence; ``None``: unknown.
    """
    for name in _PROVIDERS:
        if env.get(name, "").strip().lower() not in _OFF:
            return f"{name} is set: the broker holds a key, not another provider's credentials."
    for name in _ACCOUNTS:
        if env.get(name):
            return f"{name} is set and wins over a key: the broker can't stand in for an account."
    if any(env.get(name, "").strip() for name in KEY_NAMES):
        return None
    return f"there is no key{_instead(config_dir)}: set ANTHROPIC_API_KEY."


def _instead(config_dir: str | os.PathLike[str] | None) -> str:
    """How the CLI signs in without one."""
    if config_dir is None:
        return ""
    if _read(os.path.join(config_dir, "settings.json")).get("apiKeyHelper"):
        return ", but a command that yields one (apiKeyHelper), which would run inside"
    if os.path.exists(os.path.join(config_dir, ".credentials.json")):
        return ", but a signed-in account, which the broker can't stand in for"
    return ""


def _read(path: str) -> Mapping[str, object]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _present(env: Mapping[str, str], name: str) -> str | None:
    """The path in a variable, unless nothing is there: the CLI passes that over, too."""
    path = env.get(name)
    return path if path and os.path.exists(path) else None


# --- the certificates -----------------------------------------------------------------------------


def trust(upstream: Upstream, system: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """The certificates that the host's environment names are believed; they are always checked.

    ``system`` makes a context of those that are believed otherwise. Raises ``OSError`` (also
    ``ssl.SSLError``) when a file can't be used.
    """
    import ssl

    if upstream.ca_file or upstream.ca_dir:
        context = ssl.create_default_context(cafile=upstream.ca_file, capath=upstream.ca_dir)
    else:
        context = system()
    if upstream.extra_ca_file:
        context.load_verify_locations(upstream.extra_ca_file)
    if upstream.client_cert:
        passphrase = upstream.client_key_passphrase
        context.load_cert_chain(upstream.client_cert, upstream.client_key, lambda: passphrase or "")
    return context


def trust_faults(upstream: Upstream) -> Iterator[Fault]:
    """The certificate files that can't be used, when there are any and the way there needs them."""
    schemes = {urlsplit(url).scheme for url in (upstream.base_url, upstream.proxy) if url}
    for names, fields in _FILES.items() if "https" in schemes else ():
        chosen = {name: getattr(upstream, name) for name in fields}
        if not any(chosen.values()):
            continue
        paths = tuple(chosen[name] for name in fields if chosen[name] and name not in _NO_FILES)
        if said := _unusable(tuple(chosen.items()), tuple(map(_print, paths))):
            remedy = f"it can't be used ({said}): give PEM files that can be read."
            yield _fault(names, paths[0], remedy)


@lru_cache(maxsize=32)
def _unusable(chosen: tuple[tuple[str, str | None], ...], _prints: tuple[object, ...]) -> str:
    """What is wrong with certificate files that were as ``_prints`` says; ``""``: nothing is.

    A bundle of a system's takes longer to read than all the rest of a plan.
    """
    import ssl

    bare = Upstream(base_url=_DEFAULT, headers=(), **dict(chosen))
    try:
        trust(bare, lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except (OSError, ValueError) as error:
        return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return ""


def _print(path: str) -> object:
    """What changes when a file or a folder does."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


_NO_FILES: Final = ("client_key_passphrase",)
# Which variable names which files; those of one row are only of use together.
_FILES: Final = {
    "SSL_CERT_FILE": ("ca_file",),
    "SSL_CERT_DIR": ("ca_dir",),
    "NODE_EXTRA_CA_CERTS": ("extra_ca_file",),
    "CLAUDE_CODE_CLIENT_CERT": ("client_cert", "client_key", "client_key_passphrase"),
}


# --- the headers ----------------------------------------------------------------------------------


def _headers(env: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if key := env.get("ANTHROPIC_API_KEY", "").strip():
        found["x-api-key"] = key
    if token := env.get("ANTHROPIC_AUTH_TOKEN", "").strip():
        found["authorization"] = f"Bearer {token}"
    custom = {name.lower(): value for name, value in _custom(env)}  # of two, the last one counts
    return found | {name: value for name, value in custom.items() if name not in _FRAMING}


def _custom(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """``ANTHROPIC_CUSTOM_HEADERS``: one a line; a line without a colon is passed over."""
    for line in re.split(r"\r?\n", env.get("ANTHROPIC_CUSTOM_HEADERS", "")):
        name, colon, value = line.partition(":")
        if colon and name.strip():
            yield name.strip(), value.strip()


def _header_faults(env: Mapping[str, str]) -> Iterator[Fault]:
    remedy = "take out what can't stand in a header: line ends, control characters, other scripts."
    for name in KEY_NAMES:
        value = env.get(name, "").strip()
        if value and not _VALUE.fullmatch(value):
            yield _fault(name, _HIDDEN, remedy)
    for name, value in _custom(env):
        if not _NAME.fullmatch(name) or (value and not _VALUE.fullmatch(value)):
            yield _fault("ANTHROPIC_CUSTOM_HEADERS", _HIDDEN, remedy)


def _fault(field: str, value: str, remedy: str) -> Fault:
    from agent_kit.scope import Fault  # here: a broker that starts without a fault needs no scope

    return Fault(field=field, value=value, remedy=remedy)


# --- the way there --------------------------------------------------------------------------------


def _url_faults(name: str, url: str) -> Iterator[Fault]:
    found = _split(url)
    proxy = name in _PROXIES
    shown = _HIDDEN if proxy or (found and "@" in found.netloc) else url
    if found is None or found.scheme not in ("http", "https") or not found.hostname:
        yield _fault(name, shown, "give an http:// or https:// URL with a host.")
    elif not proxy and ("@" in found.netloc or found.query or found.fragment):
        remedy = "take out the user, the query and the fragment."
        yield _fault(name, shown, remedy)


def _split(url: str) -> SplitResult | None:
    """The parts of a URL; ``None`` when it is none, or holds what can't stand in a request."""
    if not re.fullmatch(r"[\x21-\x7e]+", url):
        return None
    try:
        found = urlsplit(url)
        _ = found.port  # raises
    except ValueError:
        return None
    return found


def proxy_login(url: str) -> tuple[str, str] | None:
    """The user and the password in a proxy's URL."""
    found = urlsplit(url)
    if found.username is None:
        return None
    return unquote(found.username), unquote(found.password or "")


def _proxy(env: Mapping[str, str], base: str) -> tuple[str, str | None]:
    """The variable that names the proxy for ``base``, and its value."""
    for name in _PROXIES:
        if value := env.get(name, "").strip():
            return name, None if _is_direct(env, base) else value
    return "", None


def _is_direct(env: Mapping[str, str], base: str) -> bool:
    """Whether NO_PROXY names a host, as the CLI reads it: a name alone means that host alone."""
    if (found := _split(base)) is None:
        return False
    host = (found.hostname or "").lower()
    port = found.port or (443 if found.scheme == "https" else 80)
    for entry in _no_proxy(env):
        if entry in ("*", host, f"{host}:{port}"):
            return True
        if entry.startswith(".") and (host == entry[1:] or host.endswith(entry)):
            return True
    return False


def _no_proxy(env: Mapping[str, str]) -> list[str]:
    both = f"{env.get('no_proxy', '')},{env.get('NO_PROXY', '')}"
    return list(dict.fromkeys(entry.lower() for entry in re.split(r"[,\s]+", both) if entry))
