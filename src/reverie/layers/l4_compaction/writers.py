"""The writers of a summary, the cheapest first: the notes, a fork, a plain request, code.

A writer that fails says why and the next one takes over; the last one cannot fail. A conversation that is too long for
its own summary loses its first rounds, and images become words. Steps only: nothing here acts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from reverie.errors import AuthenticationFailed, ModelError, PromptTooLong
from reverie.layers.base import AskFork, Effect, EffectResult, Now, ReadFile, WaitFor
from reverie.layers.l3_session_notes.notes_compaction import first_kept
from reverie.layers.l3_session_notes.sections import is_empty, repair_notes, shorten_sections
from reverie.layers.l3_session_notes.trigger import WRITER, NoteNumbers
from reverie.layers.l3_session_notes.writer import template_or_default
from reverie.layers.l4_compaction.by_code import Limits, write_summary
from reverie.layers.l4_compaction.compose import CompactionScope, SummaryText
from reverie.layers.l4_compaction.partial import entries_without
from reverie.layers.l4_compaction.setup import CompactionSetup, Trigger
from reverie.layers.l4_compaction.summary import check_summary, directive, plain_system, shorter
from reverie.layers.weighing import weigh, weigh_entries, weigh_text
from reverie.models.tokens import PROSE_BYTES
from reverie.quick import dataclass
from reverie.storage.transcript.view import View
from reverie.types import Block, DocumentBlock, ImageBlock, Message, Origin, Purpose, TextBlock, ToolResultBlock

_NOTES_BYTES = 400_000
_QUOTED = 400
_SINCE = "# Since these notes were written"
_TOO_LONG = (
    "the conversation is too long for its own summary, even without its first rounds: compact a part of it with "
    "--up-to, or start with an empty conversation (/clear)"
)


@dataclass(eq=False, slots=True)
class Writers:
    """The writers for one compaction of one view."""

    ground: CompactionSetup
    view: View
    now: Now

    def from_notes(
        self, trigger: Trigger
    ) -> Generator[Sequence[Effect], Sequence[EffectResult], tuple[CompactionScope, SummaryText] | None]:
        """Returns the notes and what stays next to them; None if there are none.

        With `notes.cadence` economic, code writes what no model has written: all of it, or what came since.
        """
        ground, view, numbers = self.ground, self.view, self.ground.note_numbers()
        if not ground.is_on("compaction.notes"):
            return None
        yield [WaitFor(Purpose.NOTES, numbers.wait_s, numbers.ignore_after_s)]
        start = first_kept(view, numbers)  # after waiting, because the cursor may have moved
        notes, own = yield [ReadFile(ground.notes, _NOTES_BYTES), ReadFile(ground.template, _NOTES_BYTES)]
        template, _ = template_or_default(own.text if own.ok else None)
        text = ""
        if notes.ok and view.cursors.get(WRITER) is not None and not is_empty(notes.text, template):
            whole = repair_notes(notes.text, template)
            text = shorten_sections(
                whole, template, characters=numbers.section_characters, path=str(ground.notes)
            ).strip()
        if text and start is not None and not self._keeps_much(start, numbers):
            return self._noted(start, text)
        if not ground.code_notes() or (trigger == "manual" and not self._is_long(numbers)):
            return self._noted(start, text) if text and start is not None else None
        start = first_kept(view, numbers, by_code=True)
        if start is None:
            return None
        scope, _ = self._noted(start, "")
        cursor, names = view.cursors.get(WRITER), [entry.uuid for entry in scope.gone]
        since = scope.gone[names.index(cursor) + 1 :] if text and cursor in names else scope.gone
        room = Limits.for_tokens(min(numbers.total_tokens // 4, self._replaced(scope)))
        # The ledger and the names are next to it in the new context, so it does not repeat them.
        added = write_summary(since, room, cwd=str(ground.cwd), alone=False)
        return self._noted(start, f"{text}\n\n{_SINCE}\n\n{added}" if text else added)

    def _noted(self, start: int, text: str) -> tuple[CompactionScope, SummaryText]:
        kept = tuple(self.view.entries[start:])
        return CompactionScope("whole", entries_without(self.view, kept), kept), SummaryText(text, "notes")

    def _keeps_much(self, start: int, numbers: NoteNumbers) -> bool:
        """Whether the notes are so old that most of what they should replace would stay."""
        return weigh_entries(self.view, self.view.entries[start:]) > numbers.keep_tokens_most

    def _is_long(self, numbers: NoteNumbers) -> bool:
        return weigh_entries(self.view, self.view.entries) >= numbers.first_tokens

    def summary(
        self, scope: CompactionScope, instructions: str, *, reactive: bool
    ) -> Generator[Sequence[Effect], Sequence[EffectResult], SummaryText | None]:
        """Returns a summary of the scope; None if even the shortest one would be larger than what it replaces."""
        replaced = self._replaced(scope)
        failures = list[str]()
        prose = yield from self._by_model(scope, instructions, replaced, failures, reactive=reactive)
        if prose is not None:
            return prose
        numbers = self.ground.numbers()
        room = min(numbers.summary_tokens, replaced)
        # The ledger and the names are next to it in the new context, so it does not repeat them.
        text = write_summary(scope.gone, Limits.for_tokens(room), cwd=str(self.ground.cwd), alone=False)
        if self._weigh(text) >= replaced:
            return None
        return SummaryText(text, "code", tuple(failures))

    def _by_model(
        self, scope: CompactionScope, instructions: str, replaced: int, failures: list[str], *, reactive: bool
    ) -> Generator[Sequence[Effect], Sequence[EffectResult], SummaryText | None]:
        """Asks a fork that shares the cache, then a plain request that may be shorter. Collects why they failed."""
        numbers, now = self.ground.numbers(), self.now
        asked = directive(scope.extent, instructions, beginning=_beginning(scope))
        most = numbers.summary_tokens
        messages = self._shown(scope)
        weight = self._weigh(asked) + (now.used if messages is None else self._weigh_all(messages))
        error: ModelError | None = None
        if not reactive and weight <= now.effective:
            (result,) = yield [AskFork(Purpose.COMPACTION, asked, most, messages=messages)]
            if result.cut_off:
                asked = shorter(asked, most)
                (result,) = yield [AskFork(Purpose.COMPACTION, asked, most, messages=messages)]
            text, why = check_summary(result, replaced, self._weigh)
            if text:
                return SummaryText(text, "fork")
            failures.append(why)
            error = result.error
            if isinstance(error, AuthenticationFailed) or (error is not None and error.retryable):
                return None  # if the model does not answer one request, it will not answer another
        plain = strip_restored(strip_media(messages if messages is not None else self.view.messages()))
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
            text, why = check_summary(result, replaced, self._weigh)
            if text:
                return SummaryText(text, "plain")
            if not isinstance(result.error, PromptTooLong):
                failures.append(why)
                return None
            too_long, excess = True, _excess(result.error)

    def _shorter(self, messages: tuple[Message, ...], excess: int | None, tries: int) -> tuple[Message, ...]:
        less = drop_rounds(messages, excess, lambda message: weigh(self.view, message.content))
        if less is None or self._weigh_all(less) > self.now.effective:
            left = less or messages
            room = self.now.effective * PROSE_BYTES // 2 ** (tries + 1)
            return cut_texts(left, max(200, room // len(left)))
        return less

    def _shown(self, scope: CompactionScope) -> tuple[Message, ...] | None:
        if scope.extent != "up_to":
            return None
        before = len(self.view.entries) - len(scope.kept)
        return self.view.with_entries(self.view.entries[:before]).messages()

    def _replaced(self, scope: CompactionScope) -> int:
        kept = {id(entry) for entry in scope.kept}
        return weigh_entries(self.view, (entry for entry in self.view.entries if id(entry) not in kept))

    def _weigh(self, text: str) -> int:
        return weigh_text(self.view, text)

    def _weigh_all(self, messages: Sequence[Message]) -> int:
        return weigh(self.view, (block for message in messages for block in message.content))


def _excess(error: PromptTooLong) -> int | None:
    if error.actual is None or error.limit is None:
        return None
    return max(1, error.actual - error.limit)


def _beginning(scope: CompactionScope) -> str:
    if not scope.gone:
        return ""
    text = scope.gone[0].message.text.strip() or str([use.name for use in scope.gone[0].message.tool_uses])
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"


IMAGE = "[An image was here.]"
DOCUMENT = "[A document was here.]"
LEFT_OUT = "(The beginning of the conversation is left out here: it did not fit.)"
_SHARE_OF_ROUNDS = 5
_CUT = "\n[… cut: too long to be summarised whole …]\n"


def strip_media(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Replaces every image and document by a short marker."""
    return tuple(replace(message, content=_media_to_text(message.content)) for message in messages)


