"""Where the code lies that runs the agent: whoever could write it could open the locks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from agent_kit.session.spec import AgentSpec

__all__ = ["code_paths"]


def code_paths(spec: AgentSpec, *, running: bool = False) -> list[tuple[str, str]]:
    """What each is, and its absolute path. ``running``: with the program that was started."""
    rows = [
        ("agent-kit itself", str(Path(__file__).parents[1])),
        ("the Python interpreter", sys.prefix),
        ("the Python that its environment stands on", sys.base_prefix),
    ]
    rows += [(f"the extension {name}", path) for name, path in _extension_files(spec)]
    if spec._defined_in is not None:
        rows.append(("the module that defines the spec", spec._defined_in))
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if running and main is not None:
        rows.append(("the program that is running", os.path.abspath(main)))
    return rows


def _extension_files(spec: AgentSpec) -> Iterator[tuple[str, str]]:
    for extension in spec.extensions:
        module = sys.modules.get(type(extension).__module__)
        if (file := getattr(module, "__file__", None)) is not None:
            yield extension.name, os.path.dirname(file)
