"""Which backend a session gets, and the sentence that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent_kit.confine.backend import Backend, ConfinementUnavailableError
from agent_kit.confine.bubblewrap import Bubblewrap
from agent_kit.confine.landlock import Landlock
from agent_kit.confine.seatbelt import Seatbelt

__all__ = ["BACKENDS", "Choice", "choose"]

BACKENDS: Final[Mapping[str, Backend]] = {  # the best one first
    "bubblewrap": Bubblewrap(),
    "landlock": Landlock(),
    "seatbelt": Seatbelt(),
}

_WORDS: Final = {
    "off": "confinement='off': the operating system doesn't hold the scope.",
    "external": "confinement='external': a container around the host is the boundary.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``backend`` is ``None`` where nothing confines; ``reason`` says why it is what it is."""

    backend: Backend | None
    reason: str


def choose(confinement: str, name: str | None = None) -> Choice:
    """The backend for ``confinement`` ("auto", "required", "off", "external").

    ``name`` insists on one. Raises ConfinementUnavailableError, with what to install, when one is
    required or insisted on and doesn't work here.
    """
    if confinement in _WORDS and name is None:
        return Choice(backend=None, reason=_WORDS[confinement])
    wanted = BACKENDS if name is None else {name: BACKENDS[name]}
    reasons = {}
    for each, backend in wanted.items():
        if (reason := backend.available()) is None:
            words = f"the CLI runs confined to the scope ({each})."
            return Choice(backend=backend, reason=words)
        reasons[each] = reason
    said = " ".join(f"{each}: {reason}" for each, reason in reasons.items())
    if confinement == "required" or name is not None:
        asked = "confinement='required'" if name is None else f"confinement_backend={name!r}"
        raise ConfinementUnavailableError(f"{asked}, but nothing confines the CLI here. {said}")
    return Choice(backend=None, reason=f"nothing confines the CLI here. {said}")
