"""The chat-completions API: one item per message, with calls inside and results apart.

Not kept: a blank text in an item that says nothing else (the item is left out), an item between calls and their results
(it follows the results), and `reverie_origin`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from reverie.library.wires.base import GivenMessage, fingerprint, plain_object, take_origin
from reverie.library.wires.item_wire import ItemWire, WrittenCall
from reverie.library.wires.items import ItemReader, PartTable, Path, says_nothing, style_of, write_arguments
from reverie.models import openai_wire
from reverie.models.base import Request
from reverie.models.openai_items import STOP_REASONS
from reverie.models.wire import as_object, model_id
from reverie.types import Block, Json, JsonObject, Message, Origin, Role, ToolResultBlock, ToolUseBlock

_OWN_MODELS = re.compile(r"(?!gpt-oss)(?:gpt-|chatgpt-|codex-|o\d)")


class ChatWire(ItemWire):
    """The items of chat completions."""

    name: ClassVar[str] = "chat"
    table: ClassVar[PartTable] = {
        "text": ("text", ("text",)),
        "refusal": ("text", ("refusal",)),
        "image_url": ("image", ("image_url", "url")),
        "file": ("document", ("file", "file_data")),
    }
    text_type: ClassVar[str] = "text"
    results_first: ClassVar[bool] = True

    def _read_item(self, item: JsonObject) -> tuple[Role, tuple[Block, ...]]:
        reader = ItemReader(item, self.table)
        match item:
            case {"role": "user"}:
                reader.take_content("content", take_origin(item, Origin.ENTERED))
            case {"role": "assistant"}:
                reader.take_content("content", take_origin(item, Origin.MODEL))
                reader.take_content("refusal", Origin.MODEL)
                calls = item.get("tool_calls")
                for number, call in enumerate(cast("list[Json]", calls) if isinstance(calls, list) else []):
                    _take_call(reader, number, as_object(call))
            case {"role": "tool", "tool_call_id": str(call)} if isinstance(item.get("content") or "", str | list):
                reader.take_result(call, "content", take_origin(item, Origin.TOOL))
            case _:
                return self._foreign(item)
        role: Role = "assistant" if item["role"] == "assistant" else "user"
        if not reader.blocks and not says_nothing(item, "role", "content", "name"):
            return self._foreign(item, role)
        return role, reader.done()

    def read_answer(self, response: object) -> list[GivenMessage]:
        choices = plain_object(response, "response").get("choices")
        for choice in cast("list[Json]", choices) if isinstance(choices, list) else []:
            said = as_object(as_object(choice).get("message"))
            item = {key: value for key, value in said.items() if value not in (None, []) or key == "content"}
            if isinstance(audio := item.get("audio"), dict):
                item["audio"] = {"id": cast(JsonObject, audio).get("id")}
            _, blocks = self._read_item({"role": "assistant", **item})
            return [GivenMessage(Message("assistant", blocks), fingerprint("assistant", blocks, item.get("name")))]
        return []

    def _stop_reason(self, given: JsonObject, content: Sequence[Block]) -> str:
        choices = cast("list[Json]", given.get("choices") or [{}])
        named = str(as_object(choices[0]).get("finish_reason") or "stop")
        stop = STOP_REASONS.get(named, named)
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        return "tool_use" if calls and stop == "end_turn" else stop

    def write_body(
        self, request: Request, extra: Mapping[str, Any] | None = None, system: JsonObject | None = None
    ) -> JsonObject:
        texts, items = self._write_system(request.system, system)
        first = [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
        limit = "max_completion_tokens" if _OWN_MODELS.match(model_id(request.model)) else "max_tokens"
        return self._body(request, extra, {"messages": [*first, *items, *self._write_items(request.messages)]}, limit)

    def _written_call(self, item: JsonObject, path: Path) -> WrittenCall:
        return str(item["tool_calls"][int(path[1])]["id"]), "function"

    def _fill_call(self, item: JsonObject, path: Path, block: Block, rest: JsonObject) -> None:
        if not isinstance(block, ToolUseBlock):
            return
        call = as_object(item["tool_calls"][int(path[1])])
        if call.get("type") == "custom":
            call["custom"] |= {"name": block.name, "input": as_object(block.input).get("input")}
        else:
            call["function"] |= {"name": block.name, "arguments": write_arguments(block.input, style_of(rest, path))}

    def _new_answer(self, blocks: Sequence[Block]) -> list[JsonObject]:
        return [openai_wire.assistant_item(Message("assistant", tuple(blocks)))] if blocks else []

    def _new_items(self, block: Block, calls: Mapping[str, WrittenCall]) -> list[JsonObject]:
        if isinstance(block, ToolResultBlock):
            call, _ = calls.get(block.tool_use_id, (block.tool_use_id, ""))
            return [{**openai_wire.result_item(block), "tool_call_id": call}]
        return [
            {"role": "user", "content": part["text"] if part["type"] == "text" else [part]}
            for part in openai_wire.user_parts(block)
        ]

    def _function(self, tool: JsonObject) -> JsonObject | None:
        function = tool.get("function")
        return cast(JsonObject, function) if isinstance(function, dict) else None

    def _new_tool(self, tool: JsonObject) -> JsonObject:
        return openai_wire.tool_item(tool)


def _take_call(reader: ItemReader, number: int, call: JsonObject) -> None:
    """Takes a call of a function or of a tool with free text; another one stays in the rest of the item."""
    match call:
        case {"id": str(name), "type": "custom", "custom": {"name": str(tool), "input": str()}}:
            reader.take_call(["tool_calls", number], name, tool, call["custom"], "input")
        case {"id": str(name), "function": {"name": str(tool), "arguments": str() | dict()}}:
            reader.take_call(["tool_calls", number], name, tool, call["function"], "arguments")
        case _:
            pass
