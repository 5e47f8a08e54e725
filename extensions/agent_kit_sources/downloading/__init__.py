"""Originals from the web: fetched from public hosts alone, and kept as files that are saved."""

from agent_kit_sources.downloading.addresses import AddressGuard
from agent_kit_sources.downloading.options import Downloads, Network
from agent_kit_sources.downloading.tool import download_tool

__all__ = ["AddressGuard", "Downloads", "Network", "download_tool"]
