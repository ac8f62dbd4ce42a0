"""What each line of an index is: an entry, detail below one, a loose statement, part of a document, or the user's own.

Headings, blank lines, links to other places and lines about the list itself are the user's own. So is a section that is
mostly prose, as long as the index is within its limits.
"""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from typing import Final

from reverie.memory.index import LINE_CHARACTERS, MAX_BYTES, MAX_LINES, IndexEntry, entries
from reverie.quick import dataclass
from reverie.text.words import content_terms

BEARABLE: Final = 200
"""Characters of a line that may stay, although a new line would be shorter."""
_LEAST_TERMS: Final = 3
_BULLET = re.compile(r"^\s*[-*+•]\s+")
_LABEL = re.compile(r"^\s*(?:extra|also|note|nb|p\.?s|fyi|info|remember)\s?[:–—-]\s*", re.IGNORECASE)
_ELSEWHERE = re.compile(r"\]\(|^(?:[-*+]\s+)?https?://\S+$")
_ABOUT_THE_LIST = re.compile(
    r"\b(?:this|the) (?:list|index|directory|page|memory)\b|\b(?:memories|index|entries|one line a|listed below|newest"
    r"|sorted|alphabetical|keep (?:it|this) short|diese liste|verzeichnis|esta lista|este índice)\b|索引|目录|一覧",
    re.IGNORECASE,
)
_SELF_POINTER = re.compile(
    r"^(?:please )?(?:see|read|open|look|details?|more|rest|everything|full|siehe|mehr|ver"
    r"|véase)\b(?:\s[^\W\d]+){0,3}:?\s`?(?P<file>[\w./-]+\.md|(?:the |its )?(?:file|datei"
    r"|archivo))`?(?:\s[^\W\d]+){0,3}$",
    re.IGNORECASE,
)
"""Says only where to read more."""
_POSITION = re.compile(
    r"^(?:(?:this is |the )?(?:entry|item|line|row|number|no\.?|nr\.?|eintrag|zeile|punkt|entrada)\s*#?\d+\b"
    r"|#?\d+\s*(?:of|von|de|/)\s*\d+\b)[^.;:]{0,40}$",
    re.IGNORECASE,
)
"""Says only its place in the list."""
_HOUSEKEEPING = re.compile(
    r"\b(?:meta|(?:written|reviewed|checked|touched|updated|edited|verified) by [\w-]+|check again|fine|open|okay|good"
    r"|pending|see also|last|first|touched|updated|changed|edited|checked|verified|reviewed|seen|used|still|valid"
    r"|current|unclear|outdated|stale|ok|to review|to check|to do|todo|needs? (?:review|check)|on|at|by|was|is|ago"
    r"|date|status|zuletzt|geändert|geprüft|revisado)\b|\d{4}-\d\d-\d\d|[\W\d_]",
    re.IGNORECASE,
)


class RowKind(StrEnum):
    """The kinds of lines."""

    ENTRY = "entry"
    BELOW = "below"
    """A bullet below an entry."""
    LOOSE = "loose"
    """A statement that belongs in a topic file."""
    DOCUMENT = "document"
    """A line of a section that is mostly prose."""
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Row:
    """One line; `entry` is the entry it is or belongs to. `section` counts headings from 0."""

    line: str
    part: RowKind
    entry: IndexEntry | None
    section: int

    @property
    def states(self) -> str:
        """What the line states; empty if it only says when something was looked at, or nothing much."""
        said = _LABEL.sub("", _BULLET.sub("", self.line).strip())
        pointer = _SELF_POINTER.match(said.rstrip("."))
        is_own = pointer is not None and (not pointer["file"].endswith(".md") or self._is_its(pointer["file"]))
        if is_own or _POSITION.match(said.rstrip(".")):
            return ""
        if not _HOUSEKEEPING.sub("", said) or len(content_terms(said)) < _LEAST_TERMS:
            return ""
        return said[:1].upper() + said[1:]

    def _is_its(self, file: str) -> bool:
        """Whether a file that the line names is the one its entry points to."""
        return self.entry is not None and file.rpartition("/")[2] == self.entry.file.rpartition("/")[2]


def read_rows(text: str) -> list[Row]:
    """Reads every line of an index, with its line end."""
    listed = {entry.line: entry for entry in entries(text)}
    found: list[Row] = []
    section, above = 0, None
    is_code = False
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        entry = listed.get(number)
        bare = line.strip()
        section += bare.startswith("#")
        is_code ^= bare.startswith("```")
        if entry is not None:
            above = entry
            found.append(Row(line, RowKind.ENTRY, entry, section))
        elif above is not None and line[:1].isspace() and _BULLET.match(line):
            found.append(Row(line, RowKind.BELOW, above, section))
        else:
            above = None
            is_own = is_code or not bare or bare.startswith(("#", ">", "<!--", "```", "---", "|"))
            is_own = is_own or bool(_ELSEWHERE.search(bare) or _ABOUT_THE_LIST.search(bare))
            found.append(Row(line, RowKind.OWN if is_own else RowKind.LOOSE, None, section))
    return _documents(found)


def _documents(found: list[Row]) -> list[Row]:
    """Marks the sections that are mostly prose."""
    loose = Counter(row.section for row in found if row.part is RowKind.LOOSE)
    listed = Counter(row.section for row in found if row.part is RowKind.ENTRY)
    prose = {section for section, times in loose.items() if times >= 3 and times > listed[section]}
    return [
        Row(row.line, RowKind.DOCUMENT, row.entry, row.section)
        if row.section in prose and row.part in (RowKind.LOOSE, RowKind.OWN)
        else row
        for row in found
    ]


def is_over(text: str) -> bool:
    """Whether an index is over one of its limits."""
    return len(text.splitlines()) > MAX_LINES or len(text.encode("utf-8", "replace")) > MAX_BYTES


def longest_line(text: str) -> int:
    """From how many characters a line is too long: a little over is fine while the whole index is within limits."""
    return LINE_CHARACTERS if is_over(text) else BEARABLE
