"""The names of the SDK's options, without importing the SDK: that takes a second, this 2 ms."""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib.util
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from agent_kit.scope import Fault
from agent_kit.session.spec import AgentSpec

__all__ = ["option_faults", "option_names"]

# From the class to the next definition at the margin.
_CLASS = re.compile(r"^class ClaudeAgentOptions\b.*?(?=^\S(?<!\)))", re.DOTALL | re.MULTILINE)


def option_faults(spec: AgentSpec) -> Iterator[Fault]:
    """The spec's options that the SDK doesn't have; none when that can't be told from its source."""
    if not spec.options or (known := option_names()) is None:
        return
    for name, value in spec.options.items():
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            meant = f"the SDK has no such option; did you mean {near[0]!r}?" if near else None
            remedy = meant or "the SDK has no such option: take it out."
            yield Fault(field=f"options[{name!r}]", value=value, remedy=remedy)


@lru_cache(maxsize=1)
def option_names() -> frozenset[str] | None:
    """The fields of the installed ``ClaudeAgentOptions``; ``None`` when they can't be found."""
    with contextlib.suppress(ImportError, OSError, SyntaxError, ValueError):
        package = importlib.util.find_spec("claude_agent_sdk")
        if package is not None and package.origin is not None:
            source = Path(package.origin).with_name("types.py").read_text(encoding="utf-8")
            return _fields(source)
    return None


def _fields(source: str) -> frozenset[str] | None:
    found = _CLASS.search(source)
    if found is None:
        return None
    (made,) = ast.parse(found[0]).body
    assert isinstance(made, ast.ClassDef)
    names = [
        line.target.id
        for line in made.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    ]
    return frozenset(names) or None
