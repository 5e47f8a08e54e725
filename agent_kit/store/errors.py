"""What a store refuses, in one sentence that may be shown to the model.

The sentence says what to do next. It holds no absolute path, no stack trace and no text that the
operating system wrote.
"""

from __future__ import annotations

import errno
from enum import StrEnum

__all__ = ["StoreCode", "StoreError", "sentence_for"]


class StoreCode(StrEnum):
    """Why a store refused: stable, for programs."""

    BAD_NAME = "bad-name"
    BAD_TEXT = "bad-text"
    BUSY = "busy"
    DENIED = "denied"
    DISK = "disk"
    EXISTS = "exists"
    NOT_FOUND = "not-found"
    NOT_ONCE = "not-once"
    NO_QUOTE = "no-quote"
    READ_ONLY = "read-only"
    RETIRED = "retired"
    STALE = "stale"
    TOO_LARGE = "too-large"
    UNAVAILABLE = "unavailable"
    UNFINISHED = "unfinished"
    UNREADABLE = "unreadable"


class StoreError(Exception):
    """A store refused. ``code`` says why, the message what to do next.

    ``current`` is the page as it is now when an edit started from an older version. ``details``
    are texts that the model gets after the sentence.
    """

    def __init__(
        self,
        message: str,
        *,
        code: StoreCode,
        current: object = None,
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.current = current
        self.details = details


# The operating system's own sentence is never passed on: it names the host's paths.
_SENTENCES = {
    errno.ENOSPC: "The disk is full: nothing was changed. Tell the person who runs this session.",
    errno.EDQUOT: "The disk quota is used up: nothing was changed. Tell the person who runs this "
    "session.",
    errno.EROFS: "The folder is on a read-only disk: nothing was changed.",
    errno.EACCES: "The folder's permissions don't allow this: nothing was changed.",
    errno.EPERM: "The folder's permissions don't allow this: nothing was changed.",
    errno.ENOENT: "The folder or the file isn't there any more: list again.",
    errno.ENOTDIR: "A file stands where a folder belongs: list again.",
    errno.ENAMETOOLONG: "The name is too long: choose a shorter one.",
}


def sentence_for(error: OSError) -> str:
    """One sentence for an operating system's error, without the path that it names.

    >>> sentence_for(OSError(28, "No space left on device", "/srv/secret/x"))
    'The disk is full: nothing was changed. Tell the person who runs this session.'
    """
    name = errno.errorcode.get(error.errno or 0, "unknown")
    return _SENTENCES.get(error.errno or 0, f"The disk refused ({name}): try once more.")
