"""The view of a scope, before any kernel is asked."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_kit.confine.control_links import decided_at, files_led_to
from agent_kit.confine.looking import look
from agent_kit.confine.view import ConfinedView, Mount, Sight
from agent_kit.scope import FileScope, ToolOnlyDir
from agent_kit.testing import tree

PLAIN = (
    "w/sources/a.md=x",
    "w/sources/sub/b.md=x",
    "w/drafts/d.md=x",
    "w/README.md=x",
    "w/knowledge/k.md=x",
    "out/o.md=x",
)


def sights(root: Path, files: tuple[str, ...] = (), **fields: Any) -> dict[str, str]:
    """What a scope's mounts are, by path relative to ``root``."""
    tree(root, [*PLAIN, *files])
    fields.setdefault("searchable_dirs", ["sources", "drafts"])
    fields.setdefault("writable_dirs", ["drafts"])
    scope = FileScope(project_dir=str(root / "w"), home=str(root / "home"), **fields)
    found = look(scope)
    assert found.complete
    return {os.path.relpath(mount.path, root): str(mount.sight) for mount in found.mounts}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def test_the_opened_folders_are_seen_and_nothing_else(root: Path) -> None:
    assert sights(root) == {"w/sources": "read", "w/drafts": "write"}


def test_a_denied_file_is_covered_and_a_denied_folder_as_a_whole(root: Path) -> None:
    found = sights(root, denied_paths=["sources/a.md", "sources/sub", "README.md"])
    assert found == {
        "w/sources": "read",
        "w/sources/a.md": "nothing",
        "w/sources/sub": "nothing",
        "w/drafts": "write",
    }


@pytest.mark.parametrize("first", ["w/drafts/0.md", "w/sources/z.md"])
def test_a_second_name_of_what_a_pattern_closes_is_covered_too(root: Path, first: str) -> None:
    """Wherever the pattern's own name comes in the walk."""
    tree(root, ["w/sources/m/.env=x", "w/drafts/"])
    os.link(root / "w/sources/m/.env", root / first)
    found = sights(root, denied_paths=["**/.env"])
    assert found[first] == "nothing"


def test_what_a_pattern_means_at_the_start_is_covered(root: Path) -> None:
    files = ("w/sources/.env=x", "w/drafts/deep/er/.env=x", "w/drafts/keys/k.pem=x")
    found = sights(root, files, denied_paths=["**/.env", "**/keys/"])
    assert {path for path, sight in found.items() if sight == "nothing"} == {
        "w/sources/.env",
        "w/drafts/deep/er/.env",
        "w/drafts/keys",
    }


def test_a_tools_only_folder_does_not_exist_inside_even_in_an_open_one(root: Path) -> None:
    only = [ToolOnlyDir(dir="knowledge", instead="its tools")]
    found = sights(root, searchable_dirs=["."], writable_dirs=[], tool_only_dirs=only)
    assert found == {"w": "read", "w/knowledge": "nothing"}


def test_an_opened_folder_inside_a_denied_one_stays_closed(root: Path) -> None:
    found = sights(root, searchable_dirs=["sources/sub", "drafts"], denied_paths=["sources"])
    assert found == {"w/drafts": "write"}


def test_a_read_only_folder_inside_a_writable_one_is_read(root: Path) -> None:
    found = sights(root, writable_dirs=["."], searchable_dirs=["."], read_only_dirs=["sources"])
    assert found == {"w": "write", "w/sources": "read"}


def test_a_writable_folder_inside_a_read_only_one_is_not_written(root: Path) -> None:
    found = sights(
        root,
        writable_dirs=["sources/sub"],
        searchable_dirs=["sources"],
        read_only_dirs=["sources"],
    )
    assert found == {"w/sources": "read", "w/sources/sub": "read"}


def test_control_files_that_exist_in_a_writable_folder_are_read_only(root: Path) -> None:
    files = (
        "w/drafts/CLAUDE.md=x",
        "w/drafts/sub/.claude/settings.json={}",
        "w/sources/CLAUDE.md=x",
    )
    found = sights(root, files)
    assert found == {
        "w/sources": "read",
        "w/drafts": "write",
        "w/drafts/CLAUDE.md": "read",
        "w/drafts/sub/.claude": "read",
    }


