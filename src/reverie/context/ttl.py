"""How long a new session should keep its prompt cache: five minutes or an hour, by what would have been cheaper.

An hour costs more to write and survives longer pauses. Which is cheaper depends on how somebody works, so the last
sessions of the folder are billed both ways. Reads the ends of a few files, once a session; without evidence, 5m.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from reverie.models.base import Ttl
from reverie.models.catalogue import ModelFacts
from reverie.moments import modified_time, parse_time
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.regular_files import read_tail
from reverie.types import Usage

SESSIONS = 8
SESSION_BYTES = 524_288
"""Read from the end of each of the newest sessions."""
LEAST_REQUESTS = 20
"""Fewer say nothing about a habit."""
LEAST_GAIN = 0.02
"""An hour is chosen only if it would have been cheaper by this share."""

_LIFETIME_S = {"5m": 300.0, "1h": 3_600.0}
_TIMESTAMP = re.compile(rb'"timestamp":\s*"([0-9T:.+Z-]+)"')
_SIDE = re.compile(rb'"isSidechain":\s*true')
_ASSISTANT = re.compile(rb'"type":\s*"assistant"')


@dataclass(frozen=True, slots=True)
class Step:
    """From one request to the next: seconds in between, and the tokens of both prompts."""

    gap_s: float
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class TtlChoice:
    """A lifetime and, in half a sentence, why."""

    ttl: Ttl
    reason: str


def choose_ttl(project: Path, facts: ModelFacts, ttls: Sequence[Ttl], *, skip: str = "") -> TtlChoice:
    """The lifetime for a new session in the folder `project` of transcripts; `skip` is the session's own id."""
    if "1h" not in ttls:
        return TtlChoice("5m", "this model offers no other lifetime" if ttls else "this model takes no cache markers")
    found = [list(steps(path)) for path in newest(project, skip)]
    return decide([step for each in found for step in each], facts, sessions=len(found))


def decide(taken: Sequence[Step], facts: ModelFacts, *, sessions: int = 1) -> TtlChoice:
    """What the steps of earlier sessions would have cost with either lifetime, and the cheaper of the two."""
    cached = [step for step in taken if step.after >= facts.cache_minimum]
    if len(cached) < LEAST_REQUESTS:
        known = f"only {len(cached)}" if cached else "no"
        return TtlChoice("5m", f"{known} earlier request{'s' if len(cached) != 1 else ''} here to judge by")
    short, long = expected_cost(cached, facts, "5m"), expected_cost(cached, facts, "1h")
    pauses = sum(_LIFETIME_S["5m"] < step.gap_s <= _LIFETIME_S["1h"] for step in cached)
    seen = (
        f"of {len(cached):,} requests in {sessions} earlier session{'s' if sessions != 1 else ''}, "
        f"{pauses} came 5 to 60 min after the one before"
    )
    if long < short * (1 - LEAST_GAIN):
        return TtlChoice("1h", f"{seen}: an hour would have cost {1 - long / short:.0%} less")
    return TtlChoice("5m", f"{seen}: an hour would have cost {long / short - 1:.0%} more")


def expected_cost(taken: Sequence[Step], facts: ModelFacts, ttl: Ttl) -> float:
    """What these prompts cost with this lifetime, in tokens of fresh input."""
    write = facts.cache_write_1h if ttl == "1h" else facts.cache_write_5m
    paid = 0.0
    for step in taken:
        if step.gap_s <= _LIFETIME_S[ttl] and step.after >= step.before:
            paid += step.before * facts.cache_read + (step.after - step.before) * write
        else:
            paid += step.after * write
    return paid


def newest(project: Path, skip: str = "") -> list[Path]:
    """The newest few transcripts of a folder."""
    try:
        with os.scandir(project) as entries:
            found = [
                (modified_time(entry.stat()), entry.path)
                for entry in entries
                if entry.name.endswith(".jsonl")
                and not entry.name.startswith("agent-")
                and entry.name != f"{skip}.jsonl"
            ]
    except OSError:
        return []
    return [Path(path) for _, path in sorted(found, reverse=True)[:SESSIONS]]


def steps(path: Path) -> Iterator[Step]:
    """The steps of one transcript, as far as its end tells. Only responses are parsed; the rest is searched."""
    asked: datetime | None = None
    last: tuple[datetime, int] | None = None
    last_id = ""
    for line in _last_lines(path):
        if _SIDE.search(line):
            continue
        if not _ASSISTANT.search(line):
            asked = _moment(line) or asked
            continue
        prompt, name = _prompt(line)
        began = asked or _moment(line)
        if not prompt or began is None or (name and name == last_id):  # a response may be split over several records
            continue
        if last is not None:
            yield Step(max(0.0, (began - last[0]).total_seconds()), last[1], prompt)
        last, last_id, asked = (began, prompt), name, None


def _last_lines(path: Path) -> list[bytes]:
    try:
        tail, is_whole = read_tail(path, SESSION_BYTES)
    except OSError:
        return []
    lines = tail.split(b"\n")
    return lines if is_whole else lines[1:]


def _moment(line: bytes) -> datetime | None:
    found = _TIMESTAMP.search(line)
    return None if found is None else parse_time(found[1].decode("ascii", "replace"))


def _prompt(line: bytes) -> tuple[int, str]:
    """The prompt's tokens of a response, and its id."""
    try:
        raw: Any = load_json(line, depth=RECORD_DEPTH)
        message = cast("dict[str, Any]", raw)["message"]
        usage = Usage.parse(message.get("usage"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0, ""
    return (usage.prompt if usage is not None else 0), str(message.get("id") or "")
