"""What is written into a field: every way to name a file, a folder or a place that is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.doors.world import World

__all__ = ["CHIEF", "MENTIONS", "VALUES", "chief", "values"]

# Those that are tried with every other setting of a tool as well.
MENTIONS = "@<course>/README.md @<out>/secret.txt"
CHIEF = (
    "<course>/README.md",
    MENTIONS,
)

VALUES = (
    *CHIEF,
    # paths
    "<out>",
    "README.md",
    "./private/letter.txt",
    "drafts/../grades.csv",
    "sources/../../other/README.md",
    "drafts/.env",
    "drafts/link.md",
    "sources/link.md",
    "notes/folder",
    "knowledge/fact/one.md",
    "memory",
    "<out>/secret.txt",
    "/proc/self/root<out>/secret.txt",
    "/proc/self/cwd/README.md",
    "~/secret.txt",
    " ~/.ssh/id_ed25519\n",
    "~/.claude/projects/-elsewhere/00000000-0000-4000-8000-0000000000ff.jsonl",
    ".git",
    ".claude/settings.json",
    "drafts/CLAUDE.md",
    "sources/new.md",
    "<out>/new.md",
    # addresses
    "file://<out>/secret.txt",
    "file://localhost<course>/README.md",
    "<url>/page?of=README.md",
    "http://127.0.0.1/../../<out>/secret.txt",
    # patterns
    "private/*",
    "**/*",
    "<out>/**",
    "{README.md,grades.csv}",
    "../**/*.md",
    # mentions
    "@README.md",
    "@./private/letter.txt, please",
    "@../other/README.md",
    "@~/secret.txt",
    '@"<out>/secret.txt"',
    "@<out>/secret.txt#L1-2",
    "@<out>",
    "@file://<out>/secret.txt",
    "@sources:file://<out>/secret.txt",
    # what other texts of the CLI's expand
    "!`cat <out>/secret.txt`",
    "/add-dir <out>",
    "/init @<out>/secret.txt",
    "select:Read @README.md <url> file://<out>/secret.txt **/*",
)


def values(world: World) -> list[str]:
    return [world.text(value) for value in VALUES]


def chief(world: World) -> list[str]:
    return [world.text(value) for value in CHIEF]
