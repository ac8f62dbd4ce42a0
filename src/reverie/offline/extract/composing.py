"""The words of a memory: its title, its description and its body, all taken from what the person said.

Days are written out. No word of our own is added: a rule that nobody gave must not look as if somebody had.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reverie.memory.taxonomy import MemoryType, file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.extract.candidates import Candidate
from reverie.offline.language.marks import Marked
from reverie.text.cutting import shortened
from reverie.text.dates.finding import absolute
from reverie.text.sentences import capital, finished

_TITLE = 60
_DESCRIPTION = 150
_LEAD = re.compile(
    r"^(?:(?:and|also|so|but|btw|fyi|yes|yeah|yep|oh|ah|hm+|hi|hey\w*|hello|alright|heads[- ]?up(?: that)?"
    r"|just so you know(?=[,:])"
    r"|remember(?: that| this)?(?: for the future)?|small change|before i forget|quick background[^:]*"
    r"|keep in mind(?: that)?"
    r"|context(?: on me| for this)?|background|pls|please|und|also|bitte|kurz zu mir|übrigens|y|por cierto"
    r"|ojo que)\b[,:!.]?\s*"
    r"|(?:no|nope|ok(?:ay)?|well|right|wait|no wait|ouch,? no|ouch|whoa|ugh|argh|jeez|look|listen|great|cool"
    r"|then)[,:!.]\s+"
    r"|[-–—•,:;…]\s*)+",
    re.IGNORECASE,
)
_LEAD_CJK = re.compile(r"^(?:另外|对了|顺便(?:说|提)(?:一下)?|先说(?:明)?一下|ちなみに|あと|それと|[，,、：:\s])+")
_IDENTITY = re.compile(
    r"^(?:i'm|i am|im|ich bin|soy|我是|私は)\s+(?:an?\s+|the\s+|eine?\s+|la\s+|el\s+|una?\s+|一名|一个)?", re.IGNORECASE
)
_CREDENTIALS = re.compile(
    r"\s*\((?=[^()]*(?:/|:|\b(?:user|login|pass\w*|pw|pwd|guest|token"
    r"|key)\b))(?=[^()]*\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{6,})[^()]*\)"
    r"|\s*\((?=[^()]*\b(?:user|login|pass\w*|pw|pwd)\b)(?=[^()]*\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,})[^()]*\)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory to write."""

    file: str
    text: str


def compose(candidate: Candidate, taken: Sequence[str]) -> Memory:
    """A new memory under a name that is not taken."""
    title = _title(candidate)
    lines = statement_lines(candidate)
    topic = TopicFile.new(
        name=title, description=shortened(_plain(lines[0]), _DESCRIPTION), type=candidate.type, body="\n".join(lines)
    )
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
    """A sentence as it is kept: days written out, credentials and what leads in left out."""
    text = absolute(one.text, one.message.day, one.message.tongue)
    text = _LEAD_CJK.sub("", _LEAD.sub("", _CREDENTIALS.sub("", text))).strip()
    return text.strip(" ,;:-–—")


def _title(candidate: Candidate) -> str:
    """The first words of the sentence that made it a memory."""
    text = _plain(_spoken(candidate.said[0]))
    if candidate.type is MemoryType.USER:
        text = _IDENTITY.sub("", text)
    text = re.sub(r"\s*[(（][^()（）]*[)）]", "", text) or text.strip("()（）")
    limit = _TITLE // 3 if candidate.message.tongue in ("zh", "ja") else _TITLE
    parts = re.split(r"[,;(。，；、]\s*|:\s|\s[-–—]\s", text)
    while len(text) > limit and len(parts) > 1:
        parts.pop()
        text = ", ".join(parts)
    text = re.sub(r"[.!?]\s+(?=\S)", " ", text)  # a title is one piece, also for those who look for sentences in it
    return capital(shortened(text, limit).strip(" .!?…。！？"))


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("`", "").split())


def _sentence(text: str) -> str:
    return finished(capital(text.strip()))
