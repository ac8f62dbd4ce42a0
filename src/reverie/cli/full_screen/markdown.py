"""Markdown as styled lines, built while the text grows: finished parts are drawn once, only the last part again.

Text of a model cannot steer the terminal: control characters are shown, links are text with their address, HTML is text
and no picture is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cache
from io import StringIO
from typing import ClassVar, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.token import Comment, Keyword, Name, Number, Operator, String
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme
from textual.filter import LineFilter

from reverie.cli.screen import clean, printable
from reverie.quick import dataclass

Line: TypeAlias = list[Segment]

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
_LONG_PART = 2_000  # characters; a longer list or code block is drawn in pieces
# The terminal's own colours, which suit its background. No bright ones: they are unreadable on white.
_CODE = ANSISyntaxTheme(
    {
        Comment: Style(dim=True, italic=True),
        Keyword: Style(color="blue"),
        Operator.Word: Style(color="blue"),
        String: Style(color="green"),
        Number: Style(color="cyan"),
        Name.Function: Style(bold=True),
        Name.Class: Style(bold=True),
        Name.Decorator: Style(color="magenta"),
    }
)
_STYLES = {
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold dim",
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.block_quote": "italic",
    "markdown.item.bullet": "cyan",
    "markdown.item.number": "cyan",
    "markdown.link": "underline",
    "markdown.link_url": "dim",
    "markdown.hr": "dim",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}
_CONSOLE = Console(file=StringIO(), force_terminal=True, color_system="standard", theme=Theme(_STYLES), markup=False)


class OnWhite(LineFilter):
    """Blue and magenta instead of cyan and yellow, for a light background."""

    def apply(self, segments: list[Segment], background: object) -> list[Segment]:
        del background
        return [Segment(text, style and _on_white(style), control) for text, style, control in segments]


@cache
def _on_white(style: Style) -> Style:
    instead = {6: "blue", 3: "magenta"}.get(style.color.number or 0) if style.color is not None else None
    return style + Style(color=instead) if instead else style


class _Code(CodeBlock):
    """Code in the terminal's own colours, without a frame, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        shown = Syntax(code, self.lexer_name, theme=_CODE, background_color="default").highlight(code)
        shown.rstrip()
        shown.overflow, shown.no_wrap = "fold", False
        yield Padding(shown, (0, 0, 0, 2))


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = {}


class _Parsed(Markdown):
    elements: ClassVar = {**Markdown.elements, "fence": _Code, "code_block": _Code, "heading_open": _Heading}

    def __init__(self, tokens: list[Token]) -> None:  # not that of Rich: it parses, with HTML and pictures
        self.parsed, self.hyperlinks = tokens, False
        self.markup, self.code_theme, self.justify, self.style = "", "", None, "none"
        self.inline_code_lexer, self.inline_code_theme = None, ""


def draw(shown: RenderableType, columns: int) -> list[Line]:
    """The lines of anything that Rich can draw."""
    options = _CONSOLE.options.update(width=max(8, columns), height=None)
    return _CONSOLE.render_lines(shown, options, pad=False)


def draw_text(text: str, columns: int, style: str = "") -> list[Line]:
    """The lines of a text that means only itself."""
    return draw(Text(printable(text).expandtabs(4), style=style, overflow="fold"), columns)


def draw_ours(text: str, columns: int) -> list[Line]:
    """The lines of a text with our own styles (see `screen.style`); other sequences are shown as characters."""
    shown = Text.from_ansi(clean(text).expandtabs(4))
    shown.overflow = "fold"
    return draw(shown, columns)


def trim(lines: list[Line]) -> list[Line]:
    """Removes empty lines at the beginning and at the end."""
    for end in (-1, 0):
        while lines and not any(segment.text.strip() for segment in lines[end]):
            lines.pop(end)
    return lines


@dataclass(slots=True)
class GrowingMarkdown:
    """A Markdown text that grows at its end, as lines of one width."""

    text: str = ""
    """All text so far, as it may be shown."""
    _held: str = ""  # a carriage return that may belong to a line break
    _rest: str = ""  # the last part, which can still change
    _columns: int = 0
    _done: list[Line] = field(default_factory=list[Line])
    _joins: bool = False  # the rest continues the part before it, without a blank line
    _lines: list[Line] | None = None

    def feed(self, text: str) -> None:
        text, self._held = self._held + text, ""
        if text.endswith("\r"):
            text, self._held = text[:-1], "\r"
        shown = printable(text).replace("\t", "    ")
        self.text += shown
        self._rest += shown
        self._lines = None

    def lines(self, columns: int) -> list[Line]:
        if columns != self._columns:
            self._columns, self._done, self._rest = columns, [], self.text
            self._joins, self._lines = False, None
        if self._lines is None:
            rest = self._draw_rest()
            self._lines = [*self._done, *rest]
        return self._lines

    def _draw_rest(self) -> list[Line]:
        """Draws the part that can still change. Parts before it become final."""
        *finished, last = list(_top_level(_PARSER.parse(self._rest))) or [[]]
        source = self._rest.split("\n")
        for part in finished:
            self._done += self._draw_part(part)
            self._joins = False
        if not last:
            return []
        begins, ends = last[0].map or (0, len(source))
        source = source[begins:]
        self._rest = "\n".join(source)
        if len(self._rest) > _LONG_PART and (cut := _cut_at(last, begins, ends)):
            opening = source[:1] if last[0].type == "fence" else []
            self._done += self._draw_part(next(_top_level(_PARSER.parse("\n".join(source[:cut])))))
            self._joins, self._rest = True, "\n".join([*opening, *source[cut:]])
            return self._draw_rest()
        return self._draw_part(last)

    def _draw_part(self, part: list[Token]) -> list[Line]:
        drawn = trim(draw(_Parsed(part), self._columns))
        blank = [[Segment("")]] if self._done and not self._joins else list[Line]()
        return [*blank, *drawn]


def _top_level(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each part of a document: a paragraph, a list, a table, a code block."""
    part = list[Token]()
    for token in tokens:
        part.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield part
            part = []


def _cut_at(part: list[Token], begins: int, ends: int) -> int:
    """Where a long part can be cut: the line after which the rest looks the same if it is alone. 0: nowhere."""
    match part[0].type:
        case "fence":
            return max(0, ends - begins - 10) if ends - begins > 40 else 0
        case "bullet_list_open" | "ordered_list_open":
            items = [
                token.map[0] for token in part if token.type == "list_item_open" and token.level == 1 and token.map
            ]
            return items[-1] - begins if len(items) > 1 else 0
        case _:
            return 0
