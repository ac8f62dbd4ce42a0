"""The Messages API: its blocks are our blocks, so only origins, markers and the form of the list change.

A content that is a string comes back as a list with one text block, and cache markers of the caller are replaced by
ours. Not kept: fields of a message beside role and content, and `reverie_origin`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from reverie.errors import UserError
from reverie.library.wires.base import (
    NOT_COUNTED,
    GivenMessage,
    GivenSystem,
    fingerprint,
    plain,
    plain_items,
    plain_object,
    request_id,
    take_origin,
)
from reverie.library.wires.items import foreign
from reverie.models import wire
from reverie.models.base import Request, Response
from reverie.models.wire import as_object
from reverie.types import ITEM, Block, Json, JsonObject, Message, Origin, Usage, parse_block, without_item

_ORIGINS = {"assistant": Origin.MODEL, "user": Origin.ENTERED}
_LIMIT = "max_tokens"


class MessagesWire:
    """The messages of the Messages API."""

    name: ClassVar[str] = "messages"

    def read_system(self, system: object, raw: object) -> GivenSystem:
        given = plain(system, "system")
        parts = cast("list[Json]", given) if isinstance(given, list) else [{"text": given}]
        texts = (as_object(part).get("text") for part in parts)
        return GivenSystem(tuple(text for text in texts if isinstance(text, str) and text.strip()))

    def read_messages(self, raw: object, *, continued: bool = False) -> list[GivenMessage]:
        return [_read(item, f"messages[{number}]") for number, item in enumerate(plain_items(raw))]

    def read_tools(self, tools: object) -> tuple[JsonObject, ...]:
        given = plain_items(tools, "tools")
        return tuple({key: value for key, value in tool.items() if key != "cache_control"} for tool in given)

    def write_tools(self, tools: Sequence[JsonObject]) -> list[JsonObject]:
        return [without_item(tool) for tool in tools]

    def read_answer(self, response: object) -> list[GivenMessage]:
        content = plain_object(response, "response").get("content")
        content = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
        blocks = cast("list[Json]", content) if isinstance(content, list) else []
        said = [{key: value for key, value in as_object(block).items() if value is not None} for block in blocks]
        said = [block for block in said if block.get("type") and (block["type"] != "text" or "text" in block)]
        return [_read({"role": "assistant", "content": said}, "response")]

    def read_response(self, response: object) -> Response:
        given = plain_object(response, "response")
        if given.get("type") == "error":
            raise UserError("This is an error of the server, not a response: it is not part of the conversation.")
        edits = as_object(given.get("context_management")).get("applied_edits")
        usage = as_object(given.get("usage"))
        return Response(
            # Two responses without an id are two responses.
            id=str(given.get("id") or f"answer-{uuid.uuid4().hex}"),
            model=str(given.get("model") or ""),
            content=self.read_answer(given)[0].message.content,
            stop_reason=str(given.get("stop_reason") or "end_turn"),
            usage=Usage.parse(usage) or Usage(),
            request_id=request_id(response),
            applied_edits=tuple(
                as_object(edit) for edit in cast("list[Json]", edits if isinstance(edits, list) else [])
            ),
            raw_usage=usage,
        )

    def write_body(
        self, request: Request, extra: Mapping[str, Any] | None = None, system: JsonObject | None = None
    ) -> JsonObject:
        return {**wire.body(request), **(extra or {})}


def _read(item: JsonObject, path: str) -> GivenMessage:
    role, content = item.get("role"), item.get("content")
    if role == "system":  # instructions inside a conversation, which a client may write down in two ways
        parts: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        said = tuple(_block(part, Origin.CODE) for part in parts)
        return GivenMessage(Message("user", (foreign(item, "messages"),)), fingerprint("system", said))
    if role not in ("user", "assistant"):
        raise UserError(f"{path}.role must be user, assistant or system, and it is {str(role)[:40]!r}.")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise UserError(f"{path}.content must be a text or a list of blocks.")
    origin = take_origin(item, _ORIGINS[role])
    blocks = tuple(_block(part, origin) for part in cast("list[Json]", content))
    return GivenMessage(Message(role, blocks), fingerprint(role, blocks))


def _block(part: Json, origin: Origin) -> Block:
    if not isinstance(part, dict):
        return parse_block(part, origin)
    given = cast(JsonObject, part)
    is_result = given.get("type") == "tool_result"
    own, made = take_origin(dict(given), Origin.TOOL if is_result else origin), _cleaned(given)
    if is_result and isinstance(made.get("content"), list):
        made["content"] = [_cleaned(one) for one in cast("list[Json]", made["content"])]
    return parse_block(made, own)


def _cleaned(part: Json) -> Json:
    """Returns a block without markers and fields of ours. Our own type of block is ours to make: here it is a text."""
    if not isinstance(part, dict):
        return part
    given = cast(JsonObject, part)
    if given.get("type") == ITEM:
        return {"type": "text", "text": json.dumps(given)}
    return {key: value for key, value in given.items() if key not in NOT_COUNTED}
