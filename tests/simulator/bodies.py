"""Request bodies for the simulator's tests. A block of n tokens is n * 4 ASCII characters, by the stated rule."""

from __future__ import annotations

from typing import Any

MODEL = "claude-opus-5"
"""Caches from 512 tokens on, so small prompts suffice."""


def text(tokens: int, name: str = "x", ttl: str | None = None) -> dict[str, Any]:
    """A text block of exactly `tokens` tokens, told apart by `name`."""
    block: dict[str, Any] = {"type": "text", "text": (name + " " + "." * (tokens * 4))[: tokens * 4]}
    if ttl:
        block["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    return block


def marked(block: dict[str, Any], ttl: str = "5m") -> dict[str, Any]:
    return {**block, "cache_control": {"type": "ephemeral", "ttl": ttl}}


def body(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One user message of these blocks."""
    return {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": list(blocks)}], **more}


def tool(name: str, description: str = "does things") -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": {"type": "object", "properties": {}}}


def exchange(number: int, size: int = 100, *, name: str = "Read", thoughts: bool = False) -> list[dict[str, Any]]:
    """A tool call and its result of `size` tokens."""
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"path": f"/file/{number}"}}
    thought = {"type": "thinking", "thinking": f"thought {number} " * 8, "signature": f"s{number}"}
    result = {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}",
        "content": text(size, f"result {number}")["text"],
    }
    return [
        {"role": "assistant", "content": [thought, call] if thoughts else [call]},
        {"role": "user", "content": [result]},
    ]


def conversation(rounds: int, size: int = 100, *, thoughts: bool = False, **more: Any) -> dict[str, Any]:
    """A question of 600 tokens and so many tool rounds, with one marker at the very end."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [text(600, "question")]}]
    for number in range(1, rounds + 1):
        messages += exchange(number, size, thoughts=thoughts)
    last = messages[-1]["content"]
    last[-1] = marked(last[-1])
    return {"model": MODEL, "max_tokens": 100, "messages": messages, **more}
