"""Chooses the messages that stay next to the notes: what the notes do not cover yet, and enough to go on from. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.layers.l3_session_notes.trigger import WRITER, NoteNumbers
from reverie.layers.weighing import weigh_entries
from reverie.storage.transcript.view import Entry, View


def first_kept(view: View, numbers: NoteNumbers, *, by_code: bool = False) -> int | None:
    """Returns the index of the first kept entry; None if the cursor is not there (any more).

    Keeps everything after the cursor, then goes back until there are enough tokens and messages with text, or the most
    that may stay, and then to a place that splits nothing. `by_code`: code covers what the notes do not, so what has no
    answer yet must stay, and enough tokens.
    """
    cursor = view.cursors.get(WRITER)
    entries = view.entries
    if by_code:
        cursor = next((e.uuid for e in reversed(entries) if e.uuid and e.message.role == "assistant"), None)
    at = next((i for i, entry in enumerate(entries) if cursor is not None and entry.uuid == cursor), None)
    if at is None:
        return None
    floor = next((i for i, entry in enumerate(entries) if not entry.brought), len(entries))
    start = max(at + 1, floor)
    tokens = weigh_entries(view, entries[start:])
    texts = numbers.keep_messages if by_code else sum(_has_text(entry) for entry in entries[start:])
    while (
        start > floor
        and tokens < numbers.keep_tokens_most
        and (tokens < numbers.keep_tokens or texts < numbers.keep_messages)
    ):
        start -= 1
        tokens += weigh_entries(view, entries[start : start + 1])
        texts += _has_text(entries[start])
    return unsplit(entries, start)


def unsplit(entries: Sequence[Entry], start: int) -> int:
    """Returns the nearest place at or before `start` that separates no result from its call and splits no response."""
    calls = {use.id: i for i, entry in enumerate(entries) for use in entry.message.tool_uses}
    firsts = dict[str, int]()
    for i, entry in enumerate(entries):
        if entry.message.role == "assistant" and entry.message.id is not None:
            firsts.setdefault(entry.message.id, i)
    at = len(entries)
    while at > start:  # looks at everything from the end; a call that is further back moves `start` back
        at -= 1
        message = entries[at].message
        needed = [calls[result.tool_use_id] for result in message.tool_results if result.tool_use_id in calls]
        if message.role == "assistant" and message.id is not None:
            needed.append(firsts[message.id])
        start = min([start, *needed])
    return start


def _has_text(entry: Entry) -> bool:
    return bool(entry.message.text.strip())
