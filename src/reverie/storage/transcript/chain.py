"""Puts records of a file in the order of the conversation: a tree by uuid, walked from the newest leaf to the root.

It handles branches, lost parents, cycles, side chains, rewinds and undone compactions, and keeps every decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.storage.transcript.records import CompactBoundary, Rewind, SessionHeader, Surfaced, Undo, from_record
from reverie.types import Record

UNCOUNTED = "uncounted"  # set in memory on a record whose usage does not measure the current context


def conversation(records: Sequence[Record]) -> list[Record]:
    """Returns the records of the current conversation and every decision record, in file order."""
    main = [record for record in records if not record.is_sidechain]
    position = {record.uuid: i for i, record in enumerate(main) if record.uuid is not None}
    undone = _find_undone(main, position)
    path = _walk(main, position, _leaf(main, position))
    path |= _siblings(main, position, path)
    elsewhere = _find_outdated_usage(main, undone)
    return [
        replace(record, data={**record.data, UNCOUNTED: True}) if i in elsewhere else record
        for i, record in enumerate(main)
        if (i in path or not (can_be_parent(record) or _is_shown_elsewhere(record, position, path)))
        and record.uuid not in undone
        and record.data.get("compactOf") not in undone
    ]


def _find_outdated_usage(main: list[Record], undone: set[str]) -> set[int]:
    """Finds responses to a context that an undo has changed since: their usage is not the size of this one."""
    if not undone:
        return set()
    found = set[int]()
    open_since = dict[str, int]()
    for i, record in enumerate(main):
        payload = from_record(record)
        if isinstance(payload, Undo):
            found.update(range(open_since.pop(payload.boundary, i), i))
        elif record.uuid in undone:
            open_since[record.uuid or ""] = i
    return found


def _find_undone(main: list[Record], position: dict[str, int]) -> set[str]:
    found = set[str]()
    for record in main:
        payload = from_record(record)
        if isinstance(payload, Undo):
            found.add(payload.boundary)
        elif isinstance(payload, CompactBoundary) and payload.sealed_by is not None:
            found |= set() if record.uuid is None or payload.sealed_by in position else {record.uuid}
    return found


def can_be_parent(record: Record) -> bool:
    """Whether other records may follow this one in the conversation: messages, boundaries and headers."""
    if record.message is not None:
        return True
    return record.type == "system" and record.subtype in (CompactBoundary.subtype, SessionHeader.subtype)


def _is_shown_elsewhere(record: Record, position: dict[str, int], path: set[int]) -> bool:
    """Whether memories were shown with a message that a rewind took out: they may be shown again."""
    at = position.get(record.parent or "") if record.subtype == Surfaced.subtype else None
    return at is not None and at not in path


def _leaf(main: list[Record], position: dict[str, int]) -> int | None:
    for i in range(len(main) - 1, -1, -1):
        if can_be_parent(main[i]):
            return i
        payload = from_record(main[i])
        if isinstance(payload, Rewind):
            return position.get(payload.head) if payload.head is not None else None
    return None


def _walk(main: list[Record], position: dict[str, int], leaf: int | None) -> set[int]:
    path = set[int]()
    at = leaf
    while at is not None and at not in path:
        path.add(at)
        at = _before(main, position, at)
    return path


def _before(main: list[Record], position: dict[str, int], at: int) -> int | None:
    record = main[at]
    boundary = from_record(record)
    parent = boundary.last_uuid if isinstance(boundary, CompactBoundary) else record.parent
    if parent is not None:
        found = position.get(parent)
        if found is not None:
            return _last_header(main, found, at) if isinstance(boundary, CompactBoundary) else found
    elif "parentUuid" in record.data:
        return None  # an explicit root
    # No parent, or one that is not in the file: file order counts.
    return next((i for i in range(at - 1, -1, -1) if can_be_parent(main[i])), None)


def _last_header(main: list[Record], found: int, at: int) -> int:
    """A boundary names the last message. The headers in between count as well: they hold prompt and model."""
    for i in range(found + 1, at):
        if main[i].subtype == SessionHeader.subtype and main[i].parent == main[found].uuid:
            found = i
    return found


def _siblings(main: list[Record], position: dict[str, int], path: set[int]) -> set[int]:
    """Returns the other records of a response on the path, and the results of its calls: parallel calls branch."""
    ids = {m.id for i in path if (m := main[i].message) is not None and m.role == "assistant" and m.id}
    found, calls = set[int](), set[str]()
    for i, record in enumerate(main):
        if record.message is None:
            continue
        if record.message.role == "assistant" and record.message.id in ids:
            if i in path or _hangs_off(main, position, i, path, found):
                found.add(i)
                calls.update(use.id for use in record.message.tool_uses)
        elif any(result.tool_use_id in calls for result in record.message.tool_results) and (
            i in path or _hangs_off(main, position, i, path, found)
        ):
            found.add(i)
    return found


def _hangs_off(main: list[Record], position: dict[str, int], at: int, path: set[int], more: set[int]) -> bool:
    """Whether the record follows one of these without a message in between; one without a parent may."""
    seen = {at}
    while True:
        parent = main[at].parent
        if parent is None:
            return "parentUuid" not in main[at].data
        before = position.get(parent)
        if before is None or before in path or before in more:
            return True
        if before in seen or main[before].message is not None:
            return False
        at = before
        seen.add(at)
