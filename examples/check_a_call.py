"""Ask a scope about one call: no SDK, no session, no account.

    python examples/check_a_call.py
    python examples/check_a_call.py Read sources/syllabus.md
    python examples/check_a_call.py Write sources/syllabus.md

Paths are relative to the folder that this is started in. Nothing has to exist.
"""

import sys

from agent_kit import FileScope, Verdict, explain_file_scope

SCOPE = FileScope(
    project_dir=".",
    writable_dirs=["drafts"],
    searchable_dirs=["sources", "drafts"],
    read_only_dirs=["sources"],
    denied_paths=["agent.config.json", "**/.env"],
)


def main(tool: str = "Read", path: str = "agent.config.json") -> int:
    field = "path" if tool in ("Grep", "Glob") else "file_path"
    decision = explain_file_scope(SCOPE, tool, {field: path})
    print(f"{tool} {path}: {decision.verdict} ({decision.code})")
    if decision.message is not None:
        print(decision.message)  # what the model would be told
    return 1 if decision.verdict is Verdict.DENY else 0


if __name__ == "__main__":
    if len(sys.argv) not in (1, 3):
        print(f"usage: {sys.argv[0]} [TOOL PATH]", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
