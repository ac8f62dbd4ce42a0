"""Watches the prompt cache of one thread: predicts what a request reads, and explains why it read less.

A break is a read below 95% of what the last request left in the cache, and at least 2,000 tokens short of it. The cause
is what changed; if nothing changed, the time that passed; else the server. `UsageWatch` follows the same rule with the
usage of responses only.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from reverie.context.cache_causes import Cause, differences, has_thinking, other_model
from reverie.layers.l2_microcompact.economic import LIFETIME_S
from reverie.models.base import Request, Response
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.features import begins_turn
from reverie.models.prices import price
from reverie.models.window import scaled
from reverie.models.wire import model_id
from reverie.quick import dataclass
from reverie.storage.transcript.records import CacheBreak
from reverie.types import Usage

SHARE = 0.95
LEAST_DROP = 2_000
AUTOMATIC_S = 600
"""How long servers that cache automatically keep an unused prefix: five to ten minutes."""

UNFORESEEN = frozenset({"server", "thinking_stripped"})
"""Causes that are known only from the response."""
NOBODYS_CHANGE = frozenset({"expired", "server", "images"})
"""Causes without a change of the request. They are shown as info, not as a warning."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a request is expected to read, in tokens, and the known reasons why it will read less."""

    cached: int
    causes: tuple[Cause, ...]
    announced: str | None = None

    @property
    def breaks(self) -> bool:
        return bool(self.causes) and self.cached > 0


@dataclass(frozen=True, slots=True)
class _Left:
    """The last request (None after a resume), what it left in the cache, and when it began.

    Servers that cache automatically report no writes. Only what they read is sure to be cached; after a break the whole
    prompt counts as lost, because they promise to keep all of it.
    """

    request: Request | None
    cached: int
    whole: int
    at: datetime
    model: str = ""
    """The model that answered it, if the request is not known."""

    @classmethod
    def by(cls, request: Request | None, usage: Usage, at: datetime, model: str = "") -> _Left:
        sure = usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        by_itself = request is not None and not request.markers and sure > 0
        return cls(request, sure, usage.prompt if by_itself else sure, at, model)


class CacheWatch:
    """The watch of one thread. Call `predict` at any time and `finished` for every response."""

    def __init__(self, catalogue: Catalogue, *, window: int, parent: CacheWatch | None = None) -> None:
        self._catalogue = catalogue
        self._least = scaled(LEAST_DROP, window)
        self._window = window
        self._left: _Left | None = parent._left if parent is not None else None
        self._parent = parent
        self._announced: str | None = None
        self._changes: tuple[Request, tuple[Cause, ...]] | None = None

    def forked(self) -> CacheWatch:
        """Returns the watch of a fork. Its first request is expected to read what the last one here left."""
        return CacheWatch(self._catalogue, window=self._window, parent=self)

    def afresh(self) -> CacheWatch:
        """Returns the watch of a thread with its own prefix, which has nothing to read yet."""
        return CacheWatch(self._catalogue, window=self._window)

    def resumed(self, usage: Usage, at: datetime, model: str = "") -> None:
        """Continues from a transcript: the prefix is the same bytes, only time has passed, unless another model
        answered."""
        self._left = _Left.by(None, usage, at, model)

    def forget(self) -> None:
        """Starts again as if nothing had been sent."""
        self._left = self._announced = self._changes = None

    def predict(self, request: Request, now: datetime) -> Prediction:
        """Returns what this request would read if it were sent now: what changed, and whether the cache has expired."""
        left = self._left
        if left is None:
            return Prediction(0, ())
        late = self._find_expiry(request, (now - left.at).total_seconds())
        causes = (*self._find_changes(left, request), *([late] if late is not None else []))
        return Prediction(left.cached, causes, request.announced_break)

    def finished(self, request: Request, response: Response, at: datetime) -> CacheBreak | None:
        """Takes in the response to a request sent `at`. Returns the break if there was one, announced or not."""
        left, usage = self._left, response.usage
        announced = "; ".join(filter(None, (self._announced, request.announced_break))) or None
        self._announced = None
        self._left = _Left.by(request, usage, at)
        if left is None:
            return None
        read = usage.cache_read_input_tokens
        expected = min(left.whole, usage.prompt)
        if self._parent is not None and self._parent._left is not None and read >= SHARE * self._parent._left.cached:
            self._parent._extend_life(at)
        if read >= SHARE * min(left.cached, usage.prompt) or expected - read < self._least:
            return None
        facts = self._catalogue.facts(model_id(request.model))
        predicted = self._changes is not None and self._changes[0] is request
        found = self._explain(left, request, response, at)
        if announced is None and (response.applied_edits or found[0].kind == "thinking_stripped"):
            announced = found[0].detail  # asked for, or the model's own rule: nothing to find out
        return _make_break(
            facts,
            usage,
            expected,
            cause=found[0].kind,
            detail="; also, ".join(cause.detail for cause in found[:2]),
            path=found[0].path,
            model=response.model,
            purpose=request.purpose.value,
            thread=request.thread,
            predicted=predicted and found[0].kind not in UNFORESEEN,
            announcement=announced,
        )

    def failed(self, request: Request) -> None:
        """Takes in that a request failed: the break that it announced is still to come."""
        if request.announced_break and request.announced_break != self._announced:
            self._announced = "; ".join(filter(None, (self._announced, request.announced_break)))

    def _extend_life(self, at: datetime) -> None:
        if self._left is not None and at > self._left.at:
            self._left = replace(self._left, at=at)

    def _explain(self, left: _Left, request: Request, response: Response, at: datetime) -> list[Cause]:
        found = [*self._find_changes(left, request)]
        late = self._find_expiry(request, (at - left.at).total_seconds())
        if late is not None:
            found.append(late)
        if not found and response.applied_edits:
            found.append(Cause("context_management", "the server cleared old content, as it was asked to"))
        if not found and left.request is not None and self._strips_thinking(left.request, request):
            found.append(Cause("thinking_stripped", "this model drops earlier thinking when a new turn begins"))
        return found or [Cause("server", "nothing changed and little time passed: the server dropped it")]

    def _find_changes(self, left: _Left, request: Request) -> tuple[Cause, ...]:
        """Returns what differs from the last request. Compared once, before or after it is sent."""
        if self._changes is None or self._changes[0] is not request:
            if left.request is not None:
                causes = tuple(differences(left.request, request))
            else:
                was, now = (self._catalogue.facts(model_id(name)) for name in (left.model, request.model))
                causes = tuple(other_model(was.name, now.name)) if was.known and now.known else ()
            self._changes = (request, causes)
        return self._changes[1]

    def _find_expiry(self, request: Request, idle: float) -> Cause | None:
        if request.markers:
            ttl = request.markers[0].ttl
            lifetime, kept = LIFETIME_S[ttl], "1 h" if ttl == "1h" else "5 min"
        else:
            lifetime, kept = AUTOMATIC_S, "5 to 10 min"
        if idle <= lifetime:
            return None
        return Cause("expired", f"{_time(idle)} passed since the last request and the cache is kept for {kept}")

    def _strips_thinking(self, before: Request, after: Request) -> bool:
        return (
            not self._catalogue.facts(model_id(after.model)).keeps_thinking
            and bool(after.messages)
            and begins_turn(after.messages[-1])
            and has_thinking(before.messages, lambda block: bool(block.signature))
        )


