"""Explains why a request read less from the cache than it could: the cause, the first block that differs, the cost.

Compares a request with the most similar earlier one of its thread. It keeps fingerprints, but no text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from reverie.models.catalogue import ModelFacts
from reverie.models.prices import price
from reverie.quick import dataclass
from reverie.simulator.cache import PromptCache, Split, effective_marks, tokens_at
from reverie.simulator.prompt import MESSAGE_SETTINGS, SYSTEM_SETTINGS, Prompt, place_path

MOST_POSITIONS = 400_000
"""The most blocks whose fingerprints are kept; then the oldest requests are forgotten."""
_REMEMBERED = 256
_COMPARED = 64
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What is kept of a request: the fingerprints of its prompt, and the last position in the cache."""

    number: int
    prompt: Prompt
    cached: int

    @property
    def cached_tokens(self) -> int:
        return tokens_at(self.prompt, self.cached)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two requests: a cause in one word, the path of the block, and its position."""

    cause: str
    path: str
    position: int


@dataclass(frozen=True, slots=True)
class Miss:
    """Tokens that were in the cache after an earlier request, and that this one paid for again.

    `cause` is `expired` if they were too old to be read in any case. Otherwise it is what changed: `model`, `betas`,
    `tools`, `system`, `messages`, one of the settings (`tool_choice`, `thinking`, `effort`, `images`, `speed`,
    `citations`, `output_format`), or a change by the server (`context_management`, `compaction`,
    `thinking_stripped`). If nothing changed, it is `cache_edits`, `lookback` or `no_markers`.
    """

    cause: str
    path: str
    against: int
    lost_tokens: int
    cost: float
    input_equivalents: float

    def wire(self) -> dict[str, Any]:
        values = asdict(self)
        return values | {"cost_usd": values.pop("cost")}


class Footprints(Generic[K]):
    """The latest footprints by a key: at most `most` of them, with at most `MOST_POSITIONS` blocks together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[K, Footprint] = {}
        self.positions = 0

    def get(self, key: K) -> Footprint | None:
        return self._held.get(key)

    def put(self, key: K, footprint: Footprint) -> None:
        self._drop(key)
        self._held[key] = footprint
        self.positions += len(footprint.prompt.chain)
        while len(self._held) > 1 and (len(self._held) > self._most or self.positions > MOST_POSITIONS):
            self._drop(next(iter(self._held)))

    def __iter__(self) -> Iterator[Footprint]:
        return iter(self._held.values())

    def _drop(self, key: K) -> None:
        gone = self._held.pop(key, None)
        if gone is not None:
            self.positions -= len(gone.prompt.chain)


class RequestHistory:
    """The latest requests of one workspace."""

    def __init__(self) -> None:
        self._prints: Footprints[int] = Footprints(_REMEMBERED)
        self._widest: Footprints[bytes] = Footprints(4 * _REMEMBERED)
        self._steps = 0

    @property
    def positions(self) -> int:
        """The number of blocks it keeps."""
        return self._prints.positions + self._widest.positions

    def add(self, footprint: Footprint) -> None:
        self._steps += 1  # a request that is compacted first has two footprints
        self._prints.put(self._steps, footprint)
        widest = self._widest.get(footprint.prompt.conversation)
        if widest is None or footprint.cached_tokens >= widest.cached_tokens:
            self._widest.put(footprint.prompt.conversation, footprint)

    def miss(
        self, prompt: Prompt, split: Split, facts: ModelFacts, unread: Callable[[Footprint], str], slack: int = 0
    ) -> Miss | None:
        """The miss of this request, if above `slack` tokens. `unread` names the cause if nothing that differs does."""
        read = split.usage.cache_read_input_tokens + slack
        widest = self._widest.get(prompt.conversation)
        if widest is not None and read >= widest.cached_tokens:
            return None
        best, extends = self._best(prompt)
        if best is None:
            return None
        expected = tokens_at(prompt, best.cached) if extends else min(best.cached_tokens, prompt.total)
        if expected <= read:
            return None
        cause = unread(best)
        found = None if cause == "expired" else difference(best, prompt)
        if found is None:
            found = Difference(cause, best.prompt.path(best.cached), best.cached)
        read -= slack
        equivalents = _extra(split, prompt, read, expected, facts)
        return Miss(
            cause=found.cause,
            path=found.path,
            against=best.number,
            lost_tokens=expected - read,
            cost=equivalents * price(facts, prompt.total).input / 1_000_000,
            input_equivalents=equivalents,
        )

    def _best(self, prompt: Prompt) -> tuple[Footprint | None, bool]:
        """The earlier request of the same thread with the longest common prefix, and whether this one extends it.

        A request belongs to the thread of an earlier one if it begins with all that the earlier one left in the cache,
        or if it still has the last answer in the earlier one and its first message, or most others. A fork and a
        sub-agent do not, and what has no answer yet begins a thread.
        """
        messages = set(prompt.digests[prompt.messages_start :]) if prompt.last_answer >= 0 else set[bytes]()
        best: Footprint | None = None
        rank = (-1, False, -1)
        for each in list(self._prints)[-_COMPARED:]:
            if each.cached < 0 or (each.prompt.model != prompt.model and each.cached < each.prompt.messages_start):
                continue  # an agent on another model has only the system prompt in common
            shared = _common(each.prompt, prompt, each.cached + 1)
            extends = shared == each.cached + 1
            if (shared, extends, each.number) > rank and (extends or _continues(each.prompt, prompt, messages)):
                best, rank = each, (shared, extends, each.number)
        return best, rank[1]


