"""The stage of layer 2: four ways of clearing in a fixed order. At most one of them acts on a request.

In the last way the server clears by itself (`context_management`). Thinking comes first, as the API requires: all of it
is kept until the conversation paused for more than an hour, and that of the last turn from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from reverie.layers.base import Break, BreakCause, Now, StageCommit, Steps, WriteFile
from reverie.layers.l2_microcompact.economic import Outlook, Rates, best_cut, describe_clears, outlook
from reverie.layers.l2_microcompact.lessons import Lessons
from reverie.layers.l2_microcompact.results import CLEARABLE, ClearableResult, ResultIndex
from reverie.models.base import Capabilities
from reverie.models.catalogue import ModelFacts
from reverie.models.window import scaled
from reverie.quick import dataclass
from reverie.storage.transcript.records import CacheEdits, Clears, ServerEdits, SessionHeader
from reverie.storage.transcript.view import View
from reverie.types import JsonObject

TIME, ECONOMIC = "microcompact.time", "microcompact.economic"
_SHORTEST_PAUSE_S = 60
"""Shorter breaks never count as a pause, whatever the settings say."""
CACHE_EDITS, SERVER = "microcompact.cache_edits", "microcompact.server"


@dataclass(frozen=True, slots=True)
class MicrocompactNumbers:
    """The numbers of layer 2; tokens are for a window of 200,000."""

    pause_minutes: float = 60
    keep_recent: int = 5
    keep_rounds: int = 4
    cache_edits_above: int = 12
    server_trigger: int = 180_000
    server_target: int = 40_000


@dataclass(frozen=True, slots=True)
class _Clearing:
    strategy: Literal["time", "economic"]
    chosen: Sequence[ClearableResult]
    why: str


@dataclass(eq=False, slots=True)
class Microcompact:
    """The layer 2 of one conversation. `is_on` reads a kill switch, `numbers` the current settings."""

    flag = ""  # each way has its own switch
    facts: ModelFacts
    capabilities: Capabilities
    _: KW_ONLY
    warning_at: int
    is_on: Callable[[str], bool] = lambda _flag: True
    numbers: Callable[[], MicrocompactNumbers] = MicrocompactNumbers
    folder: Path | None = None
    any_tool: bool = False
    """Whether results of tools that we do not know may be cleared too, after a copy is on disk."""
    outlook: Callable[[ResultIndex, int, Rates], Outlook] = outlook
    allowance: Callable[[], float | None] = lambda: None
    """What a break for money may cost at most, in tokens of fresh input."""

    def steps(self, view: View, now: Now) -> Steps | None:
        if not now.main_thread:
            return None
        decided = self._decide(view, ResultIndex.of(view, self.folder, any_tool=self.any_tool), now)
        if decided is None:
            return None
        return _clear(decided) if isinstance(decided, _Clearing) else _at_once(decided)

    def why_not(self, _now: Now) -> str:
        """Why nothing was cleared: nothing was due, or the ways that clear are switched off."""
        off = [f"`{flag}`" for flag in (TIME, ECONOMIC) if not self.is_on(flag)]
        if not off:
            return "no clearing pays now"
        which = f"the flag {off[0]} is off" if len(off) == 1 else f"the flags {' and '.join(off)} are off"
        return which if len(off) == 2 else f"no other clearing is due, and {which}"

    def _decide(self, view: View, index: ResultIndex, now: Now) -> StageCommit | _Clearing | None:
        if index.held:
            found = self._by_time(index, now) or self._by_price(view, index, now) or self._in_cache(index)
            if found is not None:
                return found
        return self._at_server(view, index, now)

    def _by_time(self, index: ResultIndex, now: Now) -> _Clearing | None:
        """After a long pause the server's cache is gone, so old results go before everything is written again."""
        rested_s = (now.time - index.answered_at).total_seconds() if index.answered_at is not None else 0.0
        if rested_s < _SHORTEST_PAUSE_S or not self.is_on(TIME):
            return None
        numbers = self.numbers()
        old = _older_results(index, numbers.keep_recent) if rested_s >= numbers.pause_minutes * 60 else []
        return _Clearing("time", old, "the conversation rested and the cache is gone") if old else None

    def _by_price(self, view: View, index: ResultIndex, now: Now) -> _Clearing | None:
        lessons = Lessons.of(view, any_tool=self.any_tool)
        if not self.is_on(ECONOMIC) or lessons.is_resting:
            return None
        ttl = view.header.ttl if view.header is not None else "5m"
        rates = Rates.of(self.facts, ttl)
        cut = best_cut(
            index,
            now.time,
            used=now.used,
            rates=rates,
            ahead=self.outlook(index, view.rounds, rates),
            keep_rounds=self.numbers().keep_rounds,
            lessons=lessons,
            broken=now.broken,
            allowance=self.allowance(),
        )
        return _Clearing("economic", cut.chosen, "carrying them would cost more") if cut is not None else None

    def _in_cache(self, index: ResultIndex) -> StageCommit | None:
        """Deletes old results inside the server's cache, for endpoints that can. Messages and prefix stay; the deletion
        is sent again in its place with every later request."""
        if not self.capabilities.cache_edits or not self.is_on(CACHE_EDITS):
            return None
        numbers = self.numbers()
        gone = _older_results(index, numbers.keep_recent)
        if not gone or len(index.held) <= numbers.cache_edits_above:
            return None
        edits = CacheEdits(tuple(held.call_id for held in gone), sum(held.tokens for held in gone))
        return StageCommit((edits,), notice=describe_clears(gone, "deleted from the server's cache"))

    def _at_server(self, view: View, index: ResultIndex, now: Now) -> StageCommit | None:
        if not self.capabilities.context_edits:
            return None
        if self.is_on(SERVER):
            numbers = self.numbers()
            body = wanted_edits(
                view,
                index,
                now.time,
                trigger=min(scaled(numbers.server_trigger, now.window), self.warning_at),
                target=numbers.server_target,
                keep_recent=numbers.keep_recent,
                window=now.window,
            )
        else:
            body = {}
        if body == view.server_edits:
            return None
        # Announced with the first request too: nothing on record says whether one went out unanswered before it.
        return StageCommit(
            (ServerEdits(body),), breaks=Break(BreakCause.SERVER_EDITS, "the server is asked to clear differently")
        )


