"""Whether a mount namespace is what bubblewrap was told to build. Standard library only.

Loaded by the program that becomes bubblewrap. Bubblewrap goes by names, and another session of the
project may give a name to something else while it works: so each mount is looked at once it is made,
through the process inside, by device and number of what it shows.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Final

__all__ = ["COPY", "Identity", "Plan", "Planned", "faults", "identity", "planned"]

Identity = tuple[int, int]
"""Device and number of a file."""

COPY: Final = "--copy"
"""One of the plan's words, not of bubblewrap's, before a file and its path inside."""

_BINDS: Final = {"--bind": True, "--ro-bind": False, "--ro-bind-try": False}
_MADE: Final = {"--tmpfs": "tmpfs", "--proc": "proc", "--dev": "tmpfs"}
_WORDS: Final = {  # how many words follow one of bubblewrap's
    **dict.fromkeys(_BINDS, 2),
    **dict.fromkeys(_MADE, 1),
    **dict.fromkeys(("--remount-ro", "--chdir", "--cap-drop"), 1),
    **dict.fromkeys(("--symlink", "--file"), 2),
}
# What bubblewrap itself puts into /dev.
_DEVICES: Final = ("console", "full", "null", "random", "tty", "urandom", "zero")


class Planned:
    """What must be seen at a path: a file of the host, or a new file system of a type."""

    __slots__ = ("optional", "source", "what", "writable")

    def __init__(
        self, source: str, what: Identity | str, writable: bool, optional: bool = False
    ) -> None:
        self.source, self.what, self.writable, self.optional = source, what, writable, optional


Plan = dict[str, Planned]


class _Mount:
    __slots__ = ("device", "kind", "point", "root", "writable")

    def __init__(self, point: str, root: str, device: str, kind: str, writable: bool) -> None:
        self.point, self.root, self.device, self.kind = point, root, device, kind
        self.writable = writable


def identity(found: os.stat_result) -> Identity:
    """Device and number."""
    return found.st_dev, found.st_ino


def planned(words: list[str], source: Callable[[str], Identity | None]) -> Plan:
    """What bubblewrap's words mount, by path. ``source`` tells what is at a path of the host."""
    found: dict[str, Planned] = {"/": Planned("", "tmpfs", True)}
    host = {mount.point: mount for _, mount in _mounts("self")}
    todo = iter(words)
    for word in todo:
        rest = [next(todo) for _ in range(_WORDS.get(word, 0))]
        if word == "--remount-ro":
            found[rest[0]].writable = False
        elif word in _BINDS:
            optional = word.endswith("-try")
            what = _proc(rest[0], host) or source(rest[0])
            if what is not None:
                _put(found, rest[1], Planned(rest[0], what, _BINDS[word], optional))
            elif not optional:
                raise FileNotFoundError(f"{rest[0]} has gone")
        elif word in _MADE:
            _put(found, rest[0], Planned("", _MADE[word], True))
    return found


def _proc(path: str, host: Mapping[str, _Mount]) -> str | None:
    """Files of the kernel's have no lasting number: they are known by their name there."""
    if not path.startswith("/proc/"):
        return None
    point = next(each for each in (path, *_above(path)) if each in host)
    place = os.path.normpath(f"{host[point].root}/{path[len(point) :]}")
    return f"{host[point].kind}:{place}"


def _put(found: dict[str, Planned], path: str, plan: Planned) -> None:
    for below in [each for each in found if each.startswith(f"{path.rstrip('/')}/")]:
        if below != path:  # it is hidden by this one
            del found[below]
    found[path] = plan


def faults(plan: Plan, process: int) -> list[str]:
    """In words, what a process sees that was not planned so."""
    mounts = dict(_mounts(str(process)))
    return [*_wrong(plan, process, mounts), *_unplanned(plan, process, mounts)]


def _wrong(plan: Plan, process: int, mounts: Mapping[int, _Mount]) -> Iterator[str]:
    for path, wanted in plan.items():
        try:
            number, found = _seen(process, path)
        except OSError as error:
            yield f"{path}: {error.strerror}"
            continue
        mount = mounts.get(number)
        if mount is None or mount.point != path:
            if not wanted.optional:
                yield f"{path}: nothing is mounted there"
        elif not _is(wanted, mount, found):
            yield f"{path}: something else is mounted there"
        elif mount.writable and not wanted.writable:
            yield f"{path}: it can be written"


def _is(wanted: Planned, mount: _Mount, found: os.stat_result) -> bool:
    if isinstance(wanted.what, str):
        kind, _, place = wanted.what.partition(":")
        return mount.kind == kind and (not place or mount.root == place)
    return identity(found) == wanted.what


def _unplanned(plan: Plan, process: int, mounts: Mapping[int, _Mount]) -> Iterator[str]:
    """Other mounts: those of the host that lie in a planned one come along, and /dev and /proc."""
    host = {mount.point: mount for _, mount in _mounts("self")}
    for number, mount in mounts.items():
        if mount.point in plan:
            continue
        try:
            seen, found = _seen(process, mount.point)
        except OSError:
            continue  # it can't be reached
        if seen != number:  # hidden by another
            continue
        above = next(path for path in _above(mount.point) if path in plan)
        if not _belongs(above, plan[above], mount, found, host):
            yield f"{mount.point}: nothing should be mounted there"


def _belongs(
    above: str, plan: Planned, mount: _Mount, found: os.stat_result, host: Mapping[str, _Mount]
) -> bool:
    if above == "/dev" and not plan.source:
        name = mount.point[len("/dev/") :]
        return mount.kind == "devpts" or (name in _DEVICES and stat.S_ISCHR(found.st_mode))
    if above == "/proc" and not plan.source:  # covered by bubblewrap itself
        return mount.kind == "proc" and not mount.writable
    place = os.path.realpath(plan.source) + mount.point[len(above.rstrip("/")) :]
    theirs = host.get(place) if plan.source else None
    if theirs is None or (theirs.device, theirs.root) != (mount.device, mount.root):
        return False
    return plan.writable or not mount.writable


def _above(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _seen(process: int, path: str) -> tuple[int, os.stat_result]:
    """The mount in which a process sees a path itself, and what it is there."""
    file = os.open(f"/proc/{process}/root{path}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.readlink(f"/proc/self/fd/{file}") != path:
            raise OSError(0, "a link leads elsewhere")
        with open(f"/proc/self/fdinfo/{file}", encoding="ascii") as info:
            known = dict(line.split(":", 1) for line in info)
        return int(known["mnt_id"]), os.fstat(file)
    finally:
        os.close(file)


def _mounts(process: str) -> Iterator[tuple[int, _Mount]]:
    with open(f"/proc/{process}/mountinfo", "rb") as info:
        text = os.fsdecode(info.read())
    for line in text.split("\n")[:-1]:
        first, _, last = line.partition(" - ")
        number, _, device, root, point, options, *_ = first.split(" ")
        yield (
            int(number),
            _Mount(_plain(point), _plain(root), device, last.split(" ")[0], _writes(options)),
        )


def _writes(options: str) -> bool:
    return "ro" not in options.split(",")


def _plain(text: str) -> str:
    first, *rest = text.split("\\")
    return first + "".join(chr(int(each[:3], 8)) + each[3:] for each in rest)
