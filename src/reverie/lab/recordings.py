"""What measurements on recorded sessions share: where the transcripts are, and a model that is never asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import cast

from reverie.errors import UserError
from reverie.models.base import Capabilities, ModelEvent, Request
from reverie.quick import dataclass
from reverie.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class SilentModel:
    """A model with a name and capabilities that never answers."""

    name: str
    capabilities: Capabilities

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent]:
        raise NotImplementedError("nothing is sent while this is measured")
        yield

    async def close(self) -> None:
        pass


def find_recordings(paths: Sequence[Path]) -> list[Path]:
    """These transcripts, and those in these folders. UserError if a path does not exist."""
    found = list[Path]()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist; name a folder of transcripts, or transcripts (*.jsonl).")
        found += sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    return found


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def strings_in(value: Json) -> Iterator[str]:
    """Every string in a JSON value, without the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast(JsonObject, value).values():
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in cast(list[Json], value):
            yield from strings_in(inner)
