"""How the background writers are doing, for `reverie doctor`: last success, why they did not run, what they cost.

Extraction and session notes, over all sessions of this home; dreaming belongs to one memory directory and has a page of
its own (`dream_look`). Looks only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

from reverie.cli.doctor.checks import Check
from reverie.cli.output import age, plural
from reverie.layers.l3_session_notes.trigger import WRITER as NOTES
from reverie.layers.l5_extraction.state import WRITER as EXTRACTION
from reverie.moments import happened, parsed
from reverie.parsing import load_json
from reverie.paths import Places
from reverie.regular_files import read_regular
from reverie.runtime.heartbeat import FAILURES_TOLD, Beat, Heartbeat
from reverie.settings import Settings
from reverie.types import JsonObject, Purpose

_DAYS = 7


def writer_checks(_settings: Settings, places: Places) -> Iterator[Check]:
    """A line a writer: when it last succeeded, or why not."""
    for name, writer, purpose in (("extraction", EXTRACTION, Purpose.EXTRACTION), ("notes", NOTES, Purpose.NOTES)):
        beat = Heartbeat(places.heartbeat(writer)).read()
        parts = [_last(beat)]
        if beat.gate:
            parts.append(f"last stopped {_ago(beat.stopped)} ago: {beat.gate}")
        if (spent := spent_on(places.day_books, purpose)).requests:
            parts.append(f"in {_DAYS} days {spent.told()}")
        if beat.failures:
            parts.append(f"failed {plural(beat.failures, 'time')} in a row, last: {beat.error}")
        ahead = any(_is_ahead(one) for one in (beat.succeeded, beat.failed, beat.stopped))
        state = "warning" if ahead or beat.failures >= FAILURES_TOLD else "ok"
        todo = "`reverie log --kind task_failed` shows them" if beat.failures >= FAILURES_TOLD else ""
        if ahead:
            todo = f"{places.heartbeat(writer)} names a time in the future: check this machine's clock"
        yield Check(name, state, "; ".join(parts), todo)


def budget_check(settings: Settings, places: Places) -> Iterator[Check]:
    """What background work has spent today, of what it may."""
    from reverie.context.day_book import Caps, DayBook
    from reverie.flags import Flags

    flags, given = Flags.open(places, settings), settings.budget
    try:
        most = flags.number("budget.background_tokens_per_day", given.background_tokens_per_day)
        dollars = flags.number("budget.background_dollars_per_day", given.background_dollars_per_day or 0.0)
    finally:
        flags.close()
    book = DayBook(places.day_books)
    spent = book.today()
    of = f" of {most:,}" if most else ""
    money = f", ${spent.dollars:.2f}" + (f" of ${dollars:.2f}" if dollars else "") if spent.dollars or dollars else ""
    text = f"work beside conversations has used {spent.tokens:,.0f}{of} input tokens{money} today"
    why = Caps(book, tokens_per_day=lambda: most, dollars_per_day=lambda: dollars).may_spend(Purpose.DREAM)
    yield Check("budget", "warning" if why else "ok", f"{why}; until tomorrow none is begun" if why else text)


def _last(beat: Beat) -> str:
    if not beat.succeeded:
        return "never ran"
    run = beat.run
    written = [plural(int(run["written"]), "memory", "memories")] if "written" in run else []
    share, prompt = float(run.get("cache_read_share", 0.0)), int(run.get("prompt_tokens", 0))
    figures = [*written, f"{float(run.get('seconds', 0.0)):.1f} s", f"{share:.0%} of {prompt:,} tokens cached"]
    return f"last run {_ago(beat.succeeded)} ago ({', '.join(figures)})"


def _is_ahead(moment: str) -> bool:
    found = parsed(moment)
    return found is not None and happened(found.timestamp(), time.time()) is None


def _ago(moment: str) -> str:
    found = parsed(moment)
    return "some time" if found is None else age(found.timestamp())


class Spent(NamedTuple):
    """What a purpose took in the last days: requests, tokens of fresh input, US dollars."""

    requests: int = 0
    tokens: float = 0.0
    dollars: float = 0.0

    def told(self) -> str:
        cost = f", ${self.dollars:.2f}" if self.dollars else ""
        return f"{plural(self.requests, 'request')} worth {self.tokens:,.0f} input tokens{cost}"


def spent_on(books: Path, purpose: Purpose, *, days: int = _DAYS) -> Spent:
    """From the books of the last days; lines that cannot be read are passed over."""
    today = datetime.now().astimezone().date()
    found = Spent()
    for back in range(days):
        try:
            lines = read_regular(books / f"{today - timedelta(days=back)}.jsonl").splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                raw: Any = load_json(line)
                one = cast(JsonObject, raw)
                if one["purpose"] == purpose.value:
                    found = Spent(found[0] + 1, found[1] + float(one["tokens"]), found[2] + float(one["usd"]))
            except (ValueError, TypeError, KeyError):
                continue
    return found
