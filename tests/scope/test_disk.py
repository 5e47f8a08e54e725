"""Resolving: loops, chains, long names, what may not be looked at; both ways of it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_kit.scope import Code, FileScope, disk, explain_file_scope
from agent_kit.scope.disk import Located, Unresolvable, is_special_dir, locate, walk
from agent_kit.scope.flavour import collapse

Question = Callable[[str], Located]
BOTH = pytest.mark.parametrize("find", [locate, walk], ids=["locate", "walk"])
LINUX = pytest.mark.skipif(not disk._FLAGS, reason="O_PATH and /proc are Linux's")


@BOTH
def test_a_plain_file_is_where_it_says(find: Question, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("text")
    os.link(tmp_path / "a" / "f", tmp_path / "g")
    found, real = find(f"{tmp_path}/a/f"), os.stat(tmp_path / "a" / "f")
    assert found == Located(f"{tmp_path}/a/f", real.st_mode, 2, real.st_dev, real.st_ino, 4)
    assert find("/").path == "/"
    assert find("/").mode == os.stat("/").st_mode


@BOTH
@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("missing", "missing"),
        ("missing/x/y", "missing/x/y"),
        ("file/x", "file/x"),
        ("to-dir/x", "dir/x"),
        ("to-dir/missing/x", "dir/missing/x"),
        ("to-missing", "missing"),
        ("to-missing/x", "missing/x"),
        ("to-missing/x/y/z", "missing/x/y/z"),
        ("to-file", "file"),
        ("to-file/x", "file/x"),
        ("chain", "dir"),
        ("chain/x", "dir/x"),
        ("dir/up", "."),
        ("dir/up/dir/up/missing", "missing"),
        ("dir/beside", "file"),
        ("dir/climbs", "missing2"),
        ("self", "."),
        ("self/self/self/file", "file"),
        ("dots", "dir"),
        ("dir (deleted)", "dir (deleted)"),
        ("to-missing (deleted)", "to-missing (deleted)"),
    ],
)
def test_links_and_missing_tails_are_resolved(
    find: Question, tmp_path: Path, path: str, real: str
) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").touch()
    for name, target in {
        "to-dir": "dir",
        "to-file": "file",
        "to-missing": "missing",
        "chain": "chain2",
        "chain2": f"{tmp_path}/to-dir/",
        "dir/up": "..",
        "dir/beside": "../file",
        "dir/climbs": "../missing2",
        "self": ".",
        "dots": "./dir//.",
    }.items():
        os.symlink(target, tmp_path / name)
    expected = collapse(f"{tmp_path}/{real}")
    found = find(f"{tmp_path}/{path}")
    assert found.path == expected == os.path.realpath(tmp_path / path)
    assert bool(found.mode) == os.path.lexists(expected)


@BOTH
@pytest.mark.parametrize("length", [39, 40, 41])
def test_forty_links_are_followed_and_no_more(find: Question, tmp_path: Path, length: int) -> None:
    (tmp_path / "0").mkdir()
    for at in range(length):
        os.symlink(str(at), tmp_path / str(at + 1))
    path = f"{tmp_path}/{length}"
    if length > 40:
        with pytest.raises(OSError):
            os.stat(path)
        with pytest.raises(Unresolvable):
            find(path)
    else:
        assert os.stat(path)
        assert find(path).path == f"{tmp_path}/0"
        assert find(f"{path}/new").path == f"{tmp_path}/0/new"


@BOTH
@pytest.mark.parametrize(
    "links",
    [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "./a/x"}, {"a": "b/../a"}, {"a": "{root}/a"}],
)
@pytest.mark.parametrize("tail", ["", "/x", "/x/y"])
def test_a_loop_is_not_resolvable(
    find: Question, tmp_path: Path, links: dict[str, str], tail: str
) -> None:
    for name, target in links.items():
        os.symlink(target.replace("{root}", str(tmp_path)), tmp_path / name)
    with pytest.raises(Unresolvable):
        find(f"{tmp_path}/a{tail}")


@BOTH
def test_a_name_may_have_255_bytes(find: Question, tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127):
        assert find(f"{tmp_path}/{name}").path == f"{tmp_path}/{name}"
    for name in ("x" * 256, "é" * 128):
        with pytest.raises(Unresolvable):
            find(f"{tmp_path}/{name}")


@BOTH
@pytest.mark.parametrize("name", ["a\0b", "\0", "\ud800", "a/\udfff/b", "\U0001f600\ud83d"])
def test_a_name_that_no_disk_can_hold_is_not_resolvable(
    find: Question, tmp_path: Path, name: str
) -> None:
    with pytest.raises(Unresolvable):
        find(f"{tmp_path}/{name}")


@BOTH
def test_a_name_that_is_no_utf_8_is_found_by_its_bytes(find: Question, tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    os.symlink(b"\xff", os.fsencode(tmp_path) + b"/link")
    assert find(f"{tmp_path}/link/new").path == f"{tmp_path}/\udcff/new"


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder ``deep`` of 30 × 200 characters, and ``jump``, a link to the 18th of them."""
    name = "d" * 200
    base = tmp_path / "deep"
    base.mkdir()
    at = os.open(base, os.O_RDONLY)
    for _ in range(30):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    os.symlink("deep/" + "/".join([name] * 18), tmp_path / "jump")
    yield tmp_path
    shutil.rmtree(base)


