"""Watches the prompt cache of one thread: what the next request will read, and why one read less than it could have.

A break is a read below 95% of what the request before left in the cache, and at least 2,000 tokens short of it. Its
cause is named from what changed; if nothing did, from the time that passed; else it was the server. Per request the
watch follows what is new: what two requests share is the same objects, and costs a glance each.
A `UsageWatch` goes by the same rule where nobody watched: by the usage of responses alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from reverie.context.cache_causes import Cause, differences, has_thinking
from reverie.models.base import Request, Response
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.features import begins_turn
from reverie.models.prices import price
from reverie.models.window import scaled
from reverie.models.wire import model_id
from reverie.storage.transcript.records import CacheBreak
from reverie.types import Usage

SHARE = 0.95
LEAST_DROP = 2_000
LIFETIME_S = {"5m": 300, "1h": 3_600}
AUTOMATIC_S = 600
"""How long servers that cache by themselves keep a prefix nobody asks for: five to ten minutes."""

UNFORESEEN = frozenset({"server", "thinking_stripped"})
"""Causes that show only in the answer."""
NOBODYS_CHANGE = frozenset({"expired", "server", "images"})
"""Causes that nobody's change brought about: told, but no warning."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a request is expected to read, in tokens, and what is known to stand in its way."""

    cached: int
    """What the request before left in the cache."""
    causes: tuple[Cause, ...]
    announced: str | None = None

    @property
    def breaks(self) -> bool:
        return bool(self.causes) and self.cached > 0


@dataclass(frozen=True, slots=True)
class _Left:
    """What is known of the request before: it (None after a resume), what it left cached, when it began.

    Servers that cache by themselves report no writes. That they kept what they read is sure enough to speak of a
    break; once there is one, their whole prompt counts as lost, since they say that they keep all of it.
    """

    request: Request | None
    cached: int
    whole: int
    at: datetime

    @classmethod
    def by(cls, request: Request | None, usage: Usage, at: datetime) -> _Left:
        sure = usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        by_itself = request is not None and not request.markers and sure > 0
        return cls(request, sure, usage.prompt if by_itself else sure, at)


