"""The rules: which file an agent's tool call names, and whether the scope allows it.

Pure policy. Nothing here imports the SDK or MCP. :class:`FileScope` is the value,
:func:`check_file_scope` and :func:`explain_file_scope` are the two questions.
"""

from agent_kit.scope.decision import Access, Code, Decision, Verdict
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.file_scope import FileScope, ToolOnlyDir
from agent_kit.scope.judge import check_file_scope, explain_file_scope

__all__ = [
    "Access",
    "Code",
    "ConfigError",
    "Decision",
    "Fault",
    "FileScope",
    "ToolOnlyDir",
    "Verdict",
    "check_file_scope",
    "explain_file_scope",
]
