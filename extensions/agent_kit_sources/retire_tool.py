"""``retire_source``: an original that counts no more is moved aside, if a person agrees.

That they are asked is the contribution's business (``interrupt_on``). What could not be retired
anyway is refused before anybody is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent_kit.store import FolderGuard, StoreCode, StoreError, Tool, sentence_for
from agent_kit.store.tools import schema, text
from agent_kit_sources.retiring import Retirer

__all__ = ["MAX_REASON", "RetireTool"]

MAX_REASON = 1000
"""Most characters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireTool:
    """The tool, and the hook that spares a person questions about what can't be retired."""

    retirer: Retirer
    asking: FolderGuard

    def tool(self) -> Tool:
        label = self.retirer.label
        return Tool(
            name="retire_source",
            description=(
                f"Take an original out of {label} that counts no more, such as one that a newer one "
                "replaces or that was saved twice. A person is asked about each call, and sees the "
                "path and your reason as you write them. The file is moved to where no tool of "
                "yours reads it, never removed: a person can put it back. When, by whom and why "
                "are noted."
            ),
            schema=schema(
                ("file", "reason"),
                file=text(
                    f"The original: a path as list_sources shows it, such as {label}week1/a.docx. "
                    "One file; no folder, no link."
                ),
                reason=text(
                    "Why it counts no more, for the person who decides: 1 to "
                    f"{MAX_REASON} characters."
                ),
            ),
            run=self._run,
            before=self._before,
            read_only=False,
        )

    async def on_call(self, payload: Mapping[str, Any], _use_id: Any, _context: Any) -> Any:
        """For PreToolUse: refuses what could not be retired whatever a person says."""
        try:
            await asyncio.to_thread(self._planned, payload.get("tool_input") or {})
        except StoreError as error:
            return _denied(str(error))
        except OSError as error:
            return _denied(sentence_for(error))
        return {}

    def asked_files(self, arguments: Mapping[str, Any]) -> Sequence[Path]:
        """What the person decides about: another file, or text, is another question. None where the tool
        refuses the path itself."""
        try:
            return (self.retirer.place(str(arguments.get("file", ""))),)
        except StoreError:
            return ()

    async def _before(self, arguments: Mapping[str, Any]) -> None:
        path, _ = await asyncio.to_thread(self._planned, arguments)
        place = self.retirer.root / path
        await self.asking.require("delete", place, label=self.retirer.shown(path))

    def _run(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        path, why = self._planned(arguments)
        place = self.retirer.retire(str(arguments["file"]), why)
        kept = self.retirer.shown(PurePosixPath(place))
        is_read = "no tool of yours reads it"
        if self._has_other_names(place):
            is_read += " by this name; it has another one, which is as it was"
        told = f"{self.retirer.shown(path)} is retired: it is listed no more, and {is_read}."
        return (f"{told} A person finds it as {kept}.",)

    def _has_other_names(self, place: str) -> bool:
        try:
            return (self.retirer.root / place).lstat().st_nlink > 1
        except OSError:
            return True

    def _planned(self, arguments: Mapping[str, Any]) -> tuple[PurePosixPath, str]:
        why = str(arguments.get("reason", "")).strip()
        if not 0 < len(why) <= MAX_REASON:
            raise StoreError(
                f"Give the reason in 1 to {MAX_REASON} characters: a person reads it.",
                code=StoreCode.BAD_TEXT,
            )
        return self.retirer.find(str(arguments.get("file", ""))), why


def _denied(reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }
