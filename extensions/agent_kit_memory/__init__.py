"""What to remember about the person: small notes, each with the person's own words for it."""

from agent_kit_memory.extension import MemoryExtension, memory
from agent_kit_memory.notes import Memory, Note
from agent_kit_memory.prompts import Prompts

__all__ = ["Memory", "MemoryExtension", "Note", "Prompts", "memory"]
