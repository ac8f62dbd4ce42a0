"""The prompt cache: entries by prefix hash, what a request can read of them, and how its tokens are billed.

An entry is written only at a marker. A read looks at 20 positions back from each marker, from the last marker to the
first. Chat-completions servers cache prefixes without markers (`AutomaticCache`). The caller passes the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.quick import dataclass
from reverie.simulator.prompt import Mark, Prompt
from reverie.types import Usage

LOOKBACK = 20
"""Positions at which a marker looks, including its own."""
TTL_SECONDS = {"5m": 300.0, "1h": 3_600.0}
_MANY = 20_000


@dataclass(slots=True)
class CacheEntry:
    """One cached prefix. `edits`: what `cache_edits` had deleted from it at its last use."""

    ttl: str
    expires: float
    edits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a prompt, as positions (-1: the start): read up to `hit`, written for 1h, then for 5m, the rest."""

    hit: int
    until_1h: int
    until_5m: int
    usage: Usage


class PromptCache:
    """All entries of one server. The hash includes the model and the workspace."""

    def __init__(self) -> None:
        self._entries: dict[bytes, CacheEntry] = {}

    def read(self, prompt: Prompt, minimum: int, now: float) -> Split:
        """What this request reads and what it will write. Changes nothing; see `use`."""
        marks = effective_marks(prompt, minimum)
        hit = self._find(prompt, marks, now)
        after = [mark for mark in marks if mark.position > hit]
        until_1h = max((mark.position for mark in after if mark.ttl == "1h"), default=hit)
        until_5m = max((mark.position for mark in after), default=hit)
        return Split(hit, until_1h, until_5m, _usage(prompt, hit, until_1h, until_5m))

    def use(self, prompt: Prompt, split: Split, minimum: int, started: float) -> tuple[int, ...]:
        """Refreshes what was read and writes at the markers after it; call it when the response begins."""
        written: list[int] = []
        for mark in effective_marks(prompt, minimum):
            key, edits = prompt.chain[mark.position], _edits_before(prompt, mark.position)
            if mark.position <= split.hit:
                self._refresh(key, edits, started)
            else:
                self._write(key, mark.ttl, edits, started)
                written.append(mark.position)
        if split.hit >= 0:
            self._refresh(prompt.chain[split.hit], _edits_before(prompt, split.hit), started)
        if prompt.edits:
            self._delete_from(prompt, split.hit)
        self._forget_old(started)
        return tuple(written)

    def state(self, key: bytes, now: float) -> str:
        """The state of an entry: `alive`, `expired` or `absent`."""
        entry = self._entries.get(key)
        if entry is None:
            return "absent"
        return "alive" if now <= entry.expires else "expired"

    def _find(self, prompt: Prompt, marks: Sequence[Mark], now: float) -> int:
        for mark in reversed(marks):
            for position in range(mark.position, max(mark.position - LOOKBACK, -1), -1):
                entry = self._entries.get(prompt.chain[position])
                if entry is not None and now <= entry.expires:
                    # A deletion must be sent again with every request, in the same place; new ones may follow.
                    edits = _edits_before(prompt, position) if entry.edits else ()
                    if entry.edits == edits[: len(entry.edits)]:
                        return position
        return -1

    def _refresh(self, key: bytes, edits: tuple[str, ...], started: float) -> None:
        entry = self._entries.get(key)
        if entry is not None and started <= entry.expires:
            entry.expires = max(entry.expires, started + TTL_SECONDS[entry.ttl])
            entry.edits = edits

    def _delete_from(self, prompt: Prompt, hit: int) -> None:
        """Deletes in the cache itself: every entry on the way that held the result loses it."""
        for position in range(min(at for _, at in prompt.edits), hit + 1):
            entry = self._entries.get(prompt.chain[position])
            if entry is not None:
                entry.edits = _edits_before(prompt, position)

    def _write(self, key: bytes, ttl: str, edits: tuple[str, ...], started: float) -> None:
        entry = self._entries.get(key)
        expires = started + TTL_SECONDS[ttl]
        if entry is not None and entry.expires > expires and entry.edits == edits:
            return
        self._entries[key] = CacheEntry(ttl, expires, edits)

    def _forget_old(self, now: float) -> None:
        """Drops expired entries. Some stay for a while, to explain misses."""
        if len(self._entries) > _MANY:
            self._entries = {key: entry for key, entry in self._entries.items() if now <= entry.expires}


def effective_marks(prompt: Prompt, minimum: int) -> list[Mark]:
    """The markers with at least the minimum of tokens before them. The others are ignored."""
    return [mark for mark in prompt.marks if prompt.tokens[mark.position] >= minimum]


def tokens_at(prompt: Prompt, position: int) -> int:
    """Tokens up to and including a position; 0 before the first."""
    return prompt.tokens[position] if position >= 0 else 0


def _usage(prompt: Prompt, hit: int, until_1h: int, until_5m: int) -> Usage:
    read, first, second = (tokens_at(prompt, position) for position in (hit, until_1h, until_5m))
    return Usage(
        input_tokens=prompt.total - second,
        cache_read_input_tokens=read,
        cache_creation_input_tokens=second - read,
        cache_creation_1h=first - read,
        cache_creation_5m=second - first,
    )


def _edits_before(prompt: Prompt, position: int) -> tuple[str, ...]:
    return tuple(reference for reference, at in prompt.edits if at <= position)


STEP = 128
"""Cached tokens are multiples of this."""
LIFETIME_S = 600.0
"""How long an unused prefix stays cached, in seconds."""
_MOST_PREFIXES = 200_000


class AutomaticCache:
    """Recent prefixes by hash, from 1,024 tokens on, in steps of 128. Writing is free."""

    def __init__(self) -> None:
        self._seen: dict[bytes, float] = {}

    def read(self, prompt: Prompt, minimum: int, now: float) -> Split:
        """How much of the prompt is cached. If a position is cached, everything before it is too."""
        low, high = -1, len(prompt.chain) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.is_alive(prompt.chain[middle], now):
                low = middle
            else:
                high = middle - 1
        tokens = prompt.tokens[low] // STEP * STEP if low >= 0 else 0
        if tokens < minimum:
            low, tokens = -1, 0
        usage = Usage(input_tokens=prompt.total - tokens, cache_read_input_tokens=tokens)
        return Split(low, low, low, usage)

    def is_alive(self, key: bytes, now: float) -> bool:
        """Whether a prefix is cached."""
        return self._seen.get(key, 0.0) >= now

    def use(self, prompt: Prompt, now: float) -> None:
        """Caches the whole prompt, when the response begins."""
        self._seen.update(dict.fromkeys(prompt.chain, now + LIFETIME_S))
        if len(self._seen) > _MOST_PREFIXES:
            kept = {key: until for key, until in self._seen.items() if until >= now}
            self._seen = dict(list(kept.items())[-_MOST_PREFIXES:])
