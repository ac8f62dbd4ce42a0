"""Finds out who wrote the text in records of other agents: the user, or that agent itself.

Claude Code, Codex and pi send commands, output, reminders, hooks and prompts of programs as the user. A text is the
user's only if its record shows it: no mark names another sender, and it is the only text, without a part of the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import cast

from reverie.models.wire import as_object
from reverie.origins import escape_tags, fence_block, split_material
from reverie.types import Json, JsonObject, Origin, TextBlock

_TAG = re.compile(r"^[ \t]*+<(?P<tag>(?:[a-z]++(?:[-_][a-z]++)++|file|skill))\b[^<>]*+>", re.MULTILINE)
"""Text of an agent is between tags of more than one word, on separate lines."""
_LINE_END = re.compile(r"(?:[ \t]*+</?[a-z_-]++>)*+[ \t]*+(?:\n|\Z)")
_REPEATED = "system-reminder"
"""The tag that is in a message more than once. In other tags is text of files, pages and commands, which may contain
the closing tag: the last one counts."""
_MOST_UNCLOSED = 20
_OPENINGS = (
    "Caveat: The messages below",
    "[Request interrupted",
    "[Image: source:",
    "This session is being continued from a previous conversation",
    "Base directory for this skill:",
    "Operation stopped by hook:",
    "Stop hook feedback:",
    "# AGENTS.md instructions for",
    "Another language model started to solve this problem",
)
_PERSONS: Mapping[str, tuple[Json, ...]] = {
    "origin": ("human", "user", "person"),
    "promptSource": ("typed",),
    "turnOrigin": ("human", "user", "typed"),
    "entrypoint": ("cli", "claude-vscode", "claude-desktop"),
    "userType": ("external", "ant"),
}
"""The fields of a record that name its sender, with the values of a person."""
_OTHERS = ("isMeta", "toolUseResult", "sourceToolUseID", "sourceToolAssistantUUID", "isVisibleInTranscriptOnly")
"""Fields of records that no person wrote."""
_TEXT_FIELDS = {"type", "text", "cache_control", "citations"}


def foreign_origins(raw: JsonObject, message: JsonObject) -> list[Origin]:
    """Returns one origin per block of a record without origins, from its marks and the form of its text."""
    if message.get("role") == "assistant":
        return [Origin.MODEL]
    if raw.get("isCompactSummary"):
        return [Origin.SUMMARY]
    parts = _parts(message)
    typed = Origin.ENTERED
    if raw.get("isSidechain"):
        typed = Origin.AGENT
    elif not _is_from_person(raw) or any(as_object(part).get("type") == "tool_result" for part in parts):
        typed = Origin.IMPORTED
    elif raw.get("planContent"):  # given by the user, written by a model
        typed = Origin.PASTED
    texts = [part for part in parts if as_object(part).get("type") == "text" and not _is_of_agent(part)]
    only = Origin.IMPORTED if typed is Origin.ENTERED and len(texts) > 1 else typed
    return [_origin(part, only) for part in parts]


def is_injected(text: str) -> bool:
    """Whether all of this text comes from an agent, although it was sent as the user's."""
    return bool(text.strip()) and not words_of_user(text)


def split_injected(block: TextBlock) -> list[TextBlock]:
    """Returns the user's words in a block, and what an agent added to them, as imported."""
    if not block.origin.is_users:
        return [block]
    texts = [str(cast(JsonObject, piece)["text"]) for piece in _pieces({"type": "text", "text": block.text})]
    origins = [Origin.IMPORTED if is_injected(text) else block.origin for text in texts]
    if set(origins) == {block.origin}:
        return [block]
    return [TextBlock(text, origin) for text, origin in zip(texts, origins, strict=True)]


def import_record(raw: JsonObject) -> JsonObject:
    """Returns a record of another agent with origins and tags. No text counts as typed or as Reverie's own."""
    message: Json = raw.get("message")
    if raw.get("type") != "user" or not isinstance(message, dict):
        return {key: value for key, value in raw.items() if key != "reverie"}
    given = cast(JsonObject, message)
    claimed = raw.get("origins")
    if isinstance(claimed, list):
        parts = _parts(given)
        origins = [_limit_origin(Origin.named(str(name))) for name in cast(list[Json], claimed)]
        origins = [*origins, *[Origin.IMPORTED] * len(parts)][: len(parts)]
    else:
        parts = [piece for part in _parts(given) for piece in _before_tags(part)]
        origins = foreign_origins(raw, {**given, "content": parts})
    split = [each for part, origin in zip(parts, origins, strict=False) for each in _split_part(part, origin)]
    origins = [origin for _, origin in split]
    shown = [_fence_part(part, origin) for part, origin in split]
    if shown != _parts(given):
        given = {**given, "content": shown}
    put_in = {} if {Origin.ENTERED, Origin.PASTED, Origin.TOOL} & set(origins) else {"isMeta": True}
    return {**raw, **put_in, "message": given, "origins": [origin.value for origin in origins]}


