"""A base of linked Markdown pages that the agent reaches through its ``knowledge_*`` tools."""

from agent_kit_knowledge.extension import Knowledge, knowledge

__all__ = ["Knowledge", "knowledge"]
