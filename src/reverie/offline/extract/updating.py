"""Changes a memory when the user says more about it, or that something has changed.

A new day replaces the old one if both are clear. A change comes first, and the old text stays below, with the day until
which it was true. Anything else is added.
"""

from __future__ import annotations

import re

from reverie.memory.note import DESCRIPTION_CHARACTERS
from reverie.memory.topic_file import TopicFile
from reverie.offline.extract.candidates import Candidate
from reverie.offline.extract.composing import statement_lines
from reverie.text.cutting import shorten
from reverie.text.sentences import statements
from reverie.text.words import content_terms

_ISO = re.compile(r"\b\d{4}-\d\d-\d\d\b")


def update_memory(text: str, candidate: Candidate) -> str:
    """Adds what is new to the memory's text. Everything else is kept."""
    topic = TopicFile.parse(text)
    lines = statement_lines(candidate)
    body = topic.body.rstrip("\n")
    moved = _moved_day(topic, next((line for line in lines if _ISO.search(line)), lines[0]))
    if moved is not None:
        return moved.text
    if not candidate.is_change:
        return topic.with_changes(body=f"{body}\n\n" + "\n".join(lines)).text
    first, _, rest = body.partition("\n")
    until = f"Until {candidate.message.day.isoformat()}: {first}"
    kept = "\n".join([*lines, "", until, *([rest.strip("\n")] if rest.strip() else [])])
    return topic.with_changes(body=kept, description=shorten(lines[0], DESCRIPTION_CHARACTERS)).text


def _moved_day(topic: TopicFile, said: str) -> TopicFile | None:
    """The old day replaced by the new one, if the memory opens with one day and one new day was said."""
    first = next(iter(statements(topic.body)), "")
    old, new = set(_ISO.findall(first)), list(dict.fromkeys(_ISO.findall(said)))
    new = [day for day in new if day not in old]
    if len(old) != 1 or len(new) != 1:
        return None
    was = old.pop()
    body = topic.body.replace(was, new[0])
    description = topic.description.replace(was, new[0])
    changed = topic.with_changes(body=body, description=description) if description else topic.with_changes(body=body)
    if len(content_terms(said) - content_terms(topic.text)) >= 6:  # the message says more than the day
        changed = changed.with_changes(body=f"{said}\n\n{body}")
    return changed
