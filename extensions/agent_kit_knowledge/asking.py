"""What the session's rules, people and authorizers are asked before a tool touches a page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_kit.store import DocumentStore, FolderGuard
from agent_kit_knowledge.answers import new_page

__all__ = ["Asking"]

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Each method is asked with a tool's arguments, and raises :class:`StoreError` to refuse.

    ``root`` is the absolute path below which the session's rules name the pages.
    """

    store: DocumentStore
    root: Path
    guard: FolderGuard

    async def index(self, _arguments: Arguments) -> None:
        """Listing the pages; those that are closed are left out."""
        await self._whole("list")

    async def search(self, _arguments: Arguments) -> None:
        """Searching them, likewise."""
        await self._whole("search")

    async def read(self, arguments: Arguments) -> None:
        """Reading one page."""
        await self._page(arguments, "read")

    async def edit(self, arguments: Arguments) -> None:
        """Changing one, which shows it when it is newer than the agent thinks."""
        await self._page(arguments, "write", "read")

    async def create(self, arguments: Arguments) -> None:
        """Making pages."""
        for item in arguments["pages"]:
            await self._new(item)

    async def supersede(self, arguments: Arguments) -> None:
        """Making one, and changing another."""
        await self.edit(arguments)
        await self._new(arguments["page"])

    async def log(self, arguments: Arguments) -> None:
        """The changes of one page, or of those that may be seen."""
        if arguments.get("id"):
            await self._page(arguments, "read")
        else:
            await self._whole("list")

    async def _new(self, item: Mapping[str, Any]) -> None:
        path = self.store.new_path(new_page(item))
        await self.guard.require("write", path, label=_label(path))

    async def _whole(self, operation: str) -> None:
        label = "the knowledge base"
        await self.guard.require(operation, self.root, label=label, filtered=True)

    async def _page(self, arguments: Arguments, *operations: str) -> None:
        path = await asyncio.to_thread(self.store.path_of, arguments["id"])
        label = _label(path)
        for operation in operations:
            await self.guard.require(operation, path, label=label)


def _label(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"