def _older_results(index: ResultIndex, keep_recent: int) -> list[ClearableResult]:
    """Returns all results except the newest (at least one) and those that the model has not seen yet."""
    return [held for held in index.held[: -max(1, keep_recent)] if held.since < index.rounds]


def _at_once(commit: StageCommit) -> Steps:
    yield from ()
    return commit


def _clear(wanted: _Clearing) -> Steps:
    """Writes the copies, then clears. A result whose copy cannot be written stays."""
    copied = [(held, WriteFile(held.copy[0], _bytes(held.copy[1]))) for held in wanted.chosen if held.copy is not None]
    lost = set[str]()
    if copied:
        results = yield [effect for _, effect in copied]
        lost = {held.call_id for (held, _), done in zip(copied, results, strict=True) if not done.ok}
    chosen = [held for held in wanted.chosen if held.call_id not in lost]
    if not chosen:
        return StageCommit()
    saved = sum(held.saves for held in chosen)
    record = Clears(wanted.strategy, {held.call_id: held.marker for held in chosen}, saved)
    what = describe_clears(chosen, f"cleared: {wanted.why}")
    # Clearing that pays is everyday work and is in the ledger. A pause is worth a notice.
    notice = what if wanted.strategy == "time" else None
    return StageCommit((record,), breaks=Break(BreakCause.CLEARED, what), notice=notice)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


BETA = "context-management-2025-06-27"
THINKING = "clear_thinking_20251015"
TOOL_USES = "clear_tool_uses_20250919"
_PAUSE_S = 3_600
_LAST_TURN: JsonObject = {"type": "thinking_turns", "value": 1}


def wanted_edits(
    view: View, index: ResultIndex, now: datetime, *, trigger: int, target: int, keep_recent: int, window: int
) -> JsonObject:
    """Returns the body for the next requests. `trigger` is for this window, `target` for a window of 200K."""
    edits = list[JsonObject]()
    header = view.header
    if header is not None and (header.thinking or {}).get("type") in ("enabled", "adaptive"):
        edits.append({"type": THINKING, "keep": _LAST_TURN if _has_paused(view, index, now) else "all"})
    clearing: JsonObject = {
        "type": TOOL_USES,
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": max(1, keep_recent)},
        "clear_at_least": {"type": "input_tokens", "value": max(1, trigger - scaled(target, window))},
    }
    never = _unclearable_tools(header)
    edits.append({**clearing, "exclude_tools": never} if never else clearing)
    return {"edits": edits}


def _has_paused(view: View, index: ResultIndex, now: datetime) -> bool:
    """Whether the conversation ever paused for more than an hour. What was sent once stays."""
    for edit in _edits(view.server_edits):
        if edit.get("type") == THINKING and edit.get("keep") == _LAST_TURN:
            return True
    return index.answered_at is not None and (now - index.answered_at).total_seconds() > _PAUSE_S


def _edits(management: JsonObject) -> list[dict[str, Any]]:
    return list(management.get("edits") or ())


def _unclearable_tools(header: SessionHeader | None) -> list[str]:
    names = [str(tool.get("name", "")) for tool in header.tools] if header is not None else []
    return [name for name in names if name and name not in CLEARABLE]
