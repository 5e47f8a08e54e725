"""The progress bar."""

from __future__ import annotations

import io

from rich.console import Console

from agent_kit.terminal.progress import progress_bar


def test_what_is_done_is_shown_and_the_words_literally() -> None:
    out = io.StringIO()
    with progress_bar("[red]Importing", console=Console(file=out, width=80)) as progress:
        progress(50, 120)
        progress(120, 120)
    assert "[red]Importing" in out.getvalue()
    assert "120/120" in out.getvalue()
