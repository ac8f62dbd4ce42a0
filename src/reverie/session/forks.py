"""Forks for background work, and the embedded model behind them: it goes on where the session's own model cannot.

Where that model is down, spent or not wanted, notes, extraction, compaction and dreams are done by rules instead of not
at all, and the user is told once why. The embedded model shares the fork's messages and permissions and costs nothing;
what the other model had begun starts from the beginning. It never answers the conversation itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar, cast

from reverie.agents.fork import ForkPoint
from reverie.context.accounts import Accounts
from reverie.context.conversation import Conversation
from reverie.context.fork_question import ask
from reverie.errors import AuthenticationFailed, ModelError, Unreachable
from reverie.events import Event, Notice
from reverie.layers.base import AskFork, Break, BreakCause, EffectResult, Fork
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue
from reverie.models.registry import EMBEDDED, ModelAccess, open_model
from reverie.runtime.parts import Parts
from reverie.types import Purpose

T = TypeVar("T")

KEPT_FROM_IT: Final = "background work is kept from the model (background.mind)"
_TAKES_OVER: Final = Break(BreakCause.APART, "the embedded model takes over")
_WORK: Final = {
    Purpose.NOTES: "session notes are",
    Purpose.EXTRACTION: "learning from the conversation is",
    Purpose.DREAM: "dreams are",
    Purpose.RECALL: "choosing memories is",
    Purpose.COMPACTION: "compaction is",
}


class SessionForks:
    """The forks of one session's main conversation. `point` gives the conversation as it is now."""

    def __init__(
        self, parts: Parts, accounts: Accounts, emit: Callable[[Event], None], point: Callable[[], ForkPoint]
    ) -> None:
        self._parts = parts
        self._accounts = accounts
        self._emit = emit
        self._told = set[str]()
        self._model: Model | None = None
        self.now = point

    def kept(self) -> ForkPoint:
        """The conversation as it is now, for a fork that runs later."""
        return self.now().kept()

    @property
    def _has_fallback(self) -> bool:
        """Whether the embedded model takes over where the session's own cannot: never where it is that one."""
        given = self._parts.settings.background
        return self._parts.model.name != EMBEDDED and (given.fallback or given.mind == EMBEDDED)

    def unwanted(self, purpose: Purpose) -> str | None:
        """Why the session's own model is not to be asked for this work now; None if it may be."""
        if self._parts.settings.background.mind == EMBEDDED and self._parts.model.name != EMBEDDED:
            return KEPT_FROM_IT
        return self._accounts.may_spend(purpose, tell=not self._has_fallback)

    def may_begin(self, purpose: Purpose) -> str | None:
        """None if such work may be begun, by whichever model; else why not."""
        why = self.unwanted(purpose)
        return None if self._has_fallback else why

    async def attempt(self, purpose: Purpose, fork: Fork, work: Callable[[Fork], Awaitable[T]]) -> T:
        """Has the work done by the session's model, or by the embedded one where that one cannot."""
        why = self.unwanted(purpose)
        if why is None:
            try:
                return await work(fork)
            except ModelError as error:
                if not self._has_fallback:
                    raise
                why = str(error)
        self.takes_over(purpose, why)
        return await work(self._by_embedded(cast(ForkPoint, fork)))

    async def ask(self, conversation: Conversation, effect: AskFork) -> EffectResult:
        """Asks the model, unless such work is kept from it: code then writes what it would have, and that is told."""
        why = self.unwanted(effect.purpose)
        if why is not None:
            self._tell(effect.purpose, why)
            return EffectResult(ok=False, text=why, error=Unreachable(why))
        result = await ask(conversation, effect)
        error = result.error
        if isinstance(error, AuthenticationFailed) or (error is not None and error.retryable):
            self.takes_over(effect.purpose, str(error))
        return result

    def _by_embedded(self, fork: ForkPoint) -> ForkPoint:
        """The same beginning for the embedded model. Nothing is booked: it costs nothing and has no cache."""
        if self._model is None:
            self._model = open_model(EMBEDDED, ModelAccess(), Catalogue.load(()))
        talk = replace(fork.conversation, model=self._model, account=None, announced=(_TAKES_OVER,))
        return replace(fork, conversation=talk)

    def takes_over(self, purpose: Purpose, why: str) -> None:
        """Tells that something else does such work, where something does."""
        if self._has_fallback:
            self._tell(purpose, why)

    def _tell(self, purpose: Purpose, why: str) -> None:
        """Logs it, and tells the user the first time for each reason."""
        self._parts.background.write("stand_in", purpose=purpose.value, reason=why)
        kind = why if why == KEPT_FROM_IT else purpose.value if "(budget." in why else "failed"
        if kind in self._told:
            return
        self._told.add(kind)
        level = "info" if why == KEPT_FROM_IT else "warning"
        text = f"{_WORK.get(purpose, f'{purpose.value} is')} done by the embedded model for now: {why}"
        self._emit(Notice(text, level, "background"))
