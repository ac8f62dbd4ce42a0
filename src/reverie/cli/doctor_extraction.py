"""How extraction is doing, for `reverie doctor`: its last success, why it did not run, what it cost. Looks only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from reverie.cli.doctor_checks import Check
from reverie.cli.output import age, plural
from reverie.heartbeat import FAILURES_TOLD, Heartbeat
from reverie.layers.l5_extraction.state import WRITER
from reverie.paths import Places
from reverie.settings import Settings
from reverie.types import JsonObject, Purpose

_DAYS = 7


def extraction_checks(_settings: Settings, places: Places) -> Iterator[Check]:
    """One line: when memory was last learnt from a conversation, or why not."""
    beat = Heartbeat(places.heartbeat(WRITER)).read()
    parts = [f"last run {_ago(beat.succeeded)} ago" if beat.succeeded else "never ran"]
    if beat.run:
        share = float(beat.run.get("cache_read_share", 0.0))
        written = plural(int(beat.run.get("written", 0)), "memory", "memories")
        parts[0] += f" ({written}, {float(beat.run.get('seconds', 0.0)):.1f} s, {share:.0%} read from the cache)"
    if beat.gate:
        parts.append(f"last stopped {_ago(beat.stopped)} ago: {beat.gate}")
    requests, tokens, dollars = _spent(places.day_books)
    if requests:
        cost = f", ${dollars:.2f}" if dollars else ""
        parts.append(f"{plural(requests, 'request')} in {_DAYS} days, worth {tokens:,.0f} input tokens{cost}")
    if beat.failures:
        parts.append(f"failed {plural(beat.failures, 'time')} in a row, last: {beat.error}")
    state = "warning" if beat.failures >= FAILURES_TOLD else "ok"
    todo = "`reverie log --kind task_failed` shows them" if state == "warning" else ""
    yield Check("extraction", state, "; ".join(parts), todo)


def _ago(moment: str) -> str:
    try:
        return age(datetime.fromisoformat(moment).timestamp())
    except ValueError:
        return "some time"


def _spent(books: Path) -> tuple[int, float, float]:
    """Requests, tokens of fresh input and US dollars that extraction took in the last days."""
    today = datetime.now().astimezone().date()
    requests, tokens, dollars = 0, 0.0, 0.0
    for back in range(_DAYS):
        try:
            lines = (books / f"{today - timedelta(days=back)}.jsonl").read_bytes().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                raw: Any = json.loads(line)
                one = cast(JsonObject, raw)
                if one["purpose"] == Purpose.EXTRACTION.value:
                    requests, tokens, dollars = requests + 1, tokens + float(one["tokens"]), dollars + float(one["usd"])
            except (ValueError, TypeError, KeyError):
                continue
    return requests, tokens, dollars
