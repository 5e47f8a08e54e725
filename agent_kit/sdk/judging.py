"""What the scope holds against a call: a path, or a door beside the file tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_kit.scope import FileScope
from agent_kit.scope.judge import NamedPath, judge_and_name
from agent_kit.sdk.commands import Commands, refused_skill
from agent_kit.sdk.doors import DOORS, WORKTREES

__all__ = ["ScopeJudge"]


@dataclass(frozen=True, slots=True)
class ScopeJudge:
    """``worktrees`` lets agents work in copies of the repository. ``commands`` are the session's
    skills and commands: with them Skill calls no other, and their bodies are judged, too."""

    worktrees: bool = False
    commands: Commands | None = None

    def judge(
        self, scope: FileScope, tool_name: str, tool_input: Any, cwd: str
    ) -> tuple[str | None, tuple[NamedPath, ...]]:
        """Why the call is refused, else ``None``, and the paths that it names.

        It may look at the disk, and a disk may hang.
        """
        if tool_name == "Skill" and self.commands is not None:
            return refused_skill(scope, self.commands, tool_input, cwd), ()
        door = DOORS.get(tool_name)
        if door is not None and not (self.worktrees and tool_name in WORKTREES):
            return door(scope, tool_input, cwd), ()
        return judge_and_name(scope, tool_name, tool_input, cwd)
