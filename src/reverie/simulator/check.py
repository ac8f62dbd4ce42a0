"""Refuses the request bodies that the Messages API refuses: wrong types, settings, tools, markers.

Raises an `ApiError` for the first mistake, with the words of the API. `check_messages.py` does the same for messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.simulator.check_messages import COMPACT_BETA, check_messages, check_system
from reverie.simulator.errors import invalid
from reverie.simulator.tokens import Block

MAX_MARKERS = 4
MAX_NAME = 256
"""The most characters of a model's name."""
_TTLS = ("5m", "1h")
_OBJECTS = ("thinking", "tool_choice", "output_config", "context_management", "diagnostics", "metadata", "compaction")
_STRING, _OBJECT, _FLAG = (str, "a valid string"), (Mapping, "an object"), (bool, "a valid boolean")
_NUMBER = ((int, float), "a valid number")
_CHOICES = ("auto", "any", "tool", "none")
MAX_TOOL_NAME = 128
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_MOST_INSTRUCTIONS = 16_384
MIN_THINKING = 1_024
"""The smallest budget of thinking, in tokens."""


def check_body(body: Mapping[str, Any], *, counting: bool = False, betas: Sequence[str] | None = None) -> None:
    """Refuses a body that the API refuses.

    `counting`: for `count_tokens`, where `max_tokens` is optional. `betas`: the beta features of the request; if None,
    they are not checked.
    """
    check_model(body.get("model"), "model: Field required")
    _check_settings(body)
    if not counting:
        _check_max_tokens(body)
        _check_thinking(body, betas or ())
    if not isinstance(body.get("system"), str):
        check_objects(body.get("system"), "system")
    _check_tool_choice(body, _check_tools(body))
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise invalid("messages: Field required")
    if not messages:
        raise invalid("messages: at least one message is required")
    check_system(body.get("system"))
    check_messages(check_objects(cast("list[object]", messages), "messages"), betas)
    if body.get("compaction") is not None and not counting:
        _check_compaction(body, betas)


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
    if kind == "tool":
        _expect(name, _STRING, "tool_choice.tool.name")
        if name not in names:
            missing = "tool_choice.tool.name: Field required"
            raise invalid(f"Tool '{name}' not found in provided tools" if name else missing)
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


def _check_compaction(body: Mapping[str, Any], betas: Sequence[str] | None) -> None:
    """Refuses a request for a summary that the API cannot meet, or with settings that would do nothing."""
    given = cast("Block", body["compaction"])
    if betas is not None and COMPACT_BETA not in betas:
        raise invalid(f"compaction: requires anthropic-beta: {COMPACT_BETA}")
    if given.get("type") != "summarize":
        raise invalid("compaction.type: Input should be 'summarize'")
    instructions = given.get("instructions")
    _expect(instructions, _STRING, "compaction.instructions")
    if len(str(instructions or "")) > _MOST_INSTRUCTIONS:
        raise invalid(f"compaction.instructions: String should have at most {_MOST_INSTRUCTIONS} characters")
    refused = {
        "context_management": bool(body.get("context_management")),
        "stop_sequences": bool(body.get("stop_sequences")),
        "output_config.format": bool(cast("Block", body.get("output_config") or {}).get("format")),
        "tool_choice": cast("Block", body.get("tool_choice") or {}).get("type") in ("any", "tool"),
    }
    for name in (name for name, is_given in refused.items() if is_given):
        raise invalid(f"compaction: cannot be combined with `{name}`")
