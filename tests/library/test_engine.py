"""The layers under a foreign loop: the same bytes however the history is given and however often the process restarts."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import BlockingLimit, UserError
from reverie.library.engine import Engine
from tests.library.talks import MODEL, SYSTEM, TOOLS, Player, make_talk

SMALL = 32_000


def texts(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"])


def answer(text: str = "Fine.", *calls: tuple[str, str], usage: int = 500) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    content += [{"type": "tool_use", "id": call, "name": name, "input": {}} for call, name in calls]
    return {
        "id": f"msg_{abs(hash((text, calls)))}",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": usage, "output_tokens": 10},
    }


@pytest.mark.parametrize("seed", range(6))
def test_restarts_and_parts_of_the_history_give_the_same_bytes(tmp_path: Path, seed: int) -> None:
    talk = make_talk(seed, 40)
    home = tmp_path / "home"
    one = Player(home, SMALL)
    asyncio.run(one.play(talk))
    assert any("compacted" in each or "cleared" in each for each in one.breaks), "the layers had something to do"
    for how in range(2):
        shutil.rmtree(home)
        other = Player(home, SMALL)
        asyncio.run(other.play(talk, random.Random(100 * seed + how)))
        assert other.bodies == one.bodies


def test_the_prefix_is_the_same_between_announced_breaks(tmp_path: Path) -> None:
    talk = make_talk(3, 60)
    player = Player(tmp_path, SMALL)
    asyncio.run(player.play(talk))
    before: list[str] = []
    for body, breaks in zip(player.bodies, player.breaks, strict=True):
        blocks = _blocks(json.loads(body))
        if not breaks:
            assert blocks[: len(before)] == before, "a break that nobody announced"
        before = blocks


def _blocks(body: dict[str, Any]) -> list[str]:
    parts = [*body["tools"], *body["system"]]
    parts += [{**block, "role": one["role"]} for one in body["messages"] for block in one["content"]]
    return [json.dumps({key: value for key, value in part.items() if key != "cache_control"}) for part in parts]
