"""What is known without a lookup: the conversation, recalled memories, instruction files and the memory index.

Each finding has its source and how much of the question it covers. A finding that covers less than half of it is not an
answer and is never shown as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from reverie.offline.talk.turn import Talk
from reverie.offline.talk.wording import Key
from reverie.offline.terms import Question, coverage
from reverie.quick import dataclass

ENOUGH = 0.5
"""The smallest share of a question that an answer covers."""

_TEXT = 300
_NUMBER = re.compile(r"^(?:[-*]|\d+\.) ")
_ASKED = re.compile(r"\b(?:i|we) ask(?:ed)?\b|gefragt|pregunt[éa]|我.*问|聞いた", re.IGNORECASE)
"""It asks what was asked before: then a question is an answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence with what was found and where. `covers`: how much of the question. `rank`: whose word counts."""

    text: str
    covers: float
    rank: int = 0


def find_at_hand(talk: Talk, question: Question) -> list[Finding]:
    """Finds what covers enough of the question, best first."""
    found = [*_from_conversation(talk, question), *_from_memory(talk, question), *_from_instructions(talk, question)]
    good = [one for one in found if one.covers >= ENOUGH]
    return sorted(good, key=lambda one: (-one.covers, -one.rank))


def _from_conversation(talk: Talk, question: Question) -> Iterator[Finding]:
    """The earlier line that covers most; the user's own words before ours. Questions do not count."""
    wants_questions = bool(_ASKED.search(talk.turn.question))
    best: tuple[float, bool, int, str, str] | None = None
    for number, (role, text) in enumerate(talk.turn.before):
        for line in text.splitlines():
            is_answer = wants_questions or not line.rstrip().endswith(("?", "？"))
            if not line.strip() or not is_answer:
                continue
            covers, by_person = coverage(line, question), role == "user"
            if not covers or (not by_person and covers < 1):
                continue
            if best is None or (covers, by_person, number) >= best[:3]:
                best = (covers, by_person, number, role, line.strip())
    if best is None or not (question.about_us or best[3] == "summary"):
        return
    covers, by_person, _, role, line = best
    said: dict[str, Key] = {"user": "you_said", "summary": "left"}
    yield Finding(
        talk.word(said.get(role, "i_said"), text=_NUMBER.sub("", line)[:_TEXT]), covers, 3 if by_person else 1
    )


def _from_memory(talk: Talk, question: Question) -> Iterator[Finding]:
    """The line of each recalled memory that covers most; a title can cover what the line leaves out."""
    for memory in talk.recalled:
        lines = [line for line in memory.lines if not line.startswith("#")]
        best = max(lines, key=lambda line: coverage(line, question), default="")
        name = PurePath(memory.file).stem.replace("_", " ").replace("-", " ")
        covers = coverage(best, question)
        if covers:
            covers = max(covers, coverage(f"{name} {best}", question))
            yield Finding(talk.word("memory", file=memory.file, age=memory.age, text=best[:_TEXT]), covers, 2)


def _from_instructions(talk: Talk, question: Question) -> Iterator[Finding]:
    best: tuple[float, str, str] | None = None
    for file, line in talk.place.instructions:
        covers = coverage(line, question)
        if covers and not line.startswith("#") and (best is None or covers > best[0]):
            best = (covers, file, line)
    if best is not None:
        covers, file, line = best
        shown = file.removeprefix(talk.place.folder.rstrip("/") + "/") if talk.place.folder else file
        yield Finding(talk.word("instructions", file=shown, text=line.lstrip("-* ")[:_TEXT]), covers, 1)


def find_pointers(talk: Talk, question: Question) -> list[tuple[float, str]]:
    """Finds memories that the index names and that were not recalled: how well they fit, and their file."""
    shown = {memory.file for memory in talk.recalled}
    scored = [
        (coverage(f"{one.file.replace('_', ' ')} {one.title} {one.hook}", question), one.file)
        for one in talk.place.index
        if PurePath(one.file).name not in shown
    ]
    return sorted(((share, file) for share, file in scored if share >= ENOUGH), key=lambda each: (-each[0], each[1]))
