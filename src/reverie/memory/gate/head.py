"""The head of a memory: title, description, other fields and file name are made of the user's or the memory's words.
Where they are not, they are built from its first statement. Texts in, texts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reverie.memory.gate.lines import body_parts, first_words, lead_of
from reverie.memory.gate.rule import Case
from reverie.memory.gate.speech import foreign_names, has_mixed_word
from reverie.memory.gate.statement import EvidenceText, features
from reverie.memory.taxonomy import Trust, file_name
from reverie.memory.topic_file import TopicFile
from reverie.text.cutting import shorten
from reverie.text.folding import fold_text
from reverie.text.patterns import late
from reverie.text.sameness import contradicts, says

_LONGEST: Final = 120
_TITLE_WORDS: Final = 8
_ENDS: Final = ".;:,!?… "
_FOREIGN_WORDS: Final = 2
"""Words of one sentence of somebody else that a title may not have."""
_HEAD: Final = frozenset({"name", "description", "type", "trust"})
_COMMENT = late(r"(?:^|\s)#\s*(.+)")


def is_own(text: str, case: Case, parts: Sequence[str]) -> bool:
    """Whether a title, name or line of an index is made of the memory's and the user's words."""
    one = features(text)
    near = EvidenceText([*parts, case.speech.own.text, *(known.text for known in case.own)])
    if any(address.lower() not in near.lower for address in one.addresses):
        return False
    own = near.count(one.terms)
    if own == len(one.terms):
        return True
    if case.speech.is_quoted(one, case.known) or has_mixed_word(text) or foreign_names(one, near, case.speech.foreign):
        return False
    unknown = replace(one, terms=frozenset(term for term in one.terms if not near.has(term)))
    if case.speech.foreign_share(unknown)[0] >= _FOREIGN_WORDS:
        return False
    return own > 0 or not case.speech.foreign.count(one.terms)


def _first_line(topic: TopicFile) -> str:
    """The first line of a memory that says something, without Markdown."""
    lines = (" ".join(bare for _, bare in body_parts(line)) for line in topic.body.splitlines())
    return next(filter(None, lines), topic.description)


def rebuild_head(topic: TopicFile, before: TopicFile, case: Case, trust: Trust | None) -> str:
    """The text with a head of the user's or the memory's words, and with its trust."""
    parts = [bare for _, bare in body_parts(topic.body)]
    lead = lead_of(topic)
    stays = trust is Trust.CONFIRMED and bool(before.name) and _is_same(lead, lead_of(before))
    if not topic.name.strip() or (topic.name != before.name and (stays or not is_own(topic.name, case, parts))):
        topic = topic.with_changes(name=before.name or first_words(lead, _TITLE_WORDS))
    if not topic.description.strip():
        topic = topic.with_changes(description=before.description or shorten(lead, _LONGEST))
    is_kept = topic.description == before.description or (not stays and is_own(topic.description, case, parts))
    is_said = any(says(topic.description, one) for one in parts)
    if not is_kept or (not is_said and any(contradicts(topic.description, one) for one in parts)):
        topic = topic.with_changes(description=before.description if stays else shorten(_first_line(topic), _LONGEST))
    unknown = {
        key: None
        for key, value in topic.fields.items()
        if key.rpartition(".")[2] not in _HEAD and before.fields.get(key) != value
    }
    if unknown:
        topic = topic.with_changes(fields=unknown)
    stood = set(before.front.lines)
    for line in topic.front.lines:
        said = _COMMENT.search(line)
        if line not in stood and said and not is_own(said[1], case, parts):
            topic = TopicFile.parse(
                topic.text.replace(
                    line, line[: said.start()].rstrip() + "\n" if line[: said.start()].strip() else "", 1
                )
            )
    if trust is not topic.trust:
        topic = topic.with_changes(fields={"trust": trust.value if trust else None})
    return topic.text


def _is_same(lead: str, other: str) -> bool:
    """Whether two statements differ at most in the sign at their end."""
    return fold_text(lead).rstrip(_ENDS) == fold_text(other).rstrip(_ENDS)


def rebuild_name(name: str, text: str, case: Case) -> str:
    """Another name for a new file, if the words of its own are somebody else's; empty: it may stay."""
    folder, _, file = name.rpartition("/")
    words = file.removesuffix(".md").replace("_", " ").replace("-", " ")
    topic = TopicFile.parse(text)
    if is_own(words, case, [*(bare for _, bare in body_parts(topic.body)), topic.name]):
        return ""
    better = file_name(topic.type, topic.name)
    return f"{folder}/{better}" if folder else better
