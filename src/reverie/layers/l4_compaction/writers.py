"""The writers of a summary, the cheapest first: the notes, a fork, a plain request, code.

A writer that fails says why and the next one takes over; the last one cannot fail. Steps only: nothing here acts.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from reverie.errors import AuthenticationFailed, ModelError, PromptTooLong
from reverie.layers.base import AskFork, Effect, EffectResult, Now, ReadFile, WaitFor
from reverie.layers.l3_session_notes.notes_compaction import first_kept
from reverie.layers.l3_session_notes.sections import is_empty, mended, shortened
from reverie.layers.l3_session_notes.writer import template_or_default
from reverie.layers.l4_compaction.by_code import Limits, write_summary
from reverie.layers.l4_compaction.compose import Prose, Scope
from reverie.layers.l4_compaction.ground import Ground
from reverie.layers.l4_compaction.partial import gone_beside
from reverie.layers.l4_compaction.summary import directive, judged, plain_system
from reverie.layers.l4_compaction.too_long import cut_texts, shorter, without_media, without_restored
from reverie.layers.weighing import weigh, weigh_entries, weigh_text
from reverie.models.tokens import PROSE_BYTES
from reverie.storage.transcript.view import View
from reverie.types import Message, Purpose

_NOTES_BYTES = 400_000
_QUOTED = 400
_TOO_LONG = (
    "the conversation is too long for its own summary, even without its first rounds: compact a part of it with "
    "--up-to, or start with an empty conversation (/clear)"
)


class Writers:
    """The writers for one compaction of one view."""

    def __init__(self, ground: Ground, view: View, now: Now) -> None:
        self._ground = ground
        self._view = view
        self._now = now

    def from_notes(self) -> Generator[Sequence[Effect], Sequence[EffectResult], tuple[Scope, Prose] | None]:
        """Returns the notes if they exist and say how far they go, else None."""
        ground, numbers = self._ground, self._ground.note_numbers()
        if not ground.is_on("compaction.notes"):
            return None
        yield [WaitFor(Purpose.NOTES, numbers.wait_s, numbers.ignore_after_s)]
        start = first_kept(self._view, numbers)  # after waiting, because the cursor may have moved
        if start is None:
            return None
        notes, own = yield [ReadFile(ground.notes, _NOTES_BYTES), ReadFile(ground.template, _NOTES_BYTES)]
        template, _ = template_or_default(own.text if own.ok else None)
        if not notes.ok or is_empty(notes.text, template):
            return None
        text = shortened(
            mended(notes.text, template), template, characters=numbers.section_characters, path=str(ground.notes)
        )
        kept = tuple(self._view.entries[start:])
        return Scope("whole", gone_beside(self._view, kept), kept), Prose(text.strip(), "notes")

    def summary(
        self, scope: Scope, instructions: str, *, reactive: bool
    ) -> Generator[Sequence[Effect], Sequence[EffectResult], Prose | None]:
        """Returns a summary of the scope; None if even the shortest one would be larger than what it replaces."""
        replaced = self._replaced(scope)
        failures = list[str]()
        prose = yield from self._by_model(scope, instructions, replaced, failures, reactive=reactive)
        if prose is not None:
            return prose
        numbers = self._ground.numbers()
        room = min(numbers.summary_tokens, replaced)
        # The ledger and the names are next to it in the new context, so it does not repeat them.
        text = write_summary(scope.gone, Limits.for_tokens(room), cwd=str(self._ground.cwd), alone=False)
        if self._weigh(text) >= replaced:
            return None
        return Prose(text, "code", tuple(failures))

    def _by_model(
        self, scope: Scope, instructions: str, replaced: int, failures: list[str], *, reactive: bool
    ) -> Generator[Sequence[Effect], Sequence[EffectResult], Prose | None]:
        """Asks a fork that shares the cache, then a plain request that may be shorter. Collects why they failed."""
        numbers, now = self._ground.numbers(), self._now
        asked = directive(scope.extent, instructions, beginning=_beginning(scope))
        most = numbers.summary_tokens
        messages = self._shown(scope)
        weight = self._weigh(asked) + (now.used if messages is None else self._weigh_all(messages))
        error: ModelError | None = None
        if not reactive and weight <= now.effective:
            (result,) = yield [AskFork(Purpose.COMPACTION, asked, most, messages=messages)]
            text, why = judged(result, replaced, self._weigh)
            if text:
                return Prose(text, "fork")
            failures.append(why)
            error = result.error
            if isinstance(error, AuthenticationFailed) or (error is not None and error.retryable):
                return None  # if the model does not answer one request, it will not answer another
        plain = without_restored(without_media(messages if messages is not None else self._view.messages()))
        excess = now.excess if reactive else max(0, weight - now.effective) or None
        too_long = reactive or excess is not None
        if isinstance(error, PromptTooLong):
            too_long, excess = True, _excess(error)
        tries = 0
        while True:
            if too_long:
                if tries == numbers.too_long_tries:
                    failures.append(_TOO_LONG)
                    return None
                plain = self._shorter(plain, excess, tries)
                tries += 1
            (result,) = yield [AskFork(Purpose.COMPACTION, asked, most, messages=plain, system=plain_system())]
            text, why = judged(result, replaced, self._weigh)
            if text:
                return Prose(text, "plain")
            if not isinstance(result.error, PromptTooLong):
                failures.append(why)
                return None
            too_long, excess = True, _excess(result.error)

    def _shorter(self, messages: tuple[Message, ...], excess: int | None, tries: int) -> tuple[Message, ...]:
        less = shorter(messages, excess, lambda message: weigh(self._view, message.content))
        if less is None or self._weigh_all(less) > self._now.effective:
            left = less or messages
            room = self._now.effective * PROSE_BYTES // 2 ** (tries + 1)
            return cut_texts(left, max(200, room // len(left)))
        return less

    def _shown(self, scope: Scope) -> tuple[Message, ...] | None:
        """Returns what the summariser sees: the current conversation, or only its first part for `up_to`."""
        if scope.extent != "up_to":
            return None
        before = len(self._view.entries) - len(scope.kept)
        return self._view.showing(self._view.entries[:before]).messages()

    def _replaced(self, scope: Scope) -> int:
        kept = {id(entry) for entry in scope.kept}
        return weigh_entries(self._view, (entry for entry in self._view.entries if id(entry) not in kept))

    def _weigh(self, text: str) -> int:
        return weigh_text(self._view, text)

    def _weigh_all(self, messages: Sequence[Message]) -> int:
        return weigh(self._view, (block for message in messages for block in message.content))


def _excess(error: PromptTooLong) -> int | None:
    if error.actual is None or error.limit is None:
        return None
    return max(1, error.actual - error.limit)


def _beginning(scope: Scope) -> str:
    if not scope.gone:
        return ""
    text = scope.gone[0].message.text.strip() or str([use.name for use in scope.gone[0].message.tool_uses])
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"
