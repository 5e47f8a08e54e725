"""EPUB books: the chapters in the order that they are read in."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from .document import Document, Request
from .faults import Unreadable
from .markup import markdown
from .markup_file import page_text
from .packages import open_package, parse_xml

__all__ = ["read"]

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_TEXT = frozenset({"application/xhtml+xml", "text/html"})


def read(file: BinaryIO, request: Request) -> Document:
    """The book, by chapter: one file of its spine each. Raises :class:`Unreadable`."""
    package = open_package(file, request)
    container = parse_xml(package.read(_CONTAINER))
    rootfile = next(found for found in container.iter() if _is(found, "rootfile"))
    place = rootfile.attrib["full-path"]
    opf = parse_xml(package.read(place))
    chapters = _chapters(opf, posixpath.dirname(place))
    if not _encrypted(package).isdisjoint(chapters):  # fonts may be, and are no matter
        raise Unreadable("locked")
    titles = (found.text or "" for found in opf.iter() if _is(found, "title"))
    return Document(
        kind="EPUB book",
        texts=lambda first: _texts(package, chapters, first),
        unit="chapter",
        count=len(chapters),
        facts=f'title "{title}"' if (title := next(titles, "").strip()) else "",
    )


def _chapters(opf: Element, folder: str) -> list[str]:
    """The names of the files that are read, in order."""
    items = {
        found.attrib.get("id", ""): found.attrib.get("href", "")
        for found in opf.iter()
        if _is(found, "item") and found.attrib.get("media-type") in _TEXT
    }
    order = (found.attrib.get("idref", "") for found in opf.iter() if _is(found, "itemref"))
    return [
        posixpath.normpath(posixpath.join(folder, unquote(items[i]))) for i in order if i in items
    ]


def _encrypted(package: zipfile.ZipFile) -> frozenset[str]:
    try:
        declared = parse_xml(package.read(_ENCRYPTION))
    except KeyError:
        return frozenset()
    uris = (
        found.attrib.get("URI", "") for found in declared.iter() if _is(found, "CipherReference")
    )
    return frozenset(posixpath.normpath(unquote(uri)) for uri in uris)


def _texts(package: zipfile.ZipFile, chapters: list[str], first: int) -> Iterator[str]:
    for number, name in enumerate(islice(chapters, first - 1, None), first):
        try:
            source, _encoding = page_text(package.read(name))
        except KeyError:
            source = "(This chapter is missing.)"
        yield f"## Chapter {number}\n\n{markdown(source)[1]}"


def _is(element: Element, name: str) -> bool:
    return element.tag.rpartition("}")[2] == name
