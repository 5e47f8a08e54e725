"""What one reading may cost."""

from __future__ import annotations

from dataclasses import dataclass

from agent_kit.store import PAGE_SIZE

__all__ = ["Limits"]

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one reading; each has its unit. Tests lower them.

    ``file_bytes``: the file. ``unpacked_bytes``: all that a zip file (docx, pptx, xlsx, epub) says
    it holds, and ``entries`` how many files. ``memory_bytes``: the child's address space (the kernel
    of macOS doesn't hold it). ``cpu_seconds``: its processor time, ``seconds``: by the clock; then it
    is killed. ``answer_bytes``: what it may write before it is killed. ``characters``: the text of one
    answer. ``waiting_seconds``: how long a call waits for others, of which two run at once.
    """

    file_bytes: int = 100 * _MIB
    unpacked_bytes: int = 400 * _MIB
    entries: int = 20_000
    memory_bytes: int = 1024 * _MIB
    cpu_seconds: int = 30
    seconds: float = 60.0
    answer_bytes: int = 1 * _MIB
    characters: int = PAGE_SIZE
    waiting_seconds: float = 120.0
