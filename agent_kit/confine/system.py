"""What any program needs of the operating system, and which variables a CLI needs. Two tables."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ENV_ACCOUNT",
    "ENV_NAMES",
    "ENV_PLAIN",
    "ENV_SECRET",
    "ENV_STARTS",
    "SYSTEM",
    "is_system",
]

# Read-only, where they exist. Of /etc, what names hosts, users, certificates, libraries and time
# zones; not the whole of it: it holds keys and password hashes.
SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/claude-code",  # an organisation's managed settings hold inside, too
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
)


def is_system(path: str) -> bool:
    """Whether an absolute path is there inside whatever the scope says.

    >>> [is_system(path) for path in ("/usr/bin", "/bin", "/bin-of-mine", "/usr/local/bin/x", "/etc")]
    [True, True, False, True, False]
    """
    return any(path == top or path.startswith(f"{top}/") for top in SYSTEM)


# Variables that a CLI and the programs it starts work with, when the host has them.
ENV_NAMES: Final = (
    "COLORTERM",
    "HOME",
    "IS_SANDBOX",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "PWD",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
    # proxies and certificates
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    # where a provider is
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "CLOUD_ML_REGION",
    # limits and switches of the CLI
    "API_TIMEOUT_MS",
    "BASH_DEFAULT_TIMEOUT_MS",
    "BASH_MAX_OUTPUT_LENGTH",
    "BASH_MAX_TIMEOUT_MS",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
    "MAX_MCP_OUTPUT_TOKENS",
    "MAX_THINKING_TOKENS",
    "MCP_TIMEOUT",
    "MCP_TOOL_TIMEOUT",
)
ENV_STARTS: Final = ("ANTHROPIC_", "CLAUDE_", "LC_")
# Of these, what has one of these words in its name is a secret, or says where one lies.
ENV_SECRET: Final = (
    "AUTH",
    "CERT",
    "CREDENTIAL",
    "HEADERS",
    "KEY",
    "PASS",
    "SECRET",
    "SOCKET",
    "SSE_PORT",
    "TOKEN",
)
# But for these, which only sound like it.
ENV_PLAIN: Final = ("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS")
# What another provider's sign-in consists of, where the session has it inside.
ENV_ACCOUNT: Final = ("AWS_", "AZURE_", "CLOUD_ML_", "GCLOUD_", "GOOGLE_")
