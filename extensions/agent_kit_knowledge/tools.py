"""The tools of the ``knowledge`` server: their names, schemas and what each one runs."""

from __future__ import annotations

from functools import partial

from agent_kit.store import MAX_NEW_PAGES, PAGE_SIZE, DocumentStore, Tool
from agent_kit.store.documents import MAX_REASON
from agent_kit.store.names import MAX_NAME
from agent_kit.store.page import MAX_PAGE, MAX_TITLE
from agent_kit.store.tools import flag, integer, schema, text, texts
from agent_kit_knowledge import answers
from agent_kit_knowledge.asking import Asking

__all__ = ["reading_tools", "writing_tools"]

_ID = text("The page's id, type/slug, as the index and the search show it.")
_TYPE_FILTER = text("Only pages of this type, such as concept. Left out: all types.")
_VERSION = text("The version that knowledge_read gave, 16 characters.")
_OFFSET = "from 0; the answer says where the next part begins."

_PAGE_FIELDS = schema(
    ("type", "title", "body"),
    type=text(
        "The kind of page, one word such as concept, person or source; it names the folder. At "
        f"most {MAX_NAME} characters. Use the types that the base has."
    ),
    title=text(f"The title, one line, at most {MAX_TITLE} characters."),
    body=text(
        f"The page in Markdown, without front matter, at most {MAX_PAGE} bytes of UTF-8. Link "
        "other pages as [[type/slug]]."
    ),
    slug=text(
        f"The page's name in its folder, any script, at most {MAX_NAME} characters. Left out: "
        "made from the title."
    ),
    aliases=texts(f"Other names for the same thing, at most {MAX_TITLE} characters each."),
)


_NEW_PAGE = _PAGE_FIELDS | {"description": "The new page."}


def reading_tools(store: DocumentStore, asks: Asking) -> tuple[Tool, ...]:
    """The tools that change nothing."""
    return (
        Tool(
            name="knowledge_index",
            description="List the pages of the knowledge base: id, title, size, last change.",
            schema=schema(type=_TYPE_FILTER, offset=integer(f"How many pages to skip, {_OFFSET}")),
            run=partial(answers.index, store),
            before=asks.index,
            read_only=True,
        ),
        Tool(
            name="knowledge_search",
            description=(
                "Find pages by words, best first, with a line of each. The query is plain text in "
                "any language; case and accents don't matter."
            ),
            schema=schema(
                ("query",),
                query=text(
                    "The words to look for. No operators; punctuation around a word is left out."
                ),
                type=_TYPE_FILTER,
                retired=flag("Also pages that are no longer valid. Left out: only valid ones."),
                offset=integer(f"How many found pages to skip, {_OFFSET}"),
            ),
            run=partial(answers.search, store),
            before=asks.search,
            read_only=True,
        ),
        Tool(
            name="knowledge_read",
            description=(
                "Read a page: its version, then its text with the front matter, at most "
                f"{PAGE_SIZE} characters at a time."
            ),
            schema=schema(("id",), id=_ID, offset=integer(f"The first character, {_OFFSET}")),
            run=partial(answers.read, store),
            before=asks.read,
            read_only=True,
        ),
        Tool(
            name="knowledge_log",
            description=(
                "What was changed in the base through these tools, newest first: time, what was "
                "done, id, version afterwards."
            ),
            schema=schema(
                id=text("Only the changes of this page, type/slug. Left out: of all pages."),
                offset=integer(f"How many changes to skip, {_OFFSET}"),
            ),
            run=partial(answers.log, store),
            before=asks.log,
            read_only=True,
        ),
        Tool(
            name="knowledge_check",
            description=(
                "Look at the links of all pages: those that lead nowhere or to a page that is no "
                "longer valid, and pages that no other leads to."
            ),
            schema=schema(offset=integer(f"How many findings to skip, {_OFFSET}")),
            run=partial(answers.check, store),
            before=asks.search,
            read_only=True,
        ),
    )


def writing_tools(store: DocumentStore, asks: Asking) -> tuple[Tool, ...]:
    """The tools that change pages."""
    return (
        Tool(
            name="knowledge_create",
            description=(
                f"Make 1 to {MAX_NEW_PAGES} new pages, all or none. Search first: a page that "
                "exists is edited, not made again."
            ),
            schema=schema(
                ("pages",),
                pages={
                    "type": "array",
                    "items": _PAGE_FIELDS,
                    "description": f"The new pages, 1 to {MAX_NEW_PAGES}.",
                },
            ),
            run=partial(answers.create, store),
            before=asks.create,
            read_only=False,
        ),
        Tool(
            name="knowledge_edit",
            description=(
                "Change one place of a page. Read it first: the edit is refused, with the current "
                "text, when the page was changed since."
            ),
            schema=schema(
                ("id", "version", "old_text", "new_text"),
                id=_ID,
                version=_VERSION,
                old_text=text(
                    "The text to replace, exactly as the page has it. It must stand there once: "
                    "take enough of the text around it."
                ),
                new_text=text("What stands there afterwards; empty to remove the old text."),
            ),
            run=partial(answers.edit, store),
            before=asks.edit,
            read_only=False,
        ),
        Tool(
            name="knowledge_rewrite",
            description=(
                "Write a page anew: its text, and its title if one is given; the other fields of "
                "the front matter stay. For one change in it use knowledge_edit."
            ),
            schema=schema(
                ("id", "version", "body"),
                id=_ID,
                version=_VERSION,
                body=text(
                    f"The whole new text in Markdown, without front matter, at most {MAX_PAGE} "
                    "bytes of UTF-8."
                ),
                title=text(
                    f"The new title, one line, at most {MAX_TITLE} characters. Left out: it stays."
                ),
            ),
            run=partial(answers.rewrite, store),
            before=asks.edit,
            read_only=False,
        ),
        Tool(
            name="knowledge_supersede",
            description=(
                "Make a new page that takes the place of one that is no longer valid; the old one "
                "stays readable, names the new one, and is found no more. Both or neither."
            ),
            schema=schema(("id", "version", "page"), id=_ID, version=_VERSION, page=_NEW_PAGE),
            run=partial(answers.supersede, store),
            before=asks.supersede,
            read_only=False,
        ),
        Tool(
            name="knowledge_retire",
            description=(
                "Mark a page as no longer valid, when no other takes its place. It stays readable, "
                "and is found no more."
            ),
            schema=schema(
                ("id", "version", "reason"),
                id=_ID,
                version=_VERSION,
                reason=text(f"Why, one line, at most {MAX_REASON} characters."),
            ),
            run=partial(answers.retire, store),
            before=asks.edit,
            read_only=False,
        ),
    )
