"""Collects the response of a server from the bytes that pass by, as a stream of events or as one document.

It never changes what passes, and gives nothing for a response that is broken or an error.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from reverie.models.anthropic import AnthropicAnswer
from reverie.models.openai import ChatAnswer
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.proxy.bodies import Api
from reverie.proxy.received import (
    MOST_READ,
    MOST_STREAMED,
    MOST_VALUES,
    MOST_VALUES_STREAMED,
    Decoder,
    count_values,
)
from reverie.types import JsonObject

_DONE = "[DONE]"
"""The last line of chat completions; the usage comes just before it."""


class Events(Protocol):
    """Collects one response from events."""

    @property
    def ended(self) -> bool:
        """Whether the last event has come."""
        ...

    def take(self, event: JsonObject) -> None: ...

    def message(self) -> JsonObject | None: ...


class _Messages:
    def __init__(self) -> None:
        self._answer = AnthropicAnswer()

    @property
    def ended(self) -> bool:
        return self._answer.ended

    def take(self, event: JsonObject) -> None:
        for _ in self._answer.take(event):
            pass

    def message(self) -> JsonObject | None:
        return self._answer.message() if self._answer.ended else None


class _Chat:
    """It ends with its own last line, because the usage comes after the reason to stop."""

    def __init__(self) -> None:
        self._answer = ChatAnswer()
        self.ended = False

    def take(self, event: JsonObject) -> None:
        self.ended = self.ended or bool(event.get(_DONE))
        for _ in self._answer.take(event):
            pass

    def message(self) -> JsonObject | None:
        return self._answer.message() if self._answer.ended else None


class _Responses:
    """The last event has the whole response; in some servers without its items, which came one by one."""

    def __init__(self) -> None:
        self._whole: JsonObject | None = None
        self._items: list[JsonObject] = []

    @property
    def ended(self) -> bool:
        return self._whole is not None

    def take(self, event: JsonObject) -> None:
        if event.get("type") == "response.output_item.done":
            self._items.append(as_object(event.get("item")))
        elif event.get("type") in ("response.completed", "response.incomplete"):
            whole = as_object(event.get("response"))
            self._whole = whole if whole.get("output") else {**whole, "output": self._items}

    def message(self) -> JsonObject | None:
        return self._whole


_EVENTS: dict[Api, type[_Messages] | type[_Chat] | type[_Responses]] = {
    "messages": _Messages,
    "chat": _Chat,
    "responses": _Responses,
}


class Listener:
    """Listens to one response. Give it every chunk; `message` is the response when all have come."""

    def __init__(self, api: Api, *, streams: bool, encoding: str = "", most: int = MOST_STREAMED) -> None:
        """`most`: the bytes of a whole stream; each event has a bound of its own."""
        self.streams = streams
        self._most = most
        self.is_too_large = False
        """Whether it stopped listening: nobody knows how large an answer is that is compressed."""
        self._events: Events | None = _EVENTS[api]() if streams else None
        self._rest = list[bytes]()
        self._size = self._rest_size = self._values = self._rest_values = 0
        self._decoder = Decoder(encoding)

    def take(self, chunk: bytes) -> None:
        if not self.is_too_large:
            for piece in self._decoder.pieces(chunk):
                self._take(piece)
                if self.is_too_large:
                    self._rest.clear()
                    return

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._rest.append(piece)
        self._rest_size += len(piece)
        values = count_values(piece)
        self._values += values
        self._rest_values += values
        is_large = self._size > self._most or self._rest_size > MOST_READ
        self.is_too_large = is_large or self._rest_values > MOST_VALUES or self._values > MOST_VALUES_STREAMED
        if self.is_too_large:
            return
        if self._events is not None and b"\n" in piece:
            *lines, rest = b"".join(self._rest).split(b"\n")
            self._rest, self._rest_size, self._rest_values = [rest], len(rest), count_values(rest)
            for line in lines:
                if line.startswith(b"data:") and line[5:].strip() == b"[DONE]":
                    self._events.take({_DONE: True})
                elif line.startswith(b"data:"):
                    with suppress(ValueError, TypeError, KeyError, AttributeError):
                        self._events.take(as_object(load_json(line[5:])))

    def message_of_stream(self) -> JsonObject | None:
        """The response as soon as its last event has come; None before that."""
        return self.message() if self._events is not None and self._events.ended else None

    def message(self) -> JsonObject | None:
        """The response; None if it is broken, an error or too large."""
        if self.is_too_large:
            return None
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            return self._events.message() if self._events is not None else _whole(b"".join(self._rest))
        return None


def _whole(raw: bytes) -> JsonObject | None:
    return as_object(load_json(raw)) or None
