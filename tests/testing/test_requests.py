"""The search for a canary in a request: no escape, no encoding of the API hides it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from agent_kit.testing import Request

CANARY = 'can"ary é😀'


def request_of(body: object) -> Request:
    text = json.dumps(body)
    parsed: dict[str, Any] = json.loads(text)
    return Request(method="POST", path="/v1/messages?beta=true", text=text, body=parsed)


def twice(text: str) -> str:
    return json.dumps(json.dumps(text))


@pytest.mark.parametrize(
    "body",
    [
        {"a": CANARY},  # plain, escaped by the JSON of the request
        {"a": [{"b": ["x", f"around {CANARY} it"]}]},  # deep
        {CANARY: 1},  # a key
        {"a": json.dumps({"b": CANARY})},  # a tool's JSON result
        {"a": "1\t" + json.dumps(CANARY) + ",\n2\t}"},  # a JSON file as Read shows it
        {"a": twice(CANARY)},  # a transcript that quotes a result
        {"a": json.dumps(twice(CANARY))},
        {"type": "base64", "data": base64.b64encode(f"%PDF {CANARY}".encode()).decode()},
    ],
)
def test_a_canary_is_found_however_it_is_written(body: object) -> None:
    assert request_of(body).saw(CANARY)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"a": 'can"ary é'},  # a part of it
        {"a": CANARY.upper()},
        {"a": 'can"ary ', "b": "é😀"},  # in two strings
        {"type": "base64", "data": "not base64!"},
        {"type": "base64", "data": None},
    ],
)
def test_what_is_not_the_canary_is_not_found(body: object) -> None:
    assert not request_of(body).saw(CANARY)


def test_a_canary_is_found_in_a_body_that_is_no_json() -> None:
    request = Request(method="POST", path="/x", text="a canary in a form", body={})
    assert request.saw("canary")
    assert request.where("canary") == ("raw",)


def test_a_canary_is_found_in_the_path() -> None:
    assert request_of({}).where("beta=true") == ("path",)
    assert request_of({}).saw("beta=true")


def test_where_names_the_places() -> None:
    request = request_of({"messages": [{"content": "x"}, {"content": "a canary"}], "canary": 1})
    assert request.where("canary") == (".messages[1].content", ".canary", "raw")


def test_an_empty_text_can_not_be_asked_for() -> None:
    with pytest.raises(ValueError, match="every request"):
        request_of({}).saw("")
