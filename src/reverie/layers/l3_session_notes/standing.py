"""What the notes lack: empty sections, sections that are too long, and messages since the last update. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.layers.l3_session_notes.sections import over_limit, split
from reverie.layers.l3_session_notes.trigger import WRITER, NoteNumbers
from reverie.layers.weighing import weigh_entries
from reverie.storage.transcript.view import View
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class Standing:
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


def standing(view: View, notes: str, template: str, numbers: NoteNumbers) -> Standing:
    """Compares the notes with the conversation."""
    cursor = view.cursors.get(WRITER)
    names = [entry.uuid for entry in view.history]
    new = view.history[names.index(cursor) + 1 :] if cursor is not None and cursor in names else view.history
    return Standing(
        empty=tuple(s.heading.lstrip("# ") for s in split(notes, template) if not s.body.strip()),
        too_long=tuple(
            over_limit(notes, template, section_tokens=numbers.section_tokens, total_tokens=numbers.total_tokens)
        ),
        behind=len(new),
        behind_tokens=weigh_entries(view, new),
    )
