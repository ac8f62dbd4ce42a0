"""Reads messages of clients that send their whole history again and again: what came before is not read twice.

An item is known if it equals the one at the same place of an earlier request. Equality is exact, so a known message is
always the one that reading would give. Items must not be changed after they were read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from itertools import zip_longest
from typing import Final, cast

from reverie.library.wires.base import GivenMessage, Wire
from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.types import Json, JsonObject

_MOST_BYTES: Final = 8_000_000
"""Twenty conversations of 100,000 tokens at a time; what does not fit is read again."""
_SHOWN = 400
_START = 2
"""Messages that tell conversations apart here: the first prompt and its answer."""


class ReadItems(list[JsonObject]):
    """Items of a client, with the messages that were read from them."""

    def __init__(self, items: Sequence[JsonObject], given: Sequence[GivenMessage]) -> None:
        super().__init__(items)
        self.given = given


@dataclass(frozen=True, slots=True)
class _Request:
    size: int
    items: Sequence[JsonObject]
    given: Sequence[GivenMessage]


class Readings:
    """The last request of each conversation, up to a number of bytes, for one client or for several that share nothing.
    Wires whose messages depend on those before them are read whole."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._known = OrderedDict[Hashable, _Request]()

    def read(self, wire: Wire, items: Sequence[JsonObject], size: int, *, of: str = "") -> ReadItems:
        """Reads the items of a request of this many bytes. `of`: whose it is."""
        if wire.name != "messages" or len(items) <= _START:
            return ReadItems(items, wire.read_messages(items))
        key = (of, wire.name, *(_shown(item) for item in items[:_START]))
        before = self._known.pop(key, None)
        if before is not None:
            self._size -= before.size
        old = zip(before.items, before.given, strict=True) if before is not None else ()
        kept, given = list[JsonObject](), list[GivenMessage]()
        for item, known in zip_longest(items, list(old)[: len(items)]):
            if known is not None and known[0] == item:
                kept.append(known[0])
                given.append(known[1])
            else:
                kept.append(item)
                given += wire.read_messages([item])
        if size <= self._most:
            self._known[key] = _Request(size, kept, given)
            self._size += size
        while self._size > self._most:
            self._size -= self._known.popitem(last=False)[1].size
        return ReadItems(items, given)


def _shown(item: JsonObject) -> Hashable:
    """A short key of a message: its first text or the id of its first call."""
    content = item.get("content")
    if isinstance(content, str):
        return content[:_SHOWN]
    first = as_object(next(iter(cast("list[Json]", content)), None) if isinstance(content, list) else None)
    return str(first.get("text") or first.get("id") or first.get("type"))[:_SHOWN]
