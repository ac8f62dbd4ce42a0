"""How large the context is right now: what the last response reported, and an estimate of what came after it.

A `ContextMeter` follows a conversation, message by message, and teaches its
calibrator at every response. Never asks a server, never reads a transcript: whoever walks one feeds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reverie.models.calibration import Calibrator
from reverie.models.features import ROUND, Features, begins_turn, measure_blocks, measure_message
from reverie.types import Block, Message, ThinkingBlock, Usage

_MOST_OFF = 2.0
"""An estimate is corrected by at most this factor, either way."""


@dataclass(frozen=True, slots=True)
class Growth:
    """From one response to the next the prompt grew by `tokens`; `features` is what was appended in between."""

    features: Features
    tokens: int


class ContextMeter:
    """Follows one conversation with one model and keeps count. Feed it in the order things happened:

    `respond(usage)` when a response is known, then `append` its message, then the tool results, and so on. Call `reset`
    when the context was rewritten (compaction, cleared results): the next response is then a fresh start.
    """

    def __init__(self, calibrator: Calibrator | None = None, *, keeps_thinking: bool = True) -> None:
        """`keeps_thinking` is the catalogue's: older models drop the thinking of a turn when the next one begins."""
        self.calibrator = calibrator or Calibrator.prior()
        self._keeps_thinking = keeps_thinking
        self._prompt: int | None = None
        self._pending = Features()
        self._whole = Features()
        self._off = 1.0
        self._thinking = Features()
        self._rewritten = False
        self.unrecorded = 0
        """What the first response reported beyond the estimate of what was appended before it."""

    @property
    def tokens(self) -> int:
        """The size of the next prompt as far as it is known: reported, plus the estimate of what was appended."""
        added = self.calibrator.estimate(self._pending + ROUND)
        return max(0, round(added * self._off if self._prompt is None else self._prompt + added))

    def append(self, message: Message) -> None:
        """Takes in a message or a part of one (records split from one response come one by one)."""
        if begins_turn(message):
            if not self._keeps_thinking:
                self._pending = self._pending - self._thinking
            self._thinking = Features()
        measured = measure_message(message)
        self._pending, self._whole = self._pending + measured, self._whole + measured
        thinking = [block for block in message.content if isinstance(block, ThinkingBlock)]
        if thinking:
            self._thinking = self._thinking + measure_blocks(thinking)

    def respond(self, usage: Usage) -> Growth | None:
        """Takes in what a response reported, and learns from it.

        Returns the growth since the last response, None where the two cannot be compared: at the start, after a
        `reset`, or when the context shrank.
        """
        before, features = self._prompt, self._pending + ROUND
        if before is None:
            self.unrecorded = max(0, round(usage.prompt - self.calibrator.estimate(features)))
        self._prompt, self._pending = usage.prompt, Features()
        rewritten, self._rewritten = self._rewritten, False
        if before is None or rewritten or usage.prompt < before:
            return None
        growth = Growth(features, usage.prompt - before)
        self.calibrator = self.calibrator.observe(growth.features, growth.tokens)
        return growth

    def rewrite(self, before: Iterable[Block], after: Iterable[Block]) -> None:
        """Takes in that blocks already counted were replaced by others; nothing is learnt from the next response."""
        change = measure_blocks(after) - measure_blocks(before)
        self._pending, self._whole = self._pending + change, self._whole + change
        self._rewritten = True

    def copy(self) -> ContextMeter:
        """An independent meter that has seen the same."""
        twin = ContextMeter(self.calibrator, keeps_thinking=self._keeps_thinking)
        twin._prompt, twin._pending, twin._thinking = self._prompt, self._pending, self._thinking
        twin.unrecorded = self.unrecorded
        twin._rewritten, twin._whole, twin._off = self._rewritten, self._whole, self._off
        return twin

    def reset(self, *, same_prompt: bool = False) -> None:
        """Forgets the reported size and what was appended; what was learnt stays.

        `same_prompt`: what comes next is a part of the same context. By how much the estimate of the whole was off what
        was reported of it then holds for the part, so that sizes before and after can be compared.
        """
        if not same_prompt:
            self._off = 1.0
        elif self._prompt is not None:
            off = self.tokens / max(1.0, self.calibrator.estimate(self._whole + ROUND))
            self._off = min(_MOST_OFF, max(1 / _MOST_OFF, off))
        self._prompt, self._pending, self._thinking, self._whole = None, Features(), Features(), Features()
