"""The rules for Landlock against the view they are made from: never more, and less only as stated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.confine import landlock_rules
from agent_kit.confine.landlock_rules import Entry, Group, Rule, TooManyRules, listed, make_rules
from agent_kit.confine.view import ConfinedView, Mount, Sight

READ = Group.CONTENT | Group.NAMES
WRITE = READ | Group.CHANGE
GROUPS = {Sight.NOTHING: Group(0), Sight.READ: READ, Sight.WRITE: WRITE}


class Tree:
    """Folders and files by path, without a disk. ``"d/"`` is a folder, ``"d/f"`` a file in it."""

    def __init__(self, *places: str) -> None:
        self.folders = {"/"}
        self.files: set[str] = set()
        for place in places:
            path = "/" + place.strip("/")
            (self.folders if place.endswith("/") else self.files).add(path)
            while (path := os.path.dirname(path)) != "/":
                self.folders.add(path)
        self.files -= self.folders
        self.looks: list[str] = []

    def listing(self, folder: str) -> list[Entry]:
        self.looks.append(folder)
        return [
            Entry(path=path, folder=path in self.folders)
            for path in sorted(self.files | self.folders)
            if path != "/" and os.path.dirname(path) == folder
        ]


def view(*mounts: Mount, tmp: str = "") -> ConfinedView:
    return ConfinedView(mounts=tuple(sorted(mounts)), cwd="/", tmp=tmp)


def mount(path: str, sight: Sight, folder: bool = True, source: str = "") -> Mount:
    return Mount(path=path, sight=sight, folder=folder, source=source)


def given_on(rules: tuple[Rule, ...], path: str) -> Group:
    """What the kernel gives: the rules of a path and of everything above it."""
    found = {rule.path: rule.groups for rule in rules}
    groups = found.get(path, Group(0))
    while path != "/":
        path = os.path.dirname(path)
        groups |= found.get(path, Group(0))
    return groups


NAMES = st.sampled_from(["a", "b", "ab"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Tree, ConfinedView]:
    places = draw(st.lists(st.tuples(PATHS, st.booleans()), min_size=1, max_size=12))
    tree = Tree(*(path + ("/" if folder else "") for path, folder in places))
    there = sorted(tree.files | (tree.folders - {"/"}))
    chosen = draw(st.dictionaries(st.sampled_from(there), st.sampled_from(Sight), max_size=5))
    mounts = [mount(path, sight, path in tree.folders) for path, sight in chosen.items()]
    return tree, view(*mounts)


def less_below(seen: ConfinedView, folder: str, group: Group) -> bool:
    return any(
        group & ~GROUPS[each.sight] and (each.folder or group is not Group.NAMES)
        for each in seen.below(folder)
    )


@given(worlds())
def test_no_path_is_given_more_than_the_view_says(world):
    tree, seen = world
    rules = make_rules(seen, tree.listing).rules
    for path in tree.files | tree.folders:
        more = given_on(rules, path) & ~GROUPS[seen.sight(path)]
        assert not (more if path in tree.folders else more & ~Group.NAMES), path


@given(worlds())
def test_what_appears_later_is_given_no_more_than_the_view_says(world):
    tree, seen = world
    rules = make_rules(seen, tree.listing).rules
    for folder in tree.folders:
        later = folder.rstrip("/") + "/later"
        assert not given_on(rules, later) & ~GROUPS[seen.sight(later)]


@given(worlds())
def test_every_file_that_is_there_is_given_all_that_the_view_says(world):
    tree, seen = world
    rules = make_rules(seen, tree.listing).rules
    for path in tree.files:
        assert given_on(rules, path) | Group.NAMES == GROUPS[seen.sight(path)] | Group.NAMES


@given(worlds())
def test_a_folder_loses_a_right_exactly_where_something_below_it_lacks_that_right(world):
    tree, seen = world
    rules = make_rules(seen, tree.listing).rules
    for folder in tree.folders:
        for group in GROUPS[seen.sight(folder)]:
            lost = less_below(seen, folder, group)
            assert bool(given_on(rules, folder) & group) != lost, (folder, group)


@given(worlds())
def test_every_loss_is_told_and_nothing_else_is(world):
    tree, seen = world
    notes = make_rules(seen, tree.listing).notes
    lost = {
        folder
        for folder in tree.folders
        for group in GROUPS[seen.sight(folder)]
        if less_below(seen, folder, group)
    }
    assert {note.partition(": ")[0] for note in notes} == lost


@given(worlds())
def test_only_folders_with_something_less_below_them_are_listed(world):
    tree, seen = world
    make_rules(seen, tree.listing)
    for folder in tree.looks:
        assert any(less_below(seen, folder, group) for group in Group)


def test_a_folder_with_nothing_less_in_it_takes_one_rule():
    tree = Tree("w/a", "w/b/c")
    rules = make_rules(view(mount("/w", Sight.WRITE)), tree.listing).rules
    assert rules == (Rule(path="/w", groups=WRITE),)


def test_a_closed_file_leaves_its_folder_listable_and_its_neighbours_readable():
    tree = Tree("w/a", "w/.env", "w/k/b")
    seen = view(mount("/w", Sight.READ), mount("/w/.env", Sight.NOTHING, folder=False))
    assert make_rules(seen, tree.listing).rules == (
        Rule(path="/w", groups=Group.NAMES),
        Rule(path="/w/a", groups=Group.CONTENT),
        Rule(path="/w/k", groups=Group.CONTENT),
    )


def test_a_closed_folder_takes_the_listing_of_what_is_above_it_and_of_nothing_else():
    tree = Tree("w/a", "w/c/x", "w/k/b")
    seen = view(mount("/w", Sight.READ), mount("/w/c", Sight.NOTHING))
    found = make_rules(seen, tree.listing)
    assert found.rules == (
        Rule(path="/w/a", groups=READ),
        Rule(path="/w/k", groups=READ),
    )
    assert found.notes == (
        "/w: a file that appears here during the session can't be read, because /w/c is closed",
        "/w: can't be listed, because /w/c is closed",
    )


def test_a_frozen_file_takes_the_creating_of_files_beside_it_and_no_reading():
    tree = Tree("w/CLAUDE.md", "w/a", "w/k/b")
    seen = view(mount("/w", Sight.WRITE), mount("/w/CLAUDE.md", Sight.READ, folder=False))
    found = make_rules(seen, tree.listing)
    assert found.rules == (
        Rule(path="/w", groups=READ),
        Rule(path="/w/CLAUDE.md", groups=READ),
        Rule(path="/w/a", groups=Group.CHANGE),
        Rule(path="/w/k", groups=Group.CHANGE),
    )
    (note,) = found.notes
    assert note == (
        "/w: nothing can be created, renamed or removed here, because /w/CLAUDE.md is closed or"
        " read-only"
    )


def test_what_is_seen_under_another_name_is_given_under_its_own_and_the_other_is_closed():
    tree = Tree("w/a", "w/c/x", "own/c/y")
    seen = view(mount("/w", Sight.READ), mount("/w/c", Sight.WRITE, source="/own/c"))
    rules = make_rules(seen, tree.listing).rules
    assert given_on(rules, "/own/c/y") == WRITE
    assert given_on(rules, "/w/c/x") == Group(0)


def test_a_closed_entry_in_a_system_folder_is_closed():
    tree = Tree("usr/a", "usr/c")
    closed = mount("/usr/c", Sight.NOTHING, folder=False)
    seen = ConfinedView(mounts=(closed,), cwd="/", tmp="", system=("/usr",))
    rules = make_rules(seen, tree.listing).rules
    assert given_on(rules, "/usr/a") & Group.CONTENT
    assert given_on(rules, "/usr/c") == Group.NAMES


def test_the_temporary_folder_is_writable():
    assert make_rules(view(tmp="/t"), Tree().listing).rules == (Rule(path="/t", groups=WRITE),)


def test_links_get_no_rule(tmp_path: Path):
    root = tmp_path.resolve()
    (root / "w").mkdir()
    (root / "w/.env").write_text("")
    (root / "w/link").symlink_to("/etc")
    (root / "w/file").write_text("")
    closed = mount(str(root / "w/.env"), Sight.NOTHING, folder=False)
    rules = make_rules(view(mount(str(root / "w"), Sight.READ), closed)).rules
    assert [rule.path for rule in rules] == [str(root / "w"), str(root / "w/file")]


def test_a_folder_that_can_not_be_listed_holds_nothing(tmp_path: Path):
    assert listed(str(tmp_path / "none")) == ()


def test_too_many_neighbours_are_an_error_not_a_weaker_session(monkeypatch):
    monkeypatch.setattr(landlock_rules, "MAX_RULES", 3)
    tree = Tree("w/.env", "w/a", "w/b", "w/c")
    seen = view(mount("/w", Sight.READ), mount("/w/.env", Sight.NOTHING, folder=False))
    with pytest.raises(TooManyRules, match="/w/a"):
        make_rules(seen, tree.listing)
