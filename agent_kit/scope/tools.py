"""The one table of tools: which field of which tool names a path, and what is done with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agent_kit.scope.decision import Access

__all__ = [
    "FILE_TOOLS",
    "NAMED_FIELD_TOOLS",
    "NO_PATH_TOOLS",
    "PATH_FIELDS",
    "FileTool",
    "mcp_fields",
    "names_path",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTool:
    """A built-in file tool. ``here`` says that a missing path means the working folder."""

    access: Access
    fields: tuple[str, ...]
    here: bool = False


FILE_TOOLS: Final[Mapping[str, FileTool]] = {
    "Read": FileTool(access=Access.READ, fields=("file_path",)),
    "NotebookRead": FileTool(access=Access.READ, fields=("notebook_path",)),
    "Write": FileTool(access=Access.WRITE, fields=("file_path", "path")),
    "Edit": FileTool(access=Access.WRITE, fields=("file_path", "path")),
    "MultiEdit": FileTool(access=Access.WRITE, fields=("file_path", "path")),
    "NotebookEdit": FileTool(access=Access.WRITE, fields=("notebook_path",)),
    "Glob": FileTool(access=Access.LIST, fields=("path",), here=True),
    "LS": FileTool(access=Access.LIST, fields=("path",), here=True),
    "Grep": FileTool(access=Access.SEARCH, fields=("path",), here=True),
}

# A field of any of these names is judged, whatever the tool: a later CLI may rename one.
PATH_FIELDS: Final = frozenset(
    {
        "file_path",
        "filePath",
        "notebook_path",
        "path",
        "paths",
        "directory",
        "dir",
        "folder",
        "file",
        "filename",
    }
)

# So is one that ends in such a word, as "log_path", "scriptPath" and "baseDir" do, and these two.
_PATH_WORDS: Final = "path|file|filename|dir|directory|folder"
_ENDS_AS_PATH: Final = re.compile(
    rf"(?i:.*[_-](?:{_PATH_WORDS})s?)|.*[a-z0-9](?:{_PATH_WORDS.title()})s?"
)
_PATH_LISTS: Final = frozenset({"files", "attachments"})


def names_path(field: object) -> bool:
    """Whether a field of a tool that nobody knows may hold a path.

    >>> [names_path(name) for name in ("log_path", "scriptPath", "base_dir", "profile", "prompt")]
    [True, True, True, False, False]
    """
    if not isinstance(field, str):
        return False
    exact = field in PATH_FIELDS or field in _PATH_LISTS
    return exact or _ENDS_AS_PATH.fullmatch(field) is not None


# Known, and judged as those that nobody knows: by the names of their fields (CLI 2.1.332).
NAMED_FIELD_TOOLS: Final = frozenset({"Projects", "SendUserFile", "SendUserMessage"})

# Built-in tools that take no path (CLI 2.1.332). Commands are the business of another lock.
NO_PATH_TOOLS: Final = frozenset(
    {
        "Agent",  # "isolation" copies a repository; judged with the doors beside the file tools
        "AskUserQuestion",
        "Bash",
        "BashOutput",
        "CronCreate",
        "CronDelete",
        "CronList",
        "EnterPlanMode",
        "ExitPlanMode",
        "ExitWorktree",
        "KillShell",
        "ListAgents",
        "Monitor",
        "ReadNotifications",
        "ReportFindings",
        "ScheduleWakeup",
        "SendMessage",
        "ShowOnboardingRolePicker",
        "Skill",
        "Task",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
    }
)


def mcp_fields(
    tool_name: str, configured: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, str]]:
    """The path fields that ``mcp_file_tools`` names for an MCP tool, and what each does.

    A plugin's server is called ``mcp__plugin_<plugin>_<server>__<tool>``; where two entries may be
    meant, both are.
    """
    for name, fields in configured.items():
        ending = "_" + name.removeprefix("mcp__")
        by_plugin = tool_name.startswith("mcp__plugin_") and tool_name.endswith(ending)
        if tool_name == name or by_plugin:
            yield from fields.items()
