"""Which memory is already about what was said: it is changed, or already says enough."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reverie.memory.gate.statement import EvidenceText
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.offline.extract.reading import Known
from reverie.quick import dataclass
from reverie.text.folding import fold_statement
from reverie.text.sentences import statements
from reverie.text.words import content_terms

_PART_OF_DAY = re.compile(r"\d{4}(?:-\d\d)*|\d\d")
MOST_READ = 6
"""How many memories are read before writing."""
_SAME = 0.34  # share of a memory's subject that was mentioned: then it is about the same


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory and its text."""

    known: Known
    text: str

    @property
    def subject(self) -> frozenset[str]:
        """The words of its name, description and first statements."""
        topic = TopicFile.parse(self.text)
        found = content_terms(" ".join([topic.name, topic.description, *statements(topic.body)[:2]]))
        return frozenset(term for term in found if not _PART_OF_DAY.fullmatch(term))


def speaks_of(ground: EvidenceText, text: str) -> bool:
    """Whether a text mentions a memory: half of the words of its name, or two words of it."""
    topic = TopicFile.parse(text)
    title = content_terms(topic.name)
    if title and 2 * ground.count(title) >= len(title):
        return True
    terms = content_terms(f"{topic.name} {topic.description} {topic.body}")
    return ground.count(terms) >= min(2, len(terms))


def find_related(known: Sequence[Known], terms: frozenset[str]) -> list[Known]:
    """Finds memories that may be about what was said, nearest first: all that share a word with it."""
    ground = EvidenceText([" ".join(terms)])

    def shared(one: Known) -> int:
        stem = one.file.rpartition("/")[2].removesuffix(".md").replace("_", " ").replace("-", " ")
        return sum(word in terms or ground.has(word) for word in content_terms(f"{stem} {one.description}"))

    ranked = sorted(((shared(one), one) for one in known), key=lambda each: (-each[0], each[1].file))
    return [one for count, one in ranked if count > 0][:MOST_READ]


def find_nearest(
    memories: Iterable[StoredMemory], said: str, terms: frozenset[str], *, is_change: bool
) -> StoredMemory | None:
    """Finds the memory about the same subject; for a change, also the only memory that is mentioned."""
    ground = EvidenceText([said])
    scored = [(_overlap(one, terms), one) for one in memories if speaks_of(ground, one.text)]
    best = max(scored, key=lambda each: each[0], default=None)
    is_meant = best is not None and (best[0] >= _SAME or (is_change and len(scored) == 1))
    return best[1] if best is not None and is_meant else None


def _overlap(standing: StoredMemory, terms: frozenset[str]) -> float:
    ground, subject = EvidenceText([" ".join(terms)]), standing.subject
    return sum(term in terms or ground.has(term) for term in subject) / len(subject) if subject else 0.0


def is_said_already(lines: Sequence[str], memories: Iterable[StoredMemory]) -> bool:
    """Whether one of the memories says all of this, in the same words."""
    new = set(map(fold_statement, statements("\n".join(lines))))
    return any(new <= set(map(fold_statement, statements_of(memory.text))) for memory in memories)
