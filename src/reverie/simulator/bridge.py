"""Requests as files, answered by whoever writes the reply: a person, or another program that plays the model.

Request `0001.request.json` waits for `0001.reply.json`. It is for trying out prompts with a thinking mind and without
a key. It never changes or removes a file.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from reverie.errors import UserError
from reverie.parsing import RECORD_DEPTH, Unparsable, load_json
from reverie.regular_files import read_regular_text
from reverie.simulator.errors import ApiError
from reverie.simulator.responder import Reply
from reverie.storage.atomic import make_private_dir, write_atomic

WAIT_S = 1_800.0
"""How long a request waits for its reply, in seconds."""
_LOOK_S = 0.2
_TRIES = 5
_EXAMPLE = '{"content": [{"type": "text", "text": "…"}, {"type": "tool_use", "name": "Read", "input": {…}}]}'


class BridgeResponder:
    """Writes each request, in the form of the Messages API, to a folder, and waits for the reply there."""

    def __init__(self, folder: Path, *, wait_s: float = WAIT_S) -> None:
        self._folder = folder
        self._wait_s = wait_s
        try:
            make_private_dir(folder)
            numbers = [each.name.partition(".")[0] for each in folder.glob("*.request.json")]
        except OSError as error:
            raise UserError(f"The folder {folder} cannot be used: {error.strerror or error}.") from error
        self._last = max((int(number) for number in numbers if number.isdecimal()), default=0)

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        self._last += 1
        name = f"{self._last:04}"
        shown = json.dumps(body, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
        write_atomic(self._folder / f"{name}.request.json", shown, fsync=False)
        path, end = self._folder / f"{name}.reply.json", time.monotonic() + self._wait_s
        while not path.exists():
            if time.monotonic() > end:
                raise ApiError(529, f"nobody answered {name}.request.json within {self._wait_s:,.0f} seconds")
            await asyncio.sleep(_LOOK_S)
        for _ in range(_TRIES):
            try:
                return _read(path)
            except ApiError:
                await asyncio.sleep(_LOOK_S)  # it may be half written
        return _read(path)


def _read(path: Path) -> Reply:
    """The reply in a file. A wrong one is a 500 that says what is wrong: the client sees it, and so does its log."""
    try:
        given: object = load_json(read_regular_text(path), depth=RECORD_DEPTH)
        content = cast("Mapping[str, Any]", given).get("content") if isinstance(given, dict) else None
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise Unparsable("it needs a list `content`")
        blocks = [_block(block) for block in cast("list[object]", content)]
    except (Unparsable, UnicodeDecodeError) as error:
        raise ApiError(500, f"{path.name}: {error}; write {_EXAMPLE}") from None
    except OSError as error:
        raise ApiError(500, f"{path.name} cannot be read: {error.strerror or error}") from None
    calls = any(block["type"] == "tool_use" for block in blocks)
    stop = cast("Mapping[str, Any]", given).get("stop_reason")
    return Reply(blocks, stop if isinstance(stop, str) else "tool_use" if calls else "end_turn")


def _block(given: object) -> dict[str, Any]:
    block = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    match block:
        case {"type": "text", "text": str()}:
            return block
        case {"type": "thinking", "thinking": str()}:
            return {"signature": "bridge", **block}
        case {"type": "tool_use", "name": str(), "input": dict()}:
            return {"id": f"toolu_bridge_{secrets.token_hex(8)}", **block}
        case _:
            raise Unparsable(f"a block of `content` is wrong: {json.dumps(given)[:80]}")
