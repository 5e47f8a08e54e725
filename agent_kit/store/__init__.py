"""Pages in a folder, for extensions that keep some: names, atomic writes, search, paging, tools.

It stands on ``scope`` and imports neither the SDK nor MCP. :class:`MarkdownStore` is the store;
:class:`StoreError` is what it refuses with.
"""

from __future__ import annotations

from agent_kit.store.documents import (
    MAX_NEW_PAGES,
    Change,
    ChangeKind,
    DocumentStore,
    Found,
    History,
    Listing,
    Unusable,
)
from agent_kit.store.errors import StoreCode, StoreError, sentence_for
from agent_kit.store.guarded import FolderGuard
from agent_kit.store.location import (
    FolderOption,
    folder_label,
    folder_of,
    made_folder,
    option_fault,
)
from agent_kit.store.markdown import MarkdownStore
from agent_kit.store.names import (
    PageId,
    PageName,
    page_id,
    page_name,
    person_folder,
    shown,
    slug_from,
)
from agent_kit.store.opening import OpenStore, folder_store, postgres_store
from agent_kit.store.page import NewPage, Page
from agent_kit.store.paging import PAGE_SIZE, Slice, cut, fill
from agent_kit.store.permits import permits_for
from agent_kit.store.search import Hit
from agent_kit.store.tools import Tool
from agent_kit.store.transfer import Progress, Transferred, copy_pages, import_folder

__all__ = [
    "MAX_NEW_PAGES",
    "PAGE_SIZE",
    "Change",
    "ChangeKind",
    "DocumentStore",
    "FolderGuard",
    "FolderOption",
    "Found",
    "History",
    "Hit",
    "Listing",
    "MarkdownStore",
    "NewPage",
    "OpenStore",
    "Page",
    "PageId",
    "PageName",
    "Progress",
    "Slice",
    "StoreCode",
    "StoreError",
    "Tool",
    "Transferred",
    "Unusable",
    "copy_pages",
    "cut",
    "fill",
    "folder_label",
    "folder_of",
    "folder_store",
    "import_folder",
    "made_folder",
    "option_fault",
    "page_id",
    "page_name",
    "permits_for",
    "person_folder",
    "postgres_store",
    "sentence_for",
    "shown",
    "slug_from",
]
