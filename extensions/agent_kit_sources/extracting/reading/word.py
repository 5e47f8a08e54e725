"""Word documents, by mammoth: it knows headings, lists, notes and tables by their styles."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from .document import Document, Request, whole
from .faults import library
from .markup import markdown
from .packages import check_no_entities, open_package

__all__ = ["read"]

_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def read(file: BinaryIO, request: Request) -> Document:
    """The document in one piece: a file doesn't say where its pages end."""
    mammoth = library("mammoth")
    with open_package(file, request) as package:
        check_no_entities(package)
    file.seek(0)
    made = mammoth.convert_to_html(
        io.BytesIO(file.read()),  # a file without a name: nothing beside it can be opened
        style_map=_STYLES,
        convert_image=mammoth.images.img_element(_no_image),
        external_file_access=False,
        include_embedded_style_map=False,  # a document's own could leave out what a person sees
    )
    return whole("Word document", markdown(made.value)[1])


def _no_image(_image: Any) -> dict[str, str]:
    """What is said of a picture is kept, the picture isn't."""
    return {}
