"""A bar for what takes its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    what: str, *, console: Console | None = None
) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, by rich; what to call with how much is done, and of how much.

    Where no terminal is there, one line is written at the end. ``what`` is shown literally.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(escape(what)), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
