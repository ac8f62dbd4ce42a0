"""Reading memories for a program: recall without a session, one memory, all of them. Blocking; `Memory` calls it in its
thread."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from time import time
from typing import Any

from reverie.library.results import Recalled, Remembered, Statement
from reverie.memory.age import age_words
from reverie.memory.directory import Document
from reverie.memory.gate.last_use import LastUse
from reverie.memory.gate.review import MarkedStatement, list_statements
from reverie.memory.lookup import find_file
from reverie.memory.opening import OpenedMemory
from reverie.memory.recall.by_trust import FindMissing, by_trust, missing_names_in
from reverie.memory.recall.ranker import RankedMemory, Ranker
from reverie.memory.recall.reminder import RecalledMemory, reason_against_recall, reminder_within, render_reminder
from reverie.memory.taxonomy import Trust, is_topic
from reverie.moments import to_datetime
from reverie.text.folding import visible


def recall(
    memory: OpenedMemory, ranker: Callable[[], Ranker], text: str, k: int, without: Collection[str]
) -> list[Recalled]:
    """The memories that fit `text`, best first."""
    return [
        Recalled(**_fields(memory, document, said), score=round(one.score, 4), why=one.why, missing=missing)
        for one, document, said, missing in _find(memory, ranker, text, k, without)
    ]


def remind(memory: OpenedMemory, ranker: Callable[[], Ranker], text: str, k: int, without: Collection[str]) -> str:
    """The same as a text for a prompt."""
    found = find_to_show(memory, ranker, text, k, without)
    return render_reminder(found, time()) if found else ""


def remind_within(
    memory: OpenedMemory,
    ranker: Callable[[], Ranker],
    text: str,
    k: int,
    without: Collection[str],
    characters: int,
) -> tuple[str, tuple[str, ...]]:
    """The same for as many memories as fit, without tags; also the names of these."""
    shown, which = reminder_within(find_to_show(memory, ranker, text, k, without), time(), characters)
    return shown, tuple(one.name for one in which)


def find_to_show(
    memory: OpenedMemory,
    ranker: Callable[[], Ranker],
    text: str,
    k: int,
    without: Collection[str],
    gone: FindMissing | None = None,
) -> list[RecalledMemory]:
    """The same as memories that a reminder can show. `gone` looks up missing names, if not in the usual way."""
    return [
        _to_show(memory, document, said, missing)
        for _, document, said, missing in _find(memory, ranker, text, k, without, gone)
    ]


def show_file(memory: OpenedMemory, name: str) -> RecalledMemory:
    """One memory, ready to be shown."""
    document = memory.directory.read(name)
    return _to_show(memory, document, _statements(memory, document), missing_names_in(memory)(document.text))


def _to_show(
    memory: OpenedMemory, document: Document, said: list[MarkedStatement], missing: tuple[str, ...]
) -> RecalledMemory:
    path = memory.directory.root / document.name
    return RecalledMemory(document.name, path, document.text, document.modified, missing, tuple(said))


def _find(
    memory: OpenedMemory,
    ranker: Callable[[], Ranker],
    text: str,
    k: int,
    without: Collection[str],
    gone: FindMissing | None = None,
) -> list[tuple[RankedMemory, Document, list[MarkedStatement], tuple[str, ...]]]:
    memory.require_on("nothing is recalled")
    if k < 1 or reason_against_recall(text, 0) is not None or not memory.directory.root.is_dir():
        return []
    read = cache(memory.directory.read)
    ranking, leads = by_trust(ranker().rank(text, exclude=without, limit=2 * k), memory, k, read=read)
    gone = gone or missing_names_in(memory)
    used = [one.path for one in ranking.shown if (lead := leads[one.path]) and lead.trust is Trust.INFERRED]
    LastUse(memory.directory.root).note(used, time())
    found = [(one, read(one.path)) for one in ranking.shown]
    return [(one, document, _statements(memory, document), gone(document.text)) for one, document in found]


def read(memory: OpenedMemory, name: str) -> Remembered:
    """One memory by its name."""
    document = memory.directory.read(find_file(memory.directory, name))
    return Remembered(**_fields(memory, document, _statements(memory, document)))


def list_all(memory: OpenedMemory) -> list[Remembered]:
    """Every memory, newest first."""
    found = [memory.directory.read(entry.name) for entry in memory.directory.list()]
    return [Remembered(**_fields(memory, one, _statements(memory, one))) for one in found]


def _statements(memory: OpenedMemory, document: Document) -> list[MarkedStatement]:
    if not is_topic(document.name):
        return []
    return list_statements(document.name, document.text, memory.gate.marks, document.modified)


def _statement(one: MarkedStatement) -> Statement:
    return Statement(one.id, one.text, one.trust.value if one.trust else None, one.evidence("the user"))


def _fields(memory: OpenedMemory, document: Document, said: list[MarkedStatement]) -> dict[str, Any]:
    topic = document.topic
    return {
        "name": document.name,
        "title": topic.name,
        "description": topic.description,
        "type": topic.type.value if topic.type else None,
        "text": visible(topic.body.strip()),
        "trust": said[0].trust.value if said and said[0].trust else None,
        "evidence": said[0].evidence("the user") if said else "",
        "modified": to_datetime(document.modified),
        "age": age_words(document.modified, time()),
        "path": memory.directory.root / document.name,
        "statements": tuple(map(_statement, said)),
    }
