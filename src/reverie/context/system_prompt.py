"""The system prompt: static text first, what depends on the place and the day after it.

Rendered once a session and kept in the session header; a resumed session reads it from there. Never rendered again
while a conversation runs: a changed date travels beside a message.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from reverie.origins import broken_tags
from reverie.prompts import render
from reverie.storage.transcript.records import SessionHeader, from_record
from reverie.types import Origin, Record, TextBlock


def system_prompt(cwd: Path, git_branch: str, today: date) -> tuple[str, ...]:
    """The blocks of the system prompt, static before dynamic."""
    repository = f"Git repository, branch {broken_tags(git_branch)}" if git_branch else "Not a git repository"
    place = {
        "cwd": broken_tags(str(cwd)),
        "repository": repository,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": today.isoformat(),
    }
    return (render("reverie.context", "system.md"), render("reverie.context", "environment.md", place))


def date_change(today: date) -> TextBlock:
    """What the model is told when a conversation goes on on another day."""
    return TextBlock(render("reverie.context", "date_change.md", {"date": today.isoformat()}), Origin.CODE)


def date_changed(records: Sequence[Record], today: date) -> bool:
    """Whether the model still believes in another day: the header's, or the last it was told."""
    for record in reversed(records):
        header = from_record(record)
        if "knownDate" in record.data or isinstance(header, SessionHeader):
            told = header.date if isinstance(header, SessionHeader) else str(record.data["knownDate"])
            return told != today.isoformat()
    return True
