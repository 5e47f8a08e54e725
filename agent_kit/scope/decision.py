"""What a judgement says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Access", "Code", "Decision", "Verdict"]


class Verdict(StrEnum):
    """``ALLOW`` means "no objection": the scope never grants, it only refuses."""

    ALLOW = "allow"
    DENY = "deny"


class Access(StrEnum):
    """What a call does with a path."""

    READ = "read"
    LIST = "list"
    SEARCH = "search"
    WRITE = "write"


class Code(StrEnum):
    """Why, in a form that programs may depend on."""

    OK = "ok"
    NOT_JUDGED = "not-judged"
    DENIED_PATH = "denied-path"
    DENIED_PATTERN = "denied-pattern"
    TOOLS_ONLY = "tools-only"
    READ_ONLY = "read-only"
    CONTROL_FILE = "control-file"
    OUTSIDE_READABLE = "outside-readable"
    OUTSIDE_WRITABLE = "outside-writable"
    OUTSIDE_SEARCHABLE = "outside-searchable"
    CONTAINS_DENIED = "contains-denied"
    CONTAINS_TOOLS_ONLY = "contains-tools-only"
    CLIMBS = "climbs"
    SPECIAL_FILE = "special-file"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One judged call.

    ``message`` is what the model is told, ``None`` when there is no objection. ``target`` is the
    resolved absolute path (for the operator: it may show where a link points, so it is never part
    of ``message``). ``entry`` is the scope entry that decided, as it was configured. ``readings``
    are the absolute paths that were judged.
    """

    verdict: Verdict
    code: Code
    message: str | None = None
    target: str | None = None
    entry: str | None = None
    readings: tuple[str, ...] = ()
