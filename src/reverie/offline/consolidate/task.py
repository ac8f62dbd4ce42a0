"""A dream, round by round: list, read, write what changes, remove what was joined, and give the reasons.

Files that get content are written before the files that lose it are removed, so nothing is lost if the gate refuses a
write. Each round is computed again from the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from reverie.models.base import Request
from reverie.offline.consolidate.brief import DreamTask, find_dream_task, read_dream_task
from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.gather import ROOM, collect_seen, look_round, read_all
from reverie.offline.consolidate.index_detail import INDEXES
from reverie.offline.consolidate.index_text import tidy_index
from reverie.offline.consolidate.plan import think
from reverie.offline.conversation import Done, read_done_calls
from reverie.offline.step import Act, Answer, PlannedCall, Step, offered_tools
from reverie.types import Message, TextBlock, ToolResultBlock

NOTHING: Final = "Nothing had to be changed."


def next_step(request: Request) -> Step:
    """What a dream does next."""
    found = find_dream_task(request.messages)
    if found is None or not {"Read", "Write", "Bash"} <= offered_tools(request).keys():
        return Answer("There is no memory directory to tidy here.")
    at, brief = found
    done = read_done_calls(request.messages[at:])
    if not done:
        return look_round(brief)
    written = [one for one in done if one.tool == "Write"]
    if sum(message.role == "assistant" for message in request.messages[at:]) == 1:
        reading = read_all(brief, done, ROOM - _size(request.messages[:at]))
        if reading is not None:
            return reading
    looked = tuple(
        (one.tool, str(one.input.get("file_path") or one.input.get("command") or ""), one.text, one.failed)
        for one in done
        if one.tool != "Write"
    )
    desk = _thought(_directive(request.messages[at]), looked)
    return _write(brief, desk, written) or _say(desk, written, brief)


def _directive(message: Message) -> str:
    return next(block.text for block in message.content if isinstance(block, TextBlock) and read_dream_task(block.text))


@lru_cache(maxsize=2)
def _thought(directive: str, looked: tuple[tuple[str, str, str, bool], ...]) -> Desk:
    """The plan of a dream. Cached between rounds, which all see the same."""
    brief = read_dream_task(directive)
    assert brief is not None, "it was read before"
    key = {"Read": "file_path", "Bash": "command"}
    done = [Done(tool, {key.get(tool, "given"): given}, text, failed) for tool, given, text, failed in looked]
    return think(collect_seen(brief, done))


def _write(brief: DreamTask, desk: Desk, written: Sequence[Done]) -> Act | None:
    """The next writes: topic files first, then removals and indexes that follow from what was written."""
    tried = {str(one.input.get("file_path", "")) for one in written}
    topics = {name: text for name, text in desk.changed().items() if brief.path(name) not in tried}
    if not written and topics:
        return Act(
            "Now I write what changes.", tuple(_call(brief, name, text) for name, text in sorted(topics.items()))
        )
    removed = [name for name in _removals(brief, desk, written) if brief.path(name) not in tried]
    indexes = {name: text for name, text in _indexes(brief, desk, written).items() if brief.path(name) not in tried}
    calls = [_call(brief, name, "") for name in removed]
    calls += [_call(brief, name, text) for name, text in sorted(indexes.items())]
    return Act("Now I update the index.", tuple(calls)) if calls else None


def _say(desk: Desk, written: Sequence[Done], brief: DreamTask) -> Answer:
    """One line per changed file, with the reasons."""
    landed = {str(one.input.get("file_path", "")).removeprefix(f"{brief.root}/") for one in written if not one.failed}
    lines = [f"- {name}: {'; '.join(desk.reasons[name])}" for name in sorted(landed & desk.reasons.keys())]
    lines += [f"- {name}: one short line per file" for name in INDEXES if name in landed]
    return Answer("\n".join(lines) or NOTHING)


def _refused(brief: DreamTask, written: Sequence[Done]) -> set[str]:
    return {str(one.input.get("file_path", "")).removeprefix(f"{brief.root}/") for one in written if one.failed}


def _removals(brief: DreamTask, desk: Desk, written: Sequence[Done]) -> list[str]:
    """Files that can be removed: their content is in another file, down the whole chain."""
    refused = _refused(brief, written)

    def is_safe(name: str) -> bool:
        into = desk.into[name]
        return into not in refused and (into not in desk.into or is_safe(into))

    return sorted(name for name in desk.into if is_safe(name))


def _indexes(brief: DreamTask, desk: Desk, written: Sequence[Done]) -> dict[str, str]:
    """The indexes that have to change, for the files that are there now."""
    refused = _refused(brief, written)
    going = set(_removals(brief, desk, written))
    there = {name: text for name, text in desk.base.items() if name not in going}
    there |= {name: text for name, text in desk.changed().items() if name not in refused}
    unread = {name: "" for name in brief.files if name not in desk.base}
    found: dict[str, str] = {}
    for index in INDEXES:
        before = desk.seen.texts.get(index, "")
        if index in desk.seen.fixed or (index not in desk.seen.texts and not any(_of(index, name) for name in there)):
            continue
        after = tidy_index(index, before, there | unread, desk.days, desk.base, brief.logs)
        if after != before:
            found[index] = after
    return found


def _of(index: str, name: str) -> bool:
    return name.startswith("team/") == index.startswith("team/")


def _call(brief: DreamTask, name: str, text: str) -> PlannedCall:
    return PlannedCall("Write", {"file_path": brief.path(name), "content": text})


def _size(messages: Sequence[Message]) -> int:
    """How many characters a request already has."""
    return sum(
        len(block.text)
        for message in messages
        for block in message.content
        if isinstance(block, TextBlock | ToolResultBlock)
    )
