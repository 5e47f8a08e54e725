"""Calls of a tool, made from its schema: every string field filled with every value."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["inputs", "string_fields"]

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]
_DEPTH = 6  # a schema that holds itself ends somewhere


def inputs(
    schema: Schema,
    values: Sequence[str],
    chief: Sequence[str],
    plausible: Mapping[str, Any],
    always: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Inputs for a tool with this ``input_schema``.

    Each string field gets each of ``values``, with the required fields beside it; then, once more
    with each other setting of the tool (every choice of an enum, true, false, a small number), each
    of ``chief``. What else a field must hold is ``plausible`` by its name, or made up; ``always``
    are further fields that every call has.
    """
    base = {**_filled({"type": "object", **schema}, "", plausible), **always}
    places = list(string_fields(schema))
    yield base
    for place in places:
        for value in values:
            yield _with(base, schema, place, value, plausible)
    for setting, states in _settings(schema):
        for state in states:
            other = _with(base, schema, setting, state, plausible)
            yield other
            for place in places:
                for value in chief:
                    yield _with(other, schema, place, value, plausible)


def string_fields(schema: Schema) -> Iterator[Place]:
    """Where a string of the model's own may stand; in a free-form object, under a made-up key."""
    for place, field in _leaves(schema, (), _DEPTH):
        if not _choices(field) and _types(field) & {"string", "any"}:
            yield place


def _settings(schema: Schema) -> Iterator[tuple[Place, Sequence[Any]]]:
    """Every field that chooses, and what it may be."""
    for place, field in _leaves(schema, (), _DEPTH):
        if choices := _choices(field):
            yield place, choices
        elif "boolean" in _types(field):
            yield place, (True, False)
        elif _is_number(field):
            yield place, (_number(field),)


def _leaves(schema: Schema, place: Place, depth: int) -> Iterator[tuple[Place, Schema]]:
    """Every field that holds no named fields itself, the places in lists and objects among them."""
    for kind in _kinds(schema) if depth else ():
        properties, types = kind.get("properties") or {}, _types(kind)
        for name, field in properties.items():
            yield from _leaves(field, (*place, name), depth - 1)
        if "array" in types:
            yield from _leaves(kind.get("items") or {}, (*place, 0), depth - 1)
        if place and not properties and types & {"object", "any"}:
            yield (*place, "key"), {"type": "string"}
        if place and not types & {"array", "object"}:
            yield place, kind


def _kinds(schema: Schema) -> Sequence[Schema]:
    """The schema, or each alternative that it names."""
    return [each for name in ("anyOf", "oneOf") for each in schema.get(name) or ()] or [schema]


def _types(schema: Schema) -> set[str]:
    kind = schema.get("type")
    if isinstance(kind, list):
        return set(kind)
    return {str(kind)} if kind else {"object"} if "properties" in schema else {"any"}


def _choices(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum") or ())


def _is_number(schema: Schema) -> bool:
    return _types(schema) <= {"number", "integer", "null"}


def _number(schema: Schema) -> int:
    return max(1, int(schema.get("minimum", 1)))


def _filled(schema: Schema, name: str, plausible: Mapping[str, Any]) -> Any:
    """A value that the schema takes: ``plausible``'s where there is one of that name."""
    kind = _kinds(schema)[0]
    types = _types(kind)
    if name in plausible:
        return copy.deepcopy(plausible[name])
    if choices := _choices(kind):
        return choices[0]
    if "object" in types:
        fields = kind.get("properties") or {}
        return {
            each: _filled(fields.get(each, {}), each, plausible)
            for each in kind.get("required") or ()
        }
    if "array" in types:
        return [_filled(kind.get("items") or {}, "", plausible)] * kind.get("minItems", 0)
    if "boolean" in types:
        return False
    return _number(kind) if _is_number(kind) else "x" * max(1, int(kind.get("minLength", 1)))


def _with(base: Any, schema: Schema, place: Place, value: Any, plausible: Mapping[str, Any]) -> Any:
    """``base`` with ``value`` at ``place``; what is required on the way there is filled in."""
    if not place:
        return value
    head, rest = place[0], place[1:]
    kind = _kind_at(schema, head)
    if isinstance(head, int):
        items = kind.get("items") or {}
        old = base[0] if isinstance(base, list) and base else _filled(items, "", plausible)
        return [_with(old, items, rest, value, plausible)]
    field = (kind.get("properties") or {}).get(head) or {}
    made = dict(base) if isinstance(base, dict) else _filled({**kind, "type": "object"}, "", {})
    old = made.get(head, _filled(field, head, plausible) if rest else None)
    return {**made, head: _with(old, field, rest, value, plausible)}


def _kind_at(schema: Schema, head: str | int) -> Schema:
    """The alternative of ``schema`` that has such a field, or the first."""
    kinds = _kinds(schema)
    holds = "items" if isinstance(head, int) else "properties"
    fitting = (kind for kind in kinds if isinstance(head, int) or head in (kind.get(holds) or {}))
    return next((kind for kind in fitting if kind.get(holds)), kinds[0])
