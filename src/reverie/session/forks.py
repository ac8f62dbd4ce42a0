"""Forks for background work. The embedded model does this work where the session's own model cannot.

If that model is down, has no budget or is not wanted, rules do notes, extraction, compaction and dreams, and the user
learns the reason once. The embedded model shares the fork's messages and permissions and costs nothing. It
starts the work again from the beginning. It never answers the conversation itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Final, TypeVar

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
from reverie.quick import dataclass
from reverie.runtime.parts import Parts
from reverie.types import Purpose

T = TypeVar("T")

KEPT_FROM_IT: Final = "no model is asked for background work (background.mind)"
_TAKES_OVER: Final = Break(BreakCause.APART, "the embedded model takes over")
_WORK: Final = {
    Purpose.NOTES: "session notes are",
    Purpose.EXTRACTION: "learning from the conversation is",
    Purpose.DREAM: "dreams are",
    Purpose.RECALL: "choosing memories is",
    Purpose.COMPACTION: "compaction is",
}


@dataclass(slots=True, eq=False)
class SessionForks:
    """The forks of one session's main conversation. `now` returns the current conversation."""

    parts: Parts
    accounts: Accounts
    emit: Callable[[Event], None]
    now: Callable[[], ForkPoint]
    _reported: set[str] = field(default_factory=set[str], init=False)
    _model: Model | None = field(default=None, init=False)

    def kept(self) -> ForkPoint:
        """Returns the current conversation, for a fork that runs later."""
        return self.now().kept()

    @property
    def _has_fallback(self) -> bool:
        """Whether the embedded model takes over from the session's own model, which must be another one."""
        given = self.parts.settings.background
        return self.parts.model.name != EMBEDDED and (given.fallback or given.mind == EMBEDDED)

    def unwanted(self, purpose: Purpose) -> str | None:
        """Why the session's own model should not do this work now; None if it may."""
        if self.parts.settings.background.mind == EMBEDDED and self.parts.model.name != EMBEDDED:
            return KEPT_FROM_IT
        return self.accounts.may_spend(purpose, tell=not self._has_fallback)

    def may_begin(self, purpose: Purpose) -> str | None:
        """Why no model may do this work now; None if one may."""
        why = self.unwanted(purpose)
        return None if self._has_fallback else why

    async def attempt(self, purpose: Purpose, fork: Fork, work: Callable[[Fork], Awaitable[T]]) -> T:
        """Runs the work with the session's model, or with the embedded one if that model cannot do it."""
        why = self.unwanted(purpose)
        if why is None:
            try:
                return await work(fork)
            except ModelError as error:
                if not self._has_fallback:
                    raise
                why = str(error)
        self.takes_over(purpose, why)
        return await work(fork.by(self._embedded(), _TAKES_OVER))

    async def ask(self, conversation: Conversation, effect: AskFork) -> EffectResult:
        """Asks the model. If it may not be asked, the result says why, and code does the work instead."""
        why = self.unwanted(effect.purpose)
        if why is not None:
            self._tell(effect.purpose, why)
            return EffectResult(ok=False, text=why, error=Unreachable(why))
        result = await ask(conversation, effect)
        error = result.error
        if isinstance(error, AuthenticationFailed) or (error is not None and error.retryable):
            self.takes_over(effect.purpose, str(error))
        return result

    def _embedded(self) -> Model:
        if self._model is None:
            self._model = open_model(EMBEDDED, ModelAccess(), Catalogue.load(()))
        return self._model

    def takes_over(self, purpose: Purpose, why: str) -> None:
        """Reports that the embedded model does this work, if it does."""
        if self._has_fallback:
            self._tell(purpose, why)

    def _tell(self, purpose: Purpose, why: str) -> None:
        self.parts.background.write("stand_in", purpose=purpose.value, reason=why)
        kind = why if why == KEPT_FROM_IT else purpose.value if "(budget." in why else "failed"
        if kind in self._reported:
            return
        self._reported.add(kind)
        level = "info" if why == KEPT_FROM_IT else "warning"
        text = f"{_WORK.get(purpose, f'{purpose.value} is')} done by the embedded model for now: {why}"
        self.emit(Notice(text, level, "background"))
