"""Tools that take no path and yet bring files to the model, or copy them.

Seen on CLI 2.1.332 with a gate on the file tools and deny rules in place. One function a tool: the
reason why the call is refused, or ``None``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_kit.policy.starts import DEFAULT_AGENT
from agent_kit.scope import ConfigError, FileScope
from agent_kit.sdk.catalogue import header, is_clear, texts_below

__all__ = ["DOORS", "NO_FILE_TOOLS", "WORKTREES", "asks_for_a_copy"]


def _agent(scope: FileScope, tool_input: Any, _cwd: str) -> str | None:
    """``isolation`` copies every file of the repository to where no rule names it.

    An agent that the project defines may ask for it in its front matter.
    """
    if not isinstance(tool_input, Mapping) or tool_input.get("isolation"):
        return f'{_NO_COPY} Start it without "isolation".'
    try:
        isolated = _isolated(scope, str(tool_input.get("subagent_type") or DEFAULT_AGENT))
    except ConfigError:
        return "This project's agents can't be checked: there are too many files among them."
    if isolated:
        return f"{_NO_COPY} The file of this agent asks for it: start another agent."
    return None


def asks_for_a_copy(scope: FileScope, agent: str) -> bool:
    """Whether an agent may work in a copy by its own file's word. It looks at the disk."""
    try:
        return _isolated(scope, agent)
    except ConfigError:  # nobody can tell
        return True


_NO_COPY: Final = (
    "An agent can't work in a copy of the repository here: it would hold closed files."
)


def _isolated(scope: FileScope, agent: str) -> bool:
    """Whether an agent file of the project may be this agent's and names an isolation.

    Raises ConfigError when there is more than can be looked at.
    """
    wanted, found = agent.casefold(), False
    for path, body in texts_below(os.path.join(scope.project_dir, ".claude", "agents")):
        text = body.casefold()
        named = wanted in text or os.path.basename(path).casefold().startswith(wanted)
        found = found or (named and "isolation" in text) or _is_escaped(body, wanted)
    return found


def _is_escaped(body: str, wanted: str) -> bool:
    """Whether a front matter may say so in other letters: YAML has escapes."""
    if "\\" not in body.split("---", 2)[:2][-1]:
        return False
    fields = header(body)
    return not is_clear(body) or (
        "isolation" in fields and str(fields.get("name", wanted)).casefold() == wanted
    )


def _worktree(_scope: FileScope, _tool_input: Any, _cwd: str) -> str | None:
    return "A copy of the repository can't be made here: it would hold closed files. Work in place."


def _cron(_scope: FileScope, tool_input: Any, _cwd: str) -> str | None:
    """A lasting one is written to ``.claude/scheduled_tasks.json``, and a later session runs it."""
    if isinstance(tool_input, Mapping) and not tool_input.get("durable"):
        return None
    return 'A task can\'t outlast this session: it would steer later ones. Leave out "durable".'


DOORS: Final[Mapping[str, Callable[[FileScope, Any, str], str | None]]] = {
    "Agent": _agent,
    "Task": _agent,  # its older name
    "EnterWorktree": _worktree,
    "CronCreate": _cron,
}

NO_FILE_TOOLS: Final = frozenset({"Skill", *DOORS})  # Skill is judged by what it mentions
WORKTREES: Final = frozenset({"Agent", "EnterWorktree", "Task"})  # open with allow_worktrees
