"""One writer at a time in the folder of originals, who finds its manifest right.

A retirement is written down, made, and written down as made. One that was killed in between is
mended by the next writer: it counts as made when the file lies among the retired ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agent_kit.store import StoreError
from agent_kit.store.disk import open_folder
from agent_kit.store.lock import exclusive
from agent_kit_sources.manifest import Manifest, read_manifest

__all__ = ["MOVING", "RETIRED", "mended", "retired_places", "writing"]

RETIRED = ".retired"
"""The folder in which retired originals lie."""

MOVING = "moving"
"""The member of an entry whose file may not have been moved yet."""

_LOCK_SECONDS = 30.0


@contextmanager
def writing(root: Path) -> Iterator[tuple[int, Manifest]]:
    """Hold the folder's lock: its handle, and the manifest, mended.

    Raises :class:`StoreError` when others hold it for 30 seconds, or the manifest isn't ours.
    """
    with exclusive(root, timeout=_LOCK_SECONDS), open_folder(root) as handle:
        yield handle, mended(read_manifest(handle), handle)


def _made(manifest: Manifest, place: str) -> Manifest:
    """The manifest once the file of a retirement lies at ``place``: it is no original any more."""
    entry = {name: value for name, value in manifest.retired[place].items() if name != MOVING}
    files = {path: known for path, known in manifest.files.items() if path != entry.get("path")}
    return replace(manifest, files=files, retired={**manifest.retired, place: entry})


def mended(manifest: Manifest, root: int) -> Manifest:
    """The manifest with each retirement that was begun as made, or as never begun."""
    begun = [
        place
        for place, entry in manifest.retired.items()
        if isinstance(entry, Mapping) and MOVING in entry
    ]
    there = retired_places(root) if begun else frozenset()
    for place in begun:
        if place in there:
            manifest = _made(manifest, place)
        else:
            others = {name: known for name, known in manifest.retired.items() if name != place}
            manifest = replace(manifest, retired=others)
    return manifest


def retired_places(root: int) -> frozenset[str]:
    """Where files lie among the retired, relative to the folder, whatever the manifest says."""
    try:
        with open_folder(RETIRED, inside=root) as retired:
            return frozenset(f"{RETIRED}/{name}" for name in os.listdir(retired))
    except (FileNotFoundError, StoreError):  # or it is no folder, and holds none
        return frozenset()
