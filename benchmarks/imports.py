"""What an import adds to a bare interpreter, and whether it brings the SDK or MCP along."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.measure import Effort, Row, figure, seconds, take_turns

__all__ = ["fresh", "measure"]


class _Import(NamedTuple):
    key: str
    statement: str
    bound: float | None  # milliseconds


_IMPORTS = (
    _Import("import.kit", "import agent_kit", 40),
    _Import("import.scope", "from agent_kit import FileScope, check_file_scope", None),
    _Import("import.plan", "from agent_kit import plan_session", None),
)
_FOREIGN = (
    "import sys; print(sum(n.split('.')[0] in ('claude_agent_sdk', 'mcp') for n in sys.modules))"
)


def measure(effort: Effort) -> Iterator[Row]:
    for key, statement, bound in _IMPORTS:
        fresh(statement)  # writes the byte code
        samples = take_turns(
            lambda: seconds(lambda: fresh("pass"))[0],
            lambda code=statement: seconds(lambda: fresh(code))[0],  # type: ignore[misc]
            effort.starts,
        )
        yield samples.difference(key, f"{statement}, less a bare interpreter", bound=bound)
        loaded = float(fresh(f"{statement}; {_FOREIGN}"))
        what = f"modules of the SDK and MCP after {statement}"
        yield figure(f"{key}.foreign", what, "", [loaded], bound=0)


def fresh(code: str) -> str:
    """What ``code`` prints in an interpreter of its own. Raises when it fails."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout
