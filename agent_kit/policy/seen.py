"""What a person was shown of a call's files: whether they are still the same ones when it runs.

Kept as JSON keeps it, since a question may outlive the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_kit.policy.target import Print, Target, print_of, prints_of

__all__ = ["Seen", "is_changed", "seen_of"]

Seen = dict[str, Any]
"""For each path of a call, as written and with links followed: where it leads, and which file is there."""


def seen_of(targets: Sequence[Target] | None, files: Sequence[str] = ()) -> Seen | None:
    """The files of a call as they are now, those of absolute paths as well; ``None`` when of one it can't be
    told."""
    each: list[tuple[Iterable[str], Print | None]] = [(files, prints_of(files))]
    for target in targets or ():
        names = dict.fromkeys((target.absolute, *target.real_paths))
        each.append((names, print_of(target)))
    seen: Seen = {}
    for paths, found in each:
        if found is None:
            return None
        for path, (place, identity) in zip(paths, found, strict=True):
            seen[path] = [place, list(identity)]
    return seen


def is_changed(before: object, now: Seen | None) -> bool:
    """Whether a path that was seen ``before`` is another file now. What can't be told counts as changed,
    and a path that was not seen before does not."""
    if not isinstance(before, Mapping) or now is None:
        return True
    return any(before[path] != found for path, found in now.items() if path in before)
