"""How the child locks itself: from then on it reads its libraries and its own input, and nothing else.

Standard library only: it is loaded in the child. What the host gives is in
:mod:`agent_kit.confine.alone`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

__all__ = ["lock"]


def lock(described: dict[str, Any]) -> None:
    """Put the lock on, for good. Raises ``OSError`` where the kernel refuses.

    It holds the thread that puts it on, and what that starts: another one must not be there yet.
    """
    if len(os.listdir("/proc/self/task")) != 1:
        raise OSError(errno.EBUSY, "a library has started a thread")
    hold = _loaded(described["hold"])
    own = [(path, described["reading"]) for path in sorted({*_own_folders()})]
    hold.give_up_rights()
    hold.restrict_files({**described, "rules": [*described["rules"], *own]})
    if described["filter"]:
        hold.unwatched_filter(bytes.fromhex(described["filter"]))


def _loaded(path: str) -> Any:
    spec = spec_from_loader("hold", SourceFileLoader("hold", path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _own_folders() -> Iterator[str]:
    """Where modules lie that are still to be imported, links resolved.

    The folders of the interpreter's own libraries, and those of packages that were loaded from
    elsewhere: an installer may have put links where a package's files should be.
    """
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        for name in ("lib", "lib64"):
            yield os.path.realpath(os.path.join(prefix, name))
    for variable in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if os.path.isabs(variable):
            yield os.path.realpath(variable)
    for module in list(sys.modules.values()):
        if hasattr(module, "__path__") and isinstance(
            file := getattr(module, "__file__", None), str
        ):
            yield os.path.dirname(os.path.realpath(file))
