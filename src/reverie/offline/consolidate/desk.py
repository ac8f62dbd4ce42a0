"""The files of a memory directory while a dream plans: the new text of each, and why.

Holds topic files only; indexes follow at the end. A file that was only partly seen is never changed. Nothing here
touches the disk: the result becomes tool calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from reverie.memory.taxonomy import TEAM, is_topic
from reverie.offline.consolidate.gather import Seen


class Desk:
    """The work of one dream. `texts` are the planned files; a file that is missing there is removed."""

    def __init__(self, seen: Seen, apart: frozenset[str] = frozenset()) -> None:
        self.seen = seen
        self.apart = apart
        """Files that must not be joined."""
        self.base: Mapping[str, str] = {name: text for name, text in seen.texts.items() if is_topic(name)}
        self.texts = dict(self.base)
        self.days: dict[str, date] = dict(seen.brief.files)
        self.reasons: dict[str, list[str]] = {}
        self.into: dict[str, str] = {}
        """Removed files, and the file that has their content."""
        self.dated: Mapping[str, str] = self.base
        """The files with their dates written out, before any other change."""
        self.gave_way: list[str] = []
        """Statements that were removed because another contradicts them."""

    def may_change(self, name: str) -> bool:
        """Whether a file can be rewritten: seen completely, still there, and its name unique without case."""
        return name in self.texts and name not in self.seen.fixed

    def write(self, name: str, text: str, reason: str) -> None:
        """Sets a file's new text, if it differs."""
        if self.texts.get(name) != text:
            self.texts[name] = text
            self.explain(name, reason)

    def explain(self, name: str, reason: str) -> None:
        """Adds a reason for a file that changes."""
        reasons = self.reasons.setdefault(name, [])
        if reason not in reasons:
            reasons.append(reason)

    def remove(self, name: str, into: str, reason: str) -> None:
        """Removes a file whose content is now in another; a file that never existed is only dropped from the plan."""
        del self.texts[name]
        if name in self.base:
            self.into[name] = into
            self.explain(name, reason)
        else:
            self.reasons.pop(name, None)

    def changed(self) -> dict[str, str]:
        """The files that are new or differ, with their planned text."""
        return {name: text for name, text in self.texts.items() if self.base.get(name) != text}


def is_one_tier(name: str, other: str) -> bool:
    """Whether two files have the same readers: private files are never joined with those of the team."""
    return name.startswith(f"{TEAM}/") == other.startswith(f"{TEAM}/")
