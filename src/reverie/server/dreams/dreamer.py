"""The process of one dream or extraction: it works on a private folder, reports what it uses, and writes the result as
JSON. It does not see the database. It ends when its worker ends, because its input closes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from traceback import format_tb
from types import TracebackType
from typing import Any, Final, cast

from reverie.errors import (
    AuthenticationFailed,
    BadRequest,
    BudgetSpent,
    ModelError,
    PromptTooLong,
    ReverieError,
    UserError,
)
from reverie.layers.l5_extraction.recordings import read_recording
from reverie.layers.l5_extraction.transcripts import extract_recordings, transcripts_in
from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.library.learning import dream
from reverie.library.memory import Memory
from reverie.memory.changes import Mark
from reverie.memory.gate.marks import Marks
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import decode, statements_of
from reverie.models.base import Capabilities, Finished, Model, ModelEvent, Request, Response
from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost
from reverie.models.registry import EMBEDDED, facts_of, model_access, open_model
from reverie.parsing import load_json
from reverie.paths import Places
from reverie.regular_files import read_regular, read_regular_text
from reverie.session.learner import open_learner
from reverie.settings import Settings, load_settings
from reverie.settings.schema import with_values
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.types import JsonObject, Usage

ORDER: Final = "order.json"
RESULT: Final = "result.json"
MEMORY: Final = "memory"
SESSIONS: Final = "sessions"
OVER_BUDGET: Final = "The dream budget of this store is used up for this month."


class MeteredModel:
    """A model that counts what it costs, and stops at a limit."""

    def __init__(self, model: Model, settings: Settings, limit_usd: float | None) -> None:
        self._model = model
        self._catalogue = Catalogue.load(settings.catalogue.files)
        self.limit_usd = limit_usd
        self.usage = Usage()
        self.cost_usd = 0.0
        self.failure: ReverieError | None = None
        """Why the last request failed: whoever asked may have kept only the sentence."""

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        try:
            if self.limit_usd is not None and self.cost_usd > 0 and self.cost_usd >= self.limit_usd:
                raise BudgetSpent(OVER_BUDGET)
            async for event in self._model.stream(request):
                if isinstance(event, Finished):
                    self._count(event.response)
                yield event
        except ReverieError as error:
            self.failure = error
            raise
        self.failure = None

    def _count(self, response: Response) -> None:
        if self.name == EMBEDDED:
            return
        facts = self._catalogue.facts_of_answer(response.model, facts_of(self.name, self._catalogue))
        self.usage += response.usage
        self.cost_usd += cost(response.usage, facts)
        print(json.dumps({"usage": self.usage.wire(), "cost": self.cost_usd}), flush=True)

    async def close(self) -> None:
        await self._model.close()


def main() -> None:
    """Runs the order in the folder that the command line names."""
    folder = Path(sys.argv[1])
    sys.excepthook = _tell_where
    result: JsonObject
    try:
        result = asyncio.run(_run(folder, cast(JsonObject, load_json(read_regular(folder / ORDER)))))
    except ReverieError as error:
        result = {"error": _describe(error)}
    write_atomic(folder / RESULT, json.dumps(result).encode())


async def _run(folder: Path, order: JsonObject) -> JsonObject:
    root, work, home = folder / MEMORY, folder / "work", folder / "home"
    make_private_dir(work)
    own = load_settings(work)
    places = type(own.places)(home=home, user_home=home, runtime=own.places.runtime)
    settings = replace(own, places=places, memory=type(own.memory)())
    settings = with_values(settings, {"background.fallback": False, "dream.mode": "auto"})
    opened = open_model(str(order["model"]), model_access(own), Catalogue.load(own.catalogue.files))
    model = MeteredModel(opened, settings, order.get("limit_usd"))
    threading.Thread(target=_hear_worker, args=(model,), daemon=True).start()
    copy = MemoryCopy(root, root, {})
    copy.base = copy.files()
    _mark_confirmed(root, order.get("confirmed", []))
    async with Memory.open(root, cwd=work, settings=settings) as memory:
        try:
            if order["kind"] == "extraction":
                summary = await _extract(folder, memory, model)
            else:
                summary = await _dream(folder, memory, model, str(order.get("instructions") or ""))
        except ReverieError as error:
            raise model.failure or error from error
        finally:
            await model.close()
        reasons = {name: why for version in memory.opened.directory.log() for name, why in version.info.reasons.items()}
    changes = [
        {"name": one.name, "after": None if one.after is None else decode(one.after), "why": reasons.get(one.name, "")}
        for one in copy.changes()
    ]
    return {"changes": changes, "summary": summary}


async def _dream(folder: Path, memory: Memory, model: Model, instructions: str) -> str:
    project = Places.of(folder / "work", memory.settings).project
    make_private_dir(project.parent)
    (folder / SESSIONS).rename(project)
    done = await dream(memory.opened, lambda: model, guidance=instructions, confined=True)
    return done.summary.partition("; `reverie dream")[0]  # its commands are about a memory directory, not a store


async def _extract(folder: Path, memory: Memory, model: Model) -> str:
    report = await extract_recordings(
        map(read_recording, transcripts_in([folder / SESSIONS])),
        memory.opened,
        lambda settings, directory, known_as: open_learner(
            memory.opened.places.cwd, settings, directory, model=model, addressed=known_as
        ),
    )
    if report.stopped:
        raise ModelError(report.stopped)
    return f"Read {report.turns} turns; {len(report.changes)} changes, {len(report.refused)} refused."


def _mark_confirmed(root: Path, names: Any) -> None:
    """What people confirmed in the store has priority in the dream too."""
    marks = dict[str, Mark]()
    for name in cast("list[str]", names):
        text = read_regular_text(root / name, errors="surrogateescape")
        marks |= {statement: Mark(Trust.CONFIRMED) for statement in statements_of(text)}
    Marks(root).add(marks)


def _describe(error: ReverieError) -> JsonObject:
    """An error for the row of the dream: a code, a sentence, and whether another try can help."""
    if isinstance(error, BudgetSpent):
        return {"type": "budget_exceeded", "message": str(error), "again": False}
    if isinstance(error, ModelError):
        final = isinstance(error, AuthenticationFailed | BadRequest | PromptTooLong)
        return {"type": "model_error", "message": str(error), "again": not final}
    if isinstance(error, UserError):
        return {"type": "invalid_request", "message": str(error), "again": False}
    return {"type": "dream_failed", "message": str(error), "again": True}


def _tell_where(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A failure in the log: where it was, and never its message, which may quote a memory."""
    del error
    print(kind.__name__, *format_tb(trace), sep="\n", file=sys.stderr)


def _hear_worker(model: MeteredModel) -> None:
    """The worker says what may be spent; when it ends, this process ends."""
    with open(0, "rb", buffering=0, closefd=False) as heard:
        while data := heard.read(4_096):
            with suppress(ValueError):
                model.limit_usd = float(data.split()[-1])
    os._exit(3)


if __name__ == "__main__":
    main()
