"""Which tool results a recorded session used, and when. This shows what clearing them would have cost.

A response uses a result if it edits text or names an identifier that is in that result, but not in earlier messages,
answers or tool inputs. If several results have it, one of them in view is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from reverie.lab.recordings import strings_in
from reverie.lab.replay.recorded import LINE_NUMBER, RecordedSession
from reverie.quick import dataclass
from reverie.types import Json, JsonObject, Message, TextBlock, ToolResultBlock, ToolUseBlock

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{5,}")
"""A word that could be a name in code (see `_is_name`)."""
_PATH = re.compile(r"(?<![\w./~-])[\w.~-]*/[\w./~-]*\w\.\w{1,8}")  # only at the start of a run: linear
_SHORTEST_EDIT = 12


@dataclass(frozen=True, slots=True)
class Need:
    """A text that a response used. One of `sources` (call ids, oldest first) must be in view."""

    text: str
    sources: tuple[str, ...]


def needs_of(session: RecordedSession) -> list[tuple[Need, ...]]:
    """For each round, what its response needed of earlier results."""
    said = set[str]()
    spoken = list[str]()
    holders = dict[str, list[str]]()
    texts = dict[str, str]()
    found = list[tuple[Need, ...]]()
    for each in session.rounds:
        for message in each.entered:
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    text = texts[block.tool_use_id] = LINE_NUMBER.sub("", block.text)
                    for name in names(text):
                        holders.setdefault(name, []).append(block.tool_use_id)
                elif isinstance(block, TextBlock):
                    said |= names(block.text)
                    spoken.append(block.text)
        written = list(_written_texts(each.response))
        needed = list[Need]()
        for old in _edited_texts(each.response):
            if len(old) >= _SHORTEST_EDIT and not any(old in text for text in spoken):
                sources = tuple(call for call, text in texts.items() if old in text)
                needed += [Need(old, sources)] if sources else []
        for name in sorted(set[str]().union(*map(names, written)) - said):
            if name in holders:
                needed.append(Need(name, tuple(dict.fromkeys(holders[name]))))
        found.append(tuple(needed))
        for text in written:
            said |= names(text)
            spoken.append(text)
    return found


def names(text: str) -> set[str]:
    """The identifiers and paths in a text."""
    return {word for word in IDENTIFIER.findall(text) if _is_name(word)} | set(_PATH.findall(text))


def _is_name(word: str) -> bool:
    """Whether a word has an underscore, a digit or a capital inside, unlike plain words."""
    inner = word[1:]
    return "_" in inner.strip("_") or any(c.isdigit() for c in inner) or (inner != inner.lower() and not word.isupper())


def _written_texts(response: Message) -> Iterator[str]:
    """What the model wrote: its text and every string of its calls, without thinking."""
    for block in response.content:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ToolUseBlock):
            yield from strings_in(block.input)


def _edited_texts(response: Message) -> Iterator[str]:
    for call in response.tool_uses:
        given: Json = call.input
        if not isinstance(given, dict):
            continue
        edits = [cast(JsonObject, given), *cast(list[Json], given.get("edits") or [])]  # pyright: ignore
        for edit in edits:
            if isinstance(edit, dict) and isinstance(edit.get("old_string"), str):  # pyright: ignore
                yield cast(str, edit["old_string"])
