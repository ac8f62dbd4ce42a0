"""Reads what a model wrote as the input of a tool call. Models slip: what is not a JSON object is kept, never fatal."""

from __future__ import annotations

from typing import cast

from reverie.models.base import UNPARSED_INPUT
from reverie.parsing import load_json
from reverie.types import Json, JsonObject


def read_input(raw: str) -> JsonObject:
    """The input as an object; nothing is no input, and what is not an object stands as text under `_unparsed`."""
    if not raw.strip():
        return {}
    try:
        given: Json = load_json(raw)
    except ValueError:
        return {UNPARSED_INPUT: raw}
    return cast(JsonObject, given) if isinstance(given, dict) else {UNPARSED_INPUT: raw}
