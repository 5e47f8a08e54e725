"""Text of documents as Markdown, read in a process that can't take the host down with it.

``extract_tool`` is the tool. ``opening`` judges and opens the file, ``running`` starts the child and
holds it to the :class:`Limits`, ``child`` is the program that runs there, and ``reading`` are the
formats: it imports nothing of the kit, so that the child knows nothing of it either.
"""

from agent_kit_sources.extracting.limits import Limits
from agent_kit_sources.extracting.tool import extract_tool

__all__ = ["Limits", "extract_tool"]
