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
    deadline=None,
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
        for path in files(root):
            sight = view.sight(path)
            read = explain_file_scope(scope, "Read", {"file_path": path})
            write = explain_file_scope(scope, "Write", {"file_path": path})
            event(f"{read.code} {write.code}")
            if path.endswith(" "):  # the CLI trims it: the question is about another file
                continue
            if read.code is not Code.OK:
                assert sight is Sight.NOTHING, (path, read)
                continue
            assert sight is not Sight.NOTHING, path
            assert (sight is Sight.WRITE) == (write.code is Code.OK), (path, sight, write)
