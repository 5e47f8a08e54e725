"""What a project's own settings must not move: where the conversation goes, and with which key.

The ``env`` of a project's ``.claude/settings.json`` wins over the environment of the CLI, also in a
folder that nobody has trusted: seen to send the key and the conversation to another server. Its
``apiKeyHelper`` and the like are commands that run. The flag settings win over both, so they say
what the host has, and an empty text (to the CLI: not set) for what it doesn't have: for a fixed list of variables, since a file may change before the CLI reads it, and
for every variable that the project's settings name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["PINNED_COMMANDS", "PINNED_ENV", "PROJECT_ENV", "SECRET_ENV", "pinned_settings"]

PROJECT_ENV: Final = "project_env"  # what SessionConfig.unlock calls all of it

_ENDPOINTS: Final = (
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_AWS_BASE_URL",
    "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
    "ANTHROPIC_GOOGLE_CLOUD_BASE_URL",
    "ANTHROPIC_UNIX_SOCKET",
    "BETA_TRACING_ENDPOINT",
    "CLAUDE_CODE_API_BASE_URL",
    "CLAUDE_CODE_CUSTOM_OAUTH_URL",
)
SECRET_ENV: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_AWS_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
)
_PROVIDERS: Final = (
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
)
_PROXIES: Final = tuple(
    form
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for form in (name, name.lower())
)
_TRUST: Final = ("NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED")
_TELEMETRY: Final = (
    "CLAUDE_CODE_ENABLE_TELEMETRY",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_LOG_USER_PROMPTS",
)
# What decides which program runs, and with what in it.
_PROGRAMS: Final = (
    "BUN_INSPECT",
    "BUN_INSPECT_CONNECT_TO",
    "BUN_INSPECT_NOTIFY",
    "BUN_INSPECT_PRELOAD",
    "BUN_OPTIONS",
    "CLAUDE_CODE_ENABLE_PROXY_AUTH_HELPER",
    "CLAUDE_CODE_SHELL",
    "CLAUDE_CODE_SHELL_PREFIX",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PATH",
    "RIPGREP_CONFIG_PATH",
    "SHELL",
    # What the shell does before it comes to the prefix, and git before it comes to its options.
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXEC_PATH",
    "SHELLOPTS",
    "ZDOTDIR",
    # What the C library loads or writes at a program's start (glibc 2.41, unsecvars.h, less those that
    # an empty text would switch on).
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "LD_AUDIT",
    "LD_DEBUG_OUTPUT",
    "LD_ORIGIN_PATH",
    "LD_PROFILE",
    "LD_PROFILE_OUTPUT",
    "LOCPATH",
    "MALLOC_TRACE",
    "NIS_PATH",
    "NLSPATH",
    "RESOLV_HOST_CONF",
)
# Pinned as well, but only to a text: to a program an empty one is not the same as none.
_PLACES: Final = ("HOME", "TMPDIR")
# A shell that a socket feeds reads ~/.bashrc, unless it is below another (bash 5.2, shell.c).
_SHELL_LEVEL: Final = {"SHLVL": "2"}

PINNED_ENV: Final = (
    *_ENDPOINTS,
    *SECRET_ENV,
    *_PROVIDERS,
    *_PROXIES,
    *_TRUST,
    *_TELEMETRY,
    *_PROGRAMS,
)
# Settings whose value is a command that the CLI runs.
PINNED_COMMANDS: Final = (
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
    "otelHeadersHelper",
    "proxyAuthHelper",
)


_CONFIG_DIR: Final = "CLAUDE_CONFIG_DIR"  # to the CLI an empty one is its working folder


def pinned_settings(
    env: Mapping[str, str], project: Path, user_settings: Path | None
) -> dict[str, Any]:
    """The commands, and ``env``, as the host has them. Holds secrets: not for a command line.

    ``env`` is the whole environment of the CLI, ``project`` its working folder. ``user_settings`` is
    the runner's settings file where "user" is a source: what it says counts as the host's.
    """
    own = _read(user_settings)
    known = {**env, **_env_of(own)}
    names = [*PINNED_ENV, *_named_by(project)]
    pins = {name: str(known.get(name) or "") for name in names}
    pins |= {name: known[name] for name in _PLACES if known.get(name)}
    pins |= _SHELL_LEVEL
    if not pins.get(_CONFIG_DIR, "x"):
        pins[_CONFIG_DIR] = str(user_settings.parent if user_settings else _default_config(known))
    return {**{name: str(own.get(name) or "") for name in PINNED_COMMANDS}, "env": pins}


def _named_by(project: Path) -> list[str]:
    """Every variable that the project's own settings set. A list of names lags behind the CLI."""
    files = (project / ".claude" / name for name in ("settings.json", "settings.local.json"))
    return [name for file in files for name in map(str, _env_of(_read(file)))]


def _default_config(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home()) / ".claude"


def _env_of(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    env = settings.get("env")
    return env if isinstance(env, Mapping) else {}


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
