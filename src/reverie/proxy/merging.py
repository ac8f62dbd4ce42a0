"""The answers of several rounds as one answer for the client, without our calls: as a document, and as a stream. Pure.

An event that says nothing of ours passes with the bytes of the server. The end of a round is held back until it is
known whether another round follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from reverie.models.openai import ToolCalls
from reverie.models.wire import as_object
from reverie.parsing import Unparsable, load_json
from reverie.proxy.bodies import Api, dump, objects_of
from reverie.proxy.read_back import is_own_block, said_in_chat, without_calls, without_echo
from reverie.types import Json, JsonObject

_BETWEEN = "\n\n"
"""Between the texts of two rounds, where an answer is one text."""


def merged(api: Api, said: Sequence[JsonObject], tool: str, *, ends: bool = False) -> JsonObject:
    """One answer for the client from those of all rounds. `ends`: the last one only has calls of ours."""
    shown = [without_calls(api, one, tool, ends=ends) for one in said]
    last = {**shown[-1], "usage": summed([one.get("usage") for one in said])}
    if api == "messages":
        rounds = [part for one in said for part in _iterations(as_object(one.get("usage")))]
        usage = {**last["usage"], "iterations": rounds} if len(said) > 1 else last["usage"]
        content = [block for one in shown for block in objects_of(one.get("content"))]
        return {**last, "id": shown[0].get("id"), "content": content, "usage": usage}
    if api == "responses":  # its first event has the id, and clients check it
        return {
            **without_echo(api, last, tool),
            "id": shown[0].get("id"),
            "output": [item for one in shown for item in objects_of(one.get("output"))],
        }
    texts = [text for one in shown if isinstance(text := said_in_chat(one).get("content"), str) and text]
    first, *others = objects_of(last.get("choices"))
    message = {**as_object(first.get("message")), "content": _BETWEEN.join(texts) or None}
    return {**last, "id": shown[0].get("id"), "choices": [{**first, "message": message}, *others]}


def summed(usages: Sequence[Json]) -> JsonObject:
    """The usage of all rounds. The last one counts for what is not a number."""
    total: JsonObject = {}
    for usage in usages:
        for key, value in as_object(usage).items():
            before = total.get(key)
            if isinstance(value, dict):
                total[key] = summed([before, value])
            elif _is_number(value) and _is_number(before):
                total[key] = before + value
            elif value is not None or key not in total:
                total[key] = value
    return total


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _iterations(usage: JsonObject) -> list[JsonObject]:
    """The rounds of one request, as the Messages API reports them for tools of the server."""
    return objects_of(usage.get("iterations")) or [{"type": "message", **usage}]


# Streams.


class Events:
    """Splits a stream into its events."""

    def __init__(self) -> None:
        self._event, self._line = bytearray(), bytearray()
        self._says = False

    @property
    def size(self) -> int:
        """Bytes of the event that is not whole yet."""
        return len(self._event) + len(self._line)

    def take(self, chunk: bytes) -> Iterator[bytes]:
        """The events that are whole now, each with the empty line after it."""
        self._line += chunk
        if b"\n" not in chunk:
            return
        lines = bytes(self._line).splitlines(keepends=True)
        self._line = bytearray() if lines[-1].endswith(b"\n") else bytearray(lines.pop())
        for line in lines:
            self._event += line
            if line not in (b"\n", b"\r\n"):
                self._says = True
            elif self._says:  # empty lines alone do not end one
                event, self._event, self._says = bytes(self._event), bytearray(), False
                yield event

    def rest(self) -> bytes:
        """What came after the last event."""
        rest = bytes(self._event + self._line)
        self._event, self._line, self._says = bytearray(), bytearray(), False
        return rest


def read_event(raw: bytes) -> JsonObject | None:
    """What an event says; None if it is not an object."""
    data = b"\n".join(line[5:].strip() for line in raw.splitlines() if line.startswith(b"data:"))
    try:
        return as_object(load_json(data)) or None
    except Unparsable:
        return None


def write_event(event: JsonObject) -> bytes:
    head = f"event: {event['type']}\n".encode() if "type" in event else b""
    return head + b"data: " + dump(event, finite=False) + b"\n\n"


class Merging(Protocol):
    """Makes one stream of several."""

    def begin(self) -> None:
        """Another round begins; the end of the last one is not shown."""
        ...

    def take(self, raw: bytes) -> bytes:
        """What the client gets for an event, now."""
        ...

    def end(self, shown: JsonObject | None) -> bytes:
        """The end of the last round, which was held back. `shown`: the whole answer, if the client gets another one
        than the server gave."""
        ...

    def fail(self, error: JsonObject) -> bytes:
        """The event that ends this answer."""
        ...


class _MessagesStream:
    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._shown = 0
        self._places = dict[str, int | None]()
        self._is_first = True
        self._held = list[bytes]()

    def begin(self) -> None:
        self._is_first = False
        self._places.clear()
        self._held.clear()

    def take(self, raw: bytes) -> bytes:
        event = read_event(raw) or {}
        kind = str(event.get("type"))
        if kind == "message_start":
            return raw if self._is_first else b""
        if kind in ("message_delta", "message_stop"):
            self._held.append(raw)
            return b""
        if not kind.startswith("content_block_"):
            return raw
        index: Json = event.get("index")
        if kind == "content_block_start":
            is_own = is_own_block(as_object(event.get("content_block")), self._tool)
            self._places[str(index)] = None if is_own else self._shown
            self._shown += not is_own
        place = self._places.get(str(index), index)
        if place is None:
            return b""
        return raw if place == index else write_event({**event, "index": place})

    def end(self, shown: JsonObject | None) -> bytes:
        return b"".join(raw if shown is None else self._shown_end(raw, shown) for raw in self._held)

    def _shown_end(self, raw: bytes, shown: JsonObject) -> bytes:
        event = read_event(raw) or {}
        if event.get("type") != "message_delta":
            return raw
        kept = {*as_object(event.get("usage")), "input_tokens", "output_tokens", "iterations"}
        usage = {key: value for key, value in as_object(shown.get("usage")).items() if key in kept}
        delta = {**as_object(event.get("delta")), "stop_reason": shown.get("stop_reason")}
        return write_event({**event, "delta": delta, "usage": usage})

    def fail(self, error: JsonObject) -> bytes:
        return write_event({"type": "error", "error": {"type": error["type"], "message": error["message"]}})


class _ChatStream:
    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._taken = ToolCalls()
        self._shown = 0
        self._places = dict[int, int | None]()
        self._id: Json = None
        self._is_first = True
        self._said = self._waits = False
        """Whether a text was shown; and whether it is of an earlier round, and the next one needs a gap."""
        self._held = list[bytes]()

    def begin(self) -> None:
        self._is_first = False
        self._waits = self._said
        self._taken = ToolCalls()
        self._shown = 0
        self._places.clear()
        self._held.clear()

    def take(self, raw: bytes) -> bytes:
        event = read_event(raw)
        if event is None and b"[DONE]" not in raw:
            return raw
        if event is None or not (choices := objects_of(event.get("choices"))):
            self._held.append(raw)  # the usage, and the last line
            return b""
        choice, delta = choices[0], as_object(choices[0].get("delta"))
        self._id = self._id or event.get("id")
        now = self._changed(delta)
        if choice.get("finish_reason") is None:
            return raw if now == delta and self._is_first else self._chunk(event, choice, now)
        says_more = any(now.get(key) for key in ("content", "tool_calls", "refusal"))
        if not says_more and self._is_first:
            self._held.append(raw)
            return b""
        self._held.append(self._chunk(event, choice, {}, ends=True))
        return self._chunk(event, {**choice, "finish_reason": None}, now) if says_more else b""

    def _changed(self, delta: JsonObject) -> JsonObject:
        """A delta without calls of ours; in later rounds without a role, and with a gap before its first text."""
        now = dict(delta)
        if (given := objects_of(delta.get("tool_calls"))) and (calls := list(self._calls(given))) != given:
            now = {**now, "tool_calls": calls} if calls else {k: v for k, v in now.items() if k != "tool_calls"}
        if not self._is_first:
            now = {key: value for key, value in now.items() if key != "role" and value not in (None, "", [])}
        if isinstance(text := now.get("content"), str) and text:
            now["content"] = f"{_BETWEEN}{text}" if self._waits else text
            self._waits, self._said = False, True
        return now

    def _calls(self, given: Sequence[JsonObject]) -> Iterator[JsonObject]:
        for call in given:
            number, begins = self._taken.take(call)
            if begins:
                is_own = self._taken.calls[number].name == self._tool
                self._places[number] = None if is_own else self._shown
                self._shown += not is_own
            if (place := self._places[number]) is not None:
                yield call if place == call.get("index") else {**call, "index": place}

    def _chunk(self, event: JsonObject, choice: JsonObject, delta: JsonObject, *, ends: bool = False) -> bytes:
        if not delta and not ends:
            return b""
        return write_event({**event, "id": self._id, "choices": [{**choice, "delta": delta}]})

    def end(self, shown: JsonObject | None) -> bytes:
        return b"".join(raw if shown is None else self._shown_end(raw, shown) for raw in self._held)

    def _shown_end(self, raw: bytes, shown: JsonObject) -> bytes:
        event = read_event(raw)
        if event is None:
            return raw
        if event.get("usage") is not None:
            event = {**event, "usage": shown.get("usage")}
        if choices := objects_of(event.get("choices")):
            (end, *_) = objects_of(shown.get("choices"))
            event = {**event, "choices": [{**choices[0], "finish_reason": end.get("finish_reason")}]}
        return write_event({**event, "id": self._id})

    def fail(self, error: JsonObject) -> bytes:
        return write_event({"error": error})  # its type is inside


class _ResponsesStream:
    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._shown = 0
        self._number: int | None = None
        self._places = dict[str, int | None]()
        self._is_first = True
        self._held = list[bytes]()
        self._response: JsonObject = {}

    def begin(self) -> None:
        self._is_first = False
        self._places.clear()
        self._held.clear()

    def take(self, raw: bytes) -> bytes:
        event: JsonObject = read_event(raw) or {}
        kind, response = str(event.get("type")), as_object(event.get("response"))
        if (plain := without_echo("responses", response, self._tool)) is not response:
            raw, response = b"", plain
            event["response"] = plain
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._response = self._response or response
            return self._counted(raw, event) if self._is_first else b""
        if kind in ("response.completed", "response.incomplete"):
            self._held.append(raw or write_event(event))
            return b""
        if (index := event.get("output_index")) is None:
            return self._counted(raw, event)
        if kind == "response.output_item.added":
            is_own = is_own_block(as_object(event.get("item")), self._tool)
            self._places[str(index)] = None if is_own else self._shown
            self._shown += not is_own
        place = self._places.get(str(index), index)
        if place is None:
            return b""
        return self._counted(raw, event) if place == index else self._counted(b"", {**event, "output_index": place})

    def _counted(self, raw: bytes, event: JsonObject) -> bytes:
        """The event with the next number of this stream: as it is if it has that, or none."""
        if not isinstance(given := event.get("sequence_number"), int):
            return raw or write_event(event)
        number = given if self._number is None else self._number
        self._number = number + 1
        if raw and given == number:
            return raw
        return write_event({**event, "sequence_number": number})

    def end(self, shown: JsonObject | None) -> bytes:
        made = b""
        for raw in self._held:
            event = read_event(raw) or {}
            made += self._counted(raw, event) if shown is None else self._counted(b"", {**event, "response": shown})
        return made

    def fail(self, error: JsonObject) -> bytes:
        told = {"code": error["type"], "message": error["message"]}
        response: dict[str, Any] = {**self._response, "status": "failed", "error": told}
        return self._counted(b"", {"type": "response.failed", "response": response, "sequence_number": 0})


_STREAMS = {"messages": _MessagesStream, "chat": _ChatStream, "responses": _ResponsesStream}


def merging(api: Api, tool: str) -> Merging:
    """Makes the stream of a client, for one answer."""
    return _STREAMS[api](tool)
