"""Where the originals come from: one manifest beside them, ``.sources.json``.

It is an object with two members. ``files``: path (relative to the folder, ``/`` between names) to
``from``, ``when`` (UTC, ISO 8601), ``size`` in bytes and ``sha256``, and what the tool that brought
it notes beside. ``retired``: where a retired original lies now to where it was (``path``), ``when``,
``why``, ``by`` whom, its ``size``, and what was known of it (``was``). A person may read and mend it.
What it says is material like the originals: it came with the folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from agent_kit.store import StoreCode, StoreError
from agent_kit.store.disk import read_file, replace_file

__all__ = [
    "MANIFEST",
    "Manifest",
    "Provenance",
    "provenance_of",
    "read_manifest",
    "with_entry",
    "write_manifest",
]

MANIFEST = ".sources.json"

_LIMIT = 16_000_000  # bytes
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a file was saved from, when (UTC), its size in bytes and the SHA-256 of its bytes."""

    origin: str
    when: datetime
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest as it stands there. ``rest`` are members of others, which are kept."""

    files: Mapping[str, Any] = field(default_factory=dict)
    retired: Mapping[str, Any] = field(default_factory=dict)
    rest: Mapping[str, Any] = field(default_factory=dict)


def read_manifest(root: int) -> Manifest:
    """The manifest; an empty one when there is none.

    ``root`` is the folder's handle. Raises :class:`StoreError` when it can't be read or isn't ours.
    """
    try:
        found = json.loads(read_file(MANIFEST, inside=root, limit=_LIMIT).data)
    except FileNotFoundError:
        return Manifest()
    except (StoreError, ValueError, RecursionError):
        raise _unusable() from None
    if not isinstance(found, dict):
        raise _unusable()
    files, retired = found.pop("files", None), found.pop("retired", {})
    if not isinstance(files, dict) or not isinstance(retired, dict):
        raise _unusable()
    return Manifest(files=files, retired=retired, rest=found)


def provenance_of(entry: object) -> Provenance | None:
    """What an entry says; ``None`` for one that isn't ours."""
    if not isinstance(entry, Mapping):
        return None
    origin, when, size, digest = (entry.get(key) for key in ("from", "when", "size", "sha256"))
    if not isinstance(origin, str) or type(size) is not int or not isinstance(digest, str):
        return None
    try:
        time = datetime.fromisoformat(str(when))
    except ValueError:
        return None
    if time.tzinfo is None or not _DIGEST.fullmatch(digest):
        return None
    return Provenance(origin=origin, when=time.astimezone(UTC), size=size, sha256=digest)


def with_entry(
    manifest: Manifest, path: str, entry: Provenance, more: Mapping[str, Any]
) -> Manifest:
    """The manifest with one more file. ``more`` is what it says beside."""
    added = {
        **more,
        "from": entry.origin,
        "when": entry.when.isoformat(timespec="seconds"),
        "size": entry.size,
        "sha256": entry.sha256,
    }
    return replace(manifest, files={**manifest.files, path: added})


def write_manifest(manifest: Manifest, *, root: int) -> None:
    """Put the manifest in place, in one step. Call it under the folder's lock."""
    retired = {"retired": manifest.retired} if manifest.retired else {}
    whole = {**manifest.rest, "files": manifest.files, **retired}
    text = json.dumps(whole, ensure_ascii=False, indent=2, sort_keys=True)
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > _LIMIT:
        raise _unusable()
    replace_file(MANIFEST, data, inside=root, mode=0o666)


def _unusable() -> StoreError:
    return StoreError(
        "The list of where the originals come from can't be read, so nothing was changed: tell the "
        f"person to mend or remove {MANIFEST} in the folder of originals.",
        code=StoreCode.UNREADABLE,
    )
