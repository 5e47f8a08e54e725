"""What is wrong with a configuration, all of it at once.

A :class:`ConfigError` is raised where a person's input is turned into a value: ``FileScope``,
``AgentSpec``, ``SessionConfig``, ``plan_session``. It holds one :class:`Fault` for each mistake,
so that nobody has to mend them one run at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["ConfigError", "Fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One mistake: the field, the value as it was given, and what to do about it."""

    field: str
    value: object
    remedy: str

    def __str__(self) -> str:
        return f"{self.field}={self.value!r}: {self.remedy}"


class ConfigError(ValueError):
    """A configuration that can't be used. ``faults`` lists every mistake that was found.

    >>> raise ConfigError([Fault(field="project_dir", value="", remedy="name a folder.")])
    Traceback (most recent call last):
    agent_kit.scope.errors.ConfigError: project_dir='': name a folder.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))
