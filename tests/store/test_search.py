"""Search: a query is text in any script."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_kit.store import MarkdownStore, NewPage

PAGES = {
    "photosynthesis": "Plants turn light into sugar. It's done in the leaf. KB-42, a:b, 3.14",
    "cafe": "Le café à Łódź, naïve façade, STRASSE straße",
    "zh": "我们的知识库权限由管理员设置。",
    "ja": "検索はデータベースで行います。がっこう",
    "ko": "한국어 검색은 어렵습니다.",
    "ar": "مَكْتَبَة المدرسة",
    "ru": "Ёжик и йод",
    "el": "Ἀθήνα είναι",
    "hi": "कर्म योग",
    "th": "ภาษาไทยไม่มีช่องว่าง",
    "emoji": 'party 🎉 time * and " quote AND nothing (a+)+$',
    "nfd": "re\u0301sume\u0301",
    "curly": "don’t “quote” – dash",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MarkdownStore:
    made = MarkdownStore(tmp_path_factory.mktemp("base"))
    made.create([NewPage(type="p", title=f"T{n}", slug=n, body=b) for n, b in PAGES.items()])
    return made


def found(store: MarkdownStore, query: str) -> list[str]:
    return [hit.id.slug for hit in store.search(query).hits]


FINDS = [
    ("sugar", "photosynthesis"),
    ("SUGAR", "photosynthesis"),
    ("it's", "photosynthesis"),
    ("it’s", "photosynthesis"),
    ("KB-42", "photosynthesis"),
    ("a:b", "photosynthesis"),
    ("3.14", "photosynthesis"),
    ("cafe", "cafe"),
    ("CAFÉ", "cafe"),
    ("Lodz", "cafe"),
    ("naive", "cafe"),
    ("strasse", "cafe"),
    ("知识", "zh"),
    ("权限", "zh"),
    ("识", "zh"),
    ("知识库权限怎么设置", "zh"),
    ("検索", "ja"),
    ("データ", "ja"),
    ("ﾃﾞｰﾀ", "ja"),
    ("검색", "ko"),
    ("مكتبة", "ar"),
    ("ежик", "ru"),
    ("αθηνα", "el"),
    ("कर्म", "hi"),
    ("ไม่มี", "th"),
    ("🎉", "emoji"),
    ("*", "emoji"),
    ('"', "emoji"),
    ("AND", "emoji"),
    ("(a+)+$", "emoji"),
    ("resume", "nfd"),
    ("résumé", "nfd"),
    ("don't", "curly"),
    ("-", "curly"),
]


@pytest.mark.parametrize(("query", "slug"), FINDS)
def test_a_word_is_found_in_any_script_case_and_accent(
    store: MarkdownStore, query: str, slug: str
) -> None:
    assert slug in found(store, query)


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_finds_nothing(store: MarkdownStore, query: str) -> None:
    assert found(store, query) == []


@pytest.mark.parametrize(
    "query", ["知限", "検知", "sugarcane", "%", "a_b", "[a-z]", "\\w", "s.gar", "^Plants"]
)
def test_a_query_is_never_a_pattern(store: MarkdownStore, query: str) -> None:
    assert found(store, query) == []


def test_kana_with_and_without_their_marks_are_two_letters(store: MarkdownStore) -> None:
    assert "ja" in found(store, "がっ")
    assert "ja" not in found(store, "かっ")


@pytest.fixture
def ranked(tmp_path: Path) -> MarkdownStore:
    store = MarkdownStore(tmp_path)
    store.create(
        [
            NewPage(type="p", title="Exam", slug="title", body="When and where."),
            NewPage(type="p", title="Other", slug="often", body="exam " * 30),
            NewPage(type="p", title="Other", slug="both", body="The date of the exam."),
            NewPage(type="p", title="Other", slug="inside", body="A reexamination."),
            NewPage(type="p", title="Other", slug="alias", body="x", aliases=("Klausur",)),
        ]
    )
    return store


def test_a_page_that_has_all_the_words_comes_first(ranked: MarkdownStore) -> None:
    assert found(ranked, "exam date")[0] == "both"


def test_a_word_in_the_title_counts_more_than_many_in_the_text(ranked: MarkdownStore) -> None:
    assert found(ranked, "exam")[:2] == ["title", "often"]


def test_the_inside_of_a_word_counts_least(ranked: MarkdownStore) -> None:
    assert found(ranked, "exam")[-1] == "inside"


def test_a_page_is_found_by_its_other_names(ranked: MarkdownStore) -> None:
    assert found(ranked, "klausur") == ["alias"]


def test_the_names_of_the_fields_are_not_searched_but_their_texts_are(
    tmp_path: Path,
) -> None:
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="p", title="t", body="", fields={"author": "Ada"})])
    assert (store.search("updated").total, store.search("author").total) == (0, 0)
    assert store.search("ada").total == 1


def test_hits_come_in_parts_that_together_are_all(ranked: MarkdownStore) -> None:
    parts = [ranked.search("other", offset=at, limit=2) for at in (0, 2, 4)]
    assert [len(part.hits) for part in parts] == [2, 2, 0]
    assert {part.total for part in parts} == {4}
    assert len({hit.id for part in parts for hit in part.hits}) == 4


def test_a_search_can_be_kept_to_one_type(ranked: MarkdownStore) -> None:
    assert ranked.search("exam", type="P").total == 4
    assert ranked.search("exam", type="q").total == 0


@pytest.mark.parametrize("lead", ["", "é" * 30_000, "ﬃ" * 25_000, "x " * 40_000])
def test_the_snippet_shows_the_word_however_far_down_it_stands(tmp_path: Path, lead: str) -> None:
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="p", title="t", body=f"{lead} needle é in the hay " + "y" * 5000)])
    (hit,) = store.search("needle").hits
    assert "needle" in hit.snippet
    assert len(hit.snippet) <= 250


def test_a_snippet_is_one_line(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="p", title="t", body="a\n\nneedle\n\x1b[31mb")])
    assert store.search("needle").hits[0].snippet == "a needle \\x1b[31mb"
