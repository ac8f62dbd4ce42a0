"""The blocks of the conversation: messages, answers, thinking, tool calls, notices.

A block knows its text and draws itself as lines of one width. It does not know the screen around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from rich.segment import Segment
from rich.style import Style

from reverie.cli.diff_preview import preview
from reverie.cli.full_screen.markdown import GrowingMarkdown, Line, draw_ours, draw_text, trim
from reverie.cli.output import Paint, format_seconds, plural
from reverie.cli.tool_lines import call_text, result_note
from reverie.text.columns import cut, width
from reverie.types import Json

PAGE_LINES = 100
"""How many lines an open block shows at first, and how many more with each Enter."""
_MESSAGE_LINES = 12
_DIM, _BOLD, _PLAIN = Style(dim=True), Style(bold=True), Style()
_GOOD, _BAD, _WARNING, _ACCENT = (Style(color=name) for name in ("green", "red", "yellow", "cyan"))


class Block:
    """A part of the conversation. `text` is what a search looks through and a copy takes."""

    foldable = False
    open = False
    gap = True
    """Whether an empty line is above it."""

    def __init__(self) -> None:
        self._cache: tuple[int, list[Line]] | None = None

    @property
    def text(self) -> str:
        raise NotImplementedError

    def draw(self, columns: int) -> list[Line]:
        raise NotImplementedError

    def lines(self, columns: int) -> list[Line]:
        if self._cache is None or self._cache[0] != columns:
            drawn = self.draw(columns)
            self._cache = columns, [[Segment("")], *drawn] if self.gap and drawn else drawn
        return self._cache[1]

    def changed(self) -> None:
        self._cache = None

    def toggle(self) -> None:
        """Enter: opens the block, shows the next page, or folds it after the last."""
        self.open = not self.open
        self.changed()

    def fold(self) -> None:
        self.open = False
        self.changed()


class Said(Block):
    """Lines of our own: the greeting, the output of a command, a notice. They may have our styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._said = [text]

    @property
    def text(self) -> str:
        return "\n".join("".join(part.text for part in line).rstrip() for line in self.draw(200))

    def add(self, text: str) -> None:
        self._said.append(text)
        self.changed()

    def draw(self, columns: int) -> list[Line]:
        return trim([line for text in self._said for line in draw_ours(text, columns)])


class Message(Block):
    """A message of the user. A long one is folded after a few lines."""

    foldable = True

    def __init__(self, text: str, *, waits: bool = False) -> None:
        super().__init__()
        self._given = text
        self.waits = waits

    @property
    def text(self) -> str:
        return self._given

    def draw(self, columns: int) -> list[Line]:
        lines = draw_text(self._given, columns - 2, "bold")
        left = 0 if self.open else max(0, len(lines) - _MESSAGE_LINES)
        shown = lines[: len(lines) - left]
        out = [[Segment("› " if not at else "  ", _ACCENT), *line] for at, line in enumerate(shown)]
        return [*out, *(_more(left) if left else [])]


