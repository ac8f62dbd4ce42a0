"""Where a conversation is cut for a partial compaction, so that no call is parted from its result. Pure."""

from __future__ import annotations

from reverie.errors import UserError
from reverie.layers.l3_session_notes.notes_compaction import unsplit
from reverie.layers.l4_compaction.compose import Scope
from reverie.layers.weighing import weigh_entries
from reverie.storage.transcript.view import Entry, View
from reverie.types import TextBlock


def find_message(view: View, given: str) -> int:
    """The entry meant: its uuid, or the beginning of one, or `-n` for the n-th message of the person from the end."""
    entries = view.entries
    if given.startswith("-") and given[1:].isdigit():
        asked = [i for i, entry in enumerate(entries) if is_persons(entry)]
        number = int(given[1:])
        if not 0 < number <= len(asked):
            raise UserError(f"there are {len(asked)} messages of yours in view: {given} is none of them")
        return asked[-number]
    found = [i for i, entry in enumerate(entries) if given and (entry.uuid or "").startswith(given)]
    if len(found) != 1:
        what = f"{len(found)} messages begin with {given!r}" if found else f"no message in view is called {given!r}"
        raise UserError(f"{what}: `reverie sessions show --json` lists their uuids, and -1 is your last one")
    return found[0]


def is_persons(entry: Entry) -> bool:
    """Whether a person typed this."""
    return not entry.brought and any(
        isinstance(block, TextBlock) and block.origin.is_given for block in entry.message.content
    )


def scope_from(view: View, given: str) -> Scope:
    """Everything from this message on is summarised; what stands before it stays, and with it the cached prefix."""
    at = find_message(view, given)
    cut = unsplit(view.entries, at)
    if cut == 0:
        raise UserError("nothing stands before this message: `/compact` compacts all of it")
    gone = _said_from(view, cut)
    if not gone:
        raise UserError("nothing was said from this message on: there is nothing to compact")
    return Scope("from", gone, tuple(view.entries[:cut]))


def _said_from(view: View, cut: int) -> tuple[Entry, ...]:
    """Everything said from this entry on, also what an earlier compaction put a summary in the place of."""
    places = {id(entry.message): at for at, entry in enumerate(view.history)}
    first = view.entries[cut]
    if not first.brought:
        return tuple(view.history[places[id(first.message)] :])
    before = [places[id(entry.message)] for entry in view.entries[:cut] if not entry.brought]
    return tuple(view.history[max(before) + 1 if before else 0 :])


def scope_up_to(view: View, given: str) -> Scope:
    """Everything up to this message is summarised, itself included; what was said later stays."""
    at = find_message(view, given)
    cut = unsplit(view.entries, at + 1)
    kept = tuple(view.entries[cut:])
    gone = gone_beside(view, kept)
    if not gone:
        raise UserError("nothing can be compacted up to this message without parting a call from its result")
    return Scope("up_to", gone, kept)


def scope_whole(view: View, most: int) -> Scope:
    """All of it, but for a message of the person's that no request has carried yet, unless it is very long."""
    kept = tuple[Entry, ...]()
    entries = view.entries
    end = len(entries)
    while end > 0 and entries[end - 1].message.role == "user" and not entries[end - 1].message.tool_results:
        end -= 1
    waiting = tuple(entry for entry in entries[end:] if not entry.brought)
    if end and any(map(is_persons, waiting)) and weigh_entries(view, waiting) <= most:
        kept = waiting
    return Scope("whole", gone_beside(view, kept), kept)


def gone_beside(view: View, kept: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Everything that was ever said but for what is kept."""
    names = {id(entry.message) for entry in kept}
    return tuple(entry for entry in view.history if id(entry.message) not in names)