def test_control_files_are_written_where_the_scope_lets_them(root: Path) -> None:
    found = sights(root, ("w/drafts/CLAUDE.md=x",), writable_control_files=True)
    assert found == {"w/sources": "read", "w/drafts": "write"}


def test_a_link_opens_nothing_and_what_it_leads_to_keeps_its_own_name(root: Path) -> None:
    tree(root, [*PLAIN])
    (root / "w/sources/out").symlink_to(root / "out")
    (root / "linked").symlink_to(root / "w/sources")
    scope = FileScope(
        project_dir=str(root / "w"), searchable_dirs=[str(root / "linked")], home=str(root / "home")
    )
    assert [os.path.relpath(mount.path, root) for mount in look(scope).mounts] == ["w/sources"]


def test_a_second_name_of_a_closed_file_is_covered(root: Path) -> None:
    tree(root, [*PLAIN, "w/drafts/two.md=x"])
    os.link(root / "w/knowledge/k.md", root / "w/sources/hard.md")
    os.link(root / "w/drafts/two.md", root / "w/sources/open.md")  # a control: nothing is closed
    scope = FileScope(
        project_dir=str(root / "w"),
        searchable_dirs=["sources"],
        tool_only_dirs=[ToolOnlyDir(dir="knowledge", instead="its tools")],
        home=str(root / "home"),
    )
    found = {os.path.relpath(m.path, root): str(m.sight) for m in look(scope).mounts}
    assert found == {"w/sources": "read", "w/sources/hard.md": "nothing"}


D, SUB = {"w/drafts/d.md": "read"}, {"w/drafts/sub": "read"}
LINKS = {
    "a file": ("CLAUDE.md", "drafts/d.md", D),
    "a folder, and links in it": ("sources/.claude/skills", "../../drafts/sub", SUB | D),
    "in a writable folder": ("drafts/x/AGENTS.md", "../d.md", D),
    "in a read-only folder": ("sources/.claude/x", "../../drafts/d.md", D),
    "through a link": ("CLAUDE.md", "drafts/link.md", D),
    "through a folder's": (".claude", "drafts/linked", SUB | D),
    "to the writable folder": ("sources/.claude", "../drafts", {"w/drafts": "read"}),
    "to one above it": ("sources/.claude", "..", {"w/drafts": "read"}),
    "to what is closed": ("CLAUDE.md", "drafts/closed.md", {}),
    "into what is closed": ("CLAUDE.md", "drafts/shut/x.md", {}),
    "to what is read-only": ("CLAUDE.md", "sources/a.md", {}),
    "to what is outside": ("CLAUDE.md", "../out/o.md", {}),
    "to nothing": ("CLAUDE.md", "drafts/none.md", {}),
    "from no control file": ("sources/CLAUDE.mdx", "../drafts/d.md", {}),
    "to a control file": ("sources/CLAUDE.md", "../drafts/y/CLAUDE.md", {}),
}


@pytest.mark.parametrize(("name", "target", "more"), LINKS.values(), ids=LINKS)
def test_what_a_control_file_that_is_a_link_leads_to_is_read_only(
    root: Path, name: str, target: str, more: dict[str, str]
) -> None:
    files = ("w/drafts/sub/e.md=e", "w/drafts/closed.md=c", "w/drafts/y/CLAUDE.md=y")
    tree(root, [*files, "w/drafts/shut/x.md=x"])
    links = {"drafts/link.md": "d.md", "drafts/linked": "sub", "drafts/sub/f.md": "../d.md"}
    for link, leads_to in {**links, name: target}.items():
        (root / "w" / link).parent.mkdir(parents=True, exist_ok=True)
        (root / "w" / link).symlink_to(leads_to)
    found = sights(root, denied_paths=["drafts/closed.md", "drafts/shut"])
    always = {"w/sources": "read", "w/drafts": "write", "w/drafts/y/CLAUDE.md": "read"}
    closed = dict.fromkeys(("w/drafts/closed.md", "w/drafts/shut"), "nothing")
    assert found == {**always, **closed, **more}


