"""Asks an engine about a request of a client, and reads why a server refused one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from reverie.errors import PromptTooLong
from reverie.library.engine import Engine
from reverie.library.prepared import PreparedRequest
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.parsing import load_json
from reverie.proxy.bodies import Api
from reverie.types import JsonObject


async def prepare(
    engine: Engine,
    api: Api,
    body: JsonObject,
    items: Sequence[JsonObject],
    *,
    allowance: float,
    seen: int = 0,
    recalls: bool = False,
    reported: int = 0,
) -> PreparedRequest:
    """What the engine decides about all items of a body."""
    return await engine.prepare(
        messages=items,
        system=None if api == "chat" else body.get("instructions" if api == "responses" else "system", []),
        tools=body.get("tools", []),
        max_tokens=_limit(body),
        whole=True,
        seen=seen,
        allowance=allowance,
        recalls=recalls,
        reported=reported,
    )


def is_too_long(refusal: str) -> bool:
    """Whether a server refuses a prompt because of its length."""
    said: Any = refusal
    with suppress(ValueError):
        said = load_json(refusal)
    return isinstance(model_error(ServerRefusal.read(400, said, {}, "")), PromptTooLong)


def _limit(body: JsonObject) -> int | None:
    given = body.get("max_tokens") or body.get("max_completion_tokens") or body.get("max_output_tokens")
    return given if isinstance(given, int) and given > 0 else None
