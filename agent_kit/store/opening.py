"""Where an extension's pages are kept: in its folder, or in a database that many workers share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from agent_kit.store.documents import DocumentStore
from agent_kit.store.folder import Permits
from agent_kit.store.markdown import MarkdownStore

__all__ = ["OpenStore", "folder_store", "postgres_store"]


class OpenStore(Protocol):
    """What an extension opens its store with, when a session is planned.

    ``root`` is the absolute folder by whose names the session's rules judge the pages. ``name`` tells
    what is to be kept apart: the extension's, with the person for a memory. The other options are
    those of :class:`~agent_kit.store.MarkdownStore`.
    """

    def __call__(
        self,
        root: Path,
        *,
        name: str,
        permits: Permits,
        shows: Permits,
        private: bool,
        read_only: bool,
        by: str,
        keeps_history: bool,
    ) -> DocumentStore: ...


def folder_store(root: Path, *, name: str, **options: Any) -> DocumentStore:
    """Markdown files in ``root``, with an index of them in the user's cache folder."""
    del name  # the folder tells them apart
    return MarkdownStore(root, **options)


def postgres_store(dsn: str, *, base: str = "default", **waits: Any) -> OpenStore:
    """Pages in PostgreSQL, for ``knowledge(store=…)`` and ``memory(store=…)``.

    ``dsn`` is what libpq takes, such as ``postgresql://host/database``; ``base`` tells programs apart
    that share a database. ``waits`` are those of :class:`~agent_kit.store.postgres.PostgresStore`, in
    seconds. It needs ``agent-kit[postgres]``.
    """

    def open_base(root: Path, *, name: str, private: bool, **options: Any) -> DocumentStore:
        from agent_kit.store.postgres import PostgresStore

        del private  # the database's own rights say who may read it
        return PostgresStore(dsn, base=f"{_escaped(base)}/{name}", root=root, **waits, **options)

    return open_base


def _escaped(base: str) -> str:
    """No base ends as another one and a name together do."""
    return base.replace("~", "~0").replace("/", "~1")
