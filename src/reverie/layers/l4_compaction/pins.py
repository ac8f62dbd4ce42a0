"""Pins: texts that stay in the context after every compaction, word for word, within a budget of bytes."""

from __future__ import annotations

from collections.abc import Mapping

from reverie.errors import UserError
from reverie.memory.secrets.new_secret import refuse_secrets


def size(pins: Mapping[str, str]) -> int:
    """Returns the bytes of all pins together."""
    return sum(len(text.encode("utf-8", "replace")) for text in pins.values())


def check_pin(text: str, pins: Mapping[str, str], budget: int) -> str:
    """Returns the text if it can be pinned, else raises a `UserError` or `HoldsSecret` that says why not."""
    clean = text.strip()
    if not clean:
        raise UserError("there is nothing to pin: give the text, as in `/pin Never touch the generated files`")
    refuse_secrets(clean, "pinned")
    if clean in pins.values():
        raise UserError("this text is pinned already")
    wanted, used = size({"": clean}), size(pins)
    if used + wanted > budget:
        raise UserError(
            f"this pin has {wanted:,} bytes and {used:,} of the {budget:,} for pins are taken: shorten it or remove "
            "one (compaction.pins_bytes is the setting)"
        )
    return clean


def next_id(pins: Mapping[str, str]) -> str:
    """Returns a short name for a new pin."""
    return str(1 + max((int(name) for name in pins if name.isdigit()), default=0))


def find_pin(given: str, pins: Mapping[str, str]) -> str:
    """Returns the id of a pin, given its number or the beginning of its text if only one pin begins like that."""
    if given in pins:
        return given
    found = [name for name, text in pins.items() if given and text.startswith(given)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(pins) or "none"
    raise UserError(f"there is no pin {given!r}: pins are {known}")
