"""Values that a person writes: what they got wrong is reported all at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any, Final

from agent_kit.scope.errors import ConfigError, Fault

__all__ = ["Checked"]

# Parts of the names of fields that often hold a key: their values stand in no message.
_SECRET: Final = re.compile(
    r"env|key|token|secret|passw|auth|cred|setting|mcp|args|header", re.IGNORECASE
)


class Checked(type):
    """The metaclass of dataclasses that people fill in.

    A field that doesn't exist, one that is missing and every fault that the class itself finds in
    ``__post_init__`` come in one :class:`ConfigError`.
    """

    if not TYPE_CHECKING:  # pragma: no branch - type checkers read the dataclass's own __init__

        def __call__(cls, *args: Any, **values: Any) -> Any:
            known = {field.name: field for field in fields(cls) if field.init}
            if args or values.keys() == known.keys():
                return super().__call__(*args, **values)
            faults = list(_name_faults(known, values))
            given = {name: value for name, value in values.items() if name in known}
            # A value of a wrong type in a missing one's place, to see what is wrong with the rest.
            missing = {fault.field: MISSING for fault in faults if fault.value is MISSING}
            try:
                made = super().__call__(**given, **missing)
            except ConfigError as error:
                faults += [fault for fault in error.faults if fault.value is not MISSING]
            except Exception:
                if not missing:  # a subclass may stumble over those
                    raise
            if faults:
                raise ConfigError(map(_plain, faults))
            return made


def _name_faults(known: dict[str, Any], values: dict[str, Any]) -> Iterator[Fault]:
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            remedy = (
                f"there is no such field; did you mean {near[0]!r}?"
                if near
                else (f"there is no such field; the fields are {', '.join(known)}.")
            )
            hidden = any(map(_SECRET.search, (name, *near)))
            yield Fault(field=name, value="…" if hidden else value, remedy=remedy)
    for name, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and name not in values:
            yield Fault(field=name, value=MISSING, remedy="this field is required.")


def _plain(fault: Fault) -> Fault:
    return replace(fault, value=None) if fault.value is MISSING else fault
