"""Zip files that hold a document, and the XML in them: bounded before anything is unpacked."""

from __future__ import annotations

import zipfile
from typing import BinaryIO
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from .document import Request
from .faults import Unreadable

__all__ = ["check_magic", "check_no_entities", "open_package", "parse_xml"]

_OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")  # also what a password makes of a new one
_ENCRYPTED = 1  # bit of an entry's flags
_HEAD = 4096  # bytes of a part that a declaration would stand in
_MOST_NESTED = 2_000  # elements in each other


def check_magic(data: bytes) -> None:
    """Raise :class:`Unreadable` for what begins as an old, or a protected, file of Office."""
    if data.startswith(_OLD_OFFICE):
        raise Unreadable("old-office")


def open_package(file: BinaryIO, request: Request) -> zipfile.ZipFile:
    """The zip file. Raises :class:`Unreadable` where it is encrypted, or unpacks to too much."""
    check_magic(file.read(len(_OLD_OFFICE)))
    file.seek(0)
    package = zipfile.ZipFile(file)
    entries = package.infolist()
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise Unreadable("locked")
    unpacked = sum(entry.file_size for entry in entries)  # no more is unpacked of any of them
    if len(entries) > request.entries or unpacked > request.unpacked_bytes:
        raise Unreadable("unpacked")
    return package


def check_no_entities(package: zipfile.ZipFile) -> None:
    """Raise :class:`Unreadable` where a part declares a document type, which Office never does.

    Libraries expand no dangerous entity; this gives the attempt its own sentence.
    """
    for entry in package.infolist():
        if entry.filename.endswith((".xml", ".rels")):
            with package.open(entry) as part:
                head = part.read(_HEAD).replace(b"\0", b"")  # UTF-16 as well
            if b"<!DOCTYPE" in head or b"<!ENTITY" in head:
                raise Unreadable("entities")


def parse_xml(data: bytes) -> Element:
    """The tree. Names are ``{namespace}name``.

    Raises :class:`Unreadable` for a declared entity, whatever it stands for, and for a tree too deep.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_NESTED:
            raise Unreadable("deep")
        builder.start(_clark(name), {_clark(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_clark(name))

    def entity(*_declared: object) -> None:
        raise Unreadable("entities")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = entity
    parser.Parse(data, True)
    return builder.close()


def _clark(name: str) -> str:
    return f"{{{name}" if "}" in name else name
