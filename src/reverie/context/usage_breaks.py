"""Breaks of the prompt cache as the usage of responses shows them, for sessions that nobody watched while they ran.

The rule is the one of the watch: a read below 95% of what the response before had left cached, and at least 2,000
tokens short. What changed in the request is not recorded, so a cause is named only where time, model or a compaction
tells it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reverie.context.cache_watch import LEAST_DROP, LIFETIME_S, SHARE, paid_again
from reverie.models.catalogue import ModelFacts
from reverie.models.prices import price
from reverie.models.window import scaled
from reverie.storage.transcript.records import CacheBreak
from reverie.types import Usage


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
