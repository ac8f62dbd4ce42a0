"""Checks the input of a call against the schema of the tool, and explains a mistake in one sentence.

It supports only the part of JSON Schema that tools use: a library takes longer to import than all tools together.
Unknown keywords are not checked, and values are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, cast

from reverie.types import Json, JsonObject

_TYPES: Mapping[str, tuple[str, Callable[[Json], bool]]] = {
    "string": ("text", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("a whole number", lambda value: _is_number(value) and float(value).is_integer()),
    "number": ("a number", lambda value: _is_number(value)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "null": ("null", lambda value: value is None),
}


def explain_invalid(given: Json, schema: JsonObject, name: str = "") -> str | None:
    """Returns None if the input fits, else one sentence about the first mistake."""
    at = name or "the input"
    types: Json = schema.get("type")
    allowed: list[str] = cast("list[str]", types) if isinstance(types, list) else [types] if types else []
    known = [_TYPES[one] for one in allowed if one in _TYPES]
    if known and not any(fits(given) for _, fits in known):
        return f"{at} must be {' or '.join(words for words, _ in known)}, not {_name_kind(given)}."
    if "enum" in schema and given not in schema["enum"]:
        return f"{at} must be one of {', '.join(map(str, schema['enum']))}, not {given!r}."
    if _is_number(given):
        return _explain_out_of_bounds(given, schema, at)
    if isinstance(given, dict):
        return _explain_wrong_member(cast("JsonObject", given), schema, name)
    if isinstance(given, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(cast("list[Json]", given)):
            if why := explain_invalid(item, schema["items"], f"{name}[{index}]"):
                return why
    return None


def _explain_wrong_member(given: JsonObject, schema: JsonObject, name: str) -> str | None:
    properties: JsonObject = schema.get("properties", {})
    prefix = f"{name}." if name else ""
    missing = [key for key in schema.get("required", []) if key not in given]
    for key, value in given.items():
        if key in properties:
            if why := explain_invalid(value, properties[key], f"{prefix}{key}"):
                return why
        elif schema.get("additionalProperties") is False:
            near = get_close_matches(key, missing or list(properties), n=1)
            hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(properties) or 'none'}."
            return f"{prefix}{key} is not a parameter: {hint}"
    if missing:
        return f"{prefix}{missing[0]} is missing."
    return None


def _explain_out_of_bounds(given: Any, schema: JsonObject, at: str) -> str | None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and given < low:
        return f"{at} must be at least {low:,}, not {given:,}."
    if high is not None and given > high:
        return f"{at} must be at most {high:,}, not {given:,}."
    return None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name_kind(value: Json) -> str:
    return next((words for words, fits in _TYPES.values() if fits(value)), type(value).__name__)
