"""Refuses the messages and system prompts that the Messages API refuses: roles, empty text, tool pairs, places.

Raises an `ApiError` for the first mistake, with the words of the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.simulator.errors import ApiError, invalid
from reverie.simulator.tokens import Block, digest

_THINKING = ("thinking", "redacted_thinking")
COMPACT_BETA = "compact-2026-09-04"
_CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
_STRING, _OBJECT, _FLAG = (str, "a valid string"), (Mapping, "an object"), (bool, "a valid boolean")
_FIELDS: dict[str, tuple[tuple[str, type, str], ...]] = {
    "text": (("text", *_STRING),),
    "thinking": (("thinking", *_STRING), ("signature", *_STRING)),
    "redacted_thinking": (("data", *_STRING),),
    "tool_use": (("id", *_STRING), ("name", *_STRING)),
    "tool_result": (("tool_use_id", *_STRING), ("is_error", *_FLAG)),
    "image": (("source", *_OBJECT),),
    "document": (("source", *_OBJECT), ("citations", *_OBJECT)),
    "compaction": (("content", *_STRING), ("signature", *_STRING)),
}
"""The types of optional fields, by type of block; other fields can have any type."""
_TOP_LEVEL = (*_THINKING, "tool_use", "tool_result", "compaction")
"""Types of blocks that cannot be inside another block."""
_REQUIRED = {"tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}


def check_system(system: object) -> None:
    """Refuses a system prompt that the API refuses."""
    if isinstance(system, list):
        for number, block in enumerate(cast("list[Block]", system)):
            if (flaw := _flaw(block, inside=True)) is not None:
                raise invalid(f"system.{number}{flaw}")
            if not block.get("text"):
                raise _empty_text(block, "system", f"system.{number}")


def check_messages(messages: Sequence[Mapping[str, Any]], betas: Sequence[str] | None) -> None:
    """Refuses messages that the API refuses. `betas`: see `check_body`."""
    open_calls: list[str] = []
    asked_at = 0
    last = len(messages) - 1
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            raise invalid(f"messages.{number}.role: Input should be 'user', 'assistant' or 'system'")
        if "clear_at" in message and message["clear_at"] is not None:
            _check_clear_at(number, message, betas)
        if isinstance(content, str):
            _check_text_message(number, content, is_last=number == last)
            blocks: Sequence[Block] = ()
        elif isinstance(content, list):
            blocks = cast("list[Block]", content)
            for place, block in enumerate(blocks):
                if (flaw := _flaw(block)) is not None:
                    raise invalid(f"messages.{number}.content.{place}{flaw}")
            if not blocks and not (role == "assistant" and number == last) and not message.get("output_config"):
                raise _empty_message(number)
        elif content is None and role == "system" and message.get("output_config"):
            blocks = ()
        elif content is None:
            raise invalid(f"messages.{number}.content: Field required")
        else:
            raise invalid(f"messages.{number}.content: Input should be a valid string or a valid list")
        if role == "assistant":
            _refuse_open(open_calls, asked_at)
            open_calls, asked_at = _check_assistant(number, blocks, betas), number
        elif role == "system":
            _check_place(messages, number, open_calls)
        else:
            open_calls = _check_user(number, blocks, open_calls, betas)
            if not _is_user_next(messages, number):
                _refuse_open(open_calls, asked_at)
    _refuse_open(open_calls, asked_at)


def _check_clear_at(number: int, message: Mapping[str, Any], betas: Sequence[str] | None) -> None:
    """Refuses a system message for one turn that is more than text, or that another message claims to be."""
    path, value, content = f"messages.{number}", message["clear_at"], message.get("content")
    if betas is not None and _CLEAR_AT_BETA not in betas:
        raise invalid(f"{path}.clear_at: Extra inputs are not permitted")
    if message.get("role") != "system":
        raise invalid(f"{path}.clear_at: clear_at is only permitted on role 'system' messages")
    if value not in ("next_user_message", "never"):
        raise invalid(f"{path}.clear_at: Input should be 'next_user_message' or 'never'")
    if value == "never":
        return
    scope = "a turn-scoped system message (clear_at: 'next_user_message')"
    if message.get("output_config") is not None:
        raise invalid(f"{path}: output_config is not permitted on {scope}")
    for place, block in enumerate(cast("list[object]", content) if isinstance(content, list) else ()):
        if not isinstance(block, Mapping) or cast("Block", block).get("type") != "text":
            raise invalid(
                f"{path}: a turn-scoped system message supports text blocks only (clear_at: 'next_user_message')"
            )
        if cast("Block", block).get("cache_control") is not None:
            raise invalid(f"{path}.content.{place}: cache_control is not permitted on {scope}")


def _check_place(messages: Sequence[Mapping[str, Any]], number: int, open_calls: Sequence[str]) -> None:
    """Refuses a system message that is not between a user turn and the answer to it.

    System messages in a row are one section. If nothing in it has content, it only sets the effort and can be anywhere.
    """
    before = messages[number - 1].get("role") if number else None
    if before == "system":
        return  # checked with the first one
    last = number
    while last + 1 < len(messages) and messages[last + 1].get("role") == "system":
        last += 1
    if not any(each.get("content") for each in messages[number : last + 1]):
        return
    after = messages[last + 1].get("role") if last + 1 < len(messages) else "assistant"
    if open_calls or before != "user" or after != "assistant":
        raise invalid(
            f"messages.{number}: a `system` message must immediately follow a `user` turn, and precede an `assistant` "
            "turn or end the array"
        )


def _is_user_next(messages: Sequence[Mapping[str, Any]], number: int) -> bool:
    """Whether a result can still come in the next message: the API joins user messages in a row."""
    return number + 1 < len(messages) and messages[number + 1].get("role") == "user"


def _empty_message(number: int) -> Exception:
    return invalid(
        f"messages.{number}: all messages must have non-empty content except for the optional final assistant message"
    )


def _check_text_message(number: int, content: str, *, is_last: bool) -> None:
    if not content:
        if not is_last:
            raise _empty_message(number)
        raise invalid(f"messages.{number}: user messages must have non-empty content")
    if content.isspace():
        raise invalid("messages: text content blocks must contain non-whitespace text")


def _flaw(block: object, *, inside: bool = False) -> str | None:
    """What is wrong with a block, as the end of an error; None if all fields have the right type.

    `inside`: a part of a result, a document or the system prompt.
    """
    if not isinstance(block, dict) and not isinstance(block, Mapping):  # the first is faster
        return ": Input should be an object"
    given = cast("Block", block)
    kind = given.get("type")
    if not isinstance(kind, str):
        return ".type: Field required" if kind is None else ".type: Input should be a valid string"
    if inside and kind in _TOP_LEVEL:
        return f": Input tag '{kind}' found using 'type' does not match any of the expected tags"
    for name in _REQUIRED.get(kind, ()):
        if given.get(name) is None:
            return f".{kind}.{name}: Field required"
    for name, wanted, called in _FIELDS.get(kind, ()):
        value = given.get(name)
        if value is not None and not isinstance(value, wanted):
            return f".{kind}.{name}: Input should be {called}"
    if inside and kind == "text" and given.get("text") is None:
        return ".text.text: Field required"
    if kind == "tool_result":
        return _flaw_of_parts(given.get("content"), ".tool_result.content")
    if kind == "document":
        return _flaw_of_parts(cast("Block", given.get("source") or {}).get("content"), ".document.source.content")
    return None


def _flaw_of_parts(content: object, path: str) -> str | None:
    if content is None or isinstance(content, str):
        return None
    if not isinstance(content, list):
        return f"{path}: Input should be a valid string or a valid list"
    for number, part in enumerate(cast("list[object]", content)):
        if (flaw := _flaw(part, inside=True)) is not None:
            return f"{path}.{number}{flaw}"
    return None


def _check_assistant(number: int, blocks: Sequence[Block], betas: Sequence[str] | None) -> list[str]:
    calls: list[str] = []
    for place, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "text":
            _check_text(number, place, block)
        elif kind == "tool_use":
            calls.append(str(block.get("id")))
        elif kind in _THINKING and block.get("cache_control") is not None:
            raise invalid(f"messages.{number}.content.{place}.{kind}.cache_control: Extra inputs are not permitted")
        elif kind == "compaction":
            _check_summary(block, f"messages.{number}.content.{place}", betas)
    if len(set(calls)) != len(calls):
        raise invalid("messages: `tool_use` ids must be unique")
    return calls


def _check_user(
    number: int, blocks: Sequence[Block], open_calls: Sequence[str], betas: Sequence[str] | None
) -> list[str]:
    waiting = dict.fromkeys(open_calls)
    answered: set[str] = set()
    for place, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "tool_result":
            name = str(block.get("tool_use_id"))
            if name in answered:
                raise invalid(
                    f"messages.{number}.content.{place}: each tool_use must have a single result. Found multiple "
                    f"`tool_result` blocks with id: {name}"
                )
            if name not in waiting:
                raise invalid(
                    f"messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{name}. Each `tool_result` block must have a corresponding `tool_use` block in the previous "
                    "message."
                )
            answered.add(name)
        elif kind == "text":
            _check_text(number, place, block)
        elif kind == "compaction":
            _check_summary(block, f"messages.{number}.content.{place}", betas)
    return [name for name in waiting if name not in answered]


def _check_text(number: int, place: int, block: Block) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise invalid(f"messages.{number}.content.{place}.text.text: Field required")
    if not text:
        raise _empty_text(block, "messages", f"messages.{number}.content.{place}.text")
    if text.isspace():
        raise invalid("messages: text content blocks must contain non-whitespace text")


def _empty_text(block: Block, section: str, path: str) -> Exception:
    if block.get("cache_control") is not None:
        return invalid(f"{path}: cache_control cannot be set for empty text blocks")
    return invalid(f"{section}: text content blocks must be non-empty")


def _refuse_open(calls: Sequence[str], asked_at: int) -> None:
    if calls:
        raise invalid(
            f"messages.{asked_at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message."
        )


def _check_summary(block: Block, path: str, betas: Sequence[str] | None) -> None:
    """Refuses a signed summary that is changed, or not the first block, or without the beta feature."""
    if block.get("signature") is None:
        return
    if betas is not None and COMPACT_BETA not in betas:
        raise invalid(f"{path}: Input tag 'compaction' found using 'type' does not match any of the expected tags")
    if path != "messages.0.content.0":
        why = "a signed `compaction` block must come first, in place of the messages it summarizes, and only once"
        raise ApiError(400, f"{path}: {why}", code="compaction_block_misplaced")
    if not _SIGNATURE.fullmatch(block["signature"]):
        raise ApiError(400, f"{path}: the signature does not verify", code="compaction_signature_invalid")
    if block["signature"] != signature_of(str(block.get("content"))):
        raise ApiError(400, f"{path}: the content is not what was signed", code="compaction_content_mismatch")


def signature_of(summary: str) -> str:
    """The signature of a summary that this server wrote."""
    return "sim_" + digest(summary).hex()


_SIGNATURE = re.compile(r"sim_[0-9a-f]{32}")
