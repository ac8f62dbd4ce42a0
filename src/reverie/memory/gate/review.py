"""What the user sees of trust and decides about it: each statement of a memory with the words that it rests on, the
inferred ones, and what happens when the user confirms or rejects one. Marks are written under the directory's lock."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from reverie.errors import UserError
from reverie.memory.changes import Mark, WriteInfo
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.lines import body_parts, take_out, texts_of
from reverie.memory.gate.marks import Marks
from reverie.memory.note import DESCRIPTION_CHARACTERS, title_of
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile
from reverie.moments import parse_time
from reverie.quick import dataclass
from reverie.storage.history.versions import Version
from reverie.text.cutting import shorten
from reverie.text.folding import fold_text, visible

_QUOTE: Final = 100
_SOURCES: Final = {
    "piped": "a pipe or a file",
    "pasted": "a paste",
    "page": "a web page",
    "tool": "a tool",
    "model": "an answer",
    "imported": "an import",
    "shared": "others, who shared it",
}


@dataclass(frozen=True, slots=True)
class MarkedStatement:
    """A statement of a memory, how far it is trusted, and what it rests on. `modified` is the time of its file."""

    file: str
    text: str
    trust: Trust | None
    mark: Mark | None
    modified: float = 0.0

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.file}\0{fold_text(self.text)}".encode("utf-8", "replace")).hexdigest()[:8]

    @property
    def is_note(self) -> bool:
        """Whether an agent added it without words of the user."""
        mark = self.mark
        is_bare = mark is not None and not (mark.quote or mark.how or mark.source)
        return is_bare and self.trust is not Trust.CONFIRMED

    @property
    def since(self) -> float:
        """When the user said it, or else when its file was changed: seconds since 1970."""
        said = parse_time(self.mark.at) if self.mark and self.mark.at else None
        return said.timestamp() if said is not None else self.modified

    def evidence(self, who: str = "you") -> str:
        """What it rests on, in one line; empty if nothing is known."""
        return describe_evidence(self.mark, who) if self.mark is not None else ""

    def to_json(self) -> dict[str, Any]:
        mark = self.mark or Mark(Trust.INFERRED)
        return {
            "id": self.id,
            "file": self.file,
            "statement": self.text,
            "trust": self.trust.value if self.trust else None,
            "evidence": self.evidence() or None,
            "how": mark.how or None,
            "quote": mark.quote or None,
            "said": mark.at or None,
            "source": mark.source or None,
            "session": mark.session or None,
            "message": mark.message or None,
        }


def describe_evidence(mark: Mark, who: str = "you") -> str:
    """The words that a statement rests on, in one line. `who` is the user."""
    day = f", {mark.at[:10]}" if mark.at else ""
    words = shorten(" ".join(visible(mark.quote).split()), _QUOTE)
    said = f'{who}{day}: "{words}"' if words else ""
    if mark.how == "yes" and words:
        said = f'{who} said yes{day}, to: "{words}"'
    source = f"from {_SOURCES.get(mark.source, mark.source)}" if mark.source else ""
    against = f"{mark.contradicts} may say something else" if mark.contradicts else ""
    parts = [source, said, f"confirmed by {who}" if mark.how == "key" else "", against]
    whose = "your" if who == "you" else f"{who}'s"
    return "; ".join(filter(None, parts)) or f"agent's note, not {whose} words"


def list_statements(name: str, text: str, marks: Marks, modified: float = 0.0) -> list[MarkedStatement]:
    """The statements of a memory with their marks; its description, if it has no other."""
    topic = TopicFile.parse(text)
    return [MarkedStatement(name, one, marks.trust_of(one, topic), marks.of(one), modified) for one in texts_of(topic)]


def all_statements(memory: MemoryDirectory) -> Iterable[MarkedStatement]:
    """Every statement of every memory, newest memories first."""
    marks = Marks(memory.root)
    for entry in memory.list():
        yield from list_statements(entry.name, memory.read(entry.name).text, marks, entry.modified)


def list_inferred(memory: MemoryDirectory) -> list[MarkedStatement]:
    """Every statement that is inferred."""
    return [one for one in all_statements(memory) if one.trust is Trust.INFERRED]


def find_statement(memory: MemoryDirectory, spec: str, file: str = "") -> MarkedStatement:
    """A statement by its id or the beginning of it; `UserError` if there is none, or more than one. `file`: the memory
    that has it."""
    wanted = spec.strip().lower()
    said = list_statements(file, memory.read(file).text, Marks(memory.root)) if file else all_statements(memory)
    found = [one for one in said if wanted and one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{spec[:20]!r} begins {len(found)} statements; give more of the id.")
    raise UserError(f"No statement has the id {spec[:20]!r}; `reverie memory inferred` lists them.")


def confirm(memory: MemoryDirectory, one: MarkedStatement, info: WriteInfo, mark: Mark | None = None) -> Version | None:
    """Marks a statement as confirmed by the user, who has seen it. `mark` says how, if not by key. The head of its file
    follows if it is the first statement: that is a version."""
    by_key = replace(one.mark or Mark(Trust.CONFIRMED), how="key", session=info.session)
    if not by_key.quote:
        by_key = replace(by_key, at=datetime.now(UTC).isoformat(timespec="seconds"))
    return _settle(memory, one, replace(mark or by_key, trust=Trust.CONFIRMED), info)


def doubt(memory: MemoryDirectory, one: MarkedStatement, info: WriteInfo) -> Version | None:
    """Marks a statement as inferred again."""
    mark = one.mark or Mark(Trust.INFERRED)
    how = "" if mark.how == "key" else mark.how
    return _settle(memory, one, replace(mark, trust=Trust.INFERRED, how=how), info)


def _settle(memory: MemoryDirectory, one: MarkedStatement, mark: Mark, info: WriteInfo) -> Version | None:
    marks = Marks(memory.root)

    def change(topic: TopicFile) -> TopicFile:
        texts = _require(one, topic)
        marks.add({one.text: mark})
        return topic.with_changes(trust=mark.trust) if texts[0] == one.text else topic

    return memory.edit(one.file, change, info)


def reject(memory: MemoryDirectory, one: MarkedStatement, info: WriteInfo) -> Version | None:
    """Removes a statement from its file; a file without statements goes too."""
    marks = Marks(memory.root)

    def change(topic: TopicFile) -> TopicFile:
        _require(one, topic)
        body = take_out(topic.body, [one.text])
        rest = [bare for _, bare in body_parts(body)]
        if not rest:
            return TopicFile.parse("")
        trust = marks.trust_of(rest[0], topic)
        changed = topic.with_changes(body=body, fields={"trust": trust.value if trust else None})
        if _is_same(topic.description, one.text) or _is_same(topic.name, title_of(one.text)):
            changed = changed.with_changes(name=title_of(rest[0]), description=shorten(rest[0], DESCRIPTION_CHARACTERS))
        return changed

    return memory.edit(one.file, change, info)


def _require(one: MarkedStatement, topic: TopicFile) -> list[str]:
    texts = texts_of(topic) or [""]
    if one.text not in texts:
        raise UserError(f"{one.file} does not say this any more; nothing was changed.")
    return texts


def _is_same(one: str, other: str) -> bool:
    return fold_text(one).rstrip(" .…") == fold_text(other).rstrip(" .…")
