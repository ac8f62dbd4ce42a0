"""Whether the model of the background work (`connect.model`) could be used the last time.

A job writes it, `reverie connect --status` reads it: if the offline mind takes over, nobody would notice otherwise.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from reverie.models.registry import EMBEDDED
from reverie.paths import Places
from reverie.runtime.heartbeat import Heartbeat
from reverie.settings import Settings

_WRITER: Final = "connect-model"


class ModelTrouble(NamedTuple):
    """Why a model could not be used, when (ISO time), and who learns now."""

    model: str
    reason: str
    at: str
    instead: str

    def __str__(self) -> str:
        return f"{self.model} could not be used: {self.reason.rstrip('.')}; {self.instead}"


def note_model(places: Places, model: str, *, turns: int, problem: str) -> None:
    """Records how a model did in one job: the turns that it has read, or why it could not be used."""
    beat = Heartbeat(places.heartbeat(_WRITER))
    if problem:
        beat.failure(f"{model} {problem}")
    elif turns:
        beat.success(model=model, turns=turns)


def find_model_trouble(settings: Settings, places: Places) -> ModelTrouble | None:
    """What is wrong with the model of the settings; None if its last run worked, or if it has not run yet."""
    model = settings.connect.model
    beat = Heartbeat(places.heartbeat(_WRITER)).read()
    if model == EMBEDDED or not beat.failures or not beat.error.startswith(f"{model} "):
        return None
    instead = "the offline mind learns instead" if settings.background.fallback else "nothing is learnt"
    return ModelTrouble(model, beat.error.removeprefix(f"{model} "), beat.failed, instead)