def _limit_origin(origin: Origin) -> Origin:
    if origin is Origin.TYPED:
        return Origin.ENTERED
    return Origin.IMPORTED if origin in (Origin.CODE, Origin.RECALLED, Origin.MODEL) else origin


def _split_part(part: Json, origin: Origin) -> Iterator[tuple[Json, Origin]]:
    """Yields the user's words and the material in them: the other agent does not say what was pasted."""
    text: Json = cast(JsonObject, part).get("text") if isinstance(part, dict) else None
    if origin is not Origin.ENTERED or not isinstance(text, str):
        yield part, origin
        return
    for block in split_material(text, origin):
        yield {**cast(JsonObject, part), "text": block.text}, block.origin


def _fence_part(part: Json, origin: Origin) -> Json:
    text: Json = cast(JsonObject, part).get("text") if isinstance(part, dict) else None
    if not isinstance(text, str) or not text.strip():
        return cast(Json, part)
    shown = escape_tags(text) if origin.is_users else fence_block(TextBlock(text, origin)).text
    return {**cast(JsonObject, part), "text": shown}


def _before_tags(part: Json) -> Iterator[Json]:
    """Splits a text where an agent's first tag opens: an agent adds to what was typed, and what is behind a closed tag
    may be text of the agent that closed it."""
    text: Json = as_object(part).get("text")
    found = _TAG.search(text) if isinstance(text, str) else None
    if not isinstance(text, str) or found is None or not text[: found.start()].strip():
        yield part
        return
    for piece in (text[: found.start()], text[found.start() :]):
        yield {**as_object(part), "text": piece}


def _is_from_person(raw: JsonObject) -> bool:
    """Whether no mark of a record names another sender than a person. Older records have no marks."""
    marks = {field: raw.get(field) for field in _PERSONS}
    marks["origin"] = as_object(marks["origin"]).get("kind") or marks["origin"]
    is_named = all(mark in (None, *_PERSONS[field]) for field, mark in marks.items())
    return is_named and not any(raw.get(field) for field in _OTHERS)


def _is_of_agent(part: Json) -> bool:
    """Whether an agent wrote in a text, or made its block."""
    text = str(as_object(part).get("text") or "")
    return bool(set(as_object(part)) - _TEXT_FIELDS) or _TAG.search(text) is not None or is_injected(text)


def _parts(message: JsonObject) -> list[Json]:
    content: Json = message.get("content")
    return cast(list[Json], content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _origin(part: Json, typed: Origin) -> Origin:
    match as_object(part).get("type"):
        case "tool_result":
            return Origin.TOOL
        case "text":
            return Origin.IMPORTED if _is_of_agent(part) else typed
        case None:
            return Origin.IMPORTED
        case _:
            return typed


def words_of_user(text: str) -> str:
    """Returns a text without the parts that an agent added."""
    at, left = 0, list[str]()
    for start, end in _sections(text):
        left.append(text[at:start])
        at = end
    words = "".join([*left, text[at:]]).strip()
    return "" if words.startswith(_OPENINGS) or _TAG.match(words) else words


def _sections(text: str) -> Iterator[tuple[int, int]]:
    """Yields the parts that an agent added: from a tag that opens a line to its end at the end of a line."""
    at, unclosed, last = 0, set[str](), dict[str, int]()
    while len(unclosed) < _MOST_UNCLOSED and (found := _TAG.search(text, at)):
        at = found.end()
        closing = f"</{found['tag']}>"
        if closing in unclosed:
            continue
        if closing not in last:
            last[closing] = text.rfind(closing)
        first = text.find(closing, at) if last[closing] >= at else -1
        if first < 0:
            unclosed.add(closing)
            continue
        for close in (first,) if found["tag"] == _REPEATED else (last[closing], first):
            if ended := _LINE_END.match(text, close + len(closing)):
                at = ended.end()
                yield found.start(), at
                break
        else:
            if first == last[closing]:
                unclosed.add(closing)


def _pieces(part: Json) -> Iterator[Json]:
    text: Json = cast(JsonObject, part).get("text") if isinstance(part, dict) else None
    sections = list(_sections(text)) if isinstance(text, str) and words_of_user(text) else []
    if not isinstance(text, str) or not sections:
        yield part
        return
    ends = [0, *(end for _, end in sections)]
    starts = [*(start for start, _ in sections), len(text)]
    cuts = [cut for gap in zip(ends, starts, strict=True) for cut in gap]
    for start, end in pairwise(cuts):
        if text[start:end].strip():
            yield {**cast(JsonObject, part), "text": text[start:end]}
