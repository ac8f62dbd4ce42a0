"""What a recorded session used of its tool results, and when: the measure of what clearing them would have cost.

A response uses a result if it edits text, or names an identifier, that stands in that result and in nothing that was
said before (messages, answers, tool inputs). If several results hold it, one of them in view is enough. So a use is
judged by the record alone, in the same way for every policy, and never by what a policy believes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from reverie.lab.replay.recorded import Recorded
from reverie.types import Json, JsonObject, Message, TextBlock, ToolResultBlock, ToolUseBlock

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{5,}")
"""A word that could be a name in code. Only those that look like one count (see `_is_name`)."""
_PATH = re.compile(r"[\w.~-]*/[\w./~-]*\w\.\w{1,8}")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:→|\t)", re.MULTILINE)
_SHORTEST_EDIT = 12


@dataclass(frozen=True, slots=True)
class Need:
    """Something a response relied on. Any of `sources` (call ids, oldest first) in view would do."""

    text: str
    sources: tuple[str, ...]


def needs_of(session: Recorded) -> list[tuple[Need, ...]]:
    """One entry a round: what its response needed of results that had been sent before."""
    said = set[str]()
    spoken = list[str]()
    holders = dict[str, list[str]]()
    texts = dict[str, str]()
    found = list[tuple[Need, ...]]()
    for each in session.rounds:
        for message in each.entered:
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    text = texts[block.tool_use_id] = _LINE_NUMBER.sub("", block.text)
                    for name in names(text):
                        holders.setdefault(name, []).append(block.tool_use_id)
                elif isinstance(block, TextBlock):
                    said |= names(block.text)
                    spoken.append(block.text)
        uttered = list(_uttered(each.response))
        needed = list[Need]()
        for old in _edited(each.response):
            if len(old) >= _SHORTEST_EDIT and not any(old in text for text in spoken):
                sources = tuple(call for call, text in texts.items() if old in text)
                needed += [Need(old, sources)] if sources else []
        for name in sorted(set[str]().union(*map(names, uttered)) - said):
            if name in holders:
                needed.append(Need(name, tuple(dict.fromkeys(holders[name]))))
        found.append(tuple(needed))
        for text in uttered:
            said |= names(text)
            spoken.append(text)
    return found


def names(text: str) -> set[str]:
    """The identifiers and paths in a text."""
    return {word for word in IDENTIFIER.findall(text) if _is_name(word)} | set(_PATH.findall(text))


def _is_name(word: str) -> bool:
    """Told from plain words by an underscore, a digit or a capital inside."""
    inner = word[1:]
    return "_" in inner.strip("_") or any(c.isdigit() for c in inner) or (inner != inner.lower() and not word.isupper())


def _uttered(response: Message) -> Iterator[str]:
    """What the model wrote: its text and every string of its calls. Thinking cites nothing."""
    for block in response.content:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ToolUseBlock):
            yield from _strings(block.input)


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast(JsonObject, value).values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in cast(list[Json], value):
            yield from _strings(inner)


def _edited(response: Message) -> Iterator[str]:
    """The texts that edits in this response look for."""
    for call in response.tool_uses:
        given: Json = call.input
        if not isinstance(given, dict):
            continue
        edits = [cast(JsonObject, given), *cast(list[Json], given.get("edits") or [])]  # pyright: ignore
        for edit in edits:
            if isinstance(edit, dict) and isinstance(edit.get("old_string"), str):  # pyright: ignore
                yield cast(str, edit["old_string"])
