"""What the model is told of rules and authorizers, and the person who is asked.

``path`` is what the model wrote, already escaped. No sentence says where a link points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent_kit.scope.decision import Access

__all__ = ["rule_asks", "rule_denies", "unjudged"]

_VERBS: Final[Mapping[Access, tuple[str, str]]] = {
    Access.READ: ("read", ""),
    Access.LIST: ("listed", " it, or something in it"),
    Access.SEARCH: ("searched", " it, or something in it"),
    Access.WRITE: ("written", ""),
}


def rule_denies(access: Access, path: str) -> str:
    verb, reach = _VERBS[access]
    if reach:
        return (
            f'"{path}" can\'t be {verb}: a rule of this session closes{reach}.'
            " Try a folder below that holds nothing closed."
        )
    return f'"{path}" can\'t be {verb}: a rule of this session forbids it.'


def rule_asks(access: Access, path: str) -> str:
    verb, reach = _VERBS[access]
    if reach:
        return f'"{path}" is {verb} only when a person agrees: a rule asks for{reach}.'
    return f'"{path}" is {verb} only when a person agrees.'


unjudged: Final = "This call names a path that can't be judged, so the rules refuse it."
