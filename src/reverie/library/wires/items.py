"""The rest of an item: what it has beyond the texts that became blocks, and the way back to the whole item.

The rest travels in the first block of the item, under one reserved key: the item without its long texts, and the place
of each. So it survives the transcript, and no text is stored twice. Arguments of a call are stored as parsed JSON with
the number of the style in which they were written; only if no style fits, the text is stored as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias, cast

from reverie.library.wires.base import counted, take_origin
from reverie.models.base import UNPARSED_INPUT
from reverie.models.openai_wire import image_url
from reverie.models.wire import as_object, read_input
from reverie.quick import dataclass
from reverie.types import (
    ITEM,
    Block,
    DocumentBlock,
    ImageBlock,
    Json,
    JsonObject,
    Origin,
    OtherBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

Path: TypeAlias = list[str | int]
Kind: TypeAlias = Literal["text", "image", "document"]
PartTable: TypeAlias = Mapping[str, tuple[Kind, tuple[str, ...]]]
"""By type of part: the block that it becomes, and where its text is."""

_DATA = re.compile(r"data:(image/(?:jpeg|png|gif|webp)|application/pdf);base64,([^\s;,]+)")
_STYLES: tuple[JsonObject, ...] = (
    {"ensure_ascii": False, "separators": (",", ":")},
    {"ensure_ascii": False},
    {"separators": (",", ":")},
    {},
)
_AS_OBJECT, _AS_TEXT = 4, 5
"""Styles of arguments that were given as an object, or that are not JSON at all."""


@dataclass(slots=True)
class ItemReader:
    """Takes the blocks out of one item. What is left is the rest of the item."""

    item: JsonObject
    table: PartTable
    texts_only: bool = False
    blocks: list[Block] = field(default_factory=list[Block])
    at: list[Path] = field(default_factory=list[Path])
    more: JsonObject = field(default_factory=dict[str, Any])

    def take_content(self, key: str, origin: Origin) -> None:
        """Takes a text, or the parts of a list. Blank texts stay in the rest."""
        given: Json = self.item.get(key)
        if isinstance(given, list):
            parts = cast("list[Json]", given)
            for number in range(len(parts)):
                self._add(self._take_part(parts, number, origin), [key, number])
        elif isinstance(given, str) and given.strip():
            self.item[key] = ""
            self._add(TextBlock(given, origin), [key])

    def take_call(self, path: Path, call: str, name: str, holder: JsonObject, key: str) -> None:
        """Takes a tool call. `holder` has its input under `key`."""
        given: Json = holder.get(key)
        if key == "arguments":
            parsed, style = read_arguments(given)
        else:
            parsed, style = {key: given}, 0
        holder[key] = None
        if style != 0:
            styles = cast(JsonObject, self.more.setdefault("styles", {}))
            styles[str(path[-1] if path else 0)] = style
        self._add(ToolUseBlock(call, name, parsed), path)

    def take_result(self, call: str, key: str, origin: Origin) -> None:
        """Takes a tool result."""
        given: Json = self.item.get(key)
        content: str | tuple[Block, ...] | None = None
        if isinstance(given, str):
            content, self.item[key] = given, ""
        elif isinstance(given, list):
            parts = cast("list[Json]", given)
            found = [(number, self._take_part(parts, number, origin)) for number in range(len(parts))]
            content = tuple(block for _, block in found if block is not None)
            self.more["inner"] = [number for number, block in found if block is not None]
        self._add(ToolResultBlock(call, content, origin=origin), [key])

    def _take_part(self, parts: list[Json], number: int, origin: Origin) -> Block | None:
        part: Json = parts[number]
        given = as_object(part)
        own = take_origin(given, origin)
        kind, path = self.table.get(str(given.get("type")), ("", ("",)))
        holder = given
        for key in path[:-1]:
            holder = as_object(holder.get(key))
        value: Json = holder.get(path[-1])
        if kind == "text" and isinstance(value, str):
            if not value.strip():
                return None
            holder[path[-1]] = ""
            return TextBlock(value, own)
        if self.texts_only:
            return None
        source = _source(kind, value) if isinstance(value, str) else None
        if source is not None:
            holder[path[-1]] = ""
            return ImageBlock(source, own) if kind == "image" else DocumentBlock(source, own)
        parts[number] = None
        return OtherBlock({"type": ITEM, "part": part}, own)

    def _add(self, block: Block | None, path: Path) -> None:
        if block is not None:
            self.blocks.append(block)
            self.at.append(path)

    def done(self) -> tuple[Block, ...]:
        """Returns the blocks, with the rest of the item in the first."""
        if not self.blocks:
            return ()
        return (carrying(self.blocks[0], {"item": self.item, "at": self.at, **self.more}), *self.blocks[1:])


def foreign(item: JsonObject, api: str, origin: Origin = Origin.CODE) -> OtherBlock:
    """Returns a whole item that only its own API understands."""
    return OtherBlock({"type": ITEM, "api": api, "item": item}, origin)


def carrying(block: Block, rest: JsonObject) -> Block:
    """Returns the block with the rest of its item."""
    if isinstance(block, OtherBlock):
        return OtherBlock({**block.raw, ITEM: rest}, block.origin)
    return replace(block, extra={**block.extra, ITEM: rest})


def rest_of(block: Block) -> JsonObject | None:
    """Returns the rest of the item that begins with this block, or None."""
    if isinstance(block, OtherBlock):
        raw = as_object(block.raw)
        if raw.get("type") == ITEM and isinstance(raw.get("item"), dict):
            return {"item": raw["item"], "at": []}
        rest = as_object(raw.get(ITEM))
    else:
        rest = as_object(block.extra.get(ITEM))
    return rest if isinstance(rest.get("item"), dict) and isinstance(rest.get("at"), list) else None


def split_items(blocks: Sequence[Block]) -> Iterator[tuple[JsonObject | None, Sequence[Block]]]:
    """Yields the items of a message, each with its blocks; a block that belongs to no item by itself."""
    start = 0
    while start < len(blocks):
        rest, end = rest_of(blocks[start]), start + 1
        last = start + len(rest["at"]) if rest is not None else end
        while end < min(last, len(blocks)) and rest_of(blocks[end]) is None:
            end += 1
        yield rest, blocks[start:end]
        start = end


def copied(value: Json) -> Json:
    """Returns a copy of a JSON value that can be changed."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in cast(JsonObject, value).items()}
    return [copied(part) for part in cast("list[Json]", value)] if isinstance(value, list) else value


def says_nothing(item: JsonObject, *but: str) -> bool:
    """Whether an item without blocks has no other field that says something."""
    return not any(counted(value) not in (None, "", [], {}) for key, value in item.items() if key not in but)


# -- parts ----------------------------------------------------------------------------------------------------------


def fill_part(part: Json, block: Block, table: PartTable, text_type: str) -> Json:
    """Returns a part with the text of its block; another part if a layer changed the kind of block."""
    if isinstance(block, OtherBlock):
        return as_object(block.raw).get("part")
    given = as_object(part)
    kind, path = table.get(str(given.get("type")), ("", ("text",)))
    if isinstance(block, TextBlock):
        if kind != "text":
            return {"type": text_type, "text": block.text}
        value = block.text
    else:
        value = image_url(as_object(getattr(block, "source", None)))
    holder = given
    for key in path[:-1]:
        holder = as_object(holder.get(key))
    holder[path[-1]] = value
    return given


def _source(kind: str, value: str) -> JsonObject | None:
    """Returns the source of an image or document in the form of the Messages API, if it has one."""
    found = _DATA.fullmatch(value)
    if found is not None and found[1].startswith("image/") == (kind == "image"):
        return {"type": "base64", "media_type": found[1], "data": found[2]}
    is_link = kind == "image" and value.startswith(("https://", "http://"))
    return {"type": "url", "url": value} if is_link else None


# -- arguments ------------------------------------------------------------------------------------------------------


def read_arguments(given: Json) -> tuple[Json, int | str]:
    """Returns the input of a call, and the style in which it was written: a number, or the text itself."""
    if not isinstance(given, str):
        return given, _AS_OBJECT
    parsed = read_input(given)
    if parsed == {UNPARSED_INPUT: given}:
        return parsed, _AS_TEXT
    fits = (number for number, style in enumerate(_STYLES) if json.dumps(parsed, **style) == given)
    return parsed, next(fits, given)


def write_arguments(given: Json, style: Json) -> Json:
    """Returns the input of a call as it was written."""
    if isinstance(style, str):
        return style
    if style == _AS_OBJECT:
        return given
    if style == _AS_TEXT:
        return as_object(given).get(UNPARSED_INPUT)
    return json.dumps(given, **_STYLES[style if isinstance(style, int) and style < len(_STYLES) else 0])


def style_of(rest: JsonObject, path: Path) -> Json:
    """Returns the style of the arguments of the call at this path."""
    return as_object(rest.get("styles")).get(str(path[-1] if path else 0), 0)
