"""Which certificates are believed: the system's, and those that the host's environment names.

As for the model's endpoint (``agent_kit.confine``), but for the client certificate: that one is for
the endpoint, and no other host ever sees it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

from agent_kit.confine.onward import system_trust
from agent_kit.confine.upstream import Upstream, trust

__all__ = ["trusted"]


def trusted(env: Mapping[str, str]) -> ssl.SSLContext:
    """A context that checks certificates and names. Raises ``OSError`` for a file that can't be used."""
    believed = Upstream(
        base_url="https://unused.invalid",
        headers=(),
        ca_file=_present(env, "SSL_CERT_FILE"),
        ca_dir=_present(env, "SSL_CERT_DIR"),
        extra_ca_file=_present(env, "NODE_EXTRA_CA_CERTS"),
    )
    context = trust(believed, system_trust)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _present(env: Mapping[str, str], name: str) -> str | None:
    path = env.get(name)
    return path if path and os.path.exists(path) else None
