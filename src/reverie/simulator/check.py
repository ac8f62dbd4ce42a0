"""Refuses the request bodies that the Messages API refuses: wrong types, roles, empty text, tool pairs, markers.

Raises an `ApiError` for the first mistake, with the words of the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.simulator.errors import invalid
from reverie.simulator.tokens import Block

MAX_MARKERS = 4
MAX_NAME = 256
"""The most characters of a model's name."""
_THINKING = ("thinking", "redacted_thinking")
_TTLS = ("5m", "1h")
_OBJECTS = ("thinking", "tool_choice", "output_config", "context_management", "diagnostics", "metadata")
_STRING, _OBJECT, _FLAG = (str, "a valid string"), (Mapping, "an object"), (bool, "a valid boolean")
_NUMBER = ((int, float), "a valid number")
_CHOICES = ("auto", "any", "tool", "none")
MAX_TOOL_NAME = 128
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
MIN_THINKING = 1_024
"""The smallest budget of thinking, in tokens."""
_FIELDS: dict[str, dict[str, tuple[type, str]]] = {
    "text": {"text": _STRING},
    "thinking": {"thinking": _STRING, "signature": _STRING},
    "redacted_thinking": {"data": _STRING},
    "tool_use": {"id": _STRING, "name": _STRING},
    "tool_result": {"tool_use_id": _STRING, "is_error": _FLAG},
    "image": {"source": _OBJECT},
    "document": {"source": _OBJECT, "citations": _OBJECT},
    "compaction": {"content": _STRING},
}
"""The types of optional fields, by type of block; other fields can have any type."""
_NO_FIELDS: dict[str, tuple[type, str]] = {}
_TOP_LEVEL = (*_THINKING, "tool_use", "tool_result", "compaction")
"""Types of blocks that cannot be inside another block."""
_REQUIRED = {"tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}


def check_body(body: Mapping[str, Any], *, counting: bool = False, betas: Sequence[str] = ()) -> None:
    """Refuses a body that the API refuses. `counting`: for `count_tokens`, where `max_tokens` is optional."""
    check_model(body.get("model"), "model: Field required")
    _check_settings(body)
    if not counting:
        _check_max_tokens(body)
        _check_thinking(body, betas)
    if not isinstance(body.get("system"), str):
        check_objects(body.get("system"), "system")
    _check_tool_choice(body, _check_tools(body))
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise invalid("messages: Field required")
    if not messages:
        raise invalid("messages: at least one message is required")
    _check_system(body.get("system"))
    _check_messages(check_objects(cast("list[object]", messages), "messages"))


def check_model(model: object, missing: str) -> None:
    """Refuses a model's name that is missing, not a string or too long."""
    if model is None or model == "":
        raise invalid(missing)
    if not isinstance(model, str) or len(model) > MAX_NAME:
        raise invalid(f"model: Input should be a valid string of at most {MAX_NAME} characters")


def check_strings(value: object, path: str) -> None:
    """Refuses a value that is not None and not a list of strings."""
    for number, item in enumerate(_check_list(value, path)):
        if not isinstance(item, str) or not item:
            raise invalid(f"{path}.{number}: Input should be a valid string")


def check_objects(value: object, path: str) -> list[Mapping[str, Any]]:
    """A list of objects; an empty list if it is None."""
    items = _check_list(value, path)
    for number, item in enumerate(items):
        _expect(item, _OBJECT, f"{path}.{number}", optional=False)
    return cast("list[Mapping[str, Any]]", items)


def _check_list(value: object, path: str) -> list[object]:
    if value is not None and not isinstance(value, list):
        raise invalid(f"{path}: Input should be a valid list")
    return cast("list[object]", value or [])


def _check_settings(body: Mapping[str, Any]) -> None:
    for name in _OBJECTS:
        _expect(body.get(name), _OBJECT, name)
    _expect(body.get("stream"), _FLAG, "stream")
    _expect(body.get("speed"), _STRING, "speed")
    check_strings(body.get("stop_sequences"), "stop_sequences")
    for name in ("temperature", "top_p"):
        value = body.get(name)
        _expect(value, _NUMBER, name)
        if isinstance(value, bool) or (value is not None and not 0 <= cast("float", value) <= 1):
            raise invalid(f"{name}: range: 0..1")


def _check_thinking(body: Mapping[str, Any], betas: Sequence[str]) -> None:
    thinking = cast("Block", body.get("thinking") or {})
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or isinstance(budget, bool):
        raise invalid("thinking.enabled.budget_tokens: Field required")
    if budget < MIN_THINKING:
        raise invalid(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_THINKING}")
    # Thinking between tool calls has the budget of a whole turn, not of one answer.
    interleaved = bool(body.get("tools")) and any(beta.startswith("interleaved-thinking-") for beta in betas)
    if budget >= cast("int", body["max_tokens"]) and not interleaved:
        raise invalid(
            "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
            "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
        )


def _check_tools(body: Mapping[str, Any]) -> set[str]:
    """The names of all tools; each is unique, and a tool of the client has a short, plain name."""
    names: list[str] = []
    for number, tool in enumerate(check_objects(body.get("tools"), "tools")):
        for name, wanted in (("type", _STRING), ("name", _STRING), ("input_schema", _OBJECT)):
            _expect(tool.get(name), wanted, f"tools.{number}.{name}")
        own, name = tool.get("type") in (None, "custom"), tool.get("name")
        path = f"tools.{number}.custom.name"
        if own and name is None:
            raise invalid(f"{path}: Field required")
        if own and len(str(name)) > MAX_TOOL_NAME:
            raise invalid(f"{path}: String should have at most {MAX_TOOL_NAME} characters")
        if own and not _TOOL_NAME.fullmatch(str(name)):
            raise invalid(f"{path}: String should match pattern '{_TOOL_NAME.pattern}'")
        if name is not None:
            names.append(str(name))
    if len(set(names)) != len(names):
        raise invalid("tools: Tool names must be unique.")
    return set(names)


def _check_tool_choice(body: Mapping[str, Any], names: set[str]) -> None:
    choice = cast("Block", body.get("tool_choice") or {})
    if not choice:
        return
    kind, name = choice.get("type"), choice.get("name")
    if kind not in _CHOICES:
        raise invalid(
            f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            + ", ".join(map(repr, _CHOICES))
        )
    if not body.get("tools"):
        raise invalid("tool_choice: may only be specified while providing tools.")
    if kind == "tool" and name not in names:
        raise invalid(f"Tool '{name}' not found in provided tools" if name else "tool_choice.tool.name: Field required")
    thinks = cast("Block", body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    if thinks and kind in ("any", "tool"):
        raise invalid("Thinking may not be enabled when tool_choice forces tool use.")


def _expect(value: object, wanted: tuple[type | tuple[type, ...], str], path: str, *, optional: bool = True) -> None:
    if not (optional and value is None) and not isinstance(value, wanted[0]):
        raise invalid(f"{path}: Input should be {wanted[1]}")


def ttl_of(marker: object, path: str) -> str | None:
    """The lifetime of a `cache_control`; None if there is none. Refuses values that the API does not know."""
    if marker is None:
        return None
    _expect(marker, _OBJECT, f"{path}.cache_control")
    given = cast("Mapping[str, Any]", marker)
    if given.get("type") != "ephemeral":
        raise invalid(f"{path}.cache_control.type: Input should be 'ephemeral'")
    ttl = given.get("ttl") or "5m"
    if ttl not in _TTLS:
        raise invalid(f"{path}.cache_control.ttl: Input should be '5m' or '1h'")
    return cast("str", ttl)


def check_markers(marked: Sequence[tuple[str, str]]) -> None:
    """Refuses more than four markers, and a 1h marker after a 5m one. `marked`: path and lifetime, in prompt order."""
    if len(marked) > MAX_MARKERS:
        raise invalid(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")
    short = False
    for path, ttl in marked:
        if ttl == "1h" and short:
            raise invalid(
                f"{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
                "`messages`."
            )
        short = short or ttl == "5m"


def _check_max_tokens(body: Mapping[str, Any]) -> None:
    limit = body.get("max_tokens")
    if limit is None:
        raise invalid("max_tokens: Field required")
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise invalid("max_tokens: Input should be a valid integer")
    if limit < 0:
        raise invalid("max_tokens: Input should be greater than or equal to 0")
    if limit == 0:
        _check_prewarm(body)


def _check_prewarm(body: Mapping[str, Any]) -> None:
    """Refuses settings that need an answer: with `max_tokens: 0` a request only warms the cache."""
    if body.get("stream"):
        raise invalid("max_tokens: 0 is not supported with `stream: true`")
    if cast("Block", body.get("thinking") or {}).get("type") == "enabled":
        raise invalid("max_tokens: 0 is not supported when thinking is enabled")
    if cast("Block", body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise invalid("max_tokens: 0 is not supported with a forced `tool_choice`")


def _check_system(system: object) -> None:
    if isinstance(system, list):
        for number, block in enumerate(cast("list[Block]", system)):
            if (flaw := _flaw(block, inside=True)) is not None:
                raise invalid(f"system.{number}{flaw}")
            if not block.get("text"):
                raise _empty_text(block, "system", f"system.{number}")


def _check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    open_calls: list[str] = []
    asked_at = 0
    last = len(messages) - 1
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            raise invalid(f"messages.{number}.role: Input should be 'user' or 'assistant'")
        if isinstance(content, str):
            _check_text_message(number, content, is_last=number == last)
            blocks: Sequence[Block] = ()
        elif isinstance(content, list):
            blocks = cast("list[Block]", content)
            for place, block in enumerate(blocks):
                if (flaw := _flaw(block)) is not None:
                    raise invalid(f"messages.{number}.content.{place}{flaw}")
            if not blocks and not (role == "assistant" and number == last):
                raise _empty_message(number)
        elif content is None:
            raise invalid(f"messages.{number}.content: Field required")
        else:
            raise invalid(f"messages.{number}.content: Input should be a valid string or a valid list")
        if role == "assistant":
            _refuse_open(open_calls, asked_at)
            open_calls, asked_at = _check_assistant(number, blocks), number
        elif role == "user":
            open_calls = _check_user(number, blocks, open_calls)
            if not _is_user_next(messages, number):
                _refuse_open(open_calls, asked_at)
    _refuse_open(open_calls, asked_at)


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
    for name, (wanted, called) in _FIELDS.get(kind, _NO_FIELDS).items():
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


def _check_assistant(number: int, blocks: Sequence[Block]) -> list[str]:
    calls: list[str] = []
    for place, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "text":
            _check_text(number, place, block)
        elif kind == "tool_use":
            calls.append(str(block.get("id")))
        elif kind in _THINKING and block.get("cache_control") is not None:
            raise invalid(f"messages.{number}.content.{place}.{kind}.cache_control: Extra inputs are not permitted")
    if len(set(calls)) != len(calls):
        raise invalid("messages: `tool_use` ids must be unique")
    return calls


def _check_user(number: int, blocks: Sequence[Block], open_calls: Sequence[str]) -> list[str]:
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