def _continues(before: Prompt, prompt: Prompt, messages: set[bytes]) -> bool:
    """Whether these messages of a prompt have the last answer in an earlier one, and its first message or most others.

    An earlier prompt without an answer must be in it as a whole. Two prompts with the same last answer are forks.
    """
    start, end, last = before.messages_start, len(before.digests), before.last_answer
    needed = before.digests[last : last + 1] if last >= 0 else before.digests[start:]
    if not needed or not messages.issuperset(needed) or prompt.digests[prompt.last_answer] == needed[0]:
        return False
    if before.conversation == prompt.conversation:
        return True
    kept = sum(
        before.tokens[at] - tokens_at(before, at - 1) for at in range(start, end) if before.digests[at] in messages
    )
    return 2 * kept >= before.total - tokens_at(before, start - 1)


def unread_cause(best: Footprint, prompt: Prompt, facts: ModelFacts, cache: PromptCache, now: float) -> str:
    """Why the entry of an earlier request was not read: too old, and if it is not, too far back or no marker."""
    if cache.state(best.prompt.chain[best.cached], now) != "alive":
        return "expired"
    before = [reference for reference, _ in best.prompt.edits]
    if before != [reference for reference, _ in prompt.edits][: len(before)]:
        return "cache_edits"
    return "lookback" if effective_marks(prompt, facts.cache_minimum) else "no_markers"


def difference(old: Footprint, new: Prompt) -> Difference | None:
    """The first difference of `new` to what `old` left in the cache; None if `new` extends it."""
    before = old.prompt
    if before.model != new.model:
        return Difference("model", "model", 0)
    if before.betas != new.betas:
        return Difference("betas", "betas", 0)
    limit = old.cached + 1
    at = _common(before, new, limit)
    found = _block_difference(before, new, at) if at < limit else None
    for names, start in ((SYSTEM_SETTINGS, new.system_starts), (MESSAGE_SETTINGS, new.messages_start)):
        changed = next((name for name in names if before.settings.get(name) != new.settings.get(name)), None)
        if changed and start < limit and (found is None or start <= found.position):
            return Difference(changed, changed, start)
    return found


def diagnose(old: Footprint, new: Prompt) -> dict[str, Any] | None:
    """The API's `cache_miss_reason` for a request compared with an earlier one; None if it only appends."""
    whole = Footprint(old.number, old.prompt, len(old.prompt.chain) - 1)
    found = difference(whole, new)
    if found is None:
        return None
    section = found.path.split("[")[0]
    kind = "model" if found.cause == "model" else section if section in ("tools", "system") else "messages"
    if found.cause in SYSTEM_SETTINGS:
        kind = "system"
    elif found.cause == "betas":
        kind = "tools"
    common = 0 if found.cause in ("model", "betas") else tokens_at(new, found.position - 1)
    missed = max(0, tokens_at(old.prompt, len(old.prompt.chain) - 1) - common)
    return {"type": f"{kind}_changed", "cache_missed_input_tokens": missed}


def _block_difference(before: Prompt, new: Prompt, at: int) -> Difference:
    place = new.places[at] if at < len(new.places) else before.places[at]
    sections = {before.places[at][0], place[0]}
    # A new or missing tool moves everything after it, so the earlier section is the one that changed.
    section = next(name for name in ("tools", "system", "messages") if name in sections)
    if section != place[0]:
        place = before.places[at]
    cause = new.altered.get(place[1], section) if section == "messages" else section
    return Difference(cause, place_path(place), at)


def _common(one: Prompt, other: Prompt, limit: int) -> int:
    """How many of the first `limit` positions two prompts share."""
    a, b = one.digests[:limit], other.digests[:limit]
    if a == b:
        return len(a)
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _extra(split: Split, prompt: Prompt, read: int, expected: int, facts: ModelFacts) -> float:
    """The cost of the lost tokens above a cache read, in tokens of fresh input."""
    first, second = tokens_at(prompt, split.until_1h), tokens_at(prompt, split.until_5m)
    parts = (
        (read, first, facts.cache_write_1h),
        (first, second, facts.cache_write_5m),
        (second, prompt.total, 1.0),
    )
    return sum(max(0, min(end, expected) - max(start, read)) * (rate - facts.cache_read) for start, end, rate in parts)
