"""What background work has cost today in all sessions of this home, and the cap that stops it.

One small file per day with one line per request. Each line is one write, so many processes can share the file. The
transcripts hold the same data; the file only saves reading them. It can be deleted at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import KW_ONLY
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

from reverie.context.ledger import LedgerEntry
from reverie.errors import StorageError
from reverie.models.prices import format_dollars
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, open_regular, read_regular
from reverie.storage.atomic import make_private_dir
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.types import Purpose

BACKGROUND = frozenset({Purpose.RECALL, Purpose.NOTES, Purpose.EXTRACTION, Purpose.DREAM, Purpose.PROGRESS})
"""Work that nobody asked for or waits for. Not compaction: a conversation cannot go on without it."""

_KEPT_DAYS = 35


@dataclass(frozen=True, slots=True)
class Spending:
    """Tokens of fresh input, and US dollars."""

    tokens: float = 0.0
    dollars: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.tokens + other.tokens, self.dollars + other.dollars)


class DayBook:
    """The day books of one home. Never raises for disk errors: what cannot be written is counted in memory."""

    def __init__(self, folder: Path, *, clock: Clock = utc_now) -> None:
        self._folder = folder
        self._clock = clock
        self._day: date | None = None
        self._read = 0
        self._spent = Spending()
        self._unsaved = Spending()

    def path(self, day: date) -> Path:
        return self._folder / f"{day.isoformat()}.jsonl"

    def add(self, one: LedgerEntry) -> None:
        """Books a request of background work and ignores others."""
        if one.purpose not in BACKGROUND:
            return
        day = self._today()
        try:
            make_private_dir(self._folder)
            self._append(self.path(day), _line(one))
        except (StorageError, OSError):
            self._unsaved += Spending(one.equivalents, one.cost)

    def today(self) -> Spending:
        """Returns what all processes together have spent today. Reads only what is new since the last call."""
        self._catch_up(self.path(self._today()))
        return self._spent + self._unsaved

    def beside(self, sessions: Collection[str], *, since: date = date.min) -> Spending:
        """Returns what was spent outside of these sessions since a day, as far as the books go back."""
        spent = Spending()
        for file in sorted(self._folder.glob("????-??-??.jsonl")):
            with suppress(OSError):
                lines = read_regular(file, LARGEST).splitlines() if file.stem >= since.isoformat() else []
                spent = sum((_spent(line) for line in lines if _session(line) not in sessions), spent)
        return spent

    def _today(self) -> date:
        day = self._clock().astimezone().date()
        if day != self._day:
            self._day, self._read = day, 0
            self._spent = self._unsaved = Spending()
            self._forget_old(day)
        return day

    def _append(self, path: Path, line: bytes) -> None:
        fd = open_regular(path, append=True)
        try:
            if os.write(fd, line) != len(line):
                raise OSError("the disk took only a part of the line")
        finally:
            os.close(fd)

    def _catch_up(self, path: Path) -> None:
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                if os.fstat(file.fileno()).st_size < self._read:  # rebuilt or cut: start again
                    self._read, self._spent = 0, Spending()
                file.seek(self._read)
                added = file.read(LARGEST)
        except OSError:
            return
        whole = added.rfind(b"\n") + 1  # another process may be in the middle of a line
        self._read += whole
        for line in added[:whole].splitlines():
            self._spent += _spent(line)

    def _forget_old(self, today: date) -> None:
        oldest = self.path(today - timedelta(days=_KEPT_DAYS)).name
        with suppress(OSError):
            for file in self._folder.glob("????-??-??.jsonl"):
                if file.name < oldest:
                    file.unlink(missing_ok=True)


def _line(one: LedgerEntry) -> bytes:
    at = None if one.at is None else one.at.isoformat(timespec="seconds")
    body = {
        "at": at,
        "session": one.session,
        "purpose": one.purpose,
        "model": one.model,
        "tokens": round(one.equivalents, 1),
        "usd": round(one.cost, 8),
    }
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _spent(line: bytes) -> Spending:
    try:
        raw: Any = load_json(line)
        body = cast("dict[str, Any]", raw)
        return Spending(max(0.0, float(body["tokens"])), max(0.0, float(body["usd"])))
    except (ValueError, TypeError, KeyError):
        return Spending()


def _session(line: bytes) -> object:
    try:
        raw: Any = load_json(line)
        return cast("dict[str, Any]", raw)["session"]
    except (ValueError, TypeError, KeyError):
        return None


@dataclass(eq=False, slots=True)
class Caps:
    """Checked before background work begins. The limits are functions, because a flag may change them at any time."""

    book: DayBook
    _: KW_ONLY
    tokens_per_day: Callable[[], float]
    dollars_per_day: Callable[[], float]

    def may_spend(self, purpose: Purpose) -> str | None:
        """Returns None if such work may begin now, else the reason in one sentence."""
        if purpose not in BACKGROUND:
            return None
        tokens, dollars = self.tokens_per_day(), self.dollars_per_day()
        if tokens <= 0 and dollars <= 0:
            return None
        spent = self.book.today()
        if 0 < tokens <= spent.tokens:
            return (
                f"background work has used {spent.tokens:,.0f} of the {tokens:,.0f} tokens it may use a day "
                "(budget.background_tokens_per_day)"
            )
        if 0 < dollars <= spent.dollars:
            return (
                f"background work has cost {format_dollars(spent.dollars)} of the {format_dollars(dollars)} "
                "it may cost a day "
                "(budget.background_dollars_per_day)"
            )
        return None
