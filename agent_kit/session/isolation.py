"""What keeps the runner's personal configuration, and the project's own hooks, out of a session.

One table: the CLI's setting, the kit's value, the name that ``SessionConfig.unlock`` opens it by,
and what happens without it (measured on CLI 2.1.332).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_kit.scope.errors import Fault
from agent_kit.session.pins import PROJECT_ENV
from agent_kit.session.settings import UNCHECKED_SETTINGS

__all__ = ["ISOLATION", "Isolation", "isolated_settings", "unlock_faults"]


# What lets other sessions and programs submit prompts: two switches, see environment, too.
PEER_MESSAGES: Final = "peer_messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    setting: str
    value: object
    unlock: str
    without: str


ISOLATION: Final = (
    Isolation(
        setting="autoMemoryEnabled",
        value=False,
        unlock="auto_memory",
        without="the runner's memory of this repository is loaded, whatever the sources",
    ),
    Isolation(
        setting="includeGitInstructions",
        value=False,
        unlock="git_instructions",
        without="commit instructions and the runner's git name reach the agent",
    ),
    Isolation(
        setting="disableClaudeAiConnectors",
        value=True,
        unlock="claude_ai_connectors",
        without="the connectors of the signed-in account come along: tools on the runner's data",
    ),
    Isolation(
        setting="outputStyle",
        value="default",
        unlock="output_style",
        without="a project chooses a file whose text comes with the first request, links followed",
    ),
    Isolation(
        setting="disableAllHooks",
        value=True,
        unlock="project_hooks",
        without="hooks of the project and of skills run commands; the host's callbacks run anyway",
    ),
    Isolation(
        setting="disableSkillShellExecution",
        value=True,
        unlock="skill_shell",
        without="a shell line in a skill's or command's body runs before any hook is asked",
    ),
    Isolation(
        setting="crossSessionInbound",
        value="refuse",
        unlock=PEER_MESSAGES,
        without="what comes to the CLI's inbox is submitted, and the hooks take it for the person's",
    ),
)


# What opens the instruction files inside the scope's folders: see nested_memory.
NESTED_MEMORY: Final = "nested_memory"

# What lets prompts be submitted by a timetable: see environment.
SCHEDULED_TASKS: Final = "scheduled_tasks"


def isolated_settings(
    settings: Mapping[str, Any], unlock: Collection[str], excludes: Sequence[str]
) -> dict[str, Any]:
    """``settings`` with the kit's values, but for those that ``unlock`` names.

    ``excludes`` are added to the ``claudeMdExcludes`` that are there.
    """
    isolated = {**settings, **{r.setting: r.value for r in ISOLATION if r.unlock not in unlock}}
    if NESTED_MEMORY not in unlock:
        isolated["claudeMdExcludes"] = [*settings.get("claudeMdExcludes", ()), *excludes]
    return isolated


def unlock_faults(unlock: Collection[str]) -> list[Fault]:
    known = [*dict.fromkeys(row.unlock for row in ISOLATION), NESTED_MEMORY, SCHEDULED_TASKS]
    known += [PROJECT_ENV, UNCHECKED_SETTINGS]
    return [
        Fault(field="unlock", value=name, remedy=f"choose from {', '.join(known)}.")
        for name in unlock
        if name not in known
    ]
