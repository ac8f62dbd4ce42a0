"""The cache of chat-completions servers: prefixes are kept without markers.

From 1,024 tokens on, in steps of 128, for ten minutes after their last use. Writing costs nothing extra.
"""

from __future__ import annotations

from reverie.simulator.cache import Split
from reverie.simulator.prompt import Prompt
from reverie.types import Usage

STEP = 128
"""Cached tokens come in multiples of this."""
LIFETIME_S = 600.0
"""How long an unused prefix stays cached, in seconds."""
_MANY = 200_000


class AutomaticCache:
    """Prefixes seen lately, by hash."""

    def __init__(self) -> None:
        self._seen: dict[bytes, float] = {}

    def read(self, prompt: Prompt, minimum: int, now: float) -> Split:
        """How much of the prompt is cached. Prefixes are closed: if a position is cached, so is all before it."""
        low, high = -1, len(prompt.chain) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._seen.get(prompt.chain[middle], 0.0) >= now:
                low = middle
            else:
                high = middle - 1
        tokens = prompt.tokens[low] // STEP * STEP if low >= 0 else 0
        if tokens < minimum:
            low, tokens = -1, 0
        usage = Usage(input_tokens=prompt.total - tokens, cache_read_input_tokens=tokens)
        return Split(low, low, low, usage)

    def use(self, prompt: Prompt, now: float) -> None:
        """The response has begun: the whole prompt is cached from now on."""
        self._seen.update(dict.fromkeys(prompt.chain, now + LIFETIME_S))
        if len(self._seen) > _MANY:
            kept = {key: until for key, until in self._seen.items() if until >= now}
            self._seen = dict(list(kept.items())[-_MANY:])
