"""What a dream is told about: what the user typed in the sessions it looks at, and the day on which each statement with
a relative date was written. A dream reads messages, not transcripts: most of a transcript is not the user's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Final

from reverie.errors import ReverieError
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.marks import Marks
from reverie.memory.topic_file import body_statements, decode
from reverie.moments import local_day, parse_time, to_datetime
from reverie.quick import dataclass
from reverie.storage.history.versions import Version
from reverie.text.cutting import shorten
from reverie.text.dates.phrases import find_days
from reverie.text.folding import visible

FILE: Final = "typed_messages.txt"
"""The file in the copy with all messages, if the directive has only the newest."""
_LISTED: Final = 20_000
_MESSAGE: Final = 1_500
_ALL: Final = 1_000_000
_VERSIONS: Final = 200


@dataclass(frozen=True, slots=True)
class TypedMessage:
    """A message that the user wrote."""

    session: str
    at: str
    text: str

    def shown(self) -> str:
        """Returns it as an item of a list; its further lines are indented."""
        moment = parse_time(self.at)
        when = f"{moment.astimezone():%A, %Y-%m-%d %H:%M}" if moment and local_day(self.at) else "(no date)"
        text = self.text if len(self.text) <= _MESSAGE else f"{self.text[:_MESSAGE]}…"
        lines = visible(text).replace("</said>", "< /said>").strip().splitlines()
        return f"- {when}, session {self.session}: " + "\n  ".join(lines)


def list_typed(messages: Sequence[TypedMessage], path: str) -> tuple[str, str]:
    """Returns the part of the directive that lists the messages (oldest first, the newest if there is too much), and
    the text of the file at `path` that has all of them; empty if the directive has them all."""
    if not messages:
        return "The user typed nothing in other sessions since the last dream.", ""
    items = [one.shown() for one in messages]
    listed, size = list[str](), 0
    for item in reversed(items):
        size += len(item) + 1
        if listed and size > _LISTED:
            break
        listed.append(item)
    more = len(items) - len(listed)
    head = "What the user typed in sessions since the last dream, oldest first:"
    earlier = f"\n{more} earlier messages are in {path}, in the same form: Grep or Read it." if more else ""
    said = "\n".join(reversed(listed))
    return f"{head}\n\n<said>\n{said}\n</said>{earlier}", "\n".join(items)[-_ALL:] + "\n" if more else ""


def days_written(directory: MemoryDirectory, names: Iterable[str]) -> dict[str, dict[str, date]]:
    """Returns the day on which each statement with a relative date was said or written, by file. A file's time is not
    that day: every edit moves it."""
    marks, found = Marks(directory.root), dict[str, dict[str, date]]()
    wanted: dict[str, list[str]] = {}
    for name in names:
        try:
            statements = body_statements(directory.read(name).text)
        except ReverieError:
            continue
        for one in statements:
            if not any(not day.is_absolute for day in find_days(one, date(2026, 1, 1))):
                continue
            mark = marks.of(one)
            day = local_day(mark.at) if mark is not None else None
            if day is not None:
                found.setdefault(name, {})[one] = day
            else:
                wanted.setdefault(name, []).append(one)
    if wanted:
        _from_history(directory, wanted, found)
    return found


def _from_history(
    directory: MemoryDirectory, wanted: Mapping[str, Sequence[str]], found: dict[str, dict[str, date]]
) -> None:
    """Adds the day of the first version that has a statement, among the newest versions."""
    open_still = {(name, one) for name, statements in wanted.items() for one in statements}
    versions: list[Version] = list(directory.log(limit=_VERSIONS)) if open_still else []
    for version in versions:  # newest first: an older version that has it overwrites the day
        for change in version.files:
            mine = [one for name, one in open_still if name == change.name]
            if not mine or change.after is None:
                continue
            text = decode(directory.history.read(change.after))
            day = version.when.astimezone().date()
            with suppress(OSError):  # a file by hand may be older than its first version
                written = (directory.root / change.name).stat().st_mtime
                day = min(day, to_datetime(written).astimezone().date())
            found.setdefault(change.name, {}).update({one: day for one in mine if one in text})


def list_days(days: Mapping[str, date]) -> list[str]:
    """Returns one line per statement, for below the line of its file."""
    return [f"  written on {day:%A, %Y-%m-%d}: “{shorten(one, 200)}”" for one, day in days.items()]
