"""Shows an answer while it streams: word by word, wrapped, with light Markdown styling, never redrawn.

Written text does not change, so nothing flickers. A table is held back until its last row, a line of code until it is
complete. Without colour the Markdown is shown unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from reverie.cli.output import Paint
from reverie.cli.screen import STYLE, printable
from reverie.text.columns import split_wide, width
from reverie.text.patterns import late

_MAY_BE_MARKER = late(r"\s*(?:[-*+>#|`~_=\s]{0,8}|\d{1,4}[.)]?\s?)")
_FENCE = late(r"(\s*)(`{3,}|~{3,})(.*)")
_HEADING = late(r"#{1,6}\s+")
_ITEM = late(r"(\s*)([-*+]|\d{1,4}[.)])\s+")
_QUOTE = late(r"\s{0,3}>\s?")
_RULE = late(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*")
_TABLE_RULE = late(r":?-+:?")
_LONGEST_MARKER = 200  # characters; a line that opens with more blanks is text
_MOST_CELLS = 20_000  # of a table with columns side by side
_LINK = late(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{1,500})\)")
_MAY_BE_LINK = late(r"\[[^\[\]\n]{0,200}(?:\](?:\([^()\s]{0,500})?)?")
_EMPHASIS = late(r"([*_])((?![*_\s])[^*_`\n]{0,80}(?<!\s))\1")
_MAY_BE_EMPHASIS = late(r"[*_](?:[^*_`\s][^*_`\n]{0,80})?")
_ITALIC, _TEXT, _TARGET = "\x01", "\x02", "\x03"
"""Marks of our own around emphasis and the parts of a link. No text has them: it is made printable first."""
_OPENS = late(r"[\w(\[\"'`$]")


class MarkdownStream:
    """Feed it pieces of an answer, then call `finish`. `write` gets the text for the terminal."""

    def __init__(self, write: Callable[[str], object], paint: Paint, columns: int) -> None:
        self._write = write
        self._paint = paint
        self._columns = columns
        self._line = list[str]()  # the beginning of a line whose kind is not known yet, or that is shown whole
        self._kind = ""  # "", text, whole
        self._fence = ""
        self._table: list[list[str]] = []
        self._word = ""
        self._held = ""  # the beginning of a link or of emphasis, until its end is there
        self._phrase = ""  # which of the marks below is open
        self._column = 0
        self._indent = ""
        self._bold = self._code = self._heading = False
        self._broken = False  # inside a word that is longer than a line
        self._blank_before = True

    def feed(self, text: str) -> None:
        for char in printable(text).replace("\t", "    "):
            if char == "\n":
                self._end_of_line()
            elif self._kind == "text":
                self._add(char)
            else:
                self._line.append(char)
                if self._kind == "" and not self._fence and not _may_be_marker(self._line):
                    self._begin()

    def finish(self) -> None:
        """Writes the text that is still held back, and ends the line."""
        if self._line or self._word or self._held or self._column:
            self._end_of_line()
        self._end_table()
        self._fence, self._blank_before = "", True

    # -- lines ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Shows the marker of a line whose kind is known; the rest follows word by word."""
        line = "".join(self._line)
        if line.lstrip().startswith("|") or _FENCE.fullmatch(line):
            self._kind = "whole"  # shown when it is complete
            return
        self._end_table()
        self._kind, self._line = "text", []
        self._blank_before = False
        if self._paint.on and (found := _HEADING.match(line)):
            self._heading = True
        elif found := _ITEM.match(line):
            mark = "•" if self._paint.on and found[2] in "-*+" else found[2]
            self._put(f"{found[1]}{mark} ", width(found[1] + mark) + 1)
            self._indent = " " * self._column
        elif found := _QUOTE.match(line):
            self._put(self._paint.dim("│ ") if self._paint.on else "> ", 2)
            self._indent = self._paint.dim("│ ") if self._paint.on else "> "
        else:
            found = re.match(r"\s*", line)
            assert found is not None
            self._indent = found[0][: self._columns // 2]
            self._put(self._indent, len(self._indent))
        for char in line[found.end() :]:
            self._add(char)

    def _end_of_line(self) -> None:
        if self._kind == "text":
            while self._held:
                self._release()
            self._end_word()
            self._newline()
        else:
            self._whole_line("".join(self._line))
        self._kind, self._line, self._indent = "", [], ""
        self._bold = self._code = self._heading = False
        self._phrase = ""

    def _whole_line(self, line: str) -> None:
        fence = _FENCE.fullmatch(line)
        if self._fence:
            if fence and fence[2].startswith(self._fence) and not fence[3].strip():
                self._fence = ""
            else:
                self._put(f"  {self._paint.accent(line)}" if line.strip() else "", 1)
                self._newline()
        elif fence:
            self._end_table()
            self._fence, self._blank_before = fence[2], False
        elif line.lstrip().startswith("|"):
            self._table.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif not line.strip():
            self._end_table()
            if not self._blank_before:
                self._write("\n")
            self._blank_before = True
        elif _RULE.fullmatch(line) and self._paint.on:
            self._end_table()
            self._put(self._paint.dim("─" * min(40, self._columns)), 1)
            self._newline()
        else:  # a line so short that it could have become anything
            self._begin()
            while self._held:
                self._release()
            self._end_word()
            self._newline()

    def _newline(self) -> None:
        self._write("\n")
        self._column, self._blank_before = 0, False

    def _end_table(self) -> None:
        rows, self._table = self._table, []
        if not rows:
            return
        self._blank_before = False
        count = max(map(len, rows))
        if count * len(rows) > _MOST_CELLS:
            self._write("".join(" │ ".join(row) + "\n" for row in rows))
            return
        plain = [[*row, *[""] * (count - len(row))] for row in rows]
        rules = [row for row in plain if all(_TABLE_RULE.fullmatch(cell) for cell in row)]
        body = [row for row in plain if row not in rules]
        right = [cell[-1] == ":" != cell[0] for cell in rules[0]] if rules else [False] * count
        shown = [[self._inline(cell) for cell in row] for row in body]
        widths = [max((width(_strip_style(row[at])) for row in shown), default=0) for at in range(count)]
        if sum(widths) + 2 * count > self._columns:  # too wide to align: one cell per line would be worse
            shown, widths, right = [[" │ ".join(row)] for row in shown], [0], [False]
        for number, row in enumerate(shown):
            gaps = [" " * (most - width(_strip_style(cell))) for cell, most in zip(row, widths, strict=True)]
            cells = [gap + cell if ends else cell + gap for cell, gap, ends in zip(row, gaps, right, strict=True)]
            line = "  ".join(cells).rstrip()
            self._write((self._paint.bold(line) if number == 0 and len(body) < len(rows) else line) + "\n")

    def _inline(self, cell: str) -> str:
        if not self._paint.on:
            return cell
        cell = _LINK.sub(lambda found: f"{found[1]} ({found[2]})", cell)
        cell = re.sub(r"`([^`]+)`", lambda found: self._paint.accent(found[1]), cell)
        return re.sub(r"\*\*([^*]+)\*\*", lambda found: self._paint.bold(found[1]), cell)

    # -- words ----------------------------------------------------------------------------------------------------

    def _add(self, char: str) -> None:
        """Adds a character of text. A link or emphasis is held back until it is complete, or turns out to be none."""
        if self._held:
            self._held += char
            if found := _LINK.fullmatch(self._held):
                target = f" {_TARGET}({found[2]}){_TARGET}" if found[2] != found[1] else ""
                self._take_held(f"{_TEXT}{found[1]}{_TEXT}{target}")
            elif found := _EMPHASIS.fullmatch(self._held):
                self._take_held(f"{_ITALIC}{found[2]}{_ITALIC}")
            elif not (_MAY_BE_LINK.fullmatch(self._held) or _MAY_BE_EMPHASIS.fullmatch(self._held)):
                self._release()
            return
        before = self._word[-1:]
        opens = char == "[" or (char in "*_" and not before.isalnum() and before not in ("*", "_", "/", "\\"))
        if opens and self._paint.on and not self._code and "`" not in self._word:
            self._held = char
            return
        self._add_plain(char)

    def _take_held(self, text: str) -> None:
        self._held = ""
        for char in text:
            self._add_plain(char)

    def _release(self) -> None:
        """Adds what was held back as the text it is."""
        held, self._held = self._held, ""
        self._add_plain(held[:1])
        for char in held[1:]:
            self._add(char)

    def _add_plain(self, char: str) -> None:
        if char == " ":
            self._end_word()
            self._word = " "
            return
        if not char.isascii() and self._word and len(split_wide(self._word[-1] + char)) > 1:
            self._end_word()
        self._word += char
        if len(self._word) >= self._columns:  # longer than a line: the terminal breaks it
            self._end_word(goes_on=True)

    def _end_word(self, *, goes_on: bool = False) -> None:
        """Writes the word on this line, or on the next one if it does not fit."""
        word, self._word = self._word, ""
        space = word.startswith(" ")
        shown, columns = self._style_word(word.lstrip(" "))
        broken, self._broken = self._broken, goes_on
        if not columns:
            return
        if broken:
            self._put(shown, columns)
            return
        at_start = self._column <= width(_strip_style(self._indent))
        if not at_start and self._column + space + columns > self._columns:
            self._write("\n" + self._indent)
            self._column = width(_strip_style(self._indent))
        elif space and self._column:
            self._put(" ", 1)
        self._put(shown, columns)

    def _style_word(self, word: str) -> tuple[str, int]:
        """The word with its marks turned into style, and its width."""
        if not self._paint.on:
            return word, width(word)
        out, plain, columns, at = list[str](), "", 0, 0
        while at < len(word):
            if word[at] in (_ITALIC, _TEXT, _TARGET):
                out.append(self._style(plain))
                plain, self._phrase = "", "" if self._phrase else word[at]
                at += 1
                continue
            mark = "**" if word.startswith("**", at) and not self._code else word[at] if word[at] == "`" else ""
            if mark and self._toggles(word, at, mark):
                out.append(self._style(plain))
                plain = ""
                if mark == "`":
                    self._code = not self._code
                else:
                    self._bold = not self._bold
                at += len(mark)
                continue
            step = mark or word[at]
            plain += step
            columns += width(step)
            at += len(step)
        out.append(self._style(plain))
        return "".join(out), columns

    def _toggles(self, word: str, at: int, mark: str) -> bool:
        if mark == "`":
            return word[at : at + 2] != "``"
        before, after = word[at - 1 : at], word[at + 2 : at + 3]
        if self._bold:
            return bool(before)
        return bool(_OPENS.match(after)) and not before.isalnum() and before != "/"

    def _style(self, text: str) -> str:
        if self._code:
            return self._paint.accent(text)
        if self._phrase:
            paint = self._paint
            return {_ITALIC: paint.italic, _TEXT: paint.underlined, _TARGET: paint.dim}[self._phrase](text)
        return self._paint.bold(text) if self._bold or self._heading else text

    def _put(self, text: str, columns: int) -> None:
        if text:
            self._write(text)
            self._column += columns


def _may_be_marker(line: list[str]) -> bool:
    """Whether the kind of the line is not known yet."""
    return len(line) < _LONGEST_MARKER and _MAY_BE_MARKER.fullmatch("".join(line)) is not None


def _strip_style(text: str) -> str:
    return STYLE.sub("", text)
