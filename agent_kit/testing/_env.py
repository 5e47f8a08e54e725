"""The environment in which the CLI talks to a scripted model and to nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent_kit.testing._model import ScriptedModel

__all__ = ["cli_env", "endpoint_env", "kept", "repinned"]

_HOST_PREFIXES = ("ANTHROPIC_", "CLAUDE_", "CLAUDECODE")
_MADE_UP_KEY = "sk-made-up"
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}


def endpoint_env(model: ScriptedModel) -> dict[str, str]:
    """What sends every request to ``model``: its address, a made-up key, and a proxy.

    The proxy is the model itself, which refuses other hosts and lists them in ``model.outside``.
    """
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": _MADE_UP_KEY,
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), model.url),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
    }


def cli_env(model: ScriptedModel, home: Path) -> dict[str, str]:
    """The environment for ``ClaudeAgentOptions.env``: ``model`` is the only host, HOME is ``home``.

    The SDK adds ``options.env`` to the process's own environment and can't take anything out of
    that, so the ANTHROPIC_ and CLAUDE_ variables that are set here and now become empty, which the
    CLI takes as not set (measured on CLI 2.1.332). The exception is CLAUDE_CONFIG_DIR, where empty
    would mean the working folder: if it is set here it becomes ``home``'s own ``.claude``.
    """
    set_here = [name for name in os.environ if name.startswith(_HOST_PREFIXES)]
    config = {"CLAUDE_CONFIG_DIR": str(home / ".claude")} if "CLAUDE_CONFIG_DIR" in set_here else {}
    return {
        **dict.fromkeys(set_here, ""),
        **config,
        "HOME": str(home),
        **_QUIET,
        **endpoint_env(model),
    }


_INLINE: Final = 100_000  # characters; Linux hands over 131,071 bytes in one argument


def repinned(settings: str | None, env: Mapping[str, str], folder: Path) -> str | None:
    """Flag settings (a text or a file's path) whose own ``env`` says what ``env`` says.

    Such settings win over the environment: options that pin the host's endpoint and key would take
    the session to it. What a file said is handed over as a text, since a confined CLI sees no other
    file. Where a command line can't hold it, a kit's own file says it until :func:`kept` ends, and
    any other has a copy in ``folder``. It holds no key of the host.
    """
    inline = settings is None or settings.strip().startswith("{")
    try:
        text = settings or "{}" if inline else Path(str(settings)).read_text(encoding="utf-8-sig")
        content = json.loads(text)
    except (OSError, ValueError):  # the CLI's business
        return settings
    if not isinstance(content, dict) or not content.get("env"):
        return settings
    if content["env"].get(
        "ANTHROPIC_UNIX_SOCKET"
    ):  # confined: the broker outside has what env says
        return settings
    content["env"] = {name: env.get(name, value) for name, value in content["env"].items()}
    text = json.dumps(content)
    if inline or len(text) < _INLINE:
        return text
    place = Path(str(settings)) if _is_kits(settings) else folder / "settings.json"
    place.write_text(text, encoding="utf-8")
    return str(place)


@contextmanager
def kept(settings: str | None) -> Iterator[None]:
    """Afterwards a settings file that the kit wrote for a session says what it said before."""
    before = Path(str(settings)).read_bytes() if _is_kits(settings) else b""
    try:
        yield
    finally:
        if before and _is_kits(settings):  # one that was removed meanwhile doesn't come back
            Path(str(settings)).write_bytes(before)


def _is_kits(settings: str | None) -> bool:
    """Whether these are a file in the ``host/`` part of a session's run folder."""
    path = Path(settings or "")
    return path.name.endswith(".settings.json") and path.parent.name == "host" and path.is_file()
