"""Answers whose form the request fixes: a value for a JSON schema, and the call of a tool that must be called.

For the minds of this package that do not read schemas (scripts, the echo, the offline mind). If the answer is JSON that
fits, it is used; otherwise the value is the smallest one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.models.wire import as_object
from reverie.parsing import Unparsable, load_json
from reverie.types import Json, JsonObject

_EMPTY: dict[str, Json] = {"integer": 0, "number": 0, "boolean": False}
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "a@example.org",
    "uri": "https://example.org",
    "uuid": "00000000-0000-0000-0000-000000000000",
}
_DEEPEST = 32
_MOST_VALUES = 2_000
_LONGEST = 10_000


def smallest(schema: Json, text: str = "") -> Json:
    """The smallest value a schema allows: empty lists, zeros, required keys only; texts are `text`.

    Knows the common keywords, not all of JSON Schema.
    """
    return _Filling(as_object(schema), text).value(schema)


class _Filling:
    def __init__(self, schema: JsonObject, text: str) -> None:
        self._definitions = as_object(schema.get("$defs") or schema.get("definitions"))
        self._text = text
        self._left = _MOST_VALUES

    def value(self, schema: Json, depth: int = 0) -> Json:
        given = as_object(schema)
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:  # a schema may contain itself
            return None
        if isinstance(reference := given.get("$ref"), str):
            return self.value(self._definitions.get(reference.rsplit("/", 1)[-1]), depth + 1)
        if "const" in given:
            return given["const"]
        if options := _items(given.get("enum")):
            return options[0]
        for union in ("anyOf", "oneOf", "allOf"):
            if options := _items(given.get(union)):
                empty = any(as_object(option).get("type") == "null" for option in options)
                return None if empty else self.value(options[0], depth + 1)
        kinds = _items(given.get("type")) or [given.get("type")]
        if "null" in kinds:
            return None
        match kinds[0]:
            case "array":
                return [self.value(given.get("items"), depth + 1) for _ in range(min(_count(given, "minItems"), 100))]
            case "string":
                return self._string(given)
            case "integer" | "number" | "boolean" as kind:
                return given.get("minimum", _EMPTY[kind])
            case _:
                properties = as_object(given.get("properties"))
                names = [str(name) for name in _items(given.get("required"))]
                return {name: self.value(properties.get(name), depth + 1) for name in names}

    def _string(self, schema: JsonObject) -> str:
        if (shown := _FORMATS.get(str(schema.get("format")))) is not None:
            return shown
        padded = self._text.ljust(min(_count(schema, "minLength"), _LONGEST), ".")
        return padded[: _count(schema, "maxLength")] if "maxLength" in schema else padded


def _items(value: object) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else []


def _count(schema: JsonObject, name: str) -> int:
    value = schema.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def is_forced(choice: Mapping[str, Any] | None) -> bool:
    """Whether a `tool_choice` asks for a call."""
    return as_object(choice).get("type") in ("any", "tool")


def force_call(
    content: Sequence[JsonObject],
    choice: Mapping[str, Any] | None,
    tools: Sequence[Mapping[str, Any]],
    messages: Sequence[Mapping[str, Any]],
) -> list[JsonObject]:
    """The content as a forced `tool_choice` allows it: only calls of that tool, one of them made if there is none."""
    wanted = as_object(choice).get("name")
    offered = [tool for tool in tools if wanted in (None, tool.get("name"))]
    names = {str(tool.get("name")) for tool in offered}
    made = [block for block in content if block.get("type") == "tool_use" and block.get("name") in names]
    if made or not offered:
        return made or list(content)
    text = "".join(str(block.get("text") or "") for block in content)
    tool, given = _chosen(offered, text, messages)
    seed = f"{len(messages)}\0{tool.get('name')}\0{text}".encode("utf-8", "surrogatepass")
    name = f"toolu_forced_{hashlib.blake2s(seed, digest_size=6).hexdigest()}"
    return [{"type": "tool_use", "id": name, "name": tool.get("name"), "input": given}]


def fit_schema(content: Sequence[JsonObject], schema: Json) -> list[JsonObject]:
    """The content with a text that is JSON of this schema's form; a call of a tool stays as it is."""
    text = "".join(str(block.get("text") or "") for block in content)
    if any(block.get("type") == "tool_use" for block in content) or read_object(text) is not None:
        return list(content)
    others = [block for block in content if block.get("type") != "text"]
    return [*others, {"type": "text", "text": json.dumps(smallest(schema, text), ensure_ascii=False)}]


def _chosen(
    offered: Sequence[Mapping[str, Any]], text: str, messages: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], Json]:
    """The tool to call, and its input: the one that the text fits, else one that was not called yet."""
    given = read_object(text)
    if given is not None:
        for tool in reversed(offered):
            schema = as_object(tool.get("input_schema"))
            required = {str(name) for name in _items(schema.get("required"))}
            if required <= given.keys() <= as_object(schema.get("properties")).keys():
                return tool, given
    called = {as_object(block).get("name") for message in messages for block in _items(message.get("content"))}
    tool = next((tool for tool in offered if tool.get("name") not in called), offered[-1])
    return tool, smallest(tool.get("input_schema"), text)


def read_object(text: str) -> JsonObject | None:
    """The JSON object that a text is; None if it is something else."""
    try:
        value = load_json(text) if text.lstrip().startswith("{") else None
    except Unparsable:
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None
