"""What background writers may not put into the team's folder: what is about the user, and what private notes say.

The folder is shared with others, so this is the one mistake that an undo does not take back. People and the agent they
talk to decide for themselves; who writes unwatched is kept from it. Pure: texts in, a sentence out.
"""

from __future__ import annotations

from collections.abc import Iterable

from reverie.memory.taxonomy import TEAM, MemoryType
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.text.sameness import StatementIndex
from reverie.text.sentences import statements
from reverie.text.words import content_terms


def is_shared(name: str) -> bool:
    """Whether a file lies in the team's folder."""
    return name.startswith(f"{TEAM}/")


def why_private(name: str, text: str, before: str | None, notes: Iterable[str]) -> str | None:
    """Why this may not become `name` by an unwatched writer; None if it may. `notes`: the private memories."""
    if not is_shared(name):
        return None
    if TopicFile.parse(text).type is MemoryType.USER:
        return (
            f"{name}: not written, because what is about the user is private, and {TEAM}/ is shared. Keep it outside."
        )
    stood = set(statements_of(before or ""))
    new = StatementIndex(one for one in statements_of(text) if one not in stood)
    for note in notes:
        topic = TopicFile.parse(note)
        if topic.type is not MemoryType.USER:
            continue
        for one in statements(topic.body):
            if content_terms(one) and new.has(one):
                return (
                    f"{name}: not written, because it says what a private note about the user says, and {TEAM}/ is "
                    "shared. Leave it out."
                )
    return None