def test_links_are_left_alone_where_the_scope_lets_control_files_be_written(root: Path) -> None:
    tree(root, ["w/drafts/e.md=e"])
    (root / "w/CLAUDE.md").symlink_to("drafts/d.md")
    os.link(root / "w/drafts/e.md", root / "w/AGENTS.md")
    found = sights(root, writable_control_files=True)
    assert found == {"w/sources": "read", "w/drafts": "write"}


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude/rules/r.md", "drafts/m/CLAUDE.md"])
def test_a_second_name_of_a_control_file_is_read_only(root: Path, name: str) -> None:
    """Wherever it comes in the walk."""
    tree(root, [f"w/{name}=rules", "w/drafts/zz/"])
    for second in ("drafts/0.md", "drafts/zz/z.md"):
        os.link(root / "w" / name, root / "w" / second)
    found = sights(root)
    assert (found["w/drafts/0.md"], found["w/drafts/zz/z.md"]) == ("read", "read")
    assert "w/drafts/d.md" not in found


def test_what_repositories_share_is_written(root: Path) -> None:
    """A local clone has the same objects."""
    tree(root, ["w/drafts/a/.git/objects/00/11=o", "w/.git/objects/00/22=o"])
    for name in ("drafts/a/.git/objects/00/11", ".git/objects/00/22"):
        os.link(root / "w" / name, root / "w/drafts" / name.rpartition("/")[2])
    found = sights(root)
    assert found == {"w/sources": "read", "w/drafts": "write", "w/drafts/a/.git": "read"}


@contextlib.contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Root looks into every folder."""
    if os.geteuid():
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o600, 0o400])
@pytest.mark.parametrize("place", ["w/drafts/deep/shut", "w/sources/shut"])
def test_a_folder_that_can_not_be_looked_into_is_covered(mode: int, place: str) -> None:
    """It is no empty one: a session beside this one may have shut it, and will open it again."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        root.chmod(0o755)
        tree(root, [*PLAIN, f"{place}/.env=x", f"{place}/sub/.env=x"])
        fields = {"searchable_dirs": ["sources", "drafts"], "writable_dirs": ["drafts"]}
        scope = FileScope(
            project_dir=str(root / "w"), denied_paths=["**/.env"], home=str(root / "home"), **fields
        )
        (root / place).chmod(mode)
        try:
            with an_ordinary_user():
                shut = look(scope).mounts
        finally:
            (root / place).chmod(0o755)
        with an_ordinary_user():
            control = look(scope).mounts
        found = {os.path.relpath(m.path, root): str(m.sight) for m in shut}
        assert found == {"w/sources": "read", "w/drafts": "write", place: "nothing"}
        assert f"{root}/{place}/.env" in {mount.path for mount in control}
        assert f"{root}/{place}" not in {mount.path for mount in control}


