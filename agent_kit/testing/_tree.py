"""Folder trees for tests, in a few strings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

__all__ = ["tree"]

_ENTRY = re.compile(r"(.*?)( => | == |=)(.*)", re.DOTALL)  # the first sign decides


def tree(root: Path, spec: Iterable[str]) -> Path:
    r"""Make files, folders and links below ``root``, in the order of ``spec``; returns ``root``.

    ======================  ===================================================================
    ``"d/"``                a folder
    ``"f"``                 an empty file
    ``"f=content"``         a file with this text (UTF-8): everything after the first ``=``
    ``"a => target"``       a link; the target is taken literally, relative to the link's folder
    ``"a == b"``            a hard link to ``b``, which is relative to ``root`` and there already
    ======================  ===================================================================

    Names are relative to ``root``; the folders on the way are made. Raises ``ValueError`` for a
    name that is empty, absolute or has ``..`` in it, and ``OSError`` as the disk does: a name that
    is there already is one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = tree(Path(folder), ["notes/", "a/b.txt=hello", "c => a/b.txt", "d == a/b.txt"])
    ...     (root / "c").read_text(), (root / "d").stat().st_nlink
    ('hello', 2)
    """
    for entry in spec:
        _make(root, entry)
    return root


def _make(root: Path, entry: str) -> None:
    match = _ENTRY.fullmatch(entry)
    name, sign, rest = match.groups() if match else (entry, "", "")
    if sign == " => ":
        os.symlink(rest, _place(root, name))
    elif sign == " == ":
        os.link(_place(root, rest), _place(root, name))
    elif not sign and name.endswith("/"):
        _place(root, name).mkdir(exist_ok=True)
    else:
        with _place(root, name).open("x", encoding="utf-8", newline="") as file:
            file.write(rest)


def _place(root: Path, name: str) -> Path:
    path = PurePosixPath(name)
    if not name.strip("/") or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} is not a name below the tree's root.")
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
