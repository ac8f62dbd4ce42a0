"""Collects the response of a server from the bytes that pass by, as a stream of events or as one document.

It never changes what passes, and gives nothing for a response that is broken or an error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from reverie.models.anthropic import AnthropicAnswer
from reverie.models.openai import ChatAnswer
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.proxy.bodies import Api
from reverie.types import JsonObject

_MOST_BYTES = 64_000_000
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

    def __init__(self, api: Api, *, streams: bool, encoding: str = "") -> None:
        self.streams = streams
        self._events: Events | None = _EVENTS[api]() if streams else None
        self._rest = list[bytes]()
        self._size = 0
        self._plain = _decoder(encoding)

    def take(self, chunk: bytes) -> None:
        chunk = self._plain(chunk)
        self._size += len(chunk)
        if self._size > _MOST_BYTES:
            self._rest.clear()
            return
        self._rest.append(chunk)
        if self._events is None or b"\n" not in chunk:
            return
        *lines, rest = b"".join(self._rest).split(b"\n")
        self._rest = [rest]
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
        if self._size > _MOST_BYTES:
            return None
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            return self._events.message() if self._events is not None else _whole(b"".join(self._rest))
        return None


def _whole(raw: bytes) -> JsonObject | None:
    return as_object(load_json(raw)) or None


def _decoder(encoding: str) -> Callable[[bytes], bytes]:
    """Reads a response that is compressed although nobody asked for it. A form that we do not know gives nothing."""
    if encoding in ("", "identity"):
        return bytes
    if encoding not in ("gzip", "deflate"):
        return lambda _chunk: b""
    import zlib

    reader = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def plain(chunk: bytes) -> bytes:
        with suppress(zlib.error):
            return reader.decompress(chunk, _MOST_BYTES)
        return b""

    return plain
