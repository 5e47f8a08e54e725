"""Laws over random trees of folders, files, links, hard links and FIFOs on a real disk."""

from __future__ import annotations

import errno
import os
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from agent_kit.scope import FileScope, ToolOnlyDir, check_file_scope, explain_file_scope
from agent_kit.scope.disk import Located, Unresolvable, is_special_dir, locate, walk
from agent_kit.scope.flavour import collapse
from agent_kit.scope.judge import _PLAIN_CALLS, _judge, _plainly_allowed
from agent_kit.scope.tools import FILE_TOOLS

NAMES = st.sampled_from(["a", "b", "ab", "A", "a", "b", ".a", "\u00e9", "e\u0301", "a "])
PLACES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STEPS = st.one_of(NAMES, st.sampled_from([".", "..", "", "a", "b"]))
WAYS = st.lists(STEPS, min_size=1, max_size=6).map("/".join)
TARGETS = st.one_of(
    WAYS.map(lambda way: way.lstrip("/") or "."),
    WAYS.map("{root}/".__add__),
    st.sampled_from(["/proc/self", "/dev/null", "/etc"]),
)
ENTRIES = st.one_of(
    st.tuples(st.sampled_from(["folder", "file", "fifo"]), PLACES, st.just("")),
    st.tuples(st.just("file"), PLACES, st.just("")),
    st.tuples(st.just("link"), PLACES, TARGETS),
    st.tuples(st.just("link"), PLACES, TARGETS),
    st.tuples(st.just("hard"), PLACES, PLACES),
)
TREES = st.lists(ENTRIES, min_size=2, max_size=12)
TEXTS = st.lists(
    st.one_of(WAYS, WAYS.map("{root}/".__add__)).filter(str.strip), min_size=1, max_size=8
)
FAST = settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


DEEP = "/".join(["deep"] * 12)  # so that no climb leaves the test's own folder


@contextmanager
def planted(entries: list[tuple[str, str, str]]) -> Iterator[str]:
    """A tree of these entries; those that can't be made, or would lie outside it, are left out."""
    with tempfile.TemporaryDirectory() as folder:
        root = f"{os.path.realpath(folder)}/{DEEP}"
        os.makedirs(root)
        for kind, place, other in entries:
            with suppress(OSError):
                plant(root, kind, f"{root}/{place}", other.replace("{root}", root))
        yield root


def plant(root: str, kind: str, path: str, other: str) -> None:
    folder = path if kind == "folder" else os.path.dirname(path)
    twin = f"{root}/{other}" if kind == "hard" else path
    if not all(inside(os.path.realpath(each), root) for each in (folder, os.path.dirname(twin))):
        return
    os.makedirs(folder, exist_ok=True)
    if kind == "file":
        with open(path, "x"):
            pass
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        os.symlink(other, path)
    elif kind == "hard":
        os.link(twin, path, follow_symlinks=False)


def inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def kernel(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mode, found.st_dev, found.st_ino


def asked(question: Any, path: str) -> Located | None:
    try:
        found = question(path)
    except Unresolvable:
        return None
    assert isinstance(found, Located)
    return found


@FAST
@given(TREES, TEXTS)
def test_the_handle_the_walk_and_the_system_find_the_same_file(
    entries: list[tuple[str, str, str]], texts: list[str]
) -> None:
    with planted(entries) as root:
        for text in texts:
            written = os.path.join(root, text.replace("{root}", root))
            path = collapse(written)
            walked = asked(walk, path)
            assert asked(locate, path) == walked
            if walked is None:
                assert kernel(path) is None  # a loop is one for the kernel, too
                continue
            if is_special_dir(walked.path):
                continue
            assert walked.path == os.path.realpath(path)
            real = kernel(path)
            if real is not None:
                assert real == (walked.mode, walked.device, walked.inode)
            elif walked.mode:  # the kernel finds no way there: a climb out of what is missing
                assert os.path.lexists(walked.path)


@FAST
@given(TREES, TEXTS)
def test_a_climb_is_walked_as_the_system_walks_it(
    entries: list[tuple[str, str, str]], texts: list[str]
) -> None:
    with planted(entries) as root:
        for text in texts:
            written = f"{root}/{text.replace('{root}', '')}"
            walked = asked(walk, written)
            if walked is not None and not is_special_dir(walked.path):
                assert walked.path == os.path.realpath(written)


SCOPES = st.fixed_dictionaries(
    {
        "writable_dirs": st.lists(PLACES, max_size=2),
        "searchable_dirs": st.lists(PLACES, min_size=1, max_size=3),
        "also_readable": st.lists(PLACES, max_size=2),
        "read_only_dirs": st.lists(PLACES, max_size=1),
        "denied_paths": st.lists(
            st.one_of(PLACES, st.sampled_from(["**/ab", "*b", "a/*", "a*/", "[aA]b"])), max_size=3
        ),
        "tool_only_dirs": st.lists(
            PLACES.map(lambda place: ToolOnlyDir(dir=place, instead="a tool")), max_size=1
        ),
    }
)


def open_wide(fields: dict[str, Any], flags: tuple[bool, bool]) -> dict[str, Any]:
    """The same fields; the whole project open where a flag says so, that more gets allowed."""
    wide = dict(fields)
    for name, flag in zip(("searchable_dirs", "writable_dirs"), flags, strict=True):
        if flag:
            wide[name] = [*wide[name], "."]
    return wide


FLAGS = st.tuples(st.booleans(), st.booleans())


def calls(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool, known in FILE_TOOLS.items():
        yield tool, {known.fields[0]: path}
    yield "Later", {"path": path}
    yield "Read", {"file_path": path, "path": "/etc/shadow"}
    yield "Write", {"path": path}


@FAST
@given(TREES, SCOPES, FLAGS, TEXTS)
def test_the_short_way_allows_nothing_that_the_judgement_refuses(
    entries: list[tuple[str, str, str]],
    fields: dict[str, Any],
    flags: tuple[bool, bool],
    texts: list[str],
) -> None:
    with planted(entries) as root:
        scope = FileScope(project_dir=root, **open_wide(fields, flags))
        for text in texts:
            path = os.path.join(root, text.replace("{root}", root))
            for tool, tool_input in calls(path):
                refusal, _, _ = _judge(scope, tool, tool_input, None)
                plain = _PLAIN_CALLS.get(tool)
                if plain is not None and _plainly_allowed(scope._compiled, *plain, tool_input):
                    event(f"the short way, {tool}")
                    assert refusal is None, refusal
                assert check_file_scope(scope, tool, tool_input) == (
                    None if refusal is None else refusal.message
                )


# --- the claim ----------------------------------------------------------------------------------


def same_name(path: str) -> str:
    """The path without case and Unicode form. Written apart from the code under test."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def identities(path: str) -> set[tuple[int, int]]:
    """The files at or below a path, links not followed."""
    try:
        below = [
            path,
            *(os.path.join(at, name) for at, _, files in os.walk(path) for name in files),
        ]
        found = [os.lstat(name) for name in below]
    except OSError:
        return set()
    return {(each.st_dev, each.st_ino) for each in found}


def leads_to(path: str) -> str:
    """The path, links resolved; of a loop, where nothing is, itself: realpath gives one of its folders."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return path
    return os.path.realpath(path)


class Closed:
    """What no tool may open, by every name and every identity; as simple as can be."""

    def __init__(self, root: str, fields: dict[str, Any]) -> None:
        patterns = [text for text in fields["denied_paths"] if "*" in text or "[" in text]
        texts = [text for text in fields["denied_paths"] if text not in patterns]
        texts += [each.dir for each in fields["tool_only_dirs"]]
        self.names = {f"{root}/{text}" for text in texts}
        self.names |= {leads_to(name) for name in self.names}
        self.files = set().union(*(identities(name) for name in self.names if inside(name, root)))
        everywhere = [text for text in patterns if "/" not in text.rstrip("/")]
        anchored = [root + "/" + text for text in patterns if text not in everywhere]
        self.spec = GitIgnoreSpec.from_lines([*everywhere, *anchored])

    def holds(self, path: str) -> bool:
        real = leads_to(path)
        for name in (path, real):
            if any(inside(same_name(name), same_name(closed)) for closed in self.names):
                return True
            if self.spec.match_file(same_name(name)[1:] + ("/" if os.path.isdir(real) else "")):
                return True
        found = kernel(real)
        return found is not None and not os.path.isdir(real) and found[1:] in self.files


@settings(FAST, max_examples=150)
@given(TREES, SCOPES, FLAGS, TEXTS, st.booleans())
def test_a_read_that_is_allowed_opens_only_what_is_readable_and_not_closed(
    entries: list[tuple[str, str, str]],
    fields: dict[str, Any],
    flags: tuple[bool, bool],
    texts: list[str],
    below: bool,
) -> None:
    """What ``open`` would reach lies in a readable folder, and is closed under no name it has."""
    with planted(entries) as root:
        fields = open_wide(fields, flags)
        scope = FileScope(project_dir=root, **fields)
        closed = Closed(root, fields)
        folders = [*fields["searchable_dirs"], *fields["also_readable"]]
        readable = [os.path.realpath(f"{root}/{folder}") for folder in folders]
        cwd = f"{root}/a" if below else root
        for text in texts:
            written = text.replace("{root}", root)
            if check_file_scope(scope, "Read", {"file_path": written}, cwd=cwd) is not None:
                continue
            path = os.path.normpath(os.path.join(cwd, written.strip()))  # as the CLI reads it
            real = os.path.realpath(path)
            event("allowed")
            assert any(inside(real, folder) for folder in readable)
            assert not closed.holds(path)
            found = kernel(path)
            assert found is None or os.path.isdir(path) or os.path.isfile(path)


@settings(FAST, max_examples=80)
@given(TREES, SCOPES, TEXTS)
def test_a_write_that_is_allowed_changes_only_what_is_writable(
    entries: list[tuple[str, str, str]], fields: dict[str, Any], texts: list[str]
) -> None:
    with planted(entries) as root:
        fields = open_wide(fields, (True, not fields["writable_dirs"]))
        scope = FileScope(project_dir=root, **fields)
        closed = Closed(root, {**fields, "denied_paths": [
            *fields["denied_paths"], *fields["read_only_dirs"]]})  # fmt: skip
        writable = [os.path.realpath(f"{root}/{folder}") for folder in fields["writable_dirs"]]
        for text in texts:
            written = text.replace("{root}", root)
            if check_file_scope(scope, "Write", {"file_path": written}) is not None:
                continue
            path = os.path.normpath(os.path.join(root, written.strip()))
            event("allowed")
            assert any(inside(os.path.realpath(path), folder) for folder in writable)
            assert not closed.holds(path)


@settings(FAST, max_examples=60)
@given(TREES, SCOPES, FLAGS, TEXTS)
def test_a_search_that_is_allowed_starts_above_nothing_closed(
    entries: list[tuple[str, str, str]],
    fields: dict[str, Any],
    flags: tuple[bool, bool],
    texts: list[str],
) -> None:
    with planted(entries) as root:
        fields = open_wide(fields, flags)
        scope = FileScope(project_dir=root, **fields)
        closed = Closed(root, fields)
        for text in texts:
            written = text.replace("{root}", root)
            found = explain_file_scope(scope, "Grep", {"pattern": "x", "path": written})
            if found.message is not None:
                continue
            start = os.path.realpath(os.path.normpath(os.path.join(root, written.strip())))
            event("allowed")
            assert not any(inside(same_name(name), same_name(start)) for name in closed.names)
            assert not closed.holds(start)
