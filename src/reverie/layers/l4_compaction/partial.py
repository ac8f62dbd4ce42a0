"""Where a conversation is cut for a partial compaction, so that no call loses its result. Pure."""

from __future__ import annotations

from reverie.errors import UserError
from reverie.layers.l3_session_notes.notes_compaction import unsplit
from reverie.layers.l4_compaction.compose import CompactionScope
from reverie.layers.weighing import weigh_entries
from reverie.storage.transcript.view import Entry, View
from reverie.types import TextBlock


def find_message(view: View, given: str) -> int:
    """Returns the index of an entry, given its uuid, the beginning of one, or `-n` for the n-th last user message."""
    entries = view.entries
    if given.startswith("-") and given[1:].isdigit():
        asked = [i for i, entry in enumerate(entries) if is_from_user(entry)]
        number = int(given[1:])
        if not 0 < number <= len(asked):
            raise UserError(f"there are {len(asked)} messages of yours in view: {given} is not one of them")
        return asked[-number]
    found = [i for i, entry in enumerate(entries) if given and (entry.uuid or "").startswith(given)]
    if len(found) != 1:
        what = f"{len(found)} messages begin with {given!r}" if found else f"no message in view is called {given!r}"
        raise UserError(f"{what}: `reverie sessions show --json` lists their uuids, and -1 is your last one")
    return found[0]


def is_from_user(entry: Entry) -> bool:
    """Returns whether the user gave this message."""
    return not entry.brought and any(
        isinstance(block, TextBlock) and block.origin.is_given for block in entry.message.content
    )


def scope_from(view: View, given: str) -> CompactionScope:
    """Summarises everything from this message on; the messages before it stay, and with them the cached prefix."""
    at = find_message(view, given)
    cut = unsplit(view.entries, at)
    if cut == 0:
        raise UserError("there is nothing before this message: `/compact` compacts all of it")
    gone = _entries_from(view, cut)
    if not gone:
        raise UserError("there is nothing to compact from this message on")
    return CompactionScope("from", gone, tuple(view.entries[:cut]))


def _entries_from(view: View, cut: int) -> tuple[Entry, ...]:
    places = {id(entry.message): at for at, entry in enumerate(view.history)}
    first = view.entries[cut]
    if not first.brought:
        return tuple(view.history[places[id(first.message)] :])
    before = [places[id(entry.message)] for entry in view.entries[:cut] if not entry.brought]
    return tuple(view.history[max(before) + 1 if before else 0 :])


def scope_up_to(view: View, given: str) -> CompactionScope:
    """Summarises everything up to and including this message; later messages stay."""
    at = find_message(view, given)
    cut = unsplit(view.entries, at + 1)
    kept = tuple(view.entries[cut:])
    gone = entries_without(view, kept)
    if not gone:
        raise UserError("nothing can be compacted up to this message without separating a call from its result")
    return CompactionScope("up_to", gone, kept)


def scope_whole(view: View, most: int) -> CompactionScope:
    """Summarises everything except a new message of the user that was not sent yet, unless it is very long."""
    kept = tuple[Entry, ...]()
    entries = view.entries
    end = len(entries)
    while end > 0 and entries[end - 1].message.role == "user" and not entries[end - 1].message.tool_results:
        end -= 1
    waiting = tuple(entry for entry in entries[end:] if not entry.brought)
    if end and any(map(is_from_user, waiting)) and weigh_entries(view, waiting) <= most:
        kept = waiting
    return CompactionScope("whole", entries_without(view, kept), kept)


def entries_without(view: View, kept: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Returns the whole history except for what is kept."""
    names = {id(entry.message) for entry in kept}
    return tuple(entry for entry in view.history if id(entry.message) not in names)
