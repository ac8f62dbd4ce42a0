"""Reads JSON from any client: limits its size, depth and numbers, and refuses text that UTF-8 cannot hold."""

from __future__ import annotations

from typing import Any, cast

from reverie.parsing import RECORD_DEPTH, Unparsable, load_json
from reverie.simulator.errors import ApiError, invalid

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_VALUES = 2_000_000
"""The most values in one body; a window of a million tokens has fewer."""
MAX_NUMBER = 10**300
"""The largest number: a float can hold it, with room to add to it."""


def read_object(raw: bytes | bytearray) -> dict[str, Any]:
    """The JSON object of a request body."""
    if len(raw) > MAX_BODY_BYTES:
        raise ApiError(413)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid(f"The request body is not valid UTF-8 (byte {error.start})") from None
    body = read_value(text)
    if not isinstance(body, dict):
        raise invalid("Input should be a valid dictionary")
    return cast("dict[str, Any]", body)


def read_value(text: str) -> object:
    """Any JSON value."""
    if sum(text.count(mark) for mark in "[{,") > MAX_VALUES:
        raise invalid(f"The request body holds more than {MAX_VALUES:,} values")
    try:
        value: object = load_json(text, depth=RECORD_DEPTH)
    except Unparsable as error:
        raise invalid(f"The request body is not valid JSON: {error}") from None
    _check(value)
    return value


def _check(value: object) -> None:
    """Checks the value level by level, without recursion."""
    level = [value]
    while level:
        inside: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inside.extend(cast("dict[object, object]", each))
                inside.extend(cast("dict[object, object]", each).values())
            elif isinstance(each, list):
                inside.extend(cast("list[object]", each))
            elif isinstance(each, str) and not each.isascii():
                try:
                    each.encode("utf-8")
                except UnicodeEncodeError:
                    raise invalid("The request body holds half a surrogate pair, which is not text") from None
            elif isinstance(each, int | float) and not abs(each) <= MAX_NUMBER:  # true of NaN as well
                raise invalid("The request body holds a number out of range")
        level = inside
