"""The smallest value a JSON schema allows: the honest answer of a model to a question it cannot judge."""

from __future__ import annotations

from typing import Any, cast

from reverie.models.wire import as_object
from reverie.types import Json

_EMPTY: dict[str, Json] = {"string": "", "integer": 0, "number": 0, "boolean": False, "null": None}


def smallest(schema: Json) -> Json:
    """Empty lists and texts, zeros, required keys only. Knows the common keywords, not all of JSON Schema."""
    given = as_object(schema)
    if "const" in given:
        return given["const"]
    if given.get("enum"):
        return given["enum"][0]
    for union in ("anyOf", "oneOf"):
        if given.get(union):
            return smallest(given[union][0])
    kind = given.get("type")
    kinds = cast(list[Any], kind) if isinstance(kind, list) else [kind]
    if "null" in kinds:
        return None
    if kinds[0] == "array":
        return [smallest(given.get("items"))] * int(given.get("minItems") or 0)
    if kinds[0] in _EMPTY:
        return given.get("minimum", _EMPTY[kinds[0]])
    properties = as_object(given.get("properties"))
    required: list[str] = given.get("required") or []
    return {name: smallest(properties.get(name)) for name in required}
