"""The embedded model behind background work: it goes on where the session's own model is down, spent or not wanted.

Notes, selection, extraction, compaction and dreams are then done by rules instead of not at all, and the user is told
once why. It shares the fork's messages and permissions and costs nothing; what the other model had begun is begun anew.
It never answers the conversation itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from reverie.agents.fork import ForkPoint
from reverie.context.accounts import Accounts
from reverie.errors import ModelError
from reverie.events import Event, Notice
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue
from reverie.models.registry import EMBEDDED, ModelAccess, open_model
from reverie.session.parts import Parts
from reverie.types import Purpose

T = TypeVar("T")

KEPT_FROM_IT: Final = "background work is kept from the model (background.mind)"
_WORK: Final = {
    Purpose.NOTES: "session notes are",
    Purpose.EXTRACTION: "learning from the conversation is",
    Purpose.DREAM: "dreams are",
    Purpose.RECALL: "choosing memories is",
    Purpose.COMPACTION: "compaction is",
}


class StandIn:
    """One a session."""

    def __init__(self, parts: Parts, accounts: Accounts, emit: Callable[[Event], None]) -> None:
        self._parts = parts
        self._accounts = accounts
        self._emit = emit
        self._told = set[str]()
        self._model: Model | None = None

    @property
    def is_on(self) -> bool:
        """Whether the embedded model takes over where the session's own cannot: never where it is that one."""
        given = self._parts.settings.background
        return self._parts.model.name != EMBEDDED and (given.fallback or given.mind == EMBEDDED)

    def unwanted(self, purpose: Purpose) -> str | None:
        """Why the session's own model is not to be asked for this work now; None if it may be."""
        if self._parts.settings.background.mind == EMBEDDED and self._parts.model.name != EMBEDDED:
            return KEPT_FROM_IT
        return self._accounts.may_spend(purpose, tell=not self.is_on)

    def may_begin(self, purpose: Purpose) -> str | None:
        """None if such work may be begun, by whichever model; else why not."""
        why = self.unwanted(purpose)
        return None if self.is_on else why

    async def run(self, purpose: Purpose, point: ForkPoint, work: Callable[[ForkPoint], Awaitable[T]]) -> T:
        """Has the work done by the session's model, or by the embedded one where that cannot. Raises what both raise.

        `work` is begun anew for the second: it must be safe to begin twice.
        """
        why = self.unwanted(purpose)
        if why is None:
            try:
                return await work(point)
            except ModelError as error:
                if not self.is_on:
                    raise
                why = str(error)
        self.tell(purpose, why)
        return await work(self.point(point))

    def point(self, point: ForkPoint) -> ForkPoint:
        """The same beginning for the embedded model. Nothing is booked: it costs nothing and has no cache."""
        talk = replace(point.conversation, model=self.model, account=None, announce="the embedded model stands in")
        return replace(point, conversation=talk)

    @property
    def model(self) -> Model:
        if self._model is None:
            self._model = open_model(EMBEDDED, ModelAccess(), Catalogue.load(()))
        return self._model

    def tell(self, purpose: Purpose, why: str) -> None:
        """Logs that it stands in, and tells the user the first time for each reason."""
        self._parts.background.write("stand_in", purpose=purpose.value, reason=why)
        kind = why if why == KEPT_FROM_IT else purpose.value if "(budget." in why else "failed"
        if kind in self._told:
            return
        self._told.add(kind)
        level = "info" if why == KEPT_FROM_IT else "warning"
        text = f"{_WORK.get(purpose, f'{purpose.value} is')} done by the embedded model for now: {why}"
        self._emit(Notice(text, level, "background"))
