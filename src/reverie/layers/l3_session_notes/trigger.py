"""When notes are due, what they lack, and the numbers of layer 3. Pure; asked after every response."""

from __future__ import annotations

from dataclasses import fields, replace

from reverie.layers.l2_microcompact.economic import Rates, chance_of
from reverie.layers.l3_session_notes.sections import over_limit, split
from reverie.layers.weighing import weigh_early, weigh_entries
from reverie.models.window import scaled
from reverie.quick import dataclass
from reverie.storage.transcript.view import View
from reverie.types import JsonObject

WRITER = "notes"
"""The name of the notes' cursor in the records."""
ASKED = "notes.asked"
"""The name of another cursor: where the conversation was when a model was last asked for notes."""
_AHEAD = 5
"""Rounds before the threshold at which a model is asked: time for its answer, and little that it does not cover."""
_SHARE = 0.04
"""The most that notes may cost, as a share of what the conversation itself has cost since the last ones."""
_RECENT = 10
_SUMMARY_TOKENS, _UPDATE_TOKENS = 4_000, 600
"""What a model writes for a summary with its draft, and for an update of the notes, in a window of 200,000."""
_FIXED = frozenset({"growth_calls", "max_rounds", "wait_s", "ignore_after_s", "keep_messages"})


@dataclass(frozen=True, slots=True)
class NoteNumbers:
    """Tokens unless the name says otherwise, for a window of 200,000."""

    first_tokens: int = 10_000
    growth_tokens: int = 5_000
    growth_calls: int = 3
    section_tokens: int = 2_000
    total_tokens: int = 12_000
    max_rounds: int = 5
    wait_s: float = 15.0
    ignore_after_s: float = 60.0
    section_characters: int = 8_000
    keep_tokens: int = 10_000
    keep_messages: int = 5
    keep_tokens_most: int = 40_000

    def for_window(self, window: int) -> NoteNumbers:
        """Returns the numbers for a smaller window: everything except counts and seconds shrinks with it."""
        names = [field.name for field in fields(self) if field.name not in _FIXED]
        return replace(self, **{name: max(1, scaled(getattr(self, name), window)) for name in names})


@dataclass(frozen=True, slots=True)
class NoteGrowth:
    """What came since the last notes. `first`: there were none."""

    first: bool
    tokens: int
    calls: int
    last_made_calls: bool


def measure_growth(view: View, since: str | None = None) -> NoteGrowth:
    """Returns what came after the cursor, or after `since` if that is later: the last message of an attempt."""
    cursor = view.cursors.get(WRITER)
    new = view.entries
    for at in range(len(view.entries) - 1, -1, -1):
        if view.entries[at].uuid is not None and view.entries[at].uuid in (cursor, since):
            new = view.entries[at + 1 :]
            break
    said = [entry for entry in new if not entry.brought]
    answers = [entry for entry in view.entries if entry.message.role == "assistant"]
    return NoteGrowth(
        first=cursor is None and since is None,
        tokens=weigh_early(view, said),
        calls=sum(len(entry.message.tool_uses) for entry in said),
        last_made_calls=bool(answers and answers[-1].message.tool_uses),
    )


def is_due(grown: NoteGrowth, numbers: NoteNumbers) -> bool:
    """Returns whether notes are due: always enough tokens, then enough calls or a pause."""
    if grown.first:
        return grown.tokens >= numbers.first_tokens
    if grown.tokens < numbers.growth_tokens:
        return False
    return grown.calls >= numbers.growth_calls or not grown.last_made_calls


