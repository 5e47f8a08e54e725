"""What the scope holds against a call: a path, or a door beside the file tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_kit.scope import FileScope
from agent_kit.scope.judge import Found, judge_whole
from agent_kit.sdk.commands import Commands, refused_args, refused_skill, texts_in
from agent_kit.sdk.doors import DOORS, WORKTREES
from agent_kit.sdk.mentions import Mentioned

__all__ = ["ScopeJudge"]


@dataclass(frozen=True, slots=True)
class ScopeJudge:
    """``worktrees`` lets agents work in copies of the repository. ``commands`` are the session's
    skills and commands: with them Skill calls no other, and their bodies are judged, too."""

    worktrees: bool = False
    commands: Commands | None = None

    def judge(self, scope: FileScope, tool_name: str, tool_input: Any, cwd: str) -> Found:
        """What the scope says of the call, and the paths that it names.

        A skill names what its arguments and its body mention: the CLI attaches those files, so they are
        read. It may look at the disk, and a disk may hang.
        """
        if tool_name == "Skill":
            return self._skill(scope, tool_input, cwd)
        door = DOORS.get(tool_name)
        if door is not None and not (self.worktrees and tool_name in WORKTREES):
            reason = door(scope, tool_input, cwd)
            return Found(reason, code=None if reason is None else "denied")
        return judge_whole(scope, tool_name, tool_input, cwd)

    def _skill(self, scope: FileScope, tool_input: Any, cwd: str) -> Found:
        seen = Mentioned()
        if self.commands is None:
            reason = refused_args(scope, list(texts_in(tool_input)), cwd, seen)
        else:
            reason = refused_skill(scope, self.commands, tool_input, cwd, seen)
        if reason is not None:
            return Found(reason, code=seen.code or "denied")
        return Found(None, seen.named)