@BOTH
def test_a_path_longer_than_the_system_takes_is_not_resolvable(find: Question, deep: Path) -> None:
    name = "d" * 200
    with pytest.raises(Unresolvable):
        find(f"{deep}/deep/" + "/".join([name] * 25))
    assert find(f"{deep}/deep/" + "/".join([name] * 18)).mode
    # links lead where no text does
    far = f"{deep}/jump/" + "/".join([name] * 5)
    assert os.path.exists(far)
    for path in (far, f"{far}/missing", f"{far}/missing/x"):
        with pytest.raises(Unresolvable):
            find(path)


def test_a_path_of_a_million_characters_is_refused_at_once(tmp_path: Path) -> None:
    scope = FileScope(project_dir=tmp_path, searchable_dirs=["."])
    for text in (
        "a/" * 500_000,
        "a" * 1_000_000,
        "../" * 300_000 + "a",
        "./" * 300_000 + "a" * 300,
    ):
        assert explain_file_scope(scope, "Read", {"file_path": text}).message is not None


# --- special folders ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "special"),
    [
        ("/proc", True),
        ("/proc/self/environ", True),
        ("/sys/kernel", True),
        ("/dev", True),
        ("/DEV/rdisk0", True),  # a volume may ignore case
        ("/procfs", False),
        ("/devel/x", False),
        ("/srv/proc/x", False),
        ("/", False),
    ],
)
def test_the_special_folders_are_these_three(path: str, special: bool) -> None:
    assert is_special_dir(path) is special


@LINUX
@BOTH
@pytest.mark.parametrize(
    ("target", "real"),
    [
        ("/proc/self/environ", "/proc/self/environ"),
        ("/proc/self/root/etc/passwd", "/proc/self/root/etc/passwd"),
        ("/proc/self/cwd", "/proc/self/cwd"),
        ("/proc/thread-self/fd/0", "/proc/thread-self/fd/0"),
        ("/dev/fd/0", "/dev/fd/0"),
        ("/dev/stdin", "/dev/stdin"),
        ("/dev/null", "/dev/null"),
    ],
)
def test_a_path_that_enters_a_special_folder_stays_there(
    find: Question, tmp_path: Path, target: str, real: str
) -> None:
    """Beyond it this process and the CLI may see different files."""
    os.symlink(target, tmp_path / "link")
    assert find(f"{tmp_path}/link").path == real
    assert find(f"{tmp_path}/link/../x").path.startswith(real)
    assert find(target).path == real


# --- what may not be looked at ----------------------------------------------------------------


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that other users may enter, unlike those of ``tmp_path``."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(os.path.realpath(folder))


def test_what_is_in_a_closed_folder_is_not_resolvable(public: Path) -> None:
    """In a process of its own, where root becomes another user."""
    tree = public / "t"
    for name in ("shut/in", "unlisted/in", "open"):
        (tree / name).mkdir(parents=True)
    os.symlink("../shut/in/f", tree / "open" / "link")
    (tree / "shut").chmod(0o000)
    (tree / "unlisted").chmod(0o711)
    script = """
import json, os, sys
sys.path.insert(0, sys.argv[2])
import agent_kit.scope.judge
if os.geteuid() == 0:
    os.setegid(65534); os.seteuid(65534)
from agent_kit.scope import FileScope, explain_file_scope
from agent_kit.scope.disk import Unresolvable, locate, walk
root = sys.argv[1]
found = {}
for name in ("open", "shut", "shut/in", "shut/in/f", "open/link", "unlisted/in", "unlisted/no"):
    for find in (locate, walk):
        try:
            answer = find(f"{root}/{name}").path.removeprefix(root + "/")
        except Unresolvable:
            answer = None
        assert found.setdefault(name, answer) == answer, (name, answer)
scope = FileScope(
    project_dir=root, searchable_dirs=["."], writable_dirs=["."], denied_paths=["shut/in"]
)
for tool in ("Read", "Write"):
    for name in ("shut/x", "open/link", "unlisted/in/hooks/x", "unlisted/config"):
        found[f"{tool} {name}"] = explain_file_scope(scope, tool, {"file_path": name}).code
print(json.dumps(found))
"""
    package = str(Path(disk.__file__).parents[2])
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, str(tree), package],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        (tree / "shut").chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "open": "open",
        "shut": "shut",
        "shut/in": None,
        "shut/in/f": None,
        "open/link": None,
        "unlisted/in": "unlisted/in",
        "unlisted/no": "unlisted/no",
        "Read shut/x": "malformed",
        "Read open/link": "malformed",
        "Read unlisted/in/hooks/x": "ok",
        "Read unlisted/config": "ok",
        "Write shut/x": "malformed",
        "Write open/link": "malformed",
        "Write unlisted/in/hooks/x": "ok",  # "in" can be listed
        "Write unlisted/config": "control-file",  # what is beside it can't be told
    }