class Answer(Block):
    """An answer of the model: Markdown that grows."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._markdown = GrowingMarkdown()
        self._markdown.feed(text)

    @property
    def text(self) -> str:
        return self._markdown.text

    def feed(self, text: str) -> None:
        self._markdown.feed(text)
        self.changed()

    def draw(self, columns: int) -> list[Line]:
        return self._markdown.lines(columns)


class Thinking(Block):
    """What the model thought, folded to one line."""

    foldable = True

    def __init__(self, text: str = "", *, over: bool = True) -> None:
        super().__init__()
        self._parts = [text]
        self.over = over

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def feed(self, text: str) -> None:
        self._parts.append(text)
        self.changed()

    def draw(self, columns: int) -> list[Line]:
        text = self.text.strip()
        mark, verb = _mark(self.open), "Thought" if self.over else "Thinking"
        size = plural(len(text.split()), "word") if text else ""
        head = [Segment(cut(f"{mark} {verb}{f', {size}' if size else ''}", columns), _DIM)]
        if not self.open:
            return [head]
        return [head, *([Segment("  "), *line] for line in draw_text(text, columns - 2, "dim italic"))]


class Call(Block):
    """A tool call on one line. Open, it shows the whole input or change, and the output page by page."""

    foldable = True
    gap = False

    def __init__(self, name: str, given: Json, cwd: Path, paint: Paint) -> None:
        super().__init__()
        self.name, self._given, self._cwd, self._paint = name, given, cwd, paint
        self.output: str | None = None
        self.is_error = False
        self.seconds: float | None = None
        self.waited = 0.0  # how long it waited for the user
        self._pages = 1
        self._before: list[str] | None = None  # the preview from before the call ran: a change of a file is a diff

    @property
    def text(self) -> str:
        return f"{call_text(self.name, self._given, self._cwd)}\n{self.output or ''}"

    def remember_preview(self) -> None:
        """Keeps the change as it is before the call: after it, the file has it already."""
        if self.name in ("Write", "Edit"):
            self._before = preview(self.name, self._given, self._cwd, self._paint, 10_000)

    def finish(self, text: str, is_error: bool, seconds: float | None = None) -> None:
        self.output, self.is_error, self.seconds = text, is_error, seconds
        self.changed()

    def toggle(self) -> None:
        if self.open and self._left():
            self._pages += 1
            self.changed()
            return
        self._pages = 1
        super().toggle()

    def _left(self) -> int:
        return max(0, (self.output or "").rstrip("\n").count("\n") + 1 - self._pages * PAGE_LINES)

    def draw(self, columns: int) -> list[Line]:
        return [self._head(columns), *(self._body(columns) if self.open else [])]

    def _head(self, columns: int) -> Line:
        if self.output is None:
            mark, style, note = "⋯", _WARNING, ""
        else:
            mark, style = ("✗", _BAD) if self.is_error else ("✓", _GOOD)
            note = result_note(self.output, self.is_error)
        took = "" if self.seconds is None or self.seconds < 0.05 else format_seconds(self.seconds)
        room = columns - 6
        call = cut(
            call_text(self.name, self._given, self._cwd), max(10, room - min(width(note), room // 2) - len(took))
        )
        tail = cut(" · ".join(part for part in (note, took) if part), max(0, room - width(call)))
        name, space, rest = call.partition(" ")
        return [
            Segment(f"{_mark(self.open)} ", _DIM),
            Segment(f"{mark} ", style),
            Segment(name, _BOLD),
            Segment(space + rest),
            Segment(f"  {tail}" if tail else "", _BAD if self.is_error else _DIM),
        ]

    def _body(self, columns: int) -> Iterable[Line]:
        room = columns - 4
        given = self._before or preview(self.name, self._given, self._cwd, self._paint, room)
        for text in given:
            yield from ([Segment("  │ ", _DIM), *line] for line in draw_ours(text, room))
        if not (self.output or "").strip():
            return
        yield [Segment("  ├─", _DIM)]
        shown = islice((self.output or "").rstrip("\n").split("\n"), self._pages * PAGE_LINES)
        style = "red" if self.is_error else "dim"
        for line in draw_text("\n".join(shown), room, style):
            yield [Segment("  │ ", _DIM), *line]
        if left := self._left():
            yield [
                Segment(cut(f"  … {plural(left, 'more line')}: Enter shows the next {PAGE_LINES}", columns), _WARNING)
            ]


def sentence(text: str, level: str, paint: Paint) -> Said:
    """A sentence with a mark before it."""
    painted: dict[str, tuple[str, Callable[[str], str]]] = {
        "info": ("·", paint.dim),
        "warning": ("!", paint.warning),
        "error": ("✗", paint.bad),
    }
    mark, paint_mark = painted.get(level, painted["info"])
    return Said(f"{paint_mark(mark)} {text}")


def _mark(is_open: bool) -> str:
    return "▾" if is_open else "▸"


def _more(count: int) -> list[Line]:
    return [[Segment(f"  … {plural(count, 'more line')}: Enter shows them", _DIM)]]
