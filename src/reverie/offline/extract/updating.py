"""What becomes of a memory when the person says that something is other than it was.

A new day or a new name takes the place of the old one where both are plain; an exception is added to its rule; what is
turned round is written anew. What still holds stays, word for word.
"""

from __future__ import annotations

import re

from reverie.layers.l5_extraction.writes import speaks_of
from reverie.memory.gate.evidence import EvidenceText
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile
from reverie.offline.extract.candidates import Candidate
from reverie.offline.extract.composing import statement_lines
from reverie.text.cutting import shorten
from reverie.text.folding import word_set
from reverie.text.sentences import statements
from reverie.text.words import content_terms

_ISO = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_NAME = re.compile(r"\b[A-ZÄÖÜ][a-zà-ÿ]{2,}\b")
_GONE = re.compile(
    r"\b(?P<name>[A-ZÄÖÜ][a-zà-ÿ]{2,})(?: has| is)? (?:left|moved|went|quit|retired|is leaving|is out|on leave"
    r"|leaving|verlässt|se va|dejó)\b"
)
_THEY_WENT = re.compile(
    r"\b(?:she|he)(?: has| is|\'s)? (?:left|moved|went|quit|retired|leaving|out\b|on leave|gone)\b", re.IGNORECASE
)
"""Somebody is gone who was named before."""
_NOT_NAMES = word_set(
    "She They Date The This That Small Since From Before After Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
)
_DESCRIPTION = 150


def updated(text: str, candidate: Candidate) -> str:
    """The memory's text with what is new in it. What nobody spoke of is kept, also where it holds no longer."""
    topic = TopicFile.parse(text)
    lines = statement_lines(candidate)
    body = topic.body.rstrip("\n")
    dated = next((line for line in lines if _ISO.search(line)), lines[0])
    moved = _moved_day(topic, dated.removeprefix("**How to apply:** "))
    if moved is not None:
        return moved.text
    if any(one.has("excepts") for one in candidate.sentences):
        return topic.with_changes(body=_with_exception(body, lines)).text
    handed = _handed_over(body, candidate, lines[0])
    if handed is not None:
        return _described(topic.with_changes(body=handed), lines[0]).text
    if any(one.has("changed") or one.has("forget") for one in candidate.message.marked):
        if not speaks_of(EvidenceText([candidate.message.text]), text):
            until = f"Until {candidate.message.said.day.isoformat()}: {body.partition(chr(10))[0]}"
            rest = body.partition("\n")[2].strip("\n")
            kept = "\n".join([*lines, "", until, *([rest] if rest else [])])
            return _described(topic.with_changes(body=kept), lines[0]).text
        return _described(topic.with_changes(body=_replaced(body, lines, candidate.type)), lines[0]).text
    return topic.with_changes(body=f"{body}\n\n" + "\n".join(lines)).text


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
    own = content_terms(said) - content_terms(topic.text)
    if len(own) >= 6:  # more was said than the day
        changed = changed.with_changes(body=f"{said}\n\n{body}")
    return changed


def _handed_over(body: str, candidate: Candidate, said: str) -> str | None:
    """Another person in the place of one who is gone."""
    if candidate.type is not MemoryType.PROJECT:
        return None
    gone = [found["name"] for one in candidate.message.marked for found in _GONE.finditer(one.text)]
    if not gone and any(_THEY_WENT.search(one.text) for one in candidate.message.marked):
        named = {name for one in candidate.message.marked for name in _NAME.findall(one.text)} - _NOT_NAMES
        known = [name for name in sorted(named) if re.search(rf"\b{name}\b", body)]
        gone = known if len(known) == 1 else []
    gone = [name for name in gone if re.search(rf"\b{name}\b", body)]
    new = [
        name
        for name in _NAME.findall(said)
        if name not in _NOT_NAMES
        and not re.search(rf"\b(?:the|in|at|from) {name}\b|\bto {name}\b(?=,)", said)
        and not re.search(rf"\b{name}\b", body)
        and name not in gone
    ]
    if not gone or not new:
        return None
    return f"{said}\n\n" + re.sub(rf"\b{gone[0]}\b", new[0], body)


def _with_exception(body: str, lines: list[str]) -> str:
    """The rule, then its exception, before the reasons."""
    head, mark, rest = body.partition("\n\n")
    return f"{head}\n{' '.join(line for line in lines if line)}{mark}{rest}"


def _replaced(body: str, lines: list[str], kind: MemoryType) -> str:
    """What is said now instead of the first statement; of a rule that was turned round nothing stays."""
    if kind in (MemoryType.FEEDBACK, MemoryType.USER):
        return "\n".join(lines)
    _, mark, rest = body.partition("\n\n")
    return "\n".join(lines) + (
        f"{mark}{rest}" if rest.startswith("**") and not any("**" in line for line in lines) else ""
    )


def _described(topic: TopicFile, said: str) -> TopicFile:
    return topic.with_changes(description=shorten(said, _DESCRIPTION))
