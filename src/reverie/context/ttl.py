"""Chooses the lifetime of the prompt cache for a new session: five minutes or an hour, whichever is cheaper.

An hour costs more to write and survives longer pauses. So the last sessions of the folder are billed both ways, from
the ends of a few files, once per session. Without evidence: 5m.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from reverie.models.base import Ttl
from reverie.models.catalogue import ModelFacts
from reverie.moments import modified_time, parse_time
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.quick import dataclass
from reverie.regular_files import read_tail
from reverie.types import Usage

SESSIONS = 8
SESSION_BYTES = 524_288
LEAST_REQUESTS = 20
"""Fewer requests do not show a habit."""
LEAST_GAIN = 0.02
"""An hour must be cheaper by at least this share."""

_LIFETIME_S = {"5m": 300.0, "1h": 3_600.0}
_TIMESTAMP = re.compile(rb'"timestamp":\s*"([0-9T:.+Z-]+)"')
_SIDE = re.compile(rb'"isSidechain":\s*true')
_ASSISTANT = re.compile(rb'"type":\s*"assistant"')


@dataclass(frozen=True, slots=True)
class Step:
    """From one request to the next: the seconds between them, and the tokens of both prompts."""

    gap_s: float
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class TtlChoice:
    """A lifetime, and the reason in half a sentence."""

    ttl: Ttl
    reason: str


def choose_ttl(project: Path, facts: ModelFacts, ttls: Sequence[Ttl], *, skip: str = "") -> TtlChoice:
    """Chooses the lifetime for a session in the transcript folder `project`. `skip` is the session's own id."""
    if "1h" not in ttls:
        return TtlChoice("5m", "this model has no other lifetime" if ttls else "this model has no cache markers")
    found = [list(steps(path)) for path in newest(project, skip)]
    return decide([step for each in found for step in each], facts, sessions=len(found))


def decide(taken: Sequence[Step], facts: ModelFacts, *, sessions: int = 1) -> TtlChoice:
    """Returns the cheaper lifetime for the steps of earlier sessions."""
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
    """Returns the cost of these prompts with this lifetime, in tokens of fresh input."""
    write = facts.cache_write_1h if ttl == "1h" else facts.cache_write_5m
    paid = 0.0
    for step in taken:
        if step.gap_s <= _LIFETIME_S[ttl] and step.after >= step.before:
            paid += step.before * facts.cache_read + (step.after - step.before) * write
        else:
            paid += step.after * write
    return paid


def newest(project: Path, skip: str = "") -> list[Path]:
    """Returns the newest transcripts of a folder."""
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
    """Yields the steps at the end of one transcript. Only responses are parsed; other lines are searched."""
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
    try:
        raw: Any = load_json(line, depth=RECORD_DEPTH)
        message = cast("dict[str, Any]", raw)["message"]
        usage = Usage.parse(message.get("usage"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0, ""
    return (usage.prompt if usage is not None else 0), str(message.get("id") or "")
