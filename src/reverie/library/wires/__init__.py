"""The three APIs in which a program can give its messages: Messages, chat completions and responses. Pure."""

from __future__ import annotations

from reverie.errors import UserError
from reverie.library.wires.base import GivenMessage, GivenSystem, Wire
from reverie.library.wires.calls import open_call, with_unique_calls
from reverie.library.wires.chat import ChatWire
from reverie.library.wires.messages import MessagesWire
from reverie.library.wires.responses import ResponsesWire

__all__ = ["GivenMessage", "GivenSystem", "Wire", "open_call", "wire_named", "with_unique_calls"]

_WIRES: dict[str, Wire] = {wire.name: wire for wire in (MessagesWire(), ChatWire(), ResponsesWire())}


def wire_named(name: str) -> Wire:
    """Returns the wire with this name: messages, chat or responses."""
    if name not in _WIRES:
        raise UserError(f"{name!r} is not an API that Reverie knows: use {', '.join(_WIRES)}.")
    return _WIRES[name]
