"""Which memory there is already about what was said: to be changed, to be forgotten, or enough as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.layers.l5_extraction.writes import speaks_of
from reverie.memory.gate.evidence import EvidenceText
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.offline.extract.marks import Message
from reverie.offline.extract.reading import Known
from reverie.text.sameness import find_repeated
from reverie.text.sentences import statements
from reverie.text.words import content_terms

_PART_OF_DAY = re.compile(r"\d{4}(?:-\d\d)*|\d\d")
MOST_READ = 6
"""Memories that are looked at before writing."""
_SHARED = 2  # words of a memory that were said: then it is spoken of
_SAME = 0.34  # of a memory's subject that was spoken of: then it is about the same


@dataclass(frozen=True, slots=True)
class Standing:
    """A memory and its text."""

    known: Known
    text: str

    @property
    def subject(self) -> frozenset[str]:
        """The words of its name, description and first statement."""
        return self._terms(2)

    @property
    def whole(self) -> frozenset[str]:
        """All its words."""
        return self._terms(None)

    def _terms(self, body: int | None) -> frozenset[str]:
        topic = TopicFile.parse(self.text)
        said = statements(topic.body)[:body]
        found = content_terms(" ".join([topic.name, topic.description, *said]))
        return frozenset(term for term in found if not _PART_OF_DAY.fullmatch(term))


def worth_reading(known: Sequence[Known], terms: frozenset[str]) -> list[Known]:
    """Memories that may be about what was said, the nearest first: all that share a word with it."""
    ground = EvidenceText([" ".join(terms)])

    def shared(one: Known) -> int:
        stem = one.file.rpartition("/")[2].removesuffix(".md").replace("_", " ").replace("-", " ")
        words = content_terms(f"{stem} {one.description}")
        return sum(word in terms or ground.has(word) for word in words)

    ranked = sorted(((shared(one), one) for one in known), key=lambda each: (-each[0], each[1].file))
    return [one for count, one in ranked if count > 0][:MOST_READ]


def overlap(standing: Standing, terms: frozenset[str]) -> float:
    """The share of a memory's subject that was spoken of."""
    ground = EvidenceText([" ".join(terms)])
    subject = standing.subject
    return sum(term in terms or ground.has(term) for term in subject) / len(subject) if subject else 0.0


def about(memories: Iterable[Standing], text: str, *, harks_back: bool = False) -> list[Standing]:
    """Memories the text speaks of, the nearest first; `harks_back`: it names something that was said before."""
    ground, terms = EvidenceText([text]), content_terms(text)
    found: list[tuple[float, Standing]] = []
    for one in memories:
        shared = sum(ground.has(term) for term in (one.whole if harks_back else one.subject))
        if shared >= _SHARED or speaks_of(ground, one.text):
            found.append((overlap(one, terms), one))
    return [one for _, one in sorted(found, key=lambda each: (-each[0], each[1].known.file))]


def is_said_already(lines: Sequence[str], memories: Iterable[Standing]) -> bool:
    """Whether one of the memories says all of this, with the same numbers and days."""
    new = statements("\n".join(lines))
    return any(find_repeated(new, statements_of(memory.text)) for memory in memories)


def same_subject(standing: Standing, message: Message, terms: frozenset[str]) -> bool:
    """Whether a candidate and a memory are about the same."""
    return bool(about([standing], message.text)) and overlap(standing, terms) >= _SAME
