"""What a downloaded file may be called, where the call doesn't say: by its URL, or by the server.

Names from outside are suggestions: each goes through the rules for names of originals, and one that
they refuse is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Final
from urllib.parse import unquote

from agent_kit.store import StoreError
from agent_kit.store.names import file_name
from agent_kit_sources.downloading.urls import Url

__all__ = ["best_name", "header_name", "url_name"]

_MOST_HEADER: Final = 1000  # characters of a Content-Disposition that are read
# A dot, and up to eight letters and digits with a letter among them.
_EXTENSION: Final = re.compile(r"\.(?=[0-9]*[a-z])[a-z0-9]{1,8}", re.IGNORECASE)


def url_name(url: Url) -> str:
    """The last name in a URL's path, decoded; ``""`` when it ends with a slash."""
    return _last(unquote(_last(url.path), errors="replace"))


def header_name(disposition: str) -> str:
    """The file's name in a Content-Disposition header, ``""`` without one.

    >>> header_name("attachment; filename=x.pdf; filename*=UTF-8''%C3%BC%2Fb.pdf")
    'b.pdf'
    """
    if not disposition or len(disposition) > _MOST_HEADER:
        return ""
    message = Message()
    message["Content-Disposition"] = disposition
    try:
        said = message.get_params(failobj=[], header="Content-Disposition")
        named = [value for key, value in said if key.lower() == "filename"]
        # A value with a character set (filename*) is a tuple, and wins: RFC 6266, section 4.3.
        best = next((value for value in named if isinstance(value, tuple)), (*named, "")[0])
        return _last(collapse_rfc2231_value(best))
    except (LookupError, ValueError, TypeError):  # what a stranger wrote
        return ""


def best_name(candidates: Iterable[str]) -> str | None:
    """The first candidate with an extension, else the first; only of those that can be a name."""
    fit = [name for name in candidates if _fits(name)]
    return next((name for name in fit if _has_extension(name)), fit[0] if fit else None)


def _fits(name: str) -> bool:
    try:
        file_name(name)
    except StoreError:
        return False
    return True


def _has_extension(name: str) -> bool:
    _, dot, extension = name.rpartition(".")
    return _EXTENSION.fullmatch(f"{dot}{extension}") is not None


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1].strip()
