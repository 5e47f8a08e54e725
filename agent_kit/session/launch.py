"""The launcher of a confined session, described in the run folder's ``host/`` part."""

from __future__ import annotations

import importlib.util
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agent_kit.confine import launcher
from agent_kit.confine.control_links import decided_at
from agent_kit.confine.system import ENV_ACCOUNT, ENV_NAMES, ENV_PLAIN, ENV_SECRET, ENV_STARTS
from agent_kit.confine.view import Mount, Sight
from agent_kit.scope.control import CONTROL_NAMES
from agent_kit.session.confinement import Confinement
from agent_kit.session.inside import links_to
from agent_kit.session.run_folder import write_private

__all__ = ["describe_launcher"]

_BROKER_NEEDS: Final = ("agent_kit", "h11", "truststore")


def describe_launcher(
    confinement: Confinement,
    host: Path,
    session_id: str,
    files: Sequence[str],
    env: Mapping[str, str],
) -> list[str]:
    """Write the description of a session's launcher. Returns the words that start it.

    ``files`` are what the CLI is told to read from the ``host/`` part, ``env`` is the host's whole
    environment.
    """
    view = confinement.view
    real = dict.fromkeys(map(os.path.realpath, files))
    mounts = [*view.mounts, *(Mount(path=f, sight=Sight.READ, folder=False) for f in real)]
    links = links_to(files, {mount.path: mount for mount in mounts})
    every = dict.fromkeys((*view.links, *links))
    view = replace(view, mounts=tuple(sorted(mounts)), links=tuple(every))
    launch = confinement.backend.launch(view)
    writable = [
        m.path for m in view.mounts if m.sight is Sight.WRITE and _is_scopes(m, confinement)
    ]
    description: dict[str, Any] = {
        "launch": {"argv": launch.argv, "text": launch.text},
        "cli": confinement.cli,
        "env": {_plain(k): _plain(v) for k, v in confinement.env_over(env).items()},
        "env_names": [*ENV_NAMES, *ENV_PLAIN, *map(_plain, confinement.env_names)],
        "env_starts": [*ENV_STARTS, *(ENV_ACCOUNT if confinement.account else ())],
        "env_secret": [] if confinement.account else ENV_SECRET,
        "host": os.getpid(),
        "own_folder": str(confinement.own.path),
        "place": confinement.place,
        "made_folders": [str(confinement.own.config), view.tmp, str(confinement.own.commands)],
        "programs": dict(confinement.commands),
        "project": view.cwd,
        "config_dir": str(confinement.own.config),
        "copied_in": confinement.copied_in,
        "copied_out": confinement.copied_out,
        "writable": writable,
        "control_names": CONTROL_NAMES,
        "led": decided_at(view.cwd, writable),
        "removed": str(host / f"{session_id}.removed"),
        "broker": _broker(confinement),
    }
    path = write_private(host, f"{session_id}.launch", marshal.dumps(description))
    folder = os.path.dirname(os.path.abspath(launcher.__file__))
    return [sys.executable, "-I", "-S", "-c", launcher.START, folder, str(path)]


_plain: Final = str.__str__  # of an enumeration's text, say: marshal takes none of its kind


def _broker(confinement: Confinement) -> dict[str, Any] | None:
    if not confinement.brokered:
        return None
    found = [importlib.util.find_spec(name) for name in _BROKER_NEEDS]
    folders = [
        os.path.dirname(os.path.dirname(each.origin)) for each in found if each and each.origin
    ]
    return {
        "socket": confinement.own.socket,
        "key": confinement.made_up_key,
        "paths": list(dict.fromkeys(map(os.path.abspath, folders))),
    }


def _is_scopes(mount: Mount, confinement: Confinement) -> bool:
    return not mount.path.startswith(str(confinement.own.path))
