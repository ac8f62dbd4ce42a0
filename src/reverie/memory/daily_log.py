"""Daily logs: in this mode the agent only appends to one file per day, and a dream distils the logs later. The memory
directory makes sure that no agent rewrites a log. The prompt names the pattern of the file, not the date, so that
midnight does not change the prefix."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path

from reverie.errors import UserError
from reverie.memory.changes import WriteInfo
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import LOGS
from reverie.storage.history.versions import Version

LOG_PATTERN = f"{LOGS}/YYYY/MM/YYYY-MM-DD.md"

_NAME = re.compile(rf"{LOGS}/(\d{{4}})/(\d\d)/(\d{{4}}-\d\d-\d\d)\.md")


def log_name(day: date) -> str:
    return f"{LOGS}/{day.isoformat()[:4]}/{day:%m}/{day.isoformat()}.md"


def day_of(name: str) -> date | None:
    """The day of a log; None if the relative path is not a log."""
    found = _NAME.fullmatch(name)
    try:
        day = date.fromisoformat(found[3]) if found else None
    except ValueError:
        return None
    return day if day is not None and log_name(day) == name else None


def append(memory: MemoryDirectory, text: str, now: datetime, info: WriteInfo) -> Version:
    """Adds one entry with its time to today's log, as one version; `now` is in the user's time zone."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        raise UserError("There is nothing to put into the log: the text is empty.")
    entry = f"- {now:%H:%M} " + "\n  ".join(lines) + "\n"
    name = log_name(now.date())
    # An agent's own append, or an editor, may have left the last line open.
    is_open = memory.exists(name) and not memory.read(name).text.endswith("\n")
    version = memory.append(name, f"\n{entry}" if is_open else entry, info)
    assert version is not None, "an entry changes the log"
    return version


def reason_against_write(name: str, before: str | None, after: str | None, today: date) -> str | None:
    """Why an agent may not make this write in daily-log mode; None if it only adds to today's log."""
    if name != log_name(today):
        return f"in this mode only the log of the day is written, by appending to {log_name(today)}"
    if after is None or not after.startswith(before or ""):
        return "entries are only added to a log: keep everything in it, and append"
    return None


def list_logs(root: Path, *, after: date | None = None, before: date | None = None) -> list[Path]:
    """The logs of a memory directory, oldest first, of the days between `after` and `before` (both excluded)."""
    found: list[tuple[date, Path]] = []
    for path in (root / LOGS).glob("[0-9]*/[0-9]*/*.md"):
        day = day_of(path.relative_to(root).as_posix())
        if day is not None and (after is None or day > after) and (before is None or day < before):
            found.append((day, path))
    return [path for _, path in sorted(found)]
