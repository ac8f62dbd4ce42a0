"""What the layers of one conversation work with: its log, its model and what is known of it, settings, flags, places.

Whoever runs the conversation puts it together. Nothing here acts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from reverie.flags import Flags
from reverie.models.base import Model
from reverie.models.catalogue import ModelFacts
from reverie.models.window import Thresholds, limits_of
from reverie.paths import Places
from reverie.runtime.background_log import BackgroundLog
from reverie.settings import Settings
from reverie.storage.transcript.session_log import SessionLog

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Parts:
    """The parts of one conversation."""

    settings: Settings
    places: Places
    flags: Flags
    log: SessionLog
    model: Model
    facts: ModelFacts
    limits: Thresholds
    background: BackgroundLog
    named: str = ""
    """The model the conversation is held with, where another one serves this opening."""

    @property
    def held_with(self) -> str:
        """The name of the model the conversation is held with."""
        return self.named or self.model.name

    def limits_now(self) -> Thresholds:
        """The thresholds as settings and flags hold now."""
        return limits_of(self.held_with, self.facts, self.settings, self.flags)

    def numbers(self, kind: type[T], section: str) -> T:
        """The numbers of a layer as they hold now: what the settings say, and what flags change of it."""
        given: Any = getattr(self.settings, section)
        own: Any = kind
        return kind(**{f.name: self.flags.number(f"{section}.{f.name}", getattr(given, f.name)) for f in fields(own)})

    def prefix_flag(self, name: str) -> bool:
        """A flag that shapes the prefix: as it was when this conversation's was rendered, else as it is now."""
        header = self.log.view.header
        return bool(header.flags.get(name)) if header is not None else self.flags.snapshot().on(name)
