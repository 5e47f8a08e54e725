"""The calls that are made from a schema."""

from __future__ import annotations

from typing import Any

from tests.doors.fields import inputs, string_fields

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "deep": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"file": {"type": "string"}, "line": {"type": "integer"}},
                "required": ["line"],
            },
        },
        "either": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"url": {}}}]},
        "free": {"type": "object", "additionalProperties": {}},
        "flag": {"type": "boolean"},
        "number": {"type": "number"},
    },
    "required": ["path"],
}


def made(values: tuple[str, ...] = ("V",), chief: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return list(inputs(SCHEMA, values, chief, {"path": "here"}, {"always": 1}))


def test_every_place_for_a_string_is_found() -> None:
    assert set(string_fields(SCHEMA)) == {
        ("path",),
        ("deep", 0, "file"),
        ("either",),
        ("either", "url"),
        ("either", "url", "key"),
        ("free", "key"),
    }


def test_each_string_is_filled_with_what_is_required_beside_it() -> None:
    rest = {"path": "here", "always": 1}
    for wanted in (
        rest,
        {**rest, "path": "V"},
        {**rest, "deep": [{"line": 1, "file": "V"}]},
        {**rest, "either": "V"},
        {**rest, "either": {"url": "V"}},
        {**rest, "free": {"key": "V"}},
    ):
        assert wanted in made()


def test_a_choice_is_kept_to_and_each_is_tried() -> None:
    calls = made(chief=("C",))
    assert {call.get("mode") for call in calls} == {None, "a", "b"}
    assert {call.get("flag") for call in calls} == {None, True, False}
    for choice in ("a", "b"):
        assert {"path": "C", "mode": choice, "always": 1} in calls
    assert {"path": "here", "flag": True, "always": 1, "free": {"key": "C"}} in calls


def test_a_schema_that_holds_itself_ends() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["again"] = schema
    assert list(inputs(schema, ["V"], [], {}, {})) == [{}]
