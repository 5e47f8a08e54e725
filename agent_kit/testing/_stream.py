"""The Messages API's answer, as server-sent events or as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["as_events", "as_message", "is_call"]

Block = Mapping[str, Any]

_USAGE = {"input_tokens": 1, "output_tokens": 1}


def is_call(block: Block) -> bool:
    """Whether a content block is a tool call."""
    return bool(block["type"] == "tool_use")


def as_message(message_id: str, model: str, blocks: Sequence[Block]) -> dict[str, Any]:
    """The whole message, for a request with ``stream`` off."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [dict(block) for block in blocks],
        "stop_reason": _stop_reason(blocks),
        "stop_sequence": None,
        "usage": dict(_USAGE),
    }


def as_events(message_id: str, model: str, blocks: Sequence[Block]) -> bytes:
    """The same message as a finished event stream."""
    return "".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        for event in _events(message_id, model, blocks)
    ).encode()


def _stop_reason(blocks: Sequence[Block]) -> str:
    return "tool_use" if any(map(is_call, blocks)) else "end_turn"


def _events(message_id: str, model: str, blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    opening = {**as_message(message_id, model, ()), "stop_reason": None}
    yield {"type": "message_start", "message": opening}
    for index, block in enumerate(blocks):
        empty, delta = _parts(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": _stop_reason(blocks), "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _parts(block: Block) -> tuple[dict[str, Any], dict[str, Any]]:
    """A block as the stream opens it, and the one delta that fills it."""
    if is_call(block):
        text = json.dumps(block["input"])
        return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": text}
    return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
