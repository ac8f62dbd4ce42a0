"""What a request for extraction contains: who said what in the new messages, on which day, and what is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from datetime import date

from reverie.memory.taxonomy import MemoryType
from reverie.models.base import Request
from reverie.models.wire import as_object
from reverie.moments import parse_time
from reverie.quick import dataclass
from reverie.types import Block, Origin, Role, TextBlock, ToolResultBlock, ToolUseBlock

_COUNT = re.compile(r"^The last (?:(?P<count>\d+) messages|message) before this one", re.MULTILINE)
_DAY = re.compile(r"The user wrote on \w+, (?P<day>\d{4}-\d\d-\d\d)\.")
_DAY_FROM = re.compile(r"^- from “(?P<words>.*)” on: \w+, (?P<day>\d{4}-\d\d-\d\d)$", re.MULTILINE)
_DIRECTORY = re.compile(r"Write a file of its own in `(?P<directory>[^`\n]+)`")
_KNOWN = re.compile(
    r"^- (?:\[(?P<type>\w+)\] )?(?P<file>.+?\.md) \(\w+, [\d-]+(?:; \w+)?\)(?:: (?P<description>.*))?$", re.MULTILINE
)
_SHOWN = re.compile(
    r'^<memory-file name="(?P<file>[^"\n]+)"[^>\n]*>\n(?P<text>.*?)\n</memory-file>$', re.MULTILINE | re.DOTALL
)
_LISTED = "The memories there are:"
_NUMBERED = re.compile(r"^ *\d+\t(?P<line>.*)$")
_MARK = "It is a task of its own beside the conversation"


@dataclass(frozen=True, slots=True)
class Known:
    """An existing memory, as the directive lists it."""

    file: str
    type: MemoryType | None
    description: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """One message of the user, its day, and what came right before it."""

    text: str
    day: date
    answer: str = ""
    """What the agent said before it; empty at the beginning."""
    before: str = ""
    """What the user typed before that."""


@dataclass(frozen=True, slots=True)
class ExtractionTask:
    """Everything an extraction may use."""

    said: tuple[UserMessage, ...]
    directory: str
    known: tuple[Known, ...]
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """What was shown or read of the memories, by file."""
    looked: bool = False
    """The reading has been done."""
    wrote: bool = False
    """The writing has been done."""


def read_extraction_task(request: Request) -> ExtractionTask | None:
    """Reads the task; None if the request has no directive of layer 5."""
    blocks: list[tuple[Role, Block]] = [
        (message.role, block) for message in request.messages for block in message.content
    ]
    at = next((i for i in range(len(blocks) - 1, -1, -1) if _is_directive(blocks[i][1])), None)
    if at is None:
        return None
    block = blocks[at][1]
    directive = block.text if isinstance(block, TextBlock) else ""
    place = _DIRECTORY.search(directive)
    day = _DAY.search(directive)
    days = [(one["words"], told.date()) for one in _DAY_FROM.finditer(directive) if (told := parse_time(one["day"]))]
    own = parse_time(day["day"]) if day else None
    first = own.date() if own else days[0][1] if days else None
    if place is None or first is None:
        return None
    counted = _COUNT.search(directive)
    count = int(counted["count"] or 1) if counted else 1
    after = [one for _, one in blocks[at + 1 :]]
    calls = {one.id: one for one in after if isinstance(one, ToolUseBlock)}
    directory = place["directory"]
    return ExtractionTask(
        tuple(_said(blocks[:at], count, first, days)),
        directory,
        tuple(_known(directive)),
        {**_shown(directive), **dict(_read(after, calls, directory))},
        looked=bool(calls),
        wrote=any(call.name in ("Write", "Edit") for call in calls.values()),
    )


def _is_directive(block: Block) -> bool:
    return isinstance(block, TextBlock) and block.origin is Origin.CODE and _MARK in block.text


def _known(directive: str) -> Iterator[Known]:
    for one in _KNOWN.finditer(_SHOWN.sub("", directive.partition(_LISTED)[2])):
        yield Known(one["file"], MemoryType.read(one["type"] or ""), one["description"] or "")


def _shown(directive: str) -> dict[str, str]:
    """The memories that the directive shows whole."""
    return {one["file"]: f"{one['text']}\n" for one in _SHOWN.finditer(directive.partition(_LISTED)[2])}


def _said(
    blocks: list[tuple[Role, Block]], count: int, first: date, days: list[tuple[str, date]]
) -> Iterator[UserMessage]:
    """The user's turns among the last `count` messages; consecutive records of one role are one message."""
    start, runs = len(blocks), 0
    while start > 0:
        if start == len(blocks) or blocks[start - 1][0] != blocks[start][0]:
            runs += 1
        if runs > count:
            break
        start -= 1
    answer, before, day = "", "", first
    for number, (_, block) in enumerate(blocks):
        match block:
            case TextBlock(text=text, origin=Origin.MODEL):
                answer = text
            case TextBlock(text=text, origin=Origin.TYPED | Origin.ENTERED) if text.strip():
                day = next((on for words, on in days if _begins(text, words)), day)
                if number >= start:
                    yield UserMessage(text, day, answer, before)
                answer, before = "", text
            case _:
                continue


def _begins(text: str, words: str) -> bool:
    opening = words.removesuffix("…")
    return bool(opening) and " ".join(text.split()).startswith(opening)


def _read(after: list[Block], calls: dict[str, ToolUseBlock], directory: str) -> Iterator[tuple[str, str]]:
    for block in after:
        call = calls.get(block.tool_use_id) if isinstance(block, ToolResultBlock) else None
        if call is None or not isinstance(block, ToolResultBlock) or block.is_error or call.name != "Read":
            continue
        path = str(as_object(call.input).get("file_path", ""))
        lines = [found["line"] for line in block.text.split("\n") if (found := _NUMBERED.match(line))]
        if lines:
            yield path.removeprefix(directory).lstrip("/"), "\n".join(lines) + "\n"
