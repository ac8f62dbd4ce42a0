"""What background writers may not put into the team's folder: facts about the user, and statements of private notes.
The folder is shared, so an undo cannot take this back. The user and the agent they talk to decide for themselves."""

from __future__ import annotations

from collections.abc import Iterable

from reverie.memory.taxonomy import TEAM, MemoryType, is_team
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.text.sameness import StatementIndex
from reverie.text.sentences import statements
from reverie.text.words import content_terms


def why_private(name: str, text: str, before: str | None, notes: Iterable[str]) -> str | None:
    """Why a background writer may not write this as `name`; None if it may. `notes`: the private memories."""
    if not is_team(name):
        return None
    if TopicFile.parse(text).type is MemoryType.USER:
        return f"{name}: not written, because facts about the user are private, and {TEAM}/ is shared. Keep it outside."
    stood = set(statements_of(before or ""))
    new = StatementIndex(one for one in statements_of(text) if one not in stood)
    for note in notes:
        topic = TopicFile.parse(note)
        if topic.type is not MemoryType.USER:
            continue
        for one in statements(topic.body):
            if content_terms(one) and new.has(one):
                return (
                    f"{name}: not written, because it repeats a private note about the user, and {TEAM}/ is shared. "
                    "Leave it out."
                )
    return None
