"""Text out of bytes of which nobody said how they are encoded."""

from __future__ import annotations

import codecs
import importlib

from .faults import Unreadable
from .formats import LISTED

__all__ = ["decoded"]

_MARKS = (  # the longer first: UTF-32's little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 200_000  # bytes that are looked at
_NUL_SHARE = 0.4  # of every second byte, in UTF-16 that holds spaces, digits or Latin letters
_NO_TEXT = frozenset(range(32)) - {*b"\t\n\r\f\v\x1b\x1a\x08"}  # no legacy encoding's text has them
# Python knows codecs that unpack and transform: only text is decoded.
_ODD = frozenset({"idna", "punycode", "undefined", "mbcs", "oem", "unicode_escape",
                  "raw_unicode_escape", "utf_7"})  # fmt: skip


def decoded(data: bytes, *, named: str = "", declared: str = "") -> tuple[str, str]:
    """The text, and the encoding it was read in.

    ``named`` is what the caller insists on, ``declared`` what the file says of itself, which is
    tried after a byte order mark and before anything is guessed. Raises :class:`Unreadable`.
    """
    if named:
        return _insisted(data, named)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _lossy(data, encoding)
    if sixteen := _utf16(data):
        return _lossy(data, sixteen)
    if not _NO_TEXT.isdisjoint(data[:_SAMPLE]):
        raise Unreadable("binary", formats=LISTED)
    for encoding in filter(None, ("utf-8", _known(declared))):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return _lossy(data, _guess(data))


def _insisted(data: bytes, named: str) -> tuple[str, str]:
    encoding = _known(named)
    try:
        if encoding is None:
            raise Unreadable("encoding", encoding=named)
        return data.decode(encoding), encoding
    except UnicodeError:
        raise Unreadable("encoding", encoding=named) from None


def _lossy(data: bytes, encoding: str) -> tuple[str, str]:
    """Some byte at the end, or in the middle, may be broken: the rest is worth reading."""
    return data.decode(encoding, "replace"), encoding


def _known(name: str) -> str | None:
    """The codec of a text encoding, else ``None``."""
    try:
        found = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        return None
    is_text = getattr(found, "_is_text_encoding", True)
    return found.name if is_text and found.name.replace("-", "_") not in _ODD else None


def _utf16(data: bytes) -> str | None:
    """UTF-16 without its mark: zeros on one side of the pairs, and hardly any on the other."""
    sample = data[:_SAMPLE]
    if len(sample) < 4 or len(data) % 2:
        return None
    half = len(sample) / 2
    even, odd = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if odd > _NUL_SHARE and even < odd / 10:
        return "utf-16-le"
    if even > _NUL_SHARE and odd < even / 10:
        return "utf-16-be"
    return None


def _guess(data: bytes) -> str:
    """The likeliest of the encodings that are in use; windows-1252 where nothing can guess."""
    try:
        chardet = importlib.import_module("chardet")
    except ImportError:
        return "windows-1252"
    era = chardet.EncodingEra.MODERN_WEB
    found = chardet.detect(data[:_SAMPLE], encoding_era=era)
    return _known(found["encoding"] or "") or "windows-1252"
