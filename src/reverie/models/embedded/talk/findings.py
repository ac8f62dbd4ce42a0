"""What is at hand without looking: the conversation, recalled memories, instruction files and the memory index.

Each finding says where it stands and how much of the question it covers. What covers less than half of it is no answer
and is never shown as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from reverie.models.embedded.talk.turn import Talk
from reverie.models.embedded.terms import Question, coverage

ENOUGH = 0.5
"""The least share of a question that an answer covers."""

_TEXT = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence that says what was found and where. `covers`: how much of the question. `rank`: whose word counts."""

    text: str
    covers: float
    rank: int = 0


def at_hand(talk: Talk, question: Question) -> list[Finding]:
    """What covers enough of the question, best first."""
    found = [*_from_conversation(talk, question), *_from_memory(talk, question), *_from_instructions(talk, question)]
    good = [one for one in found if one.covers >= ENOUGH]
    return sorted(good, key=lambda one: (-one.covers, -one.rank))


def _from_conversation(talk: Talk, question: Question) -> Iterator[Finding]:
    """The line said before that covers most; the person's own words go before ours. Questions are no answers."""
    best: tuple[float, bool, int, str] | None = None
    for number, (role, text) in enumerate(talk.turn.before):
        for line in text.splitlines():
            covers, by_person = coverage(line, question), role == "user"
            if not line.strip() or line.rstrip().endswith(("?", "？")) or not covers or (not by_person and covers < 1):
                continue
            if best is None or (covers, by_person, number) >= best[:3]:
                best = (covers, by_person, number, line.strip())
    if best is not None and question.about_us:
        covers, by_person, _, line = best
        yield Finding(
            talk.word("you_said" if by_person else "i_said", text=line[:_TEXT]), covers, 3 if by_person else 1
        )


def _from_memory(talk: Talk, question: Question) -> Iterator[Finding]:
    """Of each recalled memory the line that covers most; a title may cover what the line leaves out."""
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


def pointers(talk: Talk, question: Question) -> list[tuple[float, str]]:
    """Memories that the index names and that were not recalled: how well they fit, and their file."""
    shown = {memory.file for memory in talk.recalled}
    scored = [
        (coverage(f"{one.file.replace('_', ' ')} {one.title} {one.hook}", question), one.file)
        for one in talk.place.index
        if PurePath(one.file).name not in shown
    ]
    return sorted(((share, file) for share, file in scored if share >= ENOUGH), key=lambda each: (-each[0], each[1]))
