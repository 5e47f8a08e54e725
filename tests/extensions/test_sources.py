"""sources(): originals that are read, searched, listed, and never changed."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit.extension import Contribution, ExtensionContext
from agent_kit.scope import ConfigError, FileScope, check_file_scope
from agent_kit_sources import Downloads, SourceFolder, sources

Context = Callable[..., ExtensionContext]
Connect = Callable[[Contribution], Any]


@pytest.fixture
def folder(project: Path) -> Path:
    made = project / "sources"
    (made / "week1").mkdir(parents=True)
    (made / "syllabus.md").write_text("exam", encoding="utf-8")
    (made / "week1" / "intro.PDF").write_bytes(b"%PDF" * 10)
    (made / "week1" / "README").write_text("x", encoding="utf-8")
    os.utime(made / "syllabus.md", (0, 0))
    return made


def scope_of(project: Path, made: Contribution) -> FileScope:
    return FileScope(
        project_dir=str(project),
        searchable_dirs=made.read_only_dirs,
        read_only_dirs=made.read_only_dirs,
        denied_paths=made.denied_paths,
    )


async def test_the_list_has_path_type_size_and_time(
    context: Context, folder: Path, caller: Connect
) -> None:
    answer = await caller(sources().contribute(context()))("list_sources")
    lines = answer.text.splitlines()
    assert lines[0] == "Files 1 to 3 in sources/. That is all."
    assert lines[1] == "sources/syllabus.md | md | 4 bytes | 1970-01-01 00:00 UTC"
    assert [line.split(" | ")[:3] for line in lines[2:]] == [
        ["sources/week1/README", "no extension", "1 bytes"],
        ["sources/week1/intro.PDF", "pdf", "40 bytes"],
    ]


async def test_a_listed_path_is_the_one_that_read_takes(
    context: Context, folder: Path, project: Path, caller: Connect
) -> None:
    made = sources().contribute(context())
    answer = await caller(made)("list_sources")
    for line in answer.text.splitlines()[1:]:
        path = line.split(" | ")[0]
        assert check_file_scope(scope_of(project, made), "Read", {"file_path": path}) is None


async def test_the_folder_stays_searchable_and_its_manifest_and_retired_files_closed(
    context: Context, folder: Path, project: Path, caller: Connect
) -> None:
    (folder / ".sources.json").write_text("{}")
    (folder / ".retired").mkdir()
    (folder / ".retired" / "old.md").write_text("x")
    made = sources().contribute(context())
    scope = scope_of(project, made)
    assert check_file_scope(scope, "Grep", {"pattern": "exam", "path": "sources"}) is None
    for path in ("sources/.sources.json", "sources/.retired/old.md"):
        reason = check_file_scope(scope, "Read", {"file_path": path})
        assert reason == f'"{path}" is off limits: it can\'t be read.'
    assert "old.md" not in (await caller(made)("list_sources")).text
    assert ".sources.json" not in (await caller(made)("list_sources")).text


DENIED = [
    ("sources/syllabus.md", "a file"),
    ("sources/SYLLABUS.MD", "a file in another case"),
    ("**/*.md", "a pattern"),
    ("sources/sy*", "a pattern below the project"),
]


@pytest.mark.parametrize("entry", [row[0] for row in DENIED], ids=[row[1] for row in DENIED])
async def test_a_denied_name_is_not_listed(
    context: Context, folder: Path, caller: Connect, entry: str
) -> None:
    answer = await caller(sources().contribute(context(denied_paths=(entry,))))("list_sources")
    assert "syllabus" not in answer.text.lower()
    assert "intro.PDF" in answer.text


async def test_nothing_below_a_denied_folder_is_listed(
    context: Context, folder: Path, caller: Connect
) -> None:
    call = caller(sources().contribute(context(denied_paths=("sources/week1",))))
    assert "week1" not in (await call("list_sources")).text
    assert (await call("list_sources", folder="week1")).text.startswith("No files")


LINKS = [
    ("out.md", "../secret.md", False, "a file outside"),
    ("out", "..", False, "a folder outside"),
    ("dangling.md", "nothing", False, "nothing"),
    ("loop.md", "loop.md", False, "itself"),
    ("twin", "week1", False, "a folder inside: its files are listed under their own names"),
    ("again.md", "syllabus.md", True, "a file inside"),
    ("sibling.md", "../sources-old/x.md", False, "a folder whose name only begins the same"),
]


@pytest.mark.parametrize(
    ("name", "target", "there"), [row[:3] for row in LINKS], ids=[row[3] for row in LINKS]
)
async def test_a_link_is_listed_only_when_it_is_a_file_that_stays_inside(
    context: Context, folder: Path, caller: Connect, name: str, target: str, there: bool
) -> None:
    (folder.parent / "secret.md").write_text("x")
    (folder.parent / "sources-old").mkdir()
    (folder.parent / "sources-old" / "x.md").write_text("x")
    (folder / name).symlink_to(target)
    text = (await caller(sources().contribute(context()))("list_sources")).text
    assert (f"sources/{name} " in text) is there
    assert f"sources/{name}/" not in text


def test_a_link_that_leaves_is_not_listed_even_when_everything_is_permitted(folder: Path) -> None:
    (folder.parent / "sources-old").mkdir()
    (folder.parent / "sources-old" / "x.md").write_text("x")
    (folder / "sibling.md").symlink_to("../sources-old/x.md")
    (folder / "twin.md").symlink_to("syllabus.md")
    originals = SourceFolder(root=folder, permits=lambda _path: True).originals()
    found = [str(item.path) for item in originals]
    assert found == ["syllabus.md", "twin.md", "week1/README", "week1/intro.PDF"]


async def test_a_hard_link_to_a_denied_file_is_not_listed(
    context: Context, folder: Path, project: Path, caller: Connect
) -> None:
    (project / "agent.config.json").write_text("x")
    (folder / "config.json").hardlink_to(project / "agent.config.json")
    denied = sources().contribute(context(denied_paths=("agent.config.json",)))
    assert "config.json" not in (await caller(denied)("list_sources")).text
    assert "config.json" in (await caller(sources().contribute(context()))("list_sources")).text


async def test_special_files_and_a_repositorys_own_are_not_listed(
    context: Context, folder: Path, caller: Connect
) -> None:
    os.mkfifo(folder / "fifo")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    text = (await caller(sources().contribute(context()))("list_sources")).text
    assert text.startswith("Files 1 to 3 ")


async def test_odd_names_stay_on_one_line_each(
    context: Context, folder: Path, caller: Connect
) -> None:
    names = ["a\nfake.md | md", "知识 🎉.md", "-rf", "x\u202etxt"]
    for name in [*names, os.fsdecode(b"\xff.pdf")]:
        (folder / name).write_text("x")
    answer = await caller(sources().contribute(context()))("list_sources")
    assert not answer.is_error
    assert len(answer.text.splitlines()) == 1 + 3 + len(names)
    assert "sources/知识 🎉.md | md | 1 bytes" in answer.text
    assert ".pdf" not in answer.text.replace("intro.PDF", "")  # no call could name that file


async def test_a_folder_narrows_the_list(context: Context, folder: Path, caller: Connect) -> None:
    call = caller(sources().contribute(context()))
    for written in ("week1", "week1/", "./week1", "sources/week1/"):
        assert (await call("list_sources", folder=written)).text.startswith("Files 1 to 2 ")


@pytest.mark.parametrize(
    "written", ["..", "../", "/", "week1/../..", "/etc", "nowhere", "week", "a\0b"]
)
async def test_a_folder_never_leads_out(
    context: Context, folder: Path, project: Path, caller: Connect, written: str
) -> None:
    (project / "secret.md").write_text("x")
    answer = await caller(sources().contribute(context()))("list_sources", folder=written)
    assert "secret" not in answer.text
    assert "passwd" not in answer.text


async def test_a_long_list_comes_in_parts_that_together_are_all(
    context: Context, folder: Path, caller: Connect
) -> None:
    for number in range(450):
        (folder / f"{'n' * 60}{number:03}.txt").write_text("x")
    call = caller(sources().contribute(context()))
    seen: list[str] = []
    offset = 0
    while True:
        answer = await call("list_sources", offset=offset)
        assert len(answer.text) <= 20_200
        head, *lines = answer.text.splitlines()
        seen += [line.split(" | ")[0] for line in lines]
        if head.endswith("That is all."):
            break
        offset = int(head.rsplit(" ", 1)[1].rstrip("."))
    assert len(seen) == len(set(seen)) == 453
    assert (await call("list_sources", offset=9999)).text.startswith("There are no more than")


async def test_a_folder_that_vanished_is_an_error_without_a_path(
    context: Context, folder: Path, project: Path, caller: Connect
) -> None:
    made = sources().contribute(context())
    folder.rename(project / "moved")
    answer = await caller(made)("list_sources")
    assert answer.is_error
    assert str(project) not in answer.text


def test_without_its_folder_it_says_what_to_do(context: Context, project: Path) -> None:
    assert sources().missing(context()) == (
        "the folder sources/ doesn't exist: create it and put the originals there."
    )
    (project / "sources").write_text("x")
    assert sources().missing(context()) == "sources is a file, not a folder of originals."
    (project / "sources").unlink()
    (project / "sources").mkdir()
    assert sources().missing(context()) is None


def test_the_folder_may_be_a_function_of_the_configuration(context: Context, project: Path) -> None:
    extension = sources(dir=lambda config: config.where)
    made = extension.contribute(context(where="originals"))
    assert made.read_only_dirs == (str(project / "originals"),)


@pytest.mark.parametrize("value", [None, "", 3, "a\0b"])
def test_what_is_no_folder_is_refused_when_it_is_given(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"sources\.dir"):
        sources(dir=value)


def test_the_host_gets_the_originals_as_values(context: Context, folder: Path) -> None:
    api = sources().contribute(context()).api
    assert isinstance(api, SourceFolder)
    assert [(str(item.path), item.size) for item in api.originals()] == [
        ("syllabus.md", 4),
        ("week1/README", 1),
        ("week1/intro.PDF", 40),
    ]


async def test_nothing_is_downloaded_unless_the_host_says_so(
    context: Context, listed: Callable[[Contribution], Awaitable[Any]]
) -> None:
    async def tools(**given: Any) -> set[str]:
        made = sources(**given).contribute(context())
        assert not any("download" in name for name in made.read_only_tools)
        return {tool.name for tool in await listed(made)}

    assert await tools(downloads=Downloads()) - await tools() == {"download_to_sources"}


def test_every_faulty_option_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        sources(dir="", downloads=True)  # type: ignore[arg-type]
    assert [fault.field for fault in caught.value.faults] == ["sources.dir", "sources.downloads"]
