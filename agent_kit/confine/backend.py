"""What a backend is, and what it makes of a view. :mod:`agent_kit.confine.choice` picks one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent_kit.confine.view import ConfinedView

__all__ = ["Backend", "ConfinementUnavailableError", "Launch"]


class ConfinementUnavailableError(RuntimeError):
    """A session that must be confined can't be. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a program inside: ``argv`` goes before the program's own words.

    ``text`` is what the program at ``argv[0]`` reads from the file descriptor whose number replaces
    ``{fd}`` in ``argv``; ``None`` when there is nothing to read.
    """

    argv: tuple[str, ...]
    text: bytes | None = None


class Backend(Protocol):
    """One way to make the kernel hold a view."""

    @property
    def name(self) -> str: ...

    @property
    def own_tmp(self) -> bool:
        """Whether ``/tmp`` inside is the session's own without more ado."""

    def available(self) -> str | None:
        """Why it can't work on this machine, and what would change that; ``None`` when it does."""

    def hindered(self, view: ConfinedView) -> tuple[str, ...]:
        """Folders in which this backend refuses what the view allows. Honest work may fail there."""

    def notes(self, view: ConfinedView) -> tuple[str, ...]:
        """What this backend can't do as the view says, in sentences for an operator."""

    def launch(self, view: ConfinedView) -> Launch:
        """How a program is started so that it sees exactly ``view``."""
