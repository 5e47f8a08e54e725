"""The public names of ``agent_kit.policy``, and what importing them loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent_kit.policy as policy

HEAVY = ("claude_agent_sdk", "mcp", "pathspec", "bracex", "pydantic", "rich")


def test_the_public_names_are_these() -> None:
    assert sorted(policy.__all__) == policy.__all__ == sorted(policy._HOME_OF)
    for name in policy.__all__:
        assert getattr(policy, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = policy.nothing


def test_importing_them_loads_nothing_heavy() -> None:
    code = f"""
import sys
import agent_kit.policy
assert not [name for name in sys.modules if name.startswith("agent_kit.policy.")]
for name in agent_kit.policy.__all__:
    getattr(agent_kit.policy, name)
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
