"""Laws over random trees: what the gate refuses isn't seen inside, and what it allows is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from agent_kit.confine.looking import look
from agent_kit.confine.view import ConfinedView, Sight
from agent_kit.scope import Code, FileScope, ToolOnlyDir, explain_file_scope

NAMES = st.sampled_from(["a", "b", "ab", "A", ".a", "CLAUDE.md", ".claude", "\u00e9", "a "])
PLACES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TREES = st.lists(
    st.tuples(st.sampled_from(["file", "file", "folder", "hard", "link"]), PLACES, PLACES),
    min_size=2,
    max_size=14,
)
SCOPES = st.fixed_dictionaries(
    {
        "writable_dirs": st.lists(st.one_of(PLACES, st.just(".")), max_size=2),
        "searchable_dirs": st.lists(st.one_of(PLACES, st.just(".")), min_size=1, max_size=3),
        "read_only_dirs": st.lists(PLACES, max_size=1),
        "denied_paths": st.lists(
            st.one_of(PLACES, st.sampled_from(["**/ab", "*b", "a/*", "**/a*/", "[aA]b"])),
            max_size=3,
        ),
        "tool_only_dirs": st.lists(
            PLACES.map(lambda place: ToolOnlyDir(dir=place, instead="a tool")), max_size=1
        ),
    }
)
FAST = settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def plant(root: str, entries: list[tuple[str, str, str]]) -> None:
    for kind, place, other in entries:
        path, twin = f"{root}/{place}", f"{root}/{other}"
        try:
            os.makedirs(path if kind == "folder" else os.path.dirname(path), exist_ok=True)
            if kind == "file":
                with open(path, "x"):
                    pass
            elif kind == "hard":
                os.link(twin, path, follow_symlinks=False)
            elif kind == "link":
                os.symlink(twin, path)
        except OSError:
            continue


CLOSED = (Code.DENIED_PATH, Code.DENIED_PATTERN, Code.TOOLS_ONLY)


def also(
    root: str, scope: FileScope
) -> tuple[set[tuple[int, int]], set[tuple[int, int]], list[str]]:
    """What the view may close beside the gate's word: the files that have a closed name, those that a
    control file is a name of, and where links that are control files lead.

    The gate looks for second names of literal entries alone, as they are written: for others (what a
    pattern means, what is closed in another spelling) it would have to search the disk at each call.
    The view has looked at every name, and covers them. That is right: they show what is closed.
    """
    refused: set[tuple[int, int]] = set()
    control: set[tuple[int, int]] = set()
    led: list[tuple[str, bool]] = []
    for here, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = os.path.join(here, name)
            is_control = not {"CLAUDE.md", ".claude"}.isdisjoint(path.split("/"))
            if os.path.islink(path):
                led.append((path, is_control))
                continue
            status = os.lstat(path)
            if os.path.isdir(path) or status.st_nlink < 2:
                continue
            inode = status.st_dev, status.st_ino
            if explain_file_scope(scope, "Read", {"file_path": path}).code in CLOSED:
                refused.add(inode)
            if is_control:
                control.add(inode)
    targets: list[str] = [os.path.realpath(path) for path, is_control in led if is_control]
    for target in targets:  # and links that are in there
        targets += [
            real
            for path, _ in led
            if path.startswith(f"{target}/") and (real := os.path.realpath(path)) not in targets
        ]
    return refused, control, targets


def files(root: str) -> Iterator[str]:
    for here, _, names in os.walk(root):
        yield from (path for name in names if not os.path.islink(path := os.path.join(here, name)))


@FAST
@given(TREES, SCOPES)
def test_a_file_is_seen_inside_exactly_where_the_gate_lets_it_be_read_and_written(
    entries: list[tuple[str, str, str]], fields: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.realpath(folder)
        plant(root, entries)
        fields["searchable_dirs"] += fields["writable_dirs"]  # as every session has it
        scope = FileScope(project_dir=root, home="/nowhere", **fields)
        view = ConfinedView(mounts=look(scope).mounts, cwd=root, tmp="/t")
        refused, control, led = also(root, scope)
        for path in files(root):
            status = os.lstat(path)
            inode = status.st_dev, status.st_ino
            sight = view.sight(path)
            read = explain_file_scope(scope, "Read", {"file_path": path})
            write = explain_file_scope(scope, "Write", {"file_path": path})
            event(f"{read.code} {write.code}")
            if path.endswith(" "):  # the CLI trims it: the question is about another file
                continue
            if read.code is not Code.OK:
                assert sight is Sight.NOTHING, (path, read)
                continue
            if inode in refused and sight is Sight.NOTHING:
                continue
            assert sight is not Sight.NOTHING, path
            is_led_to = any(f"{path}/".startswith(f"{target}/") for target in led)
            if (inode in control or is_led_to) and sight is Sight.READ:
                continue
            assert (sight is Sight.WRITE) == (write.code is Code.OK), (path, sight, write)
