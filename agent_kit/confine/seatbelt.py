"""The view as a profile of macOS' ``sandbox-exec``. Its text is tested; it has not been run on a Mac.

Written after the language that the system's own profiles use: rules in order, the last one that
matches decides. So everything is refused first, then the mounts follow from the outside in. What is
visible keeps its path, and a name that is not visible can still be told from one that doesn't exist.
``make check-mac`` proves the profile on a Mac: :mod:`agent_kit.confine.check_mac`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent_kit.confine.backend import Launch
from agent_kit.confine.system import MAC_SYSTEM
from agent_kit.confine.view import ConfinedView, Mount, Sight

__all__ = ["Seatbelt", "profile"]

# Without the names in "/" the linker ends every program before it starts.
_BASE: Final = """(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow mach-lookup (global-name "com.apple.trustd"))
(allow file-read-metadata)
(allow file-read* (literal "/"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
"""
# With the network: addresses, and the socket that names are asked at. No other Unix socket: a session
# bus or a container engine's is a way out.
_NETWORK: Final = (
    "(allow system-socket (socket-domain AF_INET) (socket-domain AF_INET6))",
    '(allow network-outbound (remote ip "*:*"))',
    '(allow network-bind network-inbound (local ip "*:*"))',
)
_NAMES_SOCKET: Final = "/private/var/run/mDNSResponder"

_NOT_RUN: Final = (
    "seatbelt: the profile has not been run on a Mac (make check-mac proves it there); the existence of"
    " any path can be asked"
)
_KEYCHAIN: Final = (
    "the CLI inside has a configuration folder of its own, so it doesn't find a sign-in that is in the"
    " keychain, and the keychain can't be asked from inside: set ANTHROPIC_API_KEY, which stays outside"
    " with the broker, or CLAUDE_CODE_OAUTH_TOKEN with expose_account=True, which goes inside"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seatbelt:
    """The backend."""

    @property
    def name(self) -> str:
        return "seatbelt"

    @property
    def own_tmp(self) -> bool:
        """There is no ``/tmp`` but the host's: it stays closed."""
        return False

    def available(self) -> str | None:
        """Why it doesn't work here."""
        if sys.platform != "darwin":
            return "seatbelt is macOS' own: this is another system."
        if shutil.which("sandbox-exec") is None:
            return "there is no sandbox-exec on PATH: it is a part of macOS, in /usr/bin."
        if not hasattr(os, "pidfd_open"):
            return (
                "the launcher of a confined CLI needs Linux: run the agent in a Linux container or"
                " virtual machine."
            )
        return None

    def hindered(self, view: ConfinedView) -> tuple[str, ...]:
        """None: it holds the whole view."""
        del view
        return ()

    def notes(self, view: ConfinedView) -> tuple[str, ...]:
        """What a profile can't do."""
        del view
        return (_NOT_RUN, _KEYCHAIN)

    def launch(self, view: ConfinedView) -> Launch:
        """The command line; the profile stands in it, and holds nothing secret."""
        return Launch(argv=("/usr/bin/sandbox-exec", "-p", profile(view)))


def profile(view: ConfinedView) -> str:
    """The profile's text.

    >>> view = ConfinedView(mounts=(Mount(path="/w", sight=Sight.WRITE),), cwd="/w", tmp="/t")
    >>> print(profile(view).splitlines()[-1])
    (allow file-read* file-write* (subpath "/w"))
    """
    return _BASE + "\n".join(_rules(view))


def _rules(view: ConfinedView) -> Iterator[str]:
    yield from (f"(allow file-read* (subpath {_text(path)}))" for path in MAC_SYSTEM)
    if view.network:
        yield from _NETWORK
    sockets = (*view.sockets, *([_NAMES_SOCKET] if view.network else ()))
    if sockets:
        yield "(allow system-socket (socket-domain AF_UNIX))"
    for path in sockets:
        named = f"(literal {_text(_in_its_real_folder(path))})"
        yield f"(allow network-outbound (remote unix-socket {named}))"
    if view.whole != view.mounts and view.cwd.startswith(tuple(f"{top}/" for top in MAC_SYSTEM)):
        yield f"(deny file-read-data file-read-xattr (subpath {_text(view.cwd)}))"
    for mount in view.mounts:
        yield from _of_mount(mount)
    yield from (f"(deny file-write-unlink (literal {_text(path)}))" for path in _kept(view))


def _kept(view: ConfinedView) -> list[str]:
    """The writable folders above what is closed or read-only: none of them gets another name.

    A rule is about a path, and would not go along.
    """
    found = set()
    for mount in view.mounts:
        folder = os.path.dirname(mount.path)
        closed = mount.sight is not Sight.WRITE
        while closed and folder != "/" and view.sight(folder) is Sight.WRITE:
            found.add(_in_its_real_folder(folder))
            folder = os.path.dirname(folder)
    return sorted(found)


def _in_its_real_folder(path: str) -> str:
    """As the system judges it: its temporary folders are behind a link, /var."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _of_mount(mount: Mount) -> Iterator[str]:
    path = _in_its_real_folder(mount.path)
    named = f"({'subpath' if mount.folder else 'literal'} {_text(path)})"
    if mount.sight is Sight.NOTHING:
        yield f"(deny file-read* file-write* {named})"
    elif mount.sight is Sight.READ:
        yield f"(allow file-read* {named})"
        yield f"(deny file-write* {named})"
    else:
        yield f"(allow file-read* file-write* {named})"


def _text(path: str) -> str:
    """A string of the profile's language: in quotes, as JSON writes them."""
    return json.dumps(os.fspath(path), ensure_ascii=False)
