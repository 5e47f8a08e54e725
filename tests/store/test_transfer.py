"""Pages in and out of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_kit.store import MarkdownStore, NewPage, copy_pages, import_folder
from agent_kit.store.links import links_of, outside_code

VAULT = {
    "Start.md": "[[Über uns]] [[people/Ada]] [[Ada|her]] [[Ada#Life]] ![[Ada]] [[Nobody]] `[[Ada]]`",
    "Über uns.md": "---\ntitle: Wir\ntags: [a, b]\nown:\n  deep: 1\n---\n\r\nWindows\r\n",
    "people/Ada.md": "# Ada\n\n[[Start]]",
    "people/deep/Ada Byron?.md": "[[../Start]] [[Twice]]",
    "people/twice.md": "one",
    "Twice.md": "two",
    "知识.md": "权限 [[people/Ada]]",
    "bad.md": b"\xff\xfe",
    ".obsidian/app.md": "hidden",
    ".hidden.md": "hidden",
    "notes.txt": "no page",
}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for name, text in VAULT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "outside.md").write_text("canary")
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "linked").symlink_to(tmp_path)
    return root


def test_a_vault_becomes_pages_whose_links_lead_to_pages(vault: Path, tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path / "base")
    told: list[tuple[int, int]] = []
    done = import_folder(store, vault, progress=lambda *at: told.append(at))
    assert [str(known) for known in store.list().ids] == [
        "note/Start",
        "note/Twice",
        "note/Über uns",
        "note/知识",
        "people/Ada",
        "people/ada-byron",
        "people/twice",
    ]
    assert [(file.name, file.reason) for file in done.left_out] == [
        ("bad.md", "it is not UTF-8 text")
    ]
    assert len(done.made) == 7
    assert told == [(8, 8)]
    assert store.read("note/Start").body == (
        "[[note/Über uns|Über uns]] [[people/Ada]] [[people/Ada|her]] [[people/Ada#Life|Ada]]"
        " ![[people/Ada|Ada]] [[Nobody]] `[[Ada]]`"
    )
    assert store.read("people/Ada").body == "# Ada\n\n[[note/Start|Start]]"
    assert "[[Twice]]" in store.read("people/ada-byron").text  # two files have that name
    assert store.search("canary").total == 0


def test_what_a_page_says_of_itself_is_kept_byte_for_byte(vault: Path, tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path / "base")
    import_folder(store, vault)
    text = (tmp_path / "base" / "note" / "Über uns.md").read_bytes()
    assert text == VAULT["Über uns.md"].encode()  # type: ignore[union-attr]
    assert store.read("note/Über uns").fields["own"] == {"deep": 1}


def test_what_is_there_already_is_left_out_and_all_the_rest_is_made(
    vault: Path, tmp_path: Path
) -> None:
    store = MarkdownStore(tmp_path / "base")
    store.create([NewPage(type="people", title="ADA", slug="ADA", body="mine")])
    done = import_folder(store, vault)
    assert len(done.made) == 6
    assert [file.name for file in done.left_out] == ["bad.md", "people/Ada"]
    assert store.read("people/ada").body.strip() == "mine"


def test_a_base_goes_out_and_in_again_unchanged(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path / "base")
    store.create(
        [
            NewPage(type="n", title=f"T {number}", slug=f"p{number}", body=f"[[n/p{number + 1}]]")
            for number in range(50)
        ]
    )
    store.create([NewPage(type="知", title="识", body="x", aliases=("y",))])
    told: list[int] = []
    done = copy_pages(
        store, MarkdownStore(tmp_path / "out"), progress=lambda at, _: told.append(at)
    )
    assert (len(done.made), done.left_out, told) == (51, (), [50, 51])
    again = MarkdownStore(tmp_path / "again")
    import_folder(again, tmp_path / "out")
    assert again.list().ids == store.list().ids
    for known in store.list().ids:
        assert again.read(known).version == store.read(known).version


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        import_folder(MarkdownStore(tmp_path / "base"), tmp_path / "none")


CODE = [
    ("```\n[[a]]\n```\n[[b]]", ["b"]),
    ("~~~ python\n[[a]]\n~~~  \n[[b]]", ["b"]),
    ("```\r\n[[a]]\r\n```\r\n[[b]]", ["b"]),
    ("```\n[[a]]\n[[b]]", ["a", "b"]),  # nothing closes it
    (" ```\n[[a]]\n```\n[[b]]\n```", ["a"]),  # the first one is no fence, the second is
    ("`[[a]]` [[b]] `[[c]]", ["b", "c"]),
    ("`a\n[[b]]`", ["b"]),
]


@pytest.mark.parametrize(("body", "links"), CODE)
def test_links_in_code_are_none(body: str, links: list[str]) -> None:
    assert list(links_of(body)) == links
    assert outside_code(body, lambda part: part) == body


@pytest.mark.parametrize("line", ["```x\n", "~~~x\n", "`\n", "[[", "``", "![[a|", "[[a#"])
def test_a_page_made_to_hold_up_whoever_reads_its_links_does_not(line: str) -> None:
    """A step that looks at the rest of the text for each line would take hours."""
    assert list(links_of(line * (900_000 // len(line)))) == []
