"""Finds code and prose in a Markdown text, and removes HTML block comments.

It uses a CommonMark parser, which loads slowly, only where the answer is not clear without it. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from reverie.text.patterns import late

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_TICKS = late(r"`+")
_INDENTATION = late(r"\t| {4}")
_HTML_CODE = late(r"<(?:pre|code|script|style|textarea)\b", re.IGNORECASE)
_OPENS_CODE = late(rf"`|~~~|{_HTML_CODE.pattern}", re.IGNORECASE)
_BLOCK_COMMENT = late(r"^[ \t>*+\-\d.)]*(<!--)", re.MULTILINE)
_COMMENT = late(r"<!--.*?-->(?:[ \t]*<!--.*?-->)*", re.DOTALL)


class MarkdownProse:
    """Finds the prose of one text. The parser runs at the first question that needs it."""

    def __init__(self, text: str) -> None:
        self._text = text
        first = _OPENS_CODE.search(text)
        self._code_from = first.start() if first else len(text)
        self._regions: list[tuple[int, int]] | None = None

    def holds(self, at: int) -> bool:
        """Whether the character at `at` is outside code: spans, fences, indented blocks, `<pre>` and similar."""
        line = self._text.rfind("\n", 0, at) + 1
        if at <= self._code_from and not _INDENTATION.search(self._text, line, at):
            return True
        if self._regions is None:
            self._regions = sorted(_code_regions(self._text))
        index = bisect_right(self._regions, at, key=lambda region: region[0]) - 1
        return index < 0 or at >= self._regions[index][1]


def without_comments(text: str) -> str:
    """Returns the text without HTML block comments. Comments in code, in a sentence or without an end stay."""
    out: list[str] = []
    done = 0
    prose: MarkdownProse | None = None
    for opening in _BLOCK_COMMENT.finditer(text):
        at = opening.start(1)
        if at < done:
            continue
        closed = _COMMENT.match(text, at)
        if closed is None:
            break
        prose = prose or MarkdownProse(text)
        if not prose.holds(at):
            continue
        end = closed.end()
        if not text[opening.start() : at].strip() and text[end : end + 1] in ("\n", ""):
            at, end = opening.start(), end + 1  # it was alone on its lines, so they are removed too
        out.append(text[done:at])
        done = end
    return "".join(out) + text[done:] if out else text


def _code_regions(text: str) -> Iterator[tuple[int, int]]:
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    for token in _parser().parse(text):
        if token.map is None:
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if token.type in ("fence", "code_block") or (token.type == "html_block" and _HTML_CODE.match(token.content)):
            yield start, end
        elif token.type in ("inline", "html_block"):
            yield from _spans(text, start, end)


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields code spans: a run of backticks up to the next run of the same length; escaped backticks do not count."""
    runs = [(run.start(), run.end()) for run in _TICKS.finditer(text, start, end)]
    last = {after - opened: index for index, (opened, after) in enumerate(runs)}
    index = 0
    while index < len(runs):
        opened, after = runs[index]
        if _is_escaped(text, opened, start):
            opened += 1
        close = index + 1 if last.get(after - opened, -1) > index else len(runs)
        while close < len(runs) and runs[close][1] - runs[close][0] != after - opened:
            close += 1
        if close == len(runs):
            index += 1
            continue
        yield opened, runs[close][1]
        index = close + 1


def _is_escaped(text: str, at: int, start: int) -> bool:
    before = at
    while before > start and text[before - 1] == "\\":
        before -= 1
    return (at - before) % 2 == 1


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")
