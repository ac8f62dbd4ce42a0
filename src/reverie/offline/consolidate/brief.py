"""The task of a dream, read from its directive: where the memory is, which files, logs and transcripts there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, date, datetime

from reverie.memory.daily_log import day_of
from reverie.memory.taxonomy import LOGS
from reverie.moments import parse_time
from reverie.quick import dataclass
from reverie.types import Message, Origin, TextBlock

_ROOT = re.compile(r"\bthe memory directory (?P<root>/.+?) in order\b")
_TODAY = re.compile(r"\bToday is \w+, (?P<day>\d{4}-\d\d-\d\d)\b")
_FILES = re.compile(r"<files>\n(?P<files>.*?)\n</files>", re.DOTALL)
_FILE = re.compile(r"^- (?:\[\w+\] )?(?P<name>.+?\.md) \(\w+, (?P<when>\d{4}-\d\d-\d\d)(?:; \w+)?\)(?::|$)")
_WRITTEN = re.compile(r"^  written on \w+, (?P<day>\d{4}-\d\d-\d\d): “(?P<text>.+)”$")
_SAID = re.compile(r"<said>\n(?P<said>.*?)\n</said>", re.DOTALL)
_EARLIER = re.compile(r"^\d+ earlier messages are in (?P<path>/.+?), in the same form", re.MULTILINE)
_MESSAGE = re.compile(r"^- \w+, (?P<day>\d{4}-\d\d-\d\d) [\d:]+, session \S*: (?P<text>.*(?:\n  .*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TypedText:
    """Something the user typed, and when."""

    text: str
    day: date


@dataclass(frozen=True, slots=True)
class DreamTask:
    """The task of one dream."""

    root: str
    today: date
    files: Mapping[str, date]
    """The topic files, newest first, with the day each was last written."""
    logs: tuple[str, ...]
    """Daily logs by relative path, oldest first."""
    said: tuple[TypedText, ...] = ()
    """What the user typed in other sessions, oldest first."""
    earlier: str = ""
    """The path of a file with all of it, if the directive has only the newest."""
    written: Mapping[str, date] = field(default_factory=dict[str, date])
    """Statements with a relative date, by their beginning, and the day each was written."""

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"


def find_dream_task(messages: tuple[Message, ...]) -> tuple[int, DreamTask] | None:
    """The last message that asks for a dream, and its task; None if there is none."""
    for number in range(len(messages) - 1, -1, -1):
        for block in messages[number].content:
            if isinstance(block, TextBlock) and block.origin is Origin.CODE and (brief := read_dream_task(block.text)):
                return number, brief
    return None


def read_dream_task(text: str) -> DreamTask | None:
    """The task in a directive; None if the text is not the directive of a dream."""
    root, today, listed = _ROOT.search(text), _TODAY.search(text), _FILES.search(text)
    if root is None or today is None or listed is None:
        return None
    around, day = text[listed.end() :], parse_time(today["day"])
    if day is None:
        return None
    lines = listed["files"].splitlines()
    found, dated = map(_FILE.match, lines), map(_WRITTEN.match, lines)
    said, earlier = _SAID.search(around), _EARLIER.search(around)
    folder = f"- {root['root']}/"
    logs = [line.removeprefix(folder) for line in around.splitlines() if line.startswith(f"{folder}{LOGS}/")]
    return DreamTask(
        root=root["root"],
        today=day.date(),
        files={one["name"]: _written(one["when"], day) for one in found if one},
        logs=tuple(name for name in logs if day_of(name) is not None),
        said=tuple(read_typed(said["said"])) if said else (),
        earlier=earlier["path"] if earlier else "",
        written={one["text"].removesuffix("…"): _written(one["day"], day) for one in dated if one},
    )


def read_typed(text: str) -> list[TypedText]:
    """The messages of a list: further lines of a message are indented."""
    return [
        TypedText(one["text"].replace("\n  ", "\n"), told.date())
        for one in _MESSAGE.finditer(text)
        if (told := parse_time(one["day"]))
    ]


def _written(when: str, today: datetime) -> date:
    """The day of a file's time. Clocks can be wrong: never after today, never before such files existed."""
    return min(max(parse_time(when) or today, datetime(1971, 1, 1, tzinfo=UTC)), today).date()
