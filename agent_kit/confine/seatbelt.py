"""The view as a profile of macOS' ``sandbox-exec``. Its text is tested; it has not been run.

Written after the language that the system's own profiles use: rules in order, the last one that
matches decides. So everything is refused first, then the mounts follow from the outside in. What is
visible keeps its path, and a name that is not visible can still be told from one that doesn't exist.
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
from agent_kit.confine.view import ConfinedView, Mount, Sight

__all__ = ["Seatbelt", "profile"]

# What any program needs there: its libraries, devices, and the caches of the dynamic linker.
_SYSTEM: Final = (
    "/System",
    "/Library/Apple",
    "/bin",
    "/dev",
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
(allow file-write-data (literal "/dev/null") (literal "/dev/tty"))
"""


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
        return None

    def hindered(self, view: ConfinedView) -> tuple[str, ...]:
        """None: it holds the whole view."""
        del view
        return ()

    def notes(self, view: ConfinedView) -> tuple[str, ...]:
        """What a profile can't do."""
        del view
        return ("seatbelt: the profile has not been run; the existence of any path can be asked",)

    def launch(self, view: ConfinedView) -> Launch:
        """The command line; the profile stands in it, and holds nothing secret."""
        return Launch(argv=("/usr/bin/sandbox-exec", "-p", profile(view)), env=view.env)


def profile(view: ConfinedView) -> str:
    """The profile's text.

    >>> view = ConfinedView(mounts=(Mount(path="/w", sight=Sight.WRITE),), cwd="/w", tmp="/t")
    >>> print(profile(view).splitlines()[-1])
    (allow file-read* file-write* (subpath "/w"))
    """
    return _BASE + "\n".join(_rules(view))


def _rules(view: ConfinedView) -> Iterator[str]:
    yield from (f"(allow file-read* (subpath {_text(path)}))" for path in _SYSTEM)
    if view.network:
        yield "(allow network*)"
    yield from (f"(allow network-outbound (literal {_text(path)}))" for path in view.sockets)
    for mount in view.mounts:
        yield from _of_mount(mount)


def _of_mount(mount: Mount) -> Iterator[str]:
    named = f"({'subpath' if mount.folder else 'literal'} {_text(mount.path)})"
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