def pays(view: View, numbers: NoteNumbers, rates: Rates, *, full_at: int, window: int) -> bool:
    """Returns whether it pays to ask a model for notes now.

    They are wanted only if the session reaches `full_at`, and early notes would be paid again. So a model is asked a
    few rounds before: if a fork costs less than the summary that it makes unnecessary, and little of what the
    conversation has cost since the last notes. Until then code keeps them.
    """
    used = view.meter.tokens
    rounds_left = max(0, full_at - used) / max(1.0, _tokens_per_round(view))
    if rounds_left > _AHEAD:
        return False
    summary = rates.read * full_at + rates.output * scaled(_SUMMARY_TOKENS, window)
    fork = rates.read * used + rates.output * scaled(_UPDATE_TOKENS, window) + rates.write * numbers.total_tokens / 2
    return fork <= chance_of(rounds_left, view.rounds) * summary and fork <= _SHARE * _spent(view, rates)


def _spent(view: View, rates: Rates) -> float:
    """Returns what the conversation has cost since a model was asked for notes, in tokens of fresh input."""
    asked, spent, counted = view.cursors.get(ASKED), 0.0, None
    for entry in reversed(view.history):
        if asked is not None and entry.uuid == asked:
            break
        usage, name = entry.message.usage, entry.message.id
        if usage is not None and (name is None or name != counted):  # a response may be split over several records
            counted = name
            spent += usage.input_tokens + rates.output * usage.output_tokens
            spent += rates.read * usage.cache_read_input_tokens + rates.write * usage.cache_creation_input_tokens
    return spent


def _tokens_per_round(view: View) -> float:
    """Returns by how much the conversation grows per round, from its last rounds."""
    entries, rounds = view.entries, 0
    at = len(entries)
    while at > 0 and rounds < _RECENT and not entries[at - 1].brought:
        at -= 1
        rounds += entries[at].message.role == "assistant"
    return weigh_entries(view, entries[at:]) / max(1, rounds)


def safe_point(view: View) -> str | None:
    """Returns the last message without an open call before it: the farthest place for a cursor."""
    open_calls = {call.id for call in view.open_calls}
    entries = view.entries
    end = len(entries)
    if open_calls:
        first = next(i for i, e in enumerate(entries) if any(use.id in open_calls for use in e.message.tool_uses))
        response = entries[first].message.id
        end = first
        while response is not None and end > 0 and entries[end - 1].message.id == response:
            end -= 1
    return next((entry.uuid for entry in reversed(entries[:end]) if entry.uuid is not None), None)


@dataclass(frozen=True, slots=True)
class NoteCoverage:
    """`behind` and `behind_tokens`: messages, and their tokens, that the notes do not cover yet."""

    empty: tuple[str, ...]
    too_long: tuple[str, ...]
    behind: int
    behind_tokens: int

    def to_json(self) -> JsonObject:
        return {
            "empty": list(self.empty),
            "too_long": list(self.too_long),
            "behind": {"messages": self.behind, "tokens": self.behind_tokens},
        }

    def in_words(self) -> list[str]:
        """Returns one sentence for each thing that the user should know."""
        said = list[str]()
        if self.behind:
            messages = f"{self.behind} message" + ("s" if self.behind > 1 else "")
            said.append(f"Not in it yet: the last {messages}, about {self.behind_tokens:,} tokens.")
        else:
            said.append("It covers everything that was said.")
        if self.empty:
            said.append(f"Nothing under: {', '.join(self.empty)}.")
        return [*said, *(line.removeprefix("- ") for line in self.too_long)]


def measure_coverage(view: View, notes: str, template: str, numbers: NoteNumbers) -> NoteCoverage:
    """Compares the notes with the conversation."""
    cursor = view.cursors.get(WRITER)
    names = [entry.uuid for entry in view.history]
    new = view.history[names.index(cursor) + 1 :] if cursor is not None and cursor in names else view.history
    return NoteCoverage(
        empty=tuple(s.heading.lstrip("# ") for s in split(notes, template) if not s.body.strip()),
        too_long=tuple(
            over_limit(notes, template, section_tokens=numbers.section_tokens, total_tokens=numbers.total_tokens)
        ),
        behind=len(new),
        behind_tokens=weigh_entries(view, new),
    )
