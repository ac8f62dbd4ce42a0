"""Asks the cheapest model now and then what a running agent does, in a few words.

Each question is a separate request without tools. After an error or a bad answer the old text stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import field

from reverie.agents.messages.roster import Member
from reverie.agents.progress import MAX_TOKENS, check_answer, question, steps_of
from reverie.errors import ReverieError
from reverie.models.base import Finished, Model, Request
from reverie.models.catalogue import Catalogue
from reverie.models.registry import EMBEDDED, model_access, open_model, small_model_name
from reverie.models.sending import RetryPolicy, send
from reverie.quick import dataclass
from reverie.session.parts import SessionParts
from reverie.storage.transcript.records import ForkUsage
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, Purpose

_TIMEOUT_S = 20.0
_LAST = 8
_SYSTEM = "You say in a few words what an agent is doing."


@dataclass(slots=True, eq=False)
class ProgressWatcher:
    """One watcher per session. `number` returns a current setting of `agents`."""

    parts: SessionParts
    number: Callable[[str], float]
    may_spend: Callable[[Purpose], str | None]
    _model: Model | None = field(default=None, init=False)

    async def watch(self, member: Member, log: SessionLog, tell: Callable[[str], None]) -> None:
        """Watches until it is cancelled. Each result becomes the member's summary and is passed to `tell`."""
        before = ""
        while True:
            await asyncio.sleep(self.number("progress_s"))
            messages = log.view.messages()
            steps = steps_of(messages)
            if not steps.named or steps.text == before or not self.parts.flags.on("progress_summary"):
                continue
            before = steps.text
            said = check_answer(await self._ask(messages, question(steps), member.id), steps)
            member.summary = said or ""
            if said is not None:
                tell(said)

    async def _ask(self, messages: tuple[Message, ...], asked: Message, thread: str) -> str:
        try:
            model = self._mind()
            if model is None:
                return ""
            # The embedded model reads the calls themselves; other models would need the tools for that.
            shown = (*messages[-_LAST:], asked) if model.name == EMBEDDED else (asked,)
            request = Request(
                model=model.name,
                system=(_SYSTEM,),
                tools=(),
                messages=shown,
                max_tokens=MAX_TOKENS,
                purpose=Purpose.PROGRESS,
                conversation=f"{self.parts.log.session_id}/progress",
                thread=thread,
                announced_break="every look at an agent is separate",
            )
            async with asyncio.timeout(_TIMEOUT_S):
                async with aclosing(send(model, request, policy=RetryPolicy(retries=0))) as events:
                    async for event in events:
                        if isinstance(event, Finished):
                            usage = event.response.usage.wire()
                            self.parts.log.append(ForkUsage(Purpose.PROGRESS.value, model.name, usage, "progress"))
                            return Message("assistant", event.response.content).text
        except (TimeoutError, ReverieError) as error:
            self.parts.background.write("progress_failed", error=str(error) or "it took too long")
        return ""

    def _mind(self) -> Model | None:
        """Returns the model to ask: the embedded one if background work is kept from the other, or has no budget."""
        given = self.parts.settings.background
        if given.mind != EMBEDDED and self.may_spend(Purpose.PROGRESS) is None:
            return self._small()
        if given.mind != EMBEDDED and not given.fallback:
            return None
        settings = self.parts.settings
        return open_model(EMBEDDED, model_access(settings), Catalogue.load(settings.catalogue.files))

    def _small(self) -> Model:
        if self._model is None:
            parts = self.parts
            catalogue = Catalogue.load(parts.settings.catalogue.files)
            name = parts.settings.model.small_model or small_model_name(parts.model.name, parts.facts, catalogue)
            same = name == parts.model.name
            self._model = parts.model if same else open_model(name, model_access(parts.settings), catalogue)
        return self._model

    async def close(self) -> None:
        if self._model is not None and self._model is not self.parts.model:
            await self._model.close()
