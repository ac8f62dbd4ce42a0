"""Where a conversation takes place, from its system prompt and opening: folders, the day, what is loaded.

The offline mind has no disk: like any model it knows only what the request says. What is not said is empty.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from reverie.models.base import Request
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.types import Message, Origin, TextBlock

_FOLDER = late(r"^- Working folder: (.+)$", re.MULTILINE)
_DAY = late(r"^- Date when this conversation began: (?:\w+, )?(\d{4}-\d{2}-\d{2})", re.MULTILINE)
_NEW_DAY = late(r"today is (?:\w+, )?(\d{4}-\d{2}-\d{2})")
_MEMORY = late(r"^(?:You have a memory .*?the folder|- private, .*?:) `([^`\n]+)`", re.MULTILINE)
_TEAM = late(r"^- shared with .*?: `([^`\n]+)`", re.MULTILINE)
_LOG = late(r"^Append to the log of the day, `([^`\n]+)`", re.MULTILINE)
_PAST = late(r"path `([^`\n]+)`, glob `\*\.jsonl`|in (\S+) --include=\"\*\.jsonl\"")
_INDEX = late(r"^# (?:Team memory|Memory) index$")
_FILE = late(r"^## (.+?) \((?:for everybody|the user's own|the project's)[^()]*\)$")
_POINTER = late(r"^- \[(?P<title>[^\]\n]+)\]\((?P<file>[^)\n]+)\)(?:\s*[—–:-]+\s*(?P<hook>.*))?$")


@dataclass(frozen=True, slots=True)
class Pointer:
    """One line of a memory index."""

    file: str
    title: str
    hook: str


@dataclass(frozen=True, slots=True)
class Place:
    """What the prompt says about the surroundings. `log`: the pattern of the daily log, if memory is kept that way."""

    folder: str = ""
    day: date | None = None
    memory: str = ""
    team: str = ""
    log: str = ""
    transcripts: str = ""
    index: tuple[Pointer, ...] = ()
    instructions: tuple[tuple[str, str], ...] = ()
    """Lines of the instruction files: the file, and the line."""


def read_place(request: Request) -> Place:
    """Reads the surroundings from the system prompt and from what was loaded when the conversation began."""
    told = _of_system("\n".join(request.system))
    opening = _opening(request.messages)
    changed = _last_day(request.messages)
    return Place(
        folder=told.folder,
        day=changed or told.day,
        memory=told.memory,
        team=told.team,
        log=told.log,
        transcripts=told.transcripts,
        index=_index(opening),
        instructions=_instructions(opening),
    )


@lru_cache(maxsize=8)
def _of_system(text: str) -> Place:
    past = _PAST.search(text)
    day = _first(_DAY, text)
    return Place(
        folder=_first(_FOLDER, text),
        day=_date(day),
        memory=_first(_MEMORY, text),
        team=_first(_TEAM, text),
        log=_first(_LOG, text),
        transcripts=next((found for found in past.groups() if found), "") if past else "",
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1].strip() if found else ""


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _opening(messages: tuple[Message, ...]) -> str:
    """What was loaded before the first message."""
    if not messages:
        return ""
    blocks = messages[0].content
    texts = [block.text for block in blocks if isinstance(block, TextBlock) and block.origin is Origin.CODE]
    return next((text for text in texts if text.lstrip().startswith("<system-reminder>")), "")


def _last_day(messages: tuple[Message, ...]) -> date | None:
    for message in reversed(messages[1:]):
        for block in message.content:
            if isinstance(block, TextBlock) and block.origin is Origin.CODE and "date has changed" in block.text:
                return _date(_first(_NEW_DAY, block.text))
    return None


@lru_cache(maxsize=8)
def _index(opening: str) -> tuple[Pointer, ...]:
    """The pointers below a heading of an index; a team's are named from the folder above it."""
    found, below = list[Pointer](), ""
    for line in opening.splitlines():
        if _INDEX.match(line):
            below = "team/" if line.startswith("# Team") else "./"
        elif below and (one := _POINTER.match(line.strip())):
            file = one["file"] if below == "./" else below + one["file"]
            found.append(Pointer(file, one["title"], (one["hook"] or "").strip()))
    return tuple(found)


@lru_cache(maxsize=8)
def _instructions(opening: str) -> tuple[tuple[str, str], ...]:
    """The lines of the instruction files, each with its file."""
    where, found = "", list[tuple[str, str]]()
    for line in opening.splitlines():
        if _INDEX.match(line) or line.startswith("</system-reminder>"):
            where = ""
        elif one := _FILE.match(line):
            where = one[1]
        elif where and line.strip():
            found.append((where, line.strip()))
    return tuple(found)