class CacheWatch:
    """One thread's watch. `predict` may be asked at any time; `finished` is told every response."""

    def __init__(self, catalogue: Catalogue, *, window: int, parent: CacheWatch | None = None) -> None:
        self._catalogue = catalogue
        self._least = scaled(LEAST_DROP, window)
        self._window = window
        self._left: _Left | None = parent._left if parent is not None else None
        self._parent = parent
        self._announced: str | None = None
        self._changes: tuple[Request, tuple[Cause, ...]] | None = None

    def forked(self) -> CacheWatch:
        """The watch of a fork: its first request is expected to read what the last one here left."""
        return CacheWatch(self._catalogue, window=self._window, parent=self)

    def afresh(self) -> CacheWatch:
        """The watch of a thread with a prefix of its own: it has nothing to read yet."""
        return CacheWatch(self._catalogue, window=self._window)

    def resumed(self, usage: Usage, at: datetime) -> None:
        """Takes up a conversation from its transcript; its prefix is the same bytes, only time has passed."""
        self._left = _Left.by(None, usage, at)

    def forget(self) -> None:
        """Begins anew, as if nothing had been sent."""
        self._left = self._announced = self._changes = None

    def predict(self, request: Request, now: datetime) -> Prediction:
        """What this request would meet if it were sent now: what changed, and whether the cache has grown too old."""
        left = self._left
        if left is None:
            return Prediction(0, ())
        late = self._expired(request, (now - left.at).total_seconds())
        causes = (*self._changed(left, request), *([late] if late is not None else []))
        return Prediction(left.cached, causes, request.announced_break)

    def finished(self, request: Request, response: Response, at: datetime) -> CacheBreak | None:
        """Takes in a response to a request begun `at`; the break it suffered, if any, announced or not."""
        left, usage = self._left, response.usage
        announced = "; ".join(filter(None, (self._announced, request.announced_break))) or None
        self._announced = None
        self._left = _Left.by(request, usage, at)
        if left is None:
            return None
        read = usage.cache_read_input_tokens
        expected = min(left.whole, usage.prompt)
        if self._parent is not None and self._parent._left is not None and read >= SHARE * self._parent._left.cached:
            self._parent._touched(at)
        lost = expected - read
        if read >= SHARE * min(left.cached, usage.prompt) or lost < self._least:
            return None
        facts = self._catalogue.facts(model_id(request.model))
        predicted = self._changes is not None and self._changes[0] is request
        found = self._explain(left, request, response, at)
        if announced is None and (response.applied_edits or found[0].kind == "thinking_stripped"):
            announced = found[0].detail  # asked for, or the model's own rule: nothing to find out
        equivalents = paid_again(usage, expected, facts)
        return CacheBreak(
            cause=found[0].kind,
            detail=_sentence(found),
            path=found[0].path,
            expected=expected,
            read=read,
            lost_tokens=lost,
            equivalents=round(equivalents, 1),
            cost=equivalents * price(facts, usage.prompt).input / 1_000_000,
            model=response.model,
            purpose=request.purpose.value,
            thread=request.thread,
            predicted=predicted and found[0].kind not in UNFORESEEN,
            announcement=announced,
        )

    def failed(self, request: Request) -> None:
        """A request ended without an answer: a break it announced is still to come."""
        if request.announced_break and request.announced_break != self._announced:
            self._announced = "; ".join(filter(None, (self._announced, request.announced_break)))

    def _touched(self, at: datetime) -> None:
        """A fork read this thread's entry, which lengthens its life."""
        if self._left is not None and at > self._left.at:
            self._left = replace(self._left, at=at)

    def _explain(self, left: _Left, request: Request, response: Response, at: datetime) -> list[Cause]:
        found = [*self._changed(left, request)]
        late = self._expired(request, (at - left.at).total_seconds())
        if late is not None:
            found.append(late)
        if not found and response.applied_edits:
            found.append(Cause("context_management", "the server cleared old content, as it was asked to"))
        if not found and left.request is not None and self._strips_thinking(left.request, request):
            found.append(Cause("thinking_stripped", "this model drops earlier thinking when a new turn begins"))
        return found or [Cause("server", "nothing changed and little time passed: the server dropped it")]

    def _changed(self, left: _Left, request: Request) -> tuple[Cause, ...]:
        """What differs from the request before; compared once, whether it is asked for before or after sending."""
        if self._changes is None or self._changes[0] is not request:
            causes = tuple(differences(left.request, request)) if left.request is not None else ()
            self._changes = (request, causes)
        return self._changes[1]

    def _expired(self, request: Request, idle: float) -> Cause | None:
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


def told(broken: CacheBreak, *, priced: bool) -> str:
    """The break in one line, for the person."""
    who = "" if broken.thread == "main" else f" by {broken.thread}"
    paid = f", ${broken.cost:.4f} more" if priced else ""
    at = f" ({broken.path})" if broken.path and broken.path not in broken.detail else ""
    return (
        f"The prompt cache was missed{who}: {broken.detail}{at}; {broken.lost_tokens:,} tokens were paid again{paid}."
    )


def _sentence(causes: list[Cause]) -> str:
    more = f"; also, {causes[1].detail}" if len(causes) > 1 else ""
    return causes[0].detail + more


def paid_again(usage: Usage, expected: int, facts: ModelFacts) -> float:
    """What the lost tokens cost beyond a cache read, in tokens of fresh input."""
    read = usage.cache_read_input_tokens
    first = read + usage.cache_creation_1h
    second = read + usage.cache_creation_input_tokens
    paid = 0.0
    for start, end, rate in (
        (read, first, facts.cache_write_1h),
        (first, second, facts.cache_write_5m),
        (second, usage.prompt, 1.0),
    ):
        paid += max(0, min(end, expected) - start) * (rate - facts.cache_read)
    return paid


def _time(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@dataclass(slots=True)
class UsageWatch:
    """One conversation, response by response. `announced` says what is known to have changed since the last one."""

    announced: str | None = None
    _left: tuple[Usage, str, datetime | None] | None = None

    def response(self, usage: Usage, model: str, at: datetime | None, facts: ModelFacts) -> CacheBreak | None:
        """Takes in what a response reported; the break it shows, if any."""
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
        equivalents = paid_again(usage, expected, facts)
        return CacheBreak(
            cause=cause,
            detail=detail,
            lost_tokens=expected - read,
            expected=expected,
            read=read,
            cost=equivalents * price(facts, usage.prompt).input / 1_000_000,
            equivalents=round(equivalents, 1),
            model=model,
            announcement=announced,
        )
