"""PowerPoint presentations: the text of each slide in its order, its tables, and the notes.

The one library for them has had no release since 2024, and what is needed is a page of code.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element

from .cells import table
from .document import Document, Request
from .faults import Unreadable
from .packages import check_no_entities, open_package, parse_xml

__all__ = ["read"]

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_STRICT = "http://purl.oclc.org/ooxml/"  # the same names in ISO's strict form
_MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})  # date, footer, number, picture
_BODIES = frozenset({"body", "obj", "subTitle", ""})
_MOST_GROUPS = 50  # in each other
_MOST_INDENT = 8


def read(file: BinaryIO, request: Request) -> Document:
    """The presentation, by slide. Raises :class:`Unreadable`."""
    package = open_package(file, request)
    check_no_entities(package)
    targets = _targets(package, _MAIN)
    listed = _parse(package, _MAIN).iter(f"{_P}sldId")
    slides = [targets[found.attrib[f"{_R}id"]][1] for found in listed]
    return Document(
        kind="PowerPoint presentation",
        texts=lambda first: _texts(package, slides, first),
        unit="slide",
        count=len(slides),
    )


def _parse(package: zipfile.ZipFile, name: str) -> Element:
    data = package.read(name)
    if _STRICT.encode() in data:
        data = _transitional(data)
    return parse_xml(data)


def _transitional(data: bytes) -> bytes:
    """ISO's strict names as the ones that everybody writes."""
    for part in (b"drawingml", b"presentationml", b"officeDocument"):
        strict = _STRICT.encode() + part + b"/"
        data = data.replace(strict, b"http://schemas.openxmlformats.org/" + part + b"/2006/")
    return data


def _targets(package: zipfile.ZipFile, name: str) -> dict[str, tuple[str, str]]:
    """The parts that a part names: by id, the last word of the kind and the name."""
    folder, file = posixpath.split(name)
    try:
        found = parse_xml(package.read(f"{folder}/_rels/{file}.rels"))
    except KeyError:
        return {}
    return {
        each.attrib["Id"]: (
            each.attrib["Type"].rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, each.attrib["Target"])).lstrip("/"),
        )
        for each in found
    }


def _texts(package: zipfile.ZipFile, slides: list[str], first: int) -> Iterator[str]:
    for number, name in enumerate(slides[first - 1 :], first):
        slide = _parse(package, name)
        hidden = " (hidden)" if slide.attrib.get("show") in ("0", "false") else ""
        blocks = [f"## Slide {number}{hidden}", *_blocks(slide)]
        for kind, target in _targets(package, name).values():
            if kind == "notesSlide" and (notes := list(_notes(_parse(package, target)))):
                blocks += ["### Notes", *notes]
        yield "\n\n".join(blocks)


def _notes(slide: Element) -> Iterator[str]:
    for shape in _shapes(slide):
        if _placeholder(shape) == "body":
            yield from filter(None, ["\n".join(_paragraphs(shape, points=False))])


def _blocks(slide: Element) -> Iterator[str]:
    for shape in _shapes(slide):
        kind = _placeholder(shape)
        if kind in _FURNITURE:
            continue
        for found in shape.iter(f"{_A}tbl"):
            yield table(
                [[_cell(cell) for cell in row.iter(f"{_A}tc")] for row in found.iter(f"{_A}tr")]
            )
        if shape.tag != f"{_P}sp":
            continue
        lines = list(_paragraphs(shape, points=kind in _BODIES))
        if kind in _TITLES and lines:
            lines = [f"### {' '.join(lines)}"]
        yield from filter(None, ["\n".join(lines)])


def _shapes(slide: Element) -> Iterator[Element]:
    """The shapes, those in groups as well; of two forms of one shape the first."""
    waiting = [(found, 0) for found in reversed(list(slide.iter(f"{_P}spTree"))[:1])]
    while waiting:
        element, depth = waiting.pop()
        if depth > _MOST_GROUPS:
            raise Unreadable("deep")
        if element.tag in (f"{_P}spTree", f"{_P}grpSp", f"{_MC}Choice"):
            waiting += [(child, depth + 1) for child in reversed(element)]
        elif element.tag == f"{_MC}AlternateContent":
            waiting += [(child, depth + 1) for child in list(element)[:1]]
        elif element.tag in (f"{_P}sp", f"{_P}graphicFrame"):
            yield element


def _placeholder(shape: Element) -> str | None:
    """What the shape is in its layout; ``None`` for one of the slide's own."""
    found = next(shape.iter(f"{_P}ph"), None)
    return None if found is None else found.attrib.get("type", "")


def _paragraphs(shape: Element, *, points: bool) -> Iterator[str]:
    """The lines with text; ``points``: as a list, by level."""
    for paragraph in shape.iter(f"{_A}p"):
        if text := _text(paragraph):
            properties = paragraph.find(f"{_A}pPr")
            level = "0" if properties is None else properties.attrib.get("lvl", "0")
            depth = min(int(level), _MOST_INDENT) if level.isascii() and level.isdigit() else 0
            yield f"{'  ' * depth}- {text}" if points else text


def _text(paragraph: Element) -> str:
    pieces = {f"{_A}t": None, f"{_A}br": " "}
    found = (each for each in paragraph.iter() if each.tag in pieces)
    return "".join(pieces[each.tag] or each.text or "" for each in found).strip()


def _cell(cell: Element) -> str:
    return "\n".join(filter(None, map(_text, cell.iter(f"{_A}p"))))