def test_a_scope_whose_folders_can_not_be_resolved_is_built_all_the_same(tmp_path: Path) -> None:
    os.symlink("loop", tmp_path / "loop")
    scope = FileScope(
        project_dir=tmp_path,
        searchable_dirs=["loop", "."],
        denied_paths=["loop/*.pem", "loop", "x" * 300, "\ud800", "\ud800/*"],
    )
    assert explain_file_scope(scope, "Read", {"file_path": "loop"}).code is Code.MALFORMED
    assert explain_file_scope(scope, "Read", {"file_path": "a"}).code is Code.OK


# --- FIFOs, sockets, devices ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fifo", "socket", "link"])
@pytest.mark.parametrize("tool", ["Read", "Write", "Grep", "LS"])
def test_what_is_neither_file_nor_folder_is_closed(tmp_path: Path, kind: str, tool: str) -> None:
    path = tmp_path / "odd"
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        os.mkfifo(tmp_path / "there")
        path.symlink_to("there")
    scope = FileScope(project_dir=tmp_path, searchable_dirs=["."], writable_dirs=["."])
    field = "path" if tool in ("Grep", "LS") else "file_path"
    for text in ("odd", str(path)):
        found = explain_file_scope(scope, tool, {field: text})
        assert found.code is Code.SPECIAL_FILE


@LINUX
@pytest.mark.parametrize("path", ["/proc/self/environ", "/sys/kernel", "/dev/null", "/dev/shm/x"])
def test_a_scope_that_opens_everything_does_not_open_the_special_folders(path: str) -> None:
    scope = FileScope(project_dir="/", searchable_dirs=["/", path], writable_dirs=["/", path])
    for tool, field in (("Read", "file_path"), ("Write", "file_path"), ("LS", "path")):
        assert explain_file_scope(scope, tool, {field: path}).code is Code.SPECIAL_FILE
    assert (
        explain_file_scope(scope, "Read", {"file_path": f"/x/..{path}"}).code is Code.SPECIAL_FILE
    )


# --- the ways beside the handle ---------------------------------------------------------------------


@LINUX
def test_without_file_handles_the_walk_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process has no descriptor left."""
    (tmp_path / "f").touch()
    os.symlink("f", tmp_path / "link")

    def refuse(*_args: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(disk.os, "open", refuse)
    assert locate(f"{tmp_path}/link").path == f"{tmp_path}/f"
    assert locate(f"{tmp_path}/missing").path == f"{tmp_path}/missing"


@LINUX
def test_a_missing_file_below_the_root_is_located() -> None:
    assert locate("/no such thing").path == "/no such thing"
    assert locate("/no such thing/x/y").path == "/no such thing/x/y"


@LINUX
def test_a_handle_that_can_not_be_told_is_not_resolvable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when ``/proc`` has gone since the start."""

    def refuse(_path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(disk.os, "readlink", refuse)
    with pytest.raises(Unresolvable):
        locate(str(tmp_path))
    assert locate(f"{tmp_path}/missing").path == f"{tmp_path}/missing"


def test_a_link_replaced_since_the_look_is_not_resolvable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.symlink("x", tmp_path / "link")

    def refuse(_path: str) -> str:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(disk.os, "readlink", refuse)
    with pytest.raises(Unresolvable):
        walk(f"{tmp_path}/link")


def test_where_there_is_no_proc_paths_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk.sys, "platform", "darwin")
    assert disk._handle_flags() == 0


def test_on_windows_the_system_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stub for what only Windows does: names come back long and in their own case."""
    real = {"C:\\work\\docu": "\\\\?\\C:\\Work\\Documents", "D:\\x": "D:\\x"}
    asked: list[str] = []

    def lstat(path: str) -> os.stat_result:
        asked.append(path)
        return os.stat_result((0o100644, 7, 3, 2, 0, 0, 5, 0, 0, 0))

    monkeypatch.setattr(disk.os.path, "realpath", lambda path: real[path])
    monkeypatch.setattr(disk.os, "lstat", lstat)
    found = disk._locate_on_windows("/c:/work/docu")
    assert found == Located("/c:/Work/Documents", 0o100644, 2, 3, 7, 5)
    assert asked == ["C:\\Work\\Documents"]


@pytest.mark.parametrize("real", ["C:\\work\\PROGRA~1", "\\\\.\\pipe\\x"])
def test_on_windows_a_name_that_stays_odd_is_not_resolvable(
    monkeypatch: pytest.MonkeyPatch, real: str
) -> None:
    monkeypatch.setattr(disk.os.path, "realpath", lambda _path: real)
    with pytest.raises(Unresolvable):
        disk._locate_on_windows("/c:/work/x")
