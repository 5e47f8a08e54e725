"""How a person is asked, whoever asks: the gate about a call, or a guard about what a tool opens."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from typing import Any

from agent_kit.policy.approval import Approval, Approved, Edited, PersonsAnswer, Rejected
from agent_kit.policy.policy import Call
from agent_kit.policy.waiting import run_host_code

__all__ = ["Ask", "ask_person"]

_log = logging.getLogger("agent_kit.approval")

Ask = Callable[[Approval], Any]


async def ask_person(
    ask: Ask,
    call: Call,
    *,
    target: str | None,
    reason: str,
    rule: str | None,
    asks_for: str | None = None,
) -> PersonsAnswer | None:
    """What a person says of a call, as long as they take; ``None`` when ``ask`` fails or gives no answer,
    which is logged.

    They see a copy of the input: what they do with it changes no call.
    """
    approval = Approval(
        question_id=call.tool_use_id or "",
        tool=call.tool,
        tool_input=copy.deepcopy(dict(call.tool_input)),
        target=target,
        reason=reason,
        agent=call.agent,
        rule=rule,
        cwd=call.cwd,
        asks_for=asks_for,
    )
    try:
        said = await run_host_code(ask, approval, limit=None, abort=asyncio.Event())
    except Exception:  # noqa: BLE001 - whatever it is, the call must not run
        _log.exception("the function that asks a person failed")
        return None
    if isinstance(said, (Approved, Edited, Rejected)):
        return said
    _log.error("the function that asks answered %s, which is no answer", type(said).__name__)
    return None
