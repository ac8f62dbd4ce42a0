"""What the two APIs of OpenAI share: lists of items with rests, tools, system items, and the order of results.

An item that no layer changed is written as the caller gave it. What a view repairs (0041) is different in the body: an
orphaned or second result and an item that says nothing are left out, a call without a result gets one that says so, and
a list that begins with the assistant gets a user item before it.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, cast

from reverie.library.wires.base import (
    GivenMessage,
    GivenSystem,
    fingerprint,
    plain,
    plain_items,
    plain_object,
    request_id,
)
from reverie.library.wires.items import (
    ItemReader,
    PartTable,
    Path,
    carrying,
    copied,
    fill_part,
    foreign,
    rest_of,
    split_items,
)
from reverie.models.base import Request, Response
from reverie.models.openai_items import read_usage
from reverie.models.wire import as_object, model_id
from reverie.types import (
    ITEM,
    Block,
    Json,
    JsonObject,
    Message,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    without_item,
)

Group: TypeAlias = tuple[JsonObject | None, Sequence[Block]]
"""The rest of an item, if there is one, and its blocks."""

WrittenCall: TypeAlias = tuple[str, str]
"""The id of a call for its server, which can be another one than ours (`calls.py`), and the type of its item."""

_SYSTEM = ("system", "developer")
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TOOL_KEYS = {"name": "name", "description": "description", "parameters": "input_schema"}


class ItemWire(ABC):
    """One of the two APIs."""

    name: ClassVar[str]
    table: ClassVar[PartTable]
    text_type: ClassVar[str]
    """The type of a text part of the user."""
    results_first: ClassVar[bool] = False
    """Whether results must directly follow their calls."""

    # -- reading --------------------------------------------------------------------------------------------------

    def read_system(self, system: object, raw: object) -> GivenSystem:
        given = plain(system, "system")
        parts = cast("list[Json]", given) if isinstance(given, list) else [{"text": given}]
        texts = [text for part in parts if isinstance(text := as_object(part).get("text"), str) and text]
        own, rests = len(texts), list[JsonObject]()
        for item in self._leading(plain_items(raw)):
            reader = ItemReader(item, self.table, texts_only=True)
            reader.take_content("content", Origin.CODE)
            texts += [block.text for block in reader.blocks if isinstance(block, TextBlock)]
            rests.append({"item": item, "at": reader.at})
        return GivenSystem(tuple(texts), {"given": own, "items": rests})

    def read_messages(self, raw: object, *, continued: bool = False) -> list[GivenMessage]:
        items = plain_items(raw)
        found, waiting = list[GivenMessage](), list[Block]()
        results = others = 0
        for item in items if continued else items[len(self._leading(items)) :]:
            name = item.get("name") if item.get("role") in ("user", "assistant") else None
            role, blocks = self._read_item(item)
            if role == "assistant":
                results = others = 0
            elif blocks and isinstance(blocks[0], ToolResultBlock):
                blocks = (_placed(blocks[0], results, others),)
                results += 1
            elif blocks:
                others += 1
            if blocks and all(isinstance(block, ThinkingBlock) for block in blocks):
                waiting += blocks  # it belongs to the next item
                continue
            if waiting and role == "user":
                found.append(GivenMessage(Message("assistant", tuple(waiting)), ""))
                waiting = []
            message = Message(role, (*waiting, *blocks))
            found.append(GivenMessage(message, fingerprint(role, blocks, name)))
            waiting = []
        if waiting:
            found.append(GivenMessage(Message("assistant", tuple(waiting)), ""))
        return found

    def read_tools(self, tools: object) -> tuple[JsonObject, ...]:
        return tuple(self._read_tool(tool) for tool in plain_items(tools, "tools"))

    def read_response(self, response: object) -> Response:
        given = plain_object(response, "response")
        content = tuple(block for one in self.read_answer(given) for block in one.message.content)
        usage = as_object(given.get("usage"))
        return Response(
            # Two responses without an id are two responses.
            id=str(given.get("id") or f"answer-{uuid.uuid4().hex}"),
            model=str(given.get("model") or ""),
            content=content,
            stop_reason=self._stop_reason(given, content),
            usage=read_usage(usage) or Usage(),
            request_id=request_id(response),
            raw_usage={key: value for key, value in usage.items() if key not in ("input_tokens", "output_tokens")},
        )

    @abstractmethod
    def read_answer(self, response: object) -> list[GivenMessage]: ...

    @abstractmethod
    def _stop_reason(self, given: JsonObject, content: Sequence[Block]) -> str: ...

    @abstractmethod
    def _read_item(self, item: JsonObject) -> tuple[Role, tuple[Block, ...]]: ...

    def _foreign(self, item: JsonObject, role: Role = "user") -> tuple[Role, tuple[Block, ...]]:
        return role, (foreign(item, self.name, Origin.MODEL if role == "assistant" else Origin.CODE),)

    def _leading(self, items: list[JsonObject]) -> list[JsonObject]:
        """Returns the system items at the start."""
        count = 0
        while count < len(items) and items[count].get("role") in _SYSTEM:
            count += 1
        return items[:count]

    def _read_tool(self, tool: JsonObject) -> JsonObject:
        function = self._function(tool)
        if function is None or not isinstance(function.get("parameters", {}), dict):
            return {**tool, "name": tool.get("name") or str(tool.get("type")), ITEM: {"keys": list(tool)}}
        inner: JsonObject = {}
        for theirs, ours in _TOOL_KEYS.items():
            if function.get(theirs) is not None:
                inner[ours], function[theirs] = function[theirs], None
        return {"input_schema": {"type": "object", "properties": {}}, **inner, ITEM: {"item": tool}}

    @abstractmethod
    def _function(self, tool: JsonObject) -> JsonObject | None:
        """Returns the part of a tool with name, description and schema; None for other kinds of tools."""

    # -- writing --------------------------------------------------------------------------------------------------

    def write_tools(self, tools: Sequence[JsonObject]) -> list[JsonObject]:
        return [self._write_tool(tool) for tool in tools]

    def _write_tool(self, tool: JsonObject) -> JsonObject:
        rest = as_object(tool.get(ITEM))
        if "keys" in rest:
            return {key: tool[key] for key in rest["keys"]}
        item = copied(rest.get("item"))
        function = self._function(item) if item else None
        if function is None:
            return self._new_tool(without_item(tool))
        for theirs, ours in _TOOL_KEYS.items():
            if theirs in function and function[theirs] is None and ours in tool:
                function[theirs] = tool[ours]
        return item

    @abstractmethod
    def _new_tool(self, tool: JsonObject) -> JsonObject: ...

    def _body(self, request: Request, extra: Mapping[str, Any] | None, parts: JsonObject, limit: str) -> JsonObject:
        # All other settings are the caller's: they are in `extra`, in the form of their API.
        made: JsonObject = {"model": model_id(request.model), **parts}
        if request.tools:
            made["tools"] = self.write_tools(request.tools)
        given = dict(extra or {})
        if not any(given.get(name) is not None for name in _LIMITS):
            made[limit] = request.max_tokens
        return {**made, **given}

    def _write_system(self, texts: Sequence[str], form: JsonObject | None) -> tuple[list[str], list[JsonObject]]:
        """Returns the texts that were given as the system prompt, and the system items."""
        rests = cast("list[JsonObject]", (form or {}).get("items") or [])
        own = int((form or {}).get("given") or 0)
        if own + sum(len(rest["at"]) for rest in rests) != len(texts):
            return list(texts), []
        items, at = list[JsonObject](), own
        for rest in rests:
            blocks = [TextBlock(text) for text in texts[at : at + len(rest["at"])]]
            items.append(self._fill(rest, blocks))
            at += len(blocks)
        return list(texts[:own]), items

    def _write_items(self, messages: Sequence[Message]) -> list[JsonObject]:
        items, calls = list[JsonObject](), dict[str, WrittenCall]()
        for message in messages:
            groups = list(split_items(message.content))
            groups = self._in_order(groups) if message.role == "user" else self._answer_groups(groups)
            held = list[Block]()
            for rest, blocks in groups:
                item = self._whole(rest, blocks, calls) if rest is not None else None
                if item is None and message.role == "assistant":
                    held += blocks
                    continue
                items += self._new_answer(held)
                held = []
                items += [item] if item else [new for block in blocks for new in self._new_items(block, calls)]
            items += self._new_answer(held)
        return items

    def _in_order(self, groups: list[Group]) -> list[Group]:
        """Returns the items of the user in the order in which they came: the view has sorted the results by call."""
        results = [group for group in groups if isinstance(group[1][0], ToolResultBlock)]
        slots = [number for number, (rest, _) in enumerate(results) if rest is not None]
        came = sorted((results[number] for number in slots), key=lambda group: _number(group, "place"))
        for number, group in zip(slots, came, strict=True):
            results[number] = group
        others = [group for group in groups if not isinstance(group[1][0], ToolResultBlock)]
        if self.results_first:
            return results + others
        ordered, seen = list[Group](), 0
        for group in others:
            ordered += [one for one in results if _number(one, "after") <= seen]
            results = [one for one in results if _number(one, "after") > seen]
            ordered.append(group)
            seen += group[0] is not None
        return ordered + results

    def _answer_groups(self, groups: list[Group]) -> list[Group]:
        return groups

    def _whole(self, rest: JsonObject, blocks: Sequence[Block], calls: dict[str, WrittenCall]) -> JsonObject | None:
        """Returns the whole item, and notes its calls; None if the rest was damaged in the transcript."""
        try:
            item = self._fill(rest, blocks)
            for path, block in zip(rest["at"], blocks, strict=False):
                if isinstance(block, ToolUseBlock):
                    calls[block.id] = self._written_call(item, path)
            return item
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return None

    def _fill(self, rest: JsonObject, blocks: Sequence[Block]) -> JsonObject:
        item = cast(JsonObject, copied(rest["item"]))
        at = cast("list[Path]", rest["at"])
        for path, block in zip(at, blocks, strict=False):
            if isinstance(block, ToolResultBlock):
                self._fill_result(item, str(path[0]), block, rest)
            elif len(path) == 1 and isinstance(block, TextBlock):
                item[str(path[0])] = block.text
            elif len(path) == 2 and path[0] == "content":
                parts = cast("list[Json]", item["content"])
                parts[int(path[1])] = fill_part(parts[int(path[1])], block, self.table, self.text_type)
            else:
                self._fill_call(item, path, block, rest)
        return item

    @abstractmethod
    def _written_call(self, item: JsonObject, path: Path) -> WrittenCall: ...

    @abstractmethod
    def _fill_call(self, item: JsonObject, path: Path, block: Block, rest: JsonObject) -> None: ...

    def _fill_result(self, item: JsonObject, key: str, block: ToolResultBlock, rest: JsonObject) -> None:
        content, inner = block.content, cast("list[int]", rest.get("inner") or [])
        if isinstance(content, str):
            item[key] = content
        elif content and len(content) == len(inner) and isinstance(item.get(key), list):
            parts = cast("list[Json]", item[key])
            for number, part in zip(inner, content, strict=True):
                parts[number] = fill_part(parts[number], part, self.table, self.text_type)
        elif content:
            item[key] = block.text

    @abstractmethod
    def _new_answer(self, blocks: Sequence[Block]) -> list[JsonObject]:
        """Returns items for what an assistant said, if it did not come with an item."""

    @abstractmethod
    def _new_items(self, block: Block, calls: Mapping[str, WrittenCall]) -> list[JsonObject]:
        """Returns items of the user for a block that Reverie added."""


def _placed(block: ToolResultBlock, place: int, after: int) -> Block:
    """Returns a result that knows how many results and how many other items came before it."""
    rest = rest_of(block) or {}
    return carrying(block, {**rest, **{key: count for key, count in (("place", place), ("after", after)) if count}})


def _number(group: Group, key: str) -> int:
    value = (group[0] or {}).get(key)
    return value if isinstance(value, int) else 0
