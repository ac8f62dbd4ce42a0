"""Reads JSON that anybody may have sent: bounded in size, depth and numbers, and text that UTF-8 can hold.

What passes can be encoded, compared and counted by the rest of the simulator without a surprise. Everything else is an
`ApiError`. Knows nothing of what a body means; see `check.py` and `control.py`.
"""

from __future__ import annotations

from typing import Any, cast

from reverie.parsing import RECORD_DEPTH, Unparsable, load_json
from reverie.simulator.errors import ApiError, invalid

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_VALUES = 2_000_000
"""Values in one body; a window of a million tokens has fewer."""
MAX_NUMBER = 10**300
"""What a float can hold, with room to add to it."""


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
    """Walks the value level by level, without recursion."""
    level = [value]
    while level:
        inside: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inside.extend(cast("dict[object, object]", each))
                inside.extend(cast("dict[object, object]", each).values())
            elif isinstance(each, list):
                inside.extend(cast("list[object]", each))
            elif isinstance(each, str):
                _check_text(each)
            elif isinstance(each, int | float) and not abs(each) <= MAX_NUMBER:  # true of NaN as well
                raise invalid("The request body holds a number out of range")
        level = inside


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise invalid("The request body holds half a surrogate pair, which is not text") from None
