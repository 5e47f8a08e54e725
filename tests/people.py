"""Who is asked in tests, and by which rules."""

from __future__ import annotations

import inspect
from typing import Any

from agent_kit import Approval, FilePermission

__all__ = ["Person", "rule"]


def rule(mode: str, *paths: str, operations: tuple[str, ...] = ("read", "write")) -> FilePermission:
    return FilePermission(operations=operations, paths=list(paths), mode=mode)


class Person:
    """Answers each question with the next answer, and keeps what was asked.

    An answer that is an exception is raised; a function, async or not, gets the question and gives the
    answer.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> Any:
        self.asked.append(approval)
        said = self.answers.pop(0)
        if isinstance(said, Exception):
            raise said
        found = said(approval) if callable(said) else said
        return await found if inspect.isawaitable(found) else found
