"""When notes are due: how much was said since they were last taken. Pure; asked after every response."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.layers.l3_session_notes.numbers import NoteNumbers
from reverie.layers.weighing import weigh_early
from reverie.storage.transcript.view import View

WRITER = "notes"
"""The name the cursor of the notes has among the records."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What came since the notes were last taken. `first`: they never were."""

    first: bool
    tokens: int
    calls: int
    last_made_calls: bool


def growth(view: View, since: str | None = None) -> Growth:
    """What came after the cursor, or after `since` where that is later: the last message an attempt has looked at."""
    cursor = view.cursors.get(WRITER)
    new = view.entries
    for at in range(len(view.entries) - 1, -1, -1):
        if view.entries[at].uuid is not None and view.entries[at].uuid in (cursor, since):
            new = view.entries[at + 1 :]
            break
    said = [entry for entry in new if not entry.brought]
    answers = [entry for entry in view.entries if entry.message.role == "assistant"]
    return Growth(
        first=cursor is None and since is None,
        tokens=weigh_early(view, said),
        calls=sum(len(entry.message.tool_uses) for entry in said),
        last_made_calls=bool(answers and answers[-1].message.tool_uses),
    )


def due(grown: Growth, numbers: NoteNumbers) -> bool:
    """Whether it is time. The tokens are always needed; then either enough calls, or a pause."""
    if grown.first:
        return grown.tokens >= numbers.first_tokens
    if grown.tokens < numbers.growth_tokens:
        return False
    return grown.calls >= numbers.growth_calls or not grown.last_made_calls


def safe_point(view: View) -> str | None:
    """The last message with no open call behind it: as far as a cursor may go. None if there is none."""
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
