"""Lists memories for agents that write in the background: one line per file with its day and its trust, so that they
change a file and do not write a second one. Short memories that the new messages may be about are shown whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from reverie.memory.scan import ScanEntry
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import decode
from reverie.moments import to_datetime
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.text.words import content_terms

SHORT: Final = 900
"""Bytes of a memory that can be shown whole."""
ROOM: Final = 4_000
"""Bytes of all memories that are shown whole."""
_SHARED: Final = 2
"""Content words that a memory must share with the new messages to be shown."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_TAG: Final = "memory-file"


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory that is shown whole, and the bytes that were read."""

    name: str
    path: Path
    data: bytes
    trust: Trust | None

    @property
    def text(self) -> str:
        trust = f' trust="{self.trust}"' if self.trust else ""
        return f'<{_TAG} name="{self.name}"{trust}>\n{decode(self.data).rstrip()}\n</{_TAG}>'


def list_memories(entries: Iterable[ScanEntry]) -> str:
    """One line per file: `- [type] file.md (Thursday, 2026-03-05; inferred): description`."""
    return "\n".join(map(_line, entries))


def find_meant(root: Path, entries: Iterable[ScanEntry], said: str) -> list[ShownMemory]:
    """The short memories that these words may be about, nearest first, as many as there is room for."""
    from reverie.memory.gate.marks import Marks  # not needed to list

    terms, marks = content_terms(said), Marks(root)
    near: list[tuple[int, ShownMemory]] = []
    for entry in entries:
        if entry.size > SHORT or not terms or '"' in entry.name:
            continue
        try:
            data = read_regular(entry.path)
        except OSError:
            continue
        text = decode(data)
        shared = len(terms & content_terms(text))
        if shared >= _SHARED and _TAG not in text:
            near.append((shared, ShownMemory(entry.name, entry.path, data, marks.lead_trust(text))))
    near.sort(key=lambda one: -one[0])
    shown, room = list[ShownMemory](), ROOM
    for _, one in near:
        if len(one.data) <= room:
            shown.append(one)
            room -= len(one.data)
    return shown


def _line(entry: ScanEntry) -> str:
    kind = f"[{entry.type}] " if entry.type else ""
    trust = f"; {entry.trust}" if entry.trust else ""
    day = f"{to_datetime(entry.modified).astimezone():%A, %Y-%m-%d}"
    about = f": {entry.description}" if entry.description else ""
    return _CONTROL.sub(" ", f"- {kind}{entry.name} ({day}{trust}){about}")
