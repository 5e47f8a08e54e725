"""The system's folders are seen inside whatever a scope opens: what it closes in them is not."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_kit.confine import system
from agent_kit.confine.backend import Backend
from agent_kit.confine.bubblewrap import Bubblewrap
from agent_kit.confine.landlock import Landlock
from agent_kit.confine.landlock_rules import make_rules
from agent_kit.confine.looking import look
from agent_kit.confine.seatbelt import profile
from agent_kit.confine.view import ConfinedView, Mount, Sight
from agent_kit.scope import FileScope
from agent_kit.testing import tree

if TYPE_CHECKING:
    from tests.confine.conftest import Inside

BACKENDS = [Bubblewrap(), Landlock()]
FILES = (
    "usr/share/open.txt=canary(open)",
    "usr/share/deep/open.txt=canary(deep)",
    "usr/share/key=canary(key)",
    "usr/share/keys/k=canary(keys)",
    "usr/share/deep/k.pem=canary(pem)",
    "usr/src/app/.env=canary(env)",
    "usr/src/app/README.md=canary(readme)",
    "usr/src/app/sources/a.md=canary(source)",
    "usr/src/app/drafts/d.md=canary(draft)",
    "usr/home/me/.ssh/id=canary(ssh)",
    "etc/certs/ca=canary(ca)",
    "w/drafts/d.md=x",
)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of which ``usr`` and ``etc/certs`` are the system's. Inside, /tmp is another one."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # noqa: S108
        root = tree(Path(folder).resolve(), FILES)
        more = (str(root / "usr"), str(root / "etc/certs"))
        monkeypatch.setattr(system, "SYSTEM", (*system.SYSTEM, *more))
        yield root


def seen(
    root: Path,
    backend: Backend,
    inside: Callable[[Backend, FileScope], Inside],
    project: str = "w",
    **fields: object,
) -> set[str]:
    """The canaries that a program inside finds."""
    fields = {"searchable_dirs": ["drafts"], "home": "/nowhere", **fields}
    scope = FileScope(project_dir=str(root / project), **fields)  # type: ignore[arg-type]
    box = inside(backend, scope).with_(system=system.SYSTEM)
    files = [os.path.join(here, name) for here, _, names in os.walk(root) for name in names]
    said = box.sh('for path; do cat "$path"; echo; done 2>/dev/null', *files).splitlines()
    return {line[7:-1] for line in said if line.startswith("canary(")}


SHARE = {"open", "deep", "key", "keys", "pem", "ca"}
PROJECT = {"env", "readme", "source", "draft"}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("denied", "gone"),
    [
        ([], set()),
        (["usr/share/key"], {"key"}),
        (["usr/share/keys"], {"keys"}),
        (["usr/share/deep/*.pem"], {"pem"}),
        (["usr/share"], SHARE - {"ca"}),
        (["etc"], {"ca"}),  # above what is the system's
        (["etc/certs/ca"], {"ca"}),
        (["linked/key"], {"key"}),
    ],
)
def test_what_is_denied_there_is_covered_and_the_rest_is_not(
    root: Path,
    backend: Backend,
    inside: Callable[[Backend, FileScope], Inside],
    denied: list[str],
    gone: set[str],
) -> None:
    (root / "linked").symlink_to(root / "usr/share")
    entries = [str(root / each) for each in denied]
    found = seen(root, backend, inside, denied_paths=entries)
    assert found == (SHARE | PROJECT | {"ssh"}) - gone


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.name)
def test_of_a_project_there_what_no_folder_opens_is_not_seen(
    root: Path, backend: Backend, inside: Callable[[Backend, FileScope], Inside]
) -> None:
    found = seen(root, backend, inside, "usr/src/app", writable_dirs=["drafts"])
    assert found == SHARE | {"draft", "ssh"}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"searchable_dirs": ["."], "denied_paths": ["**/.env"]}, PROJECT - {"env"}),
        ({"searchable_dirs": [".."]}, PROJECT),
        ({"searchable_dirs": ["sources", "README.md"]}, {"source", "readme"}),
    ],
)
def test_of_a_project_there_what_a_folder_opens_is_seen(
    root: Path,
    backend: Backend,
    inside: Callable[[Backend, FileScope], Inside],
    fields: dict[str, object],
    found: set[str],
) -> None:
    assert seen(root, backend, inside, "usr/src/app", **fields) == SHARE | {"ssh"} | found


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.name)
@pytest.mark.parametrize("project", ["w", "usr/home/me"])
def test_a_home_there_is_not_seen(
    root: Path, backend: Backend, inside: Callable[[Backend, FileScope], Inside], project: str
) -> None:
    found = seen(root, backend, inside, project, home=str(root / "usr/home/me"))
    assert found == SHARE | PROJECT


def test_a_home_that_is_one_of_the_systems_own_folders_stays(root: Path) -> None:
    for home in (root / "usr/share", root / "usr"):
        assert look(FileScope(project_dir=str(root / "w"), home=str(home))).mounts == ()


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.name)
def test_a_working_folder_in_a_home_there_holds_what_is_opened_in_it(
    root: Path, backend: Backend, inside: Callable[[Backend, FileScope], Inside]
) -> None:
    """It is made in the covered home."""
    tree(root, ["usr/home/me/app/drafts/d.md=canary(own)"])
    home = str(root / "usr/home/me")
    found = seen(root, backend, inside, "usr/home/me/app", home=home)
    assert found == SHARE | PROJECT | {"own"}


def test_the_kit_says_what_landlock_loses_by_it_but_no_opened_folder_is_hindered(
    root: Path,
) -> None:
    cwd = str(root / "usr/src/app")
    drafts = Mount(path=f"{cwd}/drafts", sight=Sight.WRITE)
    view = ConfinedView(mounts=(drafts,), cwd=cwd, tmp="", system=(str(root / "usr"),))
    rules = make_rules(view)
    assert any(f"{root}/usr/src: can't be listed" in note for note in rules.notes)
    assert rules.hindered == ()
    closed = Mount(path=f"{cwd}/drafts/d.md", sight=Sight.NOTHING, folder=False)
    rules = make_rules(replace(view, mounts=(drafts, closed)))
    assert rules.hindered == (f"{cwd}/drafts",)  # a control: that one is the view's own


def test_on_macos_a_project_there_is_closed_before_its_folders_are_opened() -> None:
    drafts = Mount(path="/usr/local/app/drafts", sight=Sight.WRITE)
    text = profile(ConfinedView(mounts=(drafts,), cwd="/usr/local/app", tmp="/t"))
    closed = '(deny file-read-data file-read-xattr (subpath "/usr/local/app"))'
    opened = '(allow file-read* file-write* (subpath "/usr/local/app/drafts"))'
    lines = text.splitlines()
    usr = lines.index('(allow file-read* (subpath "/usr"))')
    assert usr < lines.index(closed) < lines.index(opened)
    elsewhere = ConfinedView(mounts=(drafts,), cwd="/Users/me/app", tmp="/t")
    assert "file-read-data file-read-xattr" not in profile(elsewhere)
