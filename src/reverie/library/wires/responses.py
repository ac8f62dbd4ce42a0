"""The Responses API: messages, calls, results and reasoning are items of their own.

Reasoning belongs to the item after it, and is left out if there is none. Not kept: a message that says nothing, and
`reverie_origin`. Items of kinds that we do not know pass unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from reverie.library.wires.base import GivenMessage, plain_object, take_origin
from reverie.library.wires.item_wire import Group, ItemWire, WrittenCall
from reverie.library.wires.items import ItemReader, PartTable, Path, style_of, write_arguments
from reverie.models import openai_wire
from reverie.models.base import Request
from reverie.models.openai_items import CALLS, RESULTS, STOP_REASONS
from reverie.models.wire import as_object
from reverie.types import (
    ITEM,
    Block,
    Json,
    JsonObject,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

_FROM_USER = ("mcp_approval_response",)


class ResponsesWire(ItemWire):
    """The items of the Responses API."""

    name: ClassVar[str] = "responses"
    table: ClassVar[PartTable] = {
        "input_text": ("text", ("text",)),
        "output_text": ("text", ("text",)),
        "refusal": ("text", ("refusal",)),
        "input_image": ("image", ("image_url",)),
        "input_file": ("document", ("file_data",)),
    }
    text_type: ClassVar[str] = "input_text"

    def _read_item(self, item: JsonObject) -> tuple[Role, tuple[Block, ...]]:
        kind = str(item.get("type") or "message")
        reader = ItemReader(item, self.table)
        if kind == "message" and item.get("role") in ("user", "assistant"):
            role: Role = item["role"]
            reader.take_content("content", take_origin(item, Origin.ENTERED if role == "user" else Origin.MODEL))
            return role, reader.done()
        if kind == "reasoning":
            return "assistant", (ThinkingBlock("", extra={ITEM: {"item": item, "at": [[]]}}),)
        call, field = item.get("call_id"), CALLS.get(kind, "output")
        wanted = dict if kind == "local_shell_call" else str
        if kind in CALLS and isinstance(call, str) and isinstance(item.get(field), wanted):
            reader.take_call([], call, str(item.get("name") or "local_shell"), item, field)
            return "assistant", reader.done()
        if kind in RESULTS and isinstance(call, str) and isinstance(item.get("output") or "", str | list):
            reader.take_result(call, "output", take_origin(item, Origin.TOOL))
            return "user", reader.done()
        is_users = kind == "message" or kind.endswith("_output") or kind in _FROM_USER
        return self._foreign(item, "user" if is_users else "assistant")

    def read_answer(self, response: object) -> list[GivenMessage]:
        output = plain_object(response, "response").get("output")
        items = [as_object(item) for item in cast("list[Json]", output)] if isinstance(output, list) else []
        said = [{key: value for key, value in item.items() if value is not None} for item in items]
        return self.read_messages(said, continued=True)

    def _stop_reason(self, given: JsonObject, content: Sequence[Block]) -> str:
        reason = as_object(given.get("incomplete_details")).get("reason")
        if reason:
            return STOP_REASONS.get(str(reason), str(reason))
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        return "tool_use" if calls else "end_turn"

    def write_body(
        self, request: Request, extra: Mapping[str, Any] | None = None, system: JsonObject | None = None
    ) -> JsonObject:
        texts, items = self._write_system(request.system, system)
        parts: JsonObject = {"instructions": "\n\n".join(texts)} if texts else {}
        given = self._write_items(request.messages)
        if (extra or {}).get("store") is False:  # the server does not know reasoning by its id
            given = [item for item in given if item.get("type") != "reasoning" or item.get("encrypted_content")]
        parts["input"] = [*items, *given]
        return self._body(request, extra, parts, "max_output_tokens")

    def _answer_groups(self, groups: list[Group]) -> list[Group]:
        """Leaves out reasoning that no item follows: the API refuses it."""
        kept = list[Group]()
        for group in reversed(groups):
            if not isinstance(group[1][0], ThinkingBlock) or (kept and kept[-1][0] is not None):
                kept.append(group)
        return kept[::-1]

    def _written_call(self, item: JsonObject, path: Path) -> WrittenCall:
        return str(item["call_id"]), str(item["type"])

    def _fill_call(self, item: JsonObject, path: Path, block: Block, rest: JsonObject) -> None:
        if not isinstance(block, ToolUseBlock):
            return
        field = CALLS.get(str(item.get("type")), "arguments")
        if field == "arguments":
            item[field] = write_arguments(block.input, style_of(rest, path))
        else:
            item[field] = as_object(block.input).get(field)

    def _new_answer(self, blocks: Sequence[Block]) -> list[JsonObject]:
        items = list[JsonObject]()
        for block in blocks:
            if isinstance(block, TextBlock):
                items.append({"role": "assistant", "content": block.text})
            elif isinstance(block, ToolUseBlock):
                given = write_arguments(block.input, 0)
                items.append({"type": "function_call", "call_id": block.id, "name": block.name, "arguments": given})
        return items

    def _new_items(self, block: Block, calls: Mapping[str, WrittenCall]) -> list[JsonObject]:
        if isinstance(block, ToolResultBlock):
            call, kind = calls.get(block.tool_use_id, (block.tool_use_id, "function_call"))
            text = openai_wire.result_item(block)["content"]
            return [{"type": f"{kind}_output", "call_id": call, "output": text}]
        if isinstance(block, TextBlock):
            return [{"role": "user", "content": block.text}]
        items = list[JsonObject]()
        for part in openai_wire.user_parts(block):
            shown = {"type": "input_text", "text": part.get("text")}
            if part["type"] == "image_url":
                shown = {"type": "input_image", "image_url": part["image_url"]["url"]}
            items.append({"role": "user", "content": [shown]})
        return items

    def _function(self, tool: JsonObject) -> JsonObject | None:
        return tool if tool.get("type") == "function" else None

    def _new_tool(self, tool: JsonObject) -> JsonObject:
        return {"type": "function", **openai_wire.tool_item(tool)["function"]}
