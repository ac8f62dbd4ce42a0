"""The model that selects memories: the cheapest of the family, asked once, with a schema and a time limit. Its request
does not share a prefix with the conversation, is not cached, and is booked as recall."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from reverie.errors import ModelError, ReverieError
from reverie.memory.recall.reminder import SCHEMA, SELECTOR_TOKENS, parse_selection, selector_question, selector_system
from reverie.memory.scan import ScanEntry, manifest
from reverie.models.base import Finished, Model, Request, Response
from reverie.models.catalogue import Catalogue
from reverie.models.registry import model_access, open_model, small_model_name
from reverie.models.sdk import SdkModel
from reverie.models.sending import RetryPolicy, send
from reverie.runtime.parts import Parts
from reverie.storage.transcript.records import ForkUsage
from reverie.types import Message, Origin, Purpose, TextBlock

_WITHOUT = ("embedded", "scripted")
"""Providers that rank better than they select."""
_LONGEST_S = 10.0
"""The time limit for an answer, counted from when the model can be asked: nobody waits so long for it."""


class Selector:
    """Asks a small model which memories fit. `available` says whether there is one to ask."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._model: Model | None = None
        self.failed = ""
        """Why the model could not answer the last question; empty if it did, or only took too long."""

    @property
    def available(self) -> bool:
        return self._parts.model.name.partition(":")[0] not in _WITHOUT

    async def select(
        self, query: str, last_answer: str, entries: Sequence[ScanEntry], tools: Sequence[str]
    ) -> list[str] | None:
        """The chosen names; None if it did not answer in time or not as asked."""
        self.failed = ""
        try:
            model = self._small()
            if isinstance(model, SdkModel):
                await model.loaded()
            async with asyncio.timeout(_LONGEST_S):
                response = await self._ask(model, selector_question(query, last_answer, manifest(entries), tools))
        except (TimeoutError, ReverieError) as error:
            self._parts.background.write("recall_selector_failed", error=str(error) or "it took too long")
            self.failed = str(error) if isinstance(error, ModelError) else ""
            return None
        text = Message("assistant", response.content).text
        return parse_selection(text, {entry.name for entry in entries})

    async def _ask(self, model: Model, question: str) -> Response:
        request = Request(
            model=model.name,
            system=(selector_system(),),
            tools=(),
            messages=(Message("user", (TextBlock(question, Origin.CODE),)),),
            max_tokens=SELECTOR_TOKENS,
            output_schema=SCHEMA,
            purpose=Purpose.RECALL,
            conversation=f"{self._parts.log.session_id}/recall",
            thread="recall",
            announced_break="every question to the selector is separate",
        )
        async with aclosing(send(model, request, policy=RetryPolicy(retries=0))) as events:
            async for event in events:
                if isinstance(event, Finished):
                    usage = ForkUsage(Purpose.RECALL.value, model.name, event.response.usage.wire(), "recall")
                    self._parts.log.append(usage)
                    return event.response
        raise ReverieError("the selector gave no answer")

    def _small(self) -> Model:
        if self._model is None:
            parts = self._parts
            catalogue = Catalogue.load(parts.settings.catalogue.files)
            name = parts.settings.model.small_model or small_model_name(parts.model.name, parts.facts, catalogue)
            self._model = (
                parts.model if name == parts.model.name else open_model(name, model_access(parts.settings), catalogue)
            )
        return self._model

    async def close(self) -> None:
        if self._model is not None and self._model is not self._parts.model:
            await self._model.close()
