"""What an authorizer answers, and what becomes of a call that one of them refused."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, NamedTuple

from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.value import Checked

__all__ = [
    "Action",
    "Answer",
    "Messages",
    "Narrowed",
    "Refusal",
    "RefusalCode",
    "Severity",
    "allow",
    "deny",
]


class Action(StrEnum):
    """What a call does with its target."""

    READ = "read"
    LIST = "list"
    SEARCH = "search"
    WRITE = "write"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Answer:
    """An authorizer's answer; made by :func:`allow` and :func:`deny`, never by hand."""

    allowed: bool
    note: str = ""


_ALLOWED: Final = Answer(allowed=True)


def allow() -> Answer:
    """No objection: the next authorizer is asked."""
    return _ALLOWED


def deny(note: str) -> Answer:
    """A refusal. ``note`` is told to the model, in brackets: why, and what would be allowed.

    Raises TypeError for a note that is no text.

    >>> deny("drafts are closed on Sundays").allowed
    False
    """
    if not isinstance(note, str):
        raise TypeError(f"a note is text, not {type(note).__name__}")
    return Answer(allowed=False, note=note)


@dataclass(frozen=True, slots=True)
class Narrowed:
    """No objection to a part: the Read goes on with these fields (``offset`` and ``limit``, in lines)."""

    offset: int
    limit: int


class RefusalCode(StrEnum):
    """Why a call was refused, in a form that programs may depend on."""

    DENIED = "denied"
    FAILED = "extension-failed"
    CHANGED = "changed-during-read"
    ABORTED = "aborted"


class Severity(StrEnum):
    """How much the operator should care: ``ERROR`` is a fault of the host's own code."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


SEVERITIES: Final = {
    RefusalCode.DENIED: Severity.WARNING,
    RefusalCode.FAILED: Severity.ERROR,
    RefusalCode.CHANGED: Severity.WARNING,
    RefusalCode.ABORTED: Severity.INFO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages(metaclass=Checked):
    """The wording of refusals. ``{path}`` and ``{note}`` are filled in; nothing else is.

    Raises ConfigError for what is no text.

    >>> Messages(denied="No: {path} ({note})").say("denied", "a.md", "closed")
    'No: a.md (closed)'
    """

    denied: str = "{path} was refused by policy ({note})."
    denied_without_note: str = "{path} was refused by policy."
    failed: str = "{path} was refused by policy (it could not be checked)."
    changed: str = "{path} was refused by policy (it changed while it was being checked)."
    aborted: str = "{path} was refused by policy (the call was stopped)."

    def __post_init__(self) -> None:
        faults = [
            Fault(field=f.name, value=value, remedy="give a text; {path} stands for the file.")
            for f in fields(self)
            if not isinstance(value := getattr(self, f.name), str)
        ]
        if faults:
            raise ConfigError(faults)

    def say(self, name: str, path: str, note: str = "") -> str:
        text: str = getattr(self, name)
        parts = text.split("{path}")  # one after the other: a path may hold "{note}"
        return path.join([part.replace("{note}", note) for part in parts])


class Refusal(NamedTuple):
    """A call that an authorizer refused. ``str()`` is what the model sees.

    ``message`` is the sentence, ``display_path`` the file in it. ``authorizer`` is the id of the one
    that refused, for the operator.

    >>> str(Refusal(action=Action.READ, code=RefusalCode.DENIED, message="No.", display_path="a"))
    '[read:denied] No.'
    """

    action: Action
    code: RefusalCode
    message: str
    display_path: str
    authorizer: str | None = None

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.code]

    def __str__(self) -> str:
        return f"[{self.action}:{self.code}] {self.message}"
