"""Asks a model, and keeps every answer on disk under the content of its request.

So a run that was stopped goes on where it was, and a second run sends nothing. Random ids in a request do not count.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from contextlib import aclosing
from dataclasses import field, replace
from pathlib import Path
from typing import cast

from bench.scratch import read_json_object
from reverie.cli.output import show_progress
from reverie.errors import UserError
from reverie.models import wire
from reverie.models.base import Finished, Model, Request, Response
from reverie.models.sending import RetryPolicy, send
from reverie.models.tokens import estimate_message, estimate_text
from reverie.quick import dataclass
from reverie.storage.atomic import write_atomic
from reverie.types import Json, JsonObject, Origin, Usage, parse_block

_RANDOM = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b")


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """One request: its kind (such as `notes`), for which cadence it was (empty: for both), and its size in tokens."""

    kind: str
    cadence: str
    tokens: int


@dataclass(eq=False, slots=True)
class Answers:
    """The answers of one model in one folder. `jobs` requests are sent at the same time."""

    folder: Path
    model: Model
    retry: RetryPolicy
    jobs: int = 1
    asked: list[AskedRequest] = field(default_factory=list[AskedRequest])
    sent: int = 0
    _room: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._room = asyncio.Semaphore(self.jobs)

    async def ask(self, request: Request, kind: str, cadence: str = "") -> Response:
        """Returns the answer to a request, from the folder if it is there."""
        request = replace(request, model=self.model.name)
        body = wire.body(replace(request, markers=()))
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        self.asked.append(AskedRequest(kind, cadence, _tokens(request)))
        path = self.folder / f"{_key(text)}.json"
        if path.exists():
            return _parse(path)
        async with self._room:
            found = await self._send(request)
        kept: JsonObject = {
            "kind": kind,
            "id": found.id,
            "model": found.model,
            "content": [block.wire() for block in found.content],
            "stop_reason": found.stop_reason,
            "usage": found.usage.wire(),
        }
        write_atomic(path, (json.dumps(kept, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace"))
        self.sent += 1
        show_progress(f"{self.sent} answers of the model", ends_line=True)
        return found

    async def _send(self, request: Request) -> Response:
        async with aclosing(send(self.model, request, policy=self.retry)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.response
        raise AssertionError("a stream ends with its response")


def _tokens(request: Request) -> int:
    before = "".join((*request.system, json.dumps(request.tools)))
    return estimate_text(before) + sum(map(estimate_message, request.messages))


def _key(text: str) -> str:
    return hashlib.sha256(_RANDOM.sub("id", text).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _parse(path: Path) -> Response:
    raw = read_json_object(path)
    content, usage = raw.get("content"), Usage.parse(raw.get("usage"))
    if not isinstance(content, list) or usage is None:
        raise UserError(f"{path} is not an answer of a model; remove it, and it is asked for again.")
    blocks = tuple(parse_block(block, Origin.MODEL) for block in cast("list[Json]", content))
    return Response(str(raw.get("id")), str(raw.get("model")), blocks, str(raw.get("stop_reason")), usage)
