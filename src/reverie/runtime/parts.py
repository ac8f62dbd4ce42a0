"""The parts that the layers of one conversation work with: log, model, settings, flags, places. Nothing here acts."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, TypeVar

from reverie.flags import Flags
from reverie.models.base import Model
from reverie.models.catalogue import ModelFacts
from reverie.models.window import Thresholds, limits_of
from reverie.paths import Places
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.layer_tally import LayerTally
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
    tally: LayerTally = field(default_factory=LayerTally)
    named: str = ""  # the model of the conversation, if another one is open in its place

    @property
    def model_name(self) -> str:
        return self.named or self.model.name

    def limits_now(self) -> Thresholds:
        """Returns the thresholds with the current settings and flags."""
        return limits_of(self.model_name, self.facts, self.settings, self.flags)

    def numbers(self, kind: type[T], section: str) -> T:
        """Returns the current numbers of a layer: those of the settings, changed by flags."""
        given: Any = getattr(self.settings, section)
        own: Any = kind
        return kind(**{f.name: self.flags.number(f"{section}.{f.name}", getattr(given, f.name)) for f in fields(own)})

    def prefix_flag(self, name: str) -> bool:
        """Returns a flag that shapes the prefix: its value in the header of this conversation, else its value now."""
        header = self.log.view.header
        return bool(header.flags.get(name)) if header is not None else self.flags.snapshot().on(name)
