"""What any program needs of the operating system, and which variables a CLI needs. Tables."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final

__all__ = [
    "ENV_ACCOUNT",
    "ENV_NAMES",
    "ENV_PLAIN",
    "ENV_SECRET",
    "ENV_STARTS",
    "MAC_SYSTEM",
    "SYSTEM",
    "is_system",
    "named_certificates",
    "seen_anyway",
]

# Read-only, where they exist. Of /etc, what names hosts, users, certificates, libraries and time
# zones; not the whole of it: it holds keys and password hashes.
_SYSTEM: Final = (
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
    "/etc/debian_version",
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
_SYSTEM_PATTERNS: Final = (
    "/etc/*-release",  # which system it is: pip asks
    "/etc/java-*-openjdk",  # the configuration of Debian's Java, without which it doesn't start
    "/etc/java/java-*-openjdk",  # of Fedora's
)
_FOUND: Final = (path for text in _SYSTEM_PATTERNS for path in sorted(glob.glob(text)))
SYSTEM: Final = tuple(dict.fromkeys((*_SYSTEM, *_FOUND)))

# What any program needs on macOS: its libraries, and the caches of the dynamic linker. Of /dev, what
# is nobody's: a terminal tells what the person types, in this window and in others.
MAC_SYSTEM: Final = (
    "/System",
    "/Library/Apple",
    "/bin",
    "/dev/autofs_nowait",
    "/dev/dtracehelper",
    "/dev/fd",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/etc",
    "/private/etc/hosts",
    "/private/etc/localtime",
    "/private/etc/passwd",
    "/private/etc/protocols",
    "/private/etc/resolv.conf",
    "/private/etc/services",
    "/private/etc/ssl",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/sbin",
    "/usr",
    "/var",
)


def seen_anyway() -> tuple[str, ...]:
    """The real paths that are seen inside whatever the scope opens.

    >>> "/usr" in seen_anyway()
    True
    """
    if sys.platform == "darwin":  # a rule on a link there is about the link alone
        return tuple(path for path in MAC_SYSTEM if os.path.realpath(path) == path)
    return tuple(dict.fromkeys(map(os.path.realpath, SYSTEM)))


def named_certificates(env: Mapping[str, str]) -> Iterator[str]:
    """The real paths of the certificates that an environment names, where they exist.

    Any program inside asks for these, and the variables are passed on. What the system has anyway is
    left out, and so is a folder that holds anything but certificates.

    >>> list(named_certificates({"SSL_CERT_FILE": "/nowhere/ca.pem", "SSL_CERT_DIR": "relative"}))
    []
    """
    for name in _ENV_CERTIFICATES:
        for path in env.get(name, "").split(os.pathsep):
            if os.path.isabs(path) and not is_system(path) and _are_certificates(path):
                yield os.path.realpath(path)


def _are_certificates(path: str) -> bool:
    """Whether it is a file, or a folder whose names are all those of certificates."""
    try:
        return all(map(_CERTIFICATE.fullmatch, os.listdir(path)))
    except NotADirectoryError:
        return True
    except OSError:
        return False


def is_system(path: str) -> bool:
    """Whether an absolute path is there inside whatever the scope says.

    >>> [is_system(path) for path in ("/usr/bin", "/bin", "/bin-of-mine", "/usr/local/bin/x", "/etc")]
    [True, True, False, True, False]
    """
    return any(path == top or path.startswith(f"{top}/") for top in SYSTEM)


_CERTIFICATE: Final = re.compile(
    r".+\.(pem|crt|cer|r?[0-9]+)"
)  # the last: a hash, as OpenSSL looks it up
# Which variables name files and folders of certificates, several with a colon between them.
_ENV_CERTIFICATES: Final = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE")
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
