"""Both stores keep what a DocumentStore promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_kit.store import DocumentStore, MarkdownStore, Page, StoreCode, StoreError
from agent_kit.testing import check_document_store, document_store_claims

CLAIMS = dict(document_store_claims())


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_folder_store_keeps(claim: str, tmp_path: Path) -> None:
    CLAIMS[claim](lambda name: MarkdownStore(tmp_path / name))


class _Merging(MarkdownStore):
    """A store that takes the newest version for the one that was named."""

    def edit(self, written: object, *, version: str, old: str, new: str) -> Page:
        now = self.read(written).version  # type: ignore[arg-type]
        return super().edit(written, version=now, old=old, new=new)  # type: ignore[arg-type]


def test_a_store_that_loses_updates_is_told_so_with_every_claim_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        check_document_store(lambda name: _Merging(tmp_path / name))
    told = {note for error in caught.value.exceptions for note in error.__notes__}
    assert told == {
        "claim: a_change_of_an_older_version_is_refused_with_the_current_page",
    }


def test_a_store_that_keeps_them_passes(tmp_path: Path) -> None:
    check_document_store(lambda name: MarkdownStore(tmp_path / name))


def test_a_protocol_is_what_the_folder_store_follows(tmp_path: Path) -> None:
    store: DocumentStore = MarkdownStore(tmp_path, read_only=True)
    writes: tuple[Callable[[], object], ...] = (
        lambda: store.create([]),
        lambda: store.delete("note/x"),
        lambda: store.rewrite("note/x", version="", body=""),
        lambda: store.retire("note/x", version=""),
    )
    for write in writes:
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.code in (StoreCode.READ_ONLY, StoreCode.TOO_LARGE)