def strip_restored(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Drops what an earlier compaction read from disk again: the next one does so anyway."""
    return tuple(replace(message, content=_without_files(message) or message.content) for message in messages)


def _without_files(message: Message) -> tuple[Block, ...]:
    restored = (Origin.TOOL, Origin.PLAN)
    return tuple(b for b in message.content if not (isinstance(b, TextBlock) and b.origin in restored))


def _media_to_text(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    out = list[Block]()
    for block in blocks:
        match block:
            case ImageBlock():
                out.append(TextBlock(IMAGE, block.origin))
            case DocumentBlock():
                out.append(TextBlock(DOCUMENT, block.origin))
            case ToolResultBlock(content=tuple() as inner):
                out.append(replace(block, content=_media_to_text(inner)))
            case _:
                out.append(block)
    return tuple(out)


def rounds(messages: Sequence[Message]) -> list[list[Message]]:
    """Groups the messages by round: a response and what answers it. Messages before the first are a round too."""
    found: list[list[Message]] = []
    for message in messages:
        if message.role == "assistant" or not found:
            found.append([])
        found[-1].append(message)
    return found


def drop_rounds(
    messages: Sequence[Message], excess: int | None, weigh: Callable[[Message], int]
) -> tuple[Message, ...] | None:
    """Drops rounds from the front until `excess` tokens are gone; a fifth of the rounds if `excess` is not known.

    At least one round goes and at least one stays; the rest begins with a user message. None if nothing can go.
    """
    all_rounds = [part for part in rounds(messages) if part[0].text != LEFT_OUT or len(part) > 1]
    if len(all_rounds) < 2:
        return None
    if excess is None:
        going = max(1, len(all_rounds) // _SHARE_OF_ROUNDS)
    else:
        going, gone = 0, 0
        while going < len(all_rounds) - 1 and gone < max(1, excess):
            gone += sum(weigh(message) for message in all_rounds[going])
            going += 1
    left = [message for part in all_rounds[min(going, len(all_rounds) - 1) :] for message in part]
    if left[0].role == "assistant":
        left.insert(0, Message("user", (TextBlock(LEFT_OUT),)))
    return tuple(left)


def cut_texts(messages: Sequence[Message], characters: int) -> tuple[Message, ...]:
    """Cuts every text to this length: the last resort when one message alone is too long."""
    return tuple(replace(message, content=tuple(_cut(b, characters) for b in message.content)) for message in messages)


def _cut(block: Block, characters: int) -> Block:
    match block:
        case TextBlock() if len(block.text) > characters:
            return replace(block, text=_middle_out(block.text, characters))
        case ToolResultBlock(content=str() as text) if len(text) > characters:
            return replace(block, content=_middle_out(text, characters))
        case ToolResultBlock(content=tuple() as inner):
            return replace(block, content=tuple(_cut(part, characters) for part in inner))
        case _:
            return block


def _middle_out(text: str, characters: int) -> str:
    half = max(1, characters // 2)
    return text[:half] + _CUT + text[-half:]
