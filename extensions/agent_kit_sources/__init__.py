"""Originals that are never changed: a folder that the agent reads and searches, and can list."""

from agent_kit_sources.extension import Sources, sources
from agent_kit_sources.listing import Original, SourceFolder

__all__ = ["Original", "SourceFolder", "Sources", "sources"]
