"""Splits Markdown into pieces that a template shows: code, headings, lists, tables, paragraphs. It does not make HTML.

Only what makes a conversation readable is recognised. Everything else stays the text that it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from reverie.quick import dataclass
from reverie.text.patterns import late

_FENCE = late(r" {0,3}(?P<mark>`{3,}|~{3,})\s*(?P<language>[\w+#.-]{0,30})")
_HEADING = late(r"(#{1,6})\s+(\S.*)")
_ITEM = late(r"(?P<indent>[ \t]{0,12})(?:[-*+•]|(?P<number>\d{1,4})[.)])\s+(?P<text>\S.*)")
_INLINE = late(r"`([^`\n]{1,400})`|\*\*([^*\n]{1,400})\*\*")
_LONGEST_LINE = 4_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece: `code`, `heading`, `list`, `table` or `text`. A list has one (depth, number, text) per entry."""

    kind: str
    text: str = ""
    language: str = ""
    entries: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])


def prose(text: str) -> Iterator[Piece]:
    """The pieces of a text, in order. Linear in its length."""
    lines, at, held = text.split("\n"), 0, list[str]()

    def flush() -> Iterator[Piece]:
        if any(line.strip() for line in held):
            yield Piece("text", "\n".join(held).strip("\n"))
        held.clear()

    while at < len(lines):
        line = lines[at]
        short = len(line) <= _LONGEST_LINE
        if short and (fence := _FENCE.match(line)):
            yield from flush()
            end = at + 1
            while end < len(lines) and not lines[end].strip().startswith(fence["mark"]):
                end += 1
            yield Piece("code", "\n".join(lines[at + 1 : end]), fence["language"])
            at = end + 1
        elif short and (heading := _HEADING.fullmatch(line)):
            yield from flush()
            yield Piece("heading", heading[2])
            at += 1
        elif short and _ITEM.fullmatch(line):
            yield from flush()
            entries = list[tuple[int, str, str]]()
            while at < len(lines) and len(lines[at]) <= _LONGEST_LINE and (item := _ITEM.fullmatch(lines[at])):
                depth = min(3, len(item["indent"].expandtabs(4)) // 2)
                entries.append((depth, item["number"] or "", item["text"]))
                at += 1
            yield Piece("list", entries=entries)
        elif short and line.lstrip().startswith("|") and line.count("|") > 2:
            yield from flush()
            end = at
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            yield Piece("table", "\n".join(lines[at:end]))
            at = end
        else:
            if not line.strip() and held:
                yield from flush()
            elif line.strip():
                held.append(line)
            at += 1
    yield from flush()


def inline(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a line or paragraph: (`code`, `strong` or empty, text)."""
    at = 0
    for found in _INLINE.finditer(text):
        if found.start() > at:
            yield "", text[at : found.start()]
        yield ("code", found[1]) if found[1] is not None else ("strong", found[2])
        at = found.end()
    if at < len(text):
        yield "", text[at:]