@pytest.mark.parametrize("mode", [0o300, 0o600])
def test_an_opened_folder_that_can_not_be_looked_into_is_not_seen(mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        root.chmod(0o755)
        tree(root, PLAIN)
        scope = FileScope(project_dir=str(root / "w"), searchable_dirs=["sources", "drafts"])
        (root / "w/sources").chmod(mode)
        with an_ordinary_user():
            found = {os.path.relpath(m.path, root): str(m.sight) for m in look(scope).mounts}
        (root / "w/sources").chmod(0o755)
        assert found == {"w/sources": "nothing", "w/drafts": "read"}


def test_an_opened_file_is_seen_and_a_folder_that_has_just_gone_is_none(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("/sub"):
            raise FileNotFoundError(path)
        return real(path)

    monkeypatch.setattr("os.scandir", scandir)
    found = sights(root, searchable_dirs=["README.md", "sources"], writable_dirs=[])
    assert found == {"w/README.md": "read", "w/sources": "read"}


def test_what_could_not_be_looked_at_is_said(root: Path) -> None:
    tree(root, [*PLAIN, *(f"w/sources/{n}.md=x" for n in range(20))])
    scope = FileScope(project_dir=str(root / "w"), searchable_dirs=["sources"])
    assert not look(scope, most=10).complete
    assert look(scope, most=100).complete


def test_the_nearest_mount_says_what_a_path_is() -> None:
    mounts = (
        Mount(path="/w", sight=Sight.READ),
        Mount(path="/w/d", sight=Sight.WRITE),
        Mount(path="/w/d/.env", sight=Sight.NOTHING, folder=False),
    )
    view = ConfinedView(mounts=mounts, cwd="/w", tmp="/t")
    asked = ("/w", "/w/a/b", "/w/d/x", "/w/d/.env", "/w/d/.envrc", "/", "/wd")
    assert [str(view.sight(path)) for path in asked] == [
        "read",
        "read",
        "write",
        "nothing",
        "write",
        "nothing",
        "nothing",
    ]
    assert [mount.path for mount in view.below("/w/d")] == ["/w/d/.env"]


def test_the_root_can_be_a_mount() -> None:
    view = ConfinedView(mounts=(Mount(path="/", sight=Sight.READ),), cwd="/", tmp="/t")
    assert view.sight("/etc/passwd") is Sight.READ


def test_an_opened_file_that_is_a_second_name_is_what_the_other_is(root: Path) -> None:
    tree(root, ["w/.env=x", "w/CLAUDE.md=x"])
    os.link(root / "w/.env", root / "w/one")
    os.link(root / "w/CLAUDE.md", root / "w/two")
    opened = ["one", "two", "README.md"]
    found = sights(root, searchable_dirs=opened, writable_dirs=opened, denied_paths=[".env"])
    assert found == {"w/one": "nothing", "w/two": "read", "w/README.md": "write"}


def test_a_second_name_of_a_read_only_file_is_read_only(root: Path) -> None:
    tree(root, ["w/drafts/fixed/x.md=x", "w/rules.md=r"])
    os.link(root / "w/drafts/fixed/x.md", root / "w/drafts/one.md")
    os.link(root / "w/rules.md", root / "w/drafts/two.md")
    found = sights(root, read_only_dirs=["drafts/fixed", "rules.md"])
    assert (found["w/drafts/one.md"], found["w/drafts/two.md"]) == ("read", "read")
    assert "w/drafts/d.md" not in found


LINKED = (
    ("drafts/rules.md", (), ()),
    ("drafts/x/a", ("drafts/x/a -> ../y/b.md",), ("drafts/x/a",)),
    ("drafts/l/b.md", ("drafts/l -> m",), ("drafts/l",)),
    ("drafts/x/none.md", (), ("drafts/x/none.md",)),
    ("drafts/x/none/none.md", (), ("drafts/x/none",)),
    ("drafts/x/a", ("drafts/x/a -> b", "drafts/x/b -> a"), ("drafts/x/a", "drafts/x/b")),
    ("AGENTS.md", (), ()),
    ("outside/a", ("outside/a -> ../drafts/rules.md",), ()),
)


@pytest.mark.parametrize(("target", "more", "named"), LINKED)
def test_it_is_known_where_it_is_decided_what_a_control_link_leads_to(
    tmp_path: Path, target: str, more: tuple[str, ...], named: tuple[str, ...]
) -> None:
    root = tmp_path.resolve() / "w"
    tree(
        root,
        ["drafts/rules.md=x", "drafts/y/b.md=x", "drafts/x/", "drafts/m/b.md=x", "AGENTS.md=x"],
    )
    (root / "outside").mkdir()
    (root / "CLAUDE.md").symlink_to(target)
    for each in more:
        name, _, end = each.partition(" -> ")
        (root / name).symlink_to(end)
    found = decided_at(str(root), [str(root / "drafts")])
    assert found == tuple(str(root / name) for name in named)


def test_a_control_link_to_all_there_is_closes_the_writable_folders_and_is_not_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve() / "w"
    tree(root, ["drafts/a.md=x", ".claude/"])
    (root / ".claude/other").symlink_to("/")
    walked: list[str] = []
    real = os.walk
    monkeypatch.setattr(os, "walk", lambda top, **more: [walked.append(top), real(top, **more)][1])
    assert files_led_to(str(root), [str(root / "drafts")]) == (str(root / "drafts"),)
    assert "/" not in walked
