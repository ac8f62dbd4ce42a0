"""How large the context is now: what the last response reported, its own tokens, and an estimate of what came since.

A `ContextMeter` follows a conversation message by message. Its calibrator learns from every response.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from reverie.models.calibration import Calibrator
from reverie.models.features import ROUND, Features, begins_turn, measure_blocks, measure_message
from reverie.quick import dataclass
from reverie.types import Block, Message, ThinkingBlock, Usage

_MOST_OFF = 2.0
"""An estimate is corrected by at most this factor, up or down."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of the prompt from one response to the next. `features` is what was appended in between."""

    features: Features
    tokens: int


class ContextMeter:
    """Counts the tokens of one conversation with one model.

    Call `respond(usage)` for a response, then `append` its message, then its tool results, and so on. Call `reset` when
    the context was rewritten (compaction, cleared results): counting starts again at the next response.
    """

    def __init__(self, calibrator: Calibrator | None = None, *, keeps_thinking: bool = True) -> None:
        """`keeps_thinking` is from the catalogue: older models drop the thinking of a turn when the next one begins."""
        self.calibrator = calibrator or Calibrator.prior()
        self._keeps_thinking = keeps_thinking
        self._prompt: int | None = None
        self._output = 0
        self._answer = Features()
        self._pending = Features()
        self._whole = Features()
        self._off = 1.0
        self._thinking = Features()
        self._rewritten = False
        self.unrecorded = 0
        """Tokens of the first response above the estimate of what was appended before it."""

    @property
    def tokens(self) -> int:
        """The size of the next prompt: the last reported size, the response, and the estimate of what was appended.

        The response counts as the server reported it. Recordings of a stream can have a figure from its middle, so it
        never counts less than its content.
        """
        estimate = self.calibrator.estimate
        if self._prompt is None:
            return max(0, round(estimate(self._answer + self._pending + ROUND) * self._off))
        return max(0, round(self._prompt + max(self._output, estimate(self._answer)) + estimate(self._pending + ROUND)))

    @property
    def is_reported(self) -> bool:
        """Whether a server has counted a part of the context; else all of it is estimated."""
        return self._prompt is not None

    def estimate(self, messages: Iterable[Message]) -> int:
        """The tokens that these messages add to a prompt."""
        return round(self.calibrator.estimate(sum(map(measure_message, messages), ROUND)))

    def append(self, message: Message) -> None:
        """Counts a message, or a part of one (the records of one response come one by one)."""
        if begins_turn(message):
            if not self._keeps_thinking:
                self._pending = self._pending - self._thinking
            self._thinking = Features()
        measured = measure_message(message)
        self._whole = self._whole + measured
        if message.role == "assistant":
            self._answer = self._answer + measured
        else:
            self._pending = self._pending + measured
        thinking = [block for block in message.content if isinstance(block, ThinkingBlock)]
        if thinking:
            self._thinking = self._thinking + measure_blocks(thinking)

    def respond(self, usage: Usage) -> Growth | None:
        """Learns from the usage of a response. Returns the growth since the last response.

        Returns None if the two cannot be compared: at the start, after a `reset`, or when the context shrank.
        """
        before, features = self._prompt, self._answer + self._pending + ROUND
        if before is None:
            self.unrecorded = max(0, round(usage.prompt - self.calibrator.estimate(features)))
        self._prompt, self._output = usage.prompt, usage.output_tokens
        self._answer = self._pending = Features()
        rewritten, self._rewritten = self._rewritten, False
        if before is None or rewritten or usage.prompt < before:
            return None
        growth = Growth(features, usage.prompt - before)
        self.calibrator = self.calibrator.observe(growth.features, growth.tokens)
        return growth

    def report_output(self, tokens: int) -> None:
        """Takes a later figure for the last response: its records come one by one, and the last knows the most."""
        self._output = max(self._output, tokens)

    def rewrite(self, before: Iterable[Block], after: Iterable[Block]) -> None:
        """Replaces blocks that were counted by others; nothing is learnt from the next response."""
        change = measure_blocks(after) - measure_blocks(before)
        self._pending, self._whole = self._pending + change, self._whole + change
        self._rewritten = True

    def copy(self) -> ContextMeter:
        return copy(self)  # all its fields are immutable

    def reset(self, *, same_prompt: bool = False) -> None:
        """Forgets the reported size and what was appended, but keeps what was learnt.

        `same_prompt`: what comes next is a part of the same context. The error of the estimate is then kept too, so
        that sizes before and after can be compared.
        """
        if not same_prompt:
            self._off = 1.0
        elif self._prompt is not None:
            off = self.tokens / max(1.0, self.calibrator.estimate(self._whole + ROUND))
            self._off = min(_MOST_OFF, max(1 / _MOST_OFF, off))
        self._prompt, self._output = None, 0
        self._answer = self._pending = self._thinking = self._whole = Features()
