"""Originals that are never changed: a folder that the agent reads, searches, lists and adds to."""

from agent_kit_sources.downloading import Downloads
from agent_kit_sources.extension import Sources, sources
from agent_kit_sources.listing import Original, SourceFolder
from agent_kit_sources.manifest import Provenance

__all__ = ["Downloads", "Original", "Provenance", "SourceFolder", "Sources", "sources"]