def describe_break(broken: CacheBreak, *, priced: bool) -> str:
    """Describes a break in one line for the user."""
    who = "" if broken.thread == "main" else f" by {broken.thread}"
    paid = f", ${broken.cost:.4f} more" if priced else ""
    at = f" ({broken.path})" if broken.path and broken.path not in broken.detail else ""
    return (
        f"The prompt cache was missed{who}: {broken.detail}{at}; {broken.lost_tokens:,} tokens were paid again{paid}."
    )


def _make_break(facts: ModelFacts, usage: Usage, expected: int, **fields: Any) -> CacheBreak:
    equivalents, read = paid_again(usage, expected, facts), usage.cache_read_input_tokens
    cost = equivalents * price(facts, usage.prompt).input / 1_000_000
    lost = {"expected": expected, "read": read, "lost_tokens": expected - read}
    return CacheBreak(**lost, equivalents=round(equivalents, 1), cost=cost, **fields)


def paid_again(usage: Usage, expected: int, facts: ModelFacts) -> float:
    """Returns what the lost tokens cost beyond a cache read, in tokens of fresh input."""
    read = usage.cache_read_input_tokens
    first = read + usage.cache_creation_1h
    second = read + usage.cache_creation_input_tokens
    written = ((read, first, facts.cache_write_1h), (first, second, facts.cache_write_5m), (second, usage.prompt, 1.0))
    return sum(max(0, min(end, expected) - start) * (rate - facts.cache_read) for start, end, rate in written)


def _time(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@dataclass(slots=True)
class UsageWatch:
    """Watches one conversation by the usage of its responses. `announced` is a known change since the last one."""

    announced: str | None = None
    _left: tuple[Usage, str, datetime | None] | None = None

    def response(self, usage: Usage, model: str, at: datetime | None, facts: ModelFacts) -> CacheBreak | None:
        """Takes in the usage of a response. Returns the break that it shows, if any."""
        left, self._left = self._left, (usage, model, at)
        announced, self.announced = self.announced, None
        if left is None:
            return None
        before, model_before, began = left
        expected = min(before.cache_read_input_tokens + before.cache_creation_input_tokens, usage.prompt)
        read = usage.cache_read_input_tokens
        if read >= SHARE * expected or expected - read < scaled(LEAST_DROP, facts.window):
            return None
        idle = (at - began).total_seconds() if at is not None and began is not None else 0.0
        kept = "1h" if before.cache_creation_1h else "5m"
        cause, detail = "unknown", "what changed in the request is not recorded"
        if announced is not None:
            cause, detail = "compaction", announced
        elif model != model_before:
            cause, detail = "model", f"the model changed from {model_before} to {model}"
        elif idle > LIFETIME_S[kept]:
            cause, detail = "expired", f"{int(idle // 60)} min passed since the response before"
        return _make_break(facts, usage, expected, cause=cause, detail=detail, model=model, announcement=announced)
