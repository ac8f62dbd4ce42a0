"""Dreams that the web view has started: each is `reverie dream` in a process of its own, so that it goes on if the web
view stops, and takes the same lock and the same budget as any other."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, cast

from reverie.cli.dream.status import find_running, why_not_now
from reverie.context.day_book import DayBook, Spending
from reverie.errors import UserError
from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.web.memories.kept import Kept
from reverie.web.memories.stores import Store
from reverie.web.site import Site, is_folder
from reverie.web.visit import Data

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

_ERROR_CHARACTERS = 2_000


@dataclass(eq=False, slots=True)
class DreamRun:
    """One process that dreams."""

    process: subprocess.Popen[bytes]
    started: float
    spent: Spending
    """What background work had cost before it began."""
    out: IO[bytes]
    err: IO[bytes]
    ended: float | None = None

    def result(self) -> Data | None:
        """Its result; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        self.ended = self.ended or time.time()
        raw: Any = None
        with suppress(Unparsable):
            raw = load_json(_read(self.out))
        given = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
        error = "" if code == 0 else " ".join(_read(self.err)[-_ERROR_CHARACTERS:].split()).removeprefix("Error: ")
        return {
            **given,
            "code": code,
            "error": error or str(given.get("error") or ""),
            "seconds": self.ended - self.started,
        }


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def start_dream(site: Site, store: Store, memory: OpenedMemory, *, waits: bool) -> None:
    """Starts a dream. `UserError` if it cannot begin now."""
    if reason := why_not_now(memory):
        raise UserError(f"No dream was started: {reason}.")
    if not is_folder(store.folder):
        raise UserError(f"No dream was started: the folder of {store.label} is not here.")
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  read when the process has ended
    words = [
        sys.executable,
        "-m",
        "reverie",
        "dream",
        "--wait" if waits else "--now",
        "--json",
        "-C",
        str(store.folder),
    ]
    process = subprocess.Popen(
        words, cwd=store.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )
    Kept.of(site).runs[store.root] = DreamRun(process, time.time(), DayBook(memory.places.day_books).today(), out, err)


def describe_run(site: Site, store: Store, memory: OpenedMemory, *, is_held: bool) -> Data | None:
    """The dream that runs now or that this web view has started last; None if there is neither. `is_held`: somebody has
    the lock."""
    run = Kept.of(site).runs.get(store.root)
    result = run.result() if run is not None else None
    if not is_held and (run is None or result is None):
        return None if run is None else _starting(run, memory)
    if result is not None and not is_held:
        return {"is_running": False, **result}
    live = [one for one, _ in find_running(memory)] if is_held else []
    progress = live[0] if live else {}
    return {**_starting(run, memory), **progress}


def _starting(run: DreamRun | None, memory: OpenedMemory) -> Data:
    now = DayBook(memory.places.day_books).today()
    return {
        "is_running": True,
        "seconds": time.time() - run.started if run is not None else None,
        "cost_usd": max(0.0, now.dollars - run.spent.dollars) if run is not None else None,
        "phase": "starting",
        "tools": 0,
        "turns": [],
        "touched": [],
    }
