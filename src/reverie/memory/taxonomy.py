"""The types of memories, how far each is trusted, and the name of its file. The types are closed: a file of another
type stays readable and counts as untyped. Nothing here reads a file."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

INDEX = "MEMORY.md"
"""The index of a memory directory; `team/` has its own."""
TEAM = "team"
LOGS = "logs"

_NAME_CHARACTERS = 60
_NOT_WORD = re.compile(r"[^\w]+")


class MemoryType(StrEnum):
    """The four types of memories."""

    USER = "user"
    """Role, goals, expertise, preferences."""
    FEEDBACK = "feedback"
    """How to work, from corrections and confirmations."""
    PROJECT = "project"
    """Who does what, why and by when; what code and git do not show."""
    REFERENCE = "reference"
    """Where something is in an outside system, and what it is for."""

    @classmethod
    def read(cls, text: str) -> MemoryType | None:
        """The type that `text` names, in any case; None if it names none."""
        word = text.strip().lower()
        return cls(word) if word in cls._value2member_map_ else None


class Trust(StrEnum):
    """How sure a memory is."""

    CONFIRMED = "confirmed"
    """The user said it, or said yes to it."""
    INFERRED = "inferred"
    """A conclusion; confirmed memories win over it."""

    @classmethod
    def read(cls, text: str) -> Trust | None:
        word = text.strip().lower()
        return cls(word) if word in cls._value2member_map_ else None


def file_name(kind: MemoryType | None, title: str) -> str:
    """The name of a new memory: its type, then the words of its title, in any script: `feedback_no_mocks.md`."""
    words = _NOT_WORD.sub("_", unicodedata.normalize("NFC", title).casefold()).strip("_")
    prefix = f"{kind.value}_" if kind else ""
    words = words.removeprefix(prefix) or "memory"
    if len(words) > _NAME_CHARACTERS:
        cut = words[:_NAME_CHARACTERS]
        words = cut.rpartition("_")[0] or cut
    while len((prefix + words).encode()) > 240:  # file systems count bytes
        words = words[:-1]
    return f"{prefix}{words.strip('_')}.md"


def is_index(name: str) -> bool:
    """Whether the relative path is an index, in any folder."""
    return name.rpartition("/")[2] == INDEX


def is_log(name: str) -> bool:
    return name.startswith(f"{LOGS}/")


def is_topic(name: str) -> bool:
    """Whether the relative path is a topic file: `.md`, not an index, not a log, not hidden."""
    hidden = any(part.startswith(".") for part in name.split("/"))
    return name.endswith(".md") and not hidden and not is_index(name) and not is_log(name)


def is_team(name: str) -> bool:
    """Whether the relative path is below the folder that a team shares."""
    return name.startswith(f"{TEAM}/")


def index_of(name: str) -> str:
    """The index that lists a topic file: the team's for `team/…`, else the main one."""
    return f"{TEAM}/{INDEX}" if name.startswith(f"{TEAM}/") else INDEX


def pointer_of(name: str) -> str:
    """How the index spells a topic file, relative to the index's folder."""
    return name.removeprefix(f"{TEAM}/")
