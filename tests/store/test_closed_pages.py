"""No answer of a search depends on what stands in a page that is closed.

Two bases are alike but for what a closed page holds; whatever is written beside it and asked, they answer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_kit.store import DocumentStore, Found, MarkdownStore, NewPage, finding
from agent_kit.store.postgres import PostgresStore

_NUMBERS = count()

Make = Callable[[str], DocumentStore]


def _is_open(path: Path) -> bool:
    return "private" not in path.parts


@pytest.fixture(params=["folder", "PostgreSQL"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes a base whose closed page holds this text, as the agent's tools see it."""

    def folder(secret: str) -> DocumentStore:
        root = tmp_path / str(next(_NUMBERS))
        MarkdownStore(root).create([_closed(secret)])
        return MarkdownStore(root, permits=_is_open)

    def database(secret: str) -> DocumentStore:
        dsn, base = request.getfixturevalue("shared"), f"closed{next(_NUMBERS)}"
        PostgresStore(dsn, base=base).create([_closed(secret)])
        return PostgresStore(dsn, base=base, permits=_is_open)

    return folder if request.param == "folder" else database


def _closed(secret: str) -> NewPage:
    return NewPage(type="private", title="Exam", slug="exam", body=secret)


def _note(name: str, body: str) -> NewPage:
    return NewPage(type="note", title=name, slug=name, body=body)


def _write(store: DocumentStore, pages: Sequence[NewPage]) -> None:
    for at in range(0, len(pages), 10):
        store.create(pages[at : at + 10])


def _told(found: Found) -> tuple[object, ...]:
    """What a tool can say of it."""
    hits = [(str(hit.id), hit.title, hit.snippet, hit.score) for hit in found.hits]
    return hits, found.total, found.unusable


def _alike(make: Make, secrets: Sequence[str], ask: Callable[[DocumentStore], object]) -> None:
    told = [ask(make(secret)) for secret in secrets]
    assert all(other == told[0] for other in told[1:])


def _ends() -> Iterator[str]:
    return ("".join(letters) for letters in product("qjkvwyup", repeat=3))


def test_the_words_that_hold_a_guess_are_not_counted_with_the_closed_ones(make: Make) -> None:
    """As many of one's own words as are looked for at most, and a longer one that the next would push out."""

    def ask(store: DocumentStore) -> object:
        fill = [f"hunt{end}" for end, _ in zip(_ends(), range(finding._MOST - 1), strict=False)]
        _write(store, [_note("fill", " ".join(fill)), _note("last", "hunt" + "q" * 60)])
        return _told(store.search("hunt"))

    _alike(make, ["the code is hunter2x", "the code is swordfish"], ask)


def test_a_run_in_a_closed_page_does_not_hide_the_pages_with_its_pairs(make: Make) -> None:
    def ask(store: DocumentStore) -> object:
        _write(store, [_note("pairs", "密码 码是 是口 4711 11")])
        return [_told(store.search(query)) for query in ("密码是", "密码是4", "密码是4711")]

    _alike(make, ["密码是4711", "口令是4711"], ask)


def test_many_hits_are_in_an_order_that_no_closed_page_weighs(make: Make) -> None:
    def ask(store: DocumentStore) -> object:
        names = range(finding.MAX_CANDIDATES + 20)
        _write(store, [_note(f"x{at:03}", f"hunter{2 + at % 2}x") for at in names])
        return _told(store.search("hunter2x hunter3x", limit=len(names)))

    _alike(make, ["hunter2x " * 9, "hunter3x " * 9], ask)


def test_a_page_removed_by_hand_leaves_no_word_behind(tmp_path: Path) -> None:
    """Also where nothing is closed: the words that FTS5's index has learned outlast the pages."""

    def ask(gone: str) -> object:
        store = MarkdownStore(tmp_path / str(next(_NUMBERS)))
        store.create([_note("gone", gone)])
        store.search("hunt 密码是")
        (store.root / "note" / "gone.md").unlink()
        fill = [f"hunt{end}" for end, _ in zip(_ends(), range(finding._MOST - 1), strict=False)]
        notes = [("fill", " ".join(fill)), ("last", "hunt" + "q" * 60), ("pairs", "密码 码是 是口")]
        _write(store, [_note(*note) for note in notes])
        return [_told(store.search(query)) for query in ("hunt", "密码是", "密码是4711")]

    assert ask("hunter2x 密码是4711") == ask("swordfish 口令是4711")


_WORDS = st.text("ab密码", min_size=1, max_size=4)
_TEXTS = st.lists(_WORDS, max_size=5).map(" ".join)


@settings(max_examples=60)
@given(
    closed=st.tuples(_TEXTS, _TEXTS),
    pages=st.lists(_TEXTS, min_size=1, max_size=6),
    queries=st.lists(_TEXTS, min_size=1, max_size=4),
)
def test_whatever_is_written_and_asked(
    closed: tuple[str, str],
    pages: list[str],
    queries: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """With few words looked for and few pages ranked, so that each limit is reached."""

    def told(secret: str) -> object:
        root = tmp_path_factory.mktemp("base")
        MarkdownStore(root).create([_closed(secret)])
        store = MarkdownStore(root, permits=_is_open)
        _write(store, [_note(f"n{at}", body) for at, body in enumerate(pages)])
        return [_told(store.search(query)) for query in queries]

    with pytest.MonkeyPatch.context() as few:
        for name, limit in (("_MOST", 3), ("MAX_CANDIDATES", 2), ("_FEW", 1)):
            few.setattr(finding, name, limit)
        assert told(closed[0]) == told(closed[1])
