"""The words of a memory: its title, its description and its body, all from what the user said.

Days are written out. No other word is added: a rule that the user did not give must not look like one of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.memory.note import DESCRIPTION_CHARACTERS, title_of
from reverie.memory.taxonomy import MemoryType, file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.extract.candidates import Candidate
from reverie.offline.language.marks import Marked
from reverie.offline.language.prose import without_lead
from reverie.quick import dataclass
from reverie.text.cutting import shorten
from reverie.text.dates.phrases import write_out_days
from reverie.text.sentences import capitalize_first, end_sentence

_CREDENTIALS = re.compile(
    r"\s*\((?=[^()]*(?:/|:|\b(?:user|login|pass\w*|pw|pwd|guest|token"
    r"|key)\b))(?=[^()]*\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{6,})[^()]*\)|\s*\((?=[^()]*\b(?:user|login|pass\w*|pw"
    r"|pwd)\b)(?=[^()]*\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,})[^()]*\)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Memory:
    """The text of a file; empty: the memory is forgotten."""

    file: str
    text: str


def compose(candidate: Candidate, taken: Sequence[str]) -> Memory:
    """A new memory under a name that is not taken."""
    title = capitalize_first(title_of(_plain(_spoken(candidate.said[0]))))
    lines = statement_lines(candidate)
    described = shorten(_plain(lines[0]), DESCRIPTION_CHARACTERS)
    topic = TopicFile.new(name=title, description=described, type=candidate.type, body="\n".join(lines))
    name = file_name(candidate.type, title)
    number = 2
    while name in taken:
        name = file_name(candidate.type, f"{title} {number}")
        number += 1
    return Memory(name, topic.text)


def statement_lines(candidate: Candidate) -> list[str]:
    """The body of a memory, line by line: what was said, in its order."""
    told = " ".join(_sentence(text) for one in candidate.said if (text := _spoken(one)))
    return [f"In the user's words: “{told}”"] if candidate.type is MemoryType.USER else [told]


def _spoken(one: Marked) -> str:
    """A sentence as it is kept: with days written out, without credentials and introductions."""
    text = write_out_days(one.text, one.message.day, one.message.tongue)
    return without_lead(_CREDENTIALS.sub("", text)).strip(" ,;:-–—")


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("`", "").split())


def _sentence(text: str) -> str:
    return end_sentence(capitalize_first(text.strip()))
