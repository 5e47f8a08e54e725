"""What the session's rules, people and authorizers are asked before a tool touches a page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_kit.store import FolderGuard, MarkdownStore
from agent_kit_knowledge.answers import new_page

__all__ = ["Asking"]

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Each method is asked with a tool's arguments, and raises :class:`StoreError` to refuse."""

    store: MarkdownStore
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
            path = self.store.new_path(new_page(item))
            label = str(path.relative_to(self.store.root).with_suffix(""))
            await self.guard.require("write", path, label=label)

    async def _whole(self, operation: str) -> None:
        label = "the knowledge base"
        await self.guard.require(operation, self.store.root, label=label, filtered=True)

    async def _page(self, arguments: Arguments, *operations: str) -> None:
        path = await asyncio.to_thread(self.store.path_of, arguments["id"])
        label = str(path.relative_to(self.store.root).with_suffix(""))
        for operation in operations:
            await self.guard.require(operation, path, label=label)
