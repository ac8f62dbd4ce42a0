"""What the demo looks like: lines of styled pieces, written to the terminal as they come, and as an animated picture.

A piece is a text and the name of a style. The picture is a terminal window in SVG that scrolls by itself, without a
script, a font or the network. Only two things move: the sheet of lines, and a cover below the last line. A viewer who
prefers no motion sees the end. The same lines give the same bytes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Literal, TypeAlias
from xml.sax.saxutils import escape

from reverie.cli.output import Paint
from reverie.quick import dataclass
from reverie.text.columns import cut, width

Style: TypeAlias = Literal["", "bold", "dim", "accent", "good", "bad", "warning"]
Piece: TypeAlias = tuple[str, Style]
Line: TypeAlias = tuple[Piece, ...]

COLUMNS = 88
_BAR = 30
_KEY_S = 0.012


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line and its time in seconds of the story, without the time that work took."""

    line: Line
    at: float
    typed: bool = False


@dataclass(slots=True)
class DemoView:
    """Writes lines. `live`: typing and pauses take time, as on a terminal."""

    paint: Paint
    live: bool
    write: Callable[[str], object] = sys.stdout.write
    shown: list[ShownLine] = field(default_factory=list[ShownLine])
    clock: float = 0.0
    columns: int = COLUMNS

    def line(self, *pieces: Piece, typed: bool = False) -> None:
        """Writes one line, cut to the width."""
        kept = _fit(pieces, self.columns)
        self.shown.append(ShownLine(kept, self.clock, typed))
        if typed and self.live:
            self._type(kept)
        else:
            self.write("".join(self._paint(piece) for piece in kept) + "\n")
            sys.stdout.flush()
        self.clock += 0.05 + (len(kept[-1][0]) * _KEY_S if typed and kept else 0.0)

    def gap(self, seconds: float = 0.0) -> None:
        """Writes an empty line and pauses."""
        self.line()
        self.pause(seconds)

    def pause(self, seconds: float) -> None:
        self.clock += seconds
        if self.live:
            time.sleep(seconds)

    def title(self, day: str, about: str) -> None:
        rule = "─" * max(0, self.columns - width(f"── {day} · {about} "))
        self.line(("── ", "accent"), (day, "bold"), (f" · {about} ", ""), (rule, "accent"))

    def layer(self, number: int | str, name: str, *pieces: Piece) -> None:
        """Shows what a layer did."""
        self.line(("  ▸ ", "accent"), (f"{number} {name:<14}", "accent"), *pieces)

    def entry(self, name: str, text: str, style: Style = "") -> None:
        """Shows a line of the ledger."""
        self.line((f"  {name:<12}", "dim"), (text, style))

    def below(self, text: str, style: Style = "") -> None:
        """Shows more about what a layer did."""
        self.line((" " * 21, ""), (text, style))

    def meter(self, used: int, window: int, threshold: int, cached: float, cost: float) -> None:
        """Shows window, cache and cost on one line; a mark shows where compaction begins."""
        filled, mark = round(_BAR * used / window), round(_BAR * threshold / window)
        style: Style = "bad" if used >= threshold else "warning" if used > 0.8 * threshold else "good"
        bar = "█" * min(filled, _BAR)
        rest = "".join("┊" if at == mark else "·" for at in range(len(bar), _BAR))
        filled_so = f" {used / 1000:4.1f}k of {window / 1000:.0f}k"
        figures: Line = (("   cache ", "dim"), (f"{cached:4.0%}", ""), ("   cost ", "dim"), (f"${cost:.3f}", ""))
        self.line(("  window ", "dim"), (bar, style), (rest, "dim"), (filled_so, ""), *figures)

    def _type(self, pieces: Line) -> None:
        for piece in pieces:
            for char in piece[0]:
                self.write(self._paint((char, piece[1])))
                sys.stdout.flush()
                time.sleep(_KEY_S)
        self.write("\n")

    def _paint(self, piece: Piece) -> str:
        text, style = piece
        return getattr(self.paint, style)(text) if style else text


def _fit(pieces: tuple[Piece, ...], columns: int) -> Line:
    kept, left = list[Piece](), columns
    for text, style in pieces:
        short = cut(text, left) if width(text) > left else text
        if short:
            kept.append((short, style))
        left -= width(short)
        if left <= 0:
            break
    return tuple(kept)


ROWS = 30
_CHAR, _ROW = 8.4, 20
_LEFT, _TOP, _BOTTOM = 22, 54, 18
_TYPED, _LINE, _LOOK, _TITLE = 5, 1, 9, 6  # how long a line stays the last one, relative to each other
_FIRST_S, _END_S, _WHOLE_S = 2.5, 3.5, 28.0
_COLOURS = {
    "": "#c9d1e0",
    "bold": "#ffffff",
    "dim": "#77829a",
    "accent": "#7cc7ff",
    "good": "#8bd49c",
    "bad": "#ff7b8a",
    "warning": "#f2c572",
}
_BACK, _EDGE = "#10151f", "#2a3344"


def draw_animation(shown: Sequence[ShownLine]) -> str:
    """The animated SVG of these lines."""
    wide, high = round(COLUMNS * _CHAR) + 2 * _LEFT, _TOP + ROWS * _ROW + _BOTTOM
    begins = _start_times(shown)
    last = len(shown)
    sheet = _keyframes("sheet", begins, _scroll_offset)
    cover = _keyframes("cover", begins, lambda rows: rows * _ROW)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
        " font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\""
        ' font-size="14" role="img" aria-label="reverie demo: three days with an agent">',
        "<style>",
        *(f".{name or 'plain'}{{fill:{colour}}}" for name, colour in _COLOURS.items()),
        ".bold{font-weight:600}",
        f"#sheet{{transform:translateY(-{_scroll_offset(last)}px)}}#cover{{transform:translateY({last * _ROW}px)}}",
        "@media (prefers-reduced-motion:no-preference){",
        *(f"#{name}{{animation:{name} {_WHOLE_S:.0f}s step-end infinite}}" for name in ("sheet", "cover")),
        "}",
        sheet,
        cover,
        "</style>",
        f'<rect x=".5" y=".5" width="{wide - 1}" height="{high - 1}" rx="10" fill="{_BACK}" stroke="{_EDGE}"/>',
        *(
            f'<circle cx="{24 + 20 * n}" cy="22" r="6" fill="{c}"/>'
            for n, c in enumerate(("#ff6b6b", "#f2c572", "#8bd49c"))
        ),
        f'<text x="{wide / 2:.0f}" y="27" class="dim" text-anchor="middle">reverie demo</text>',
        f'<clipPath id="pane"><rect x="0" y="{_TOP}" width="{wide}" height="{ROWS * _ROW + 2}"/></clipPath>',
        f'<g clip-path="url(#pane)"><g transform="translate({_LEFT} {_TOP})"><g id="sheet">',
        *(_draw_line(one.line, number) for number, one in enumerate(shown) if one.line),
        f'<rect id="cover" x="-4" y="-2" width="{wide}" height="{(ROWS + 2) * _ROW}" fill="{_BACK}"/>',
        "</g></g></g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _start_times(shown: Sequence[ShownLine]) -> list[float]:
    """When each line appears. The first screenful is there from the start; typing and empty lines take longer."""
    weights = list[int]()
    for one in shown[ROWS:]:
        is_title = bool(one.line) and one.line[0][0].startswith("──")
        weights.append(_TYPED if one.typed else _TITLE if is_title else _LINE if one.line else _LOOK)
    each = (_WHOLE_S - _FIRST_S - _END_S) / max(1, sum(weights))
    return [0.0] * min(ROWS, len(shown)) + [_FIRST_S + each * sum(weights[:at]) for at in range(len(weights))]


def _scroll_offset(rows: int) -> int:
    return max(0, rows - ROWS) * _ROW


def _keyframes(name: str, begins: Sequence[float], move: Callable[[int], int]) -> str:
    """The keyframes of the sheet or the cover: it jumps when a new line moves it."""
    sign = "-" if name == "sheet" else ""
    moves = {at: move(rows) for rows, at in enumerate(begins, 1)} | {_WHOLE_S: move(len(begins))}
    frames, before = list[str](), -1
    for at, now in moves.items():
        if now != before or at == _WHOLE_S:
            frames.append(f"{100 * at / _WHOLE_S:.3f}%{{transform:translateY({sign}{now}px)}}")
            before = now
    return f"@keyframes {name}{{{''.join(frames)}}}"


def _draw_line(line: Line, number: int) -> str:
    """One line: every piece at its column and as wide as its columns, in any font; bars are rectangles."""
    y = number * _ROW + 14
    column, out = 0, list[str]()
    for text, style in line:
        if text.strip():
            lead = len(text) - len(text.lstrip(" "))
            at, shown = column + lead, text.strip(" ")
            x, long = at * _CHAR, width(shown) * _CHAR
            if set(shown) == {"█"}:
                out.append(f'<rect x="{x:.1f}" y="{y - 11}" width="{long:.1f}" height="12" rx="2" class="{style}"/>')
            elif set(shown) == {"─"}:
                out.append(f'<rect x="{x:.1f}" y="{y - 5}" width="{long:.1f}" height="1" class="{style}"/>')
            else:
                out.append(
                    f'<text x="{x:.1f}" y="{y}" textLength="{long:.1f}" class="{style or "plain"}"'
                    f' xml:space="preserve">{escape(shown)}</text>'
                )
        column += width(text)
    return "".join(out)
