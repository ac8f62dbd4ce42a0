"""What the demo looks like: lines of styled pieces, written to the terminal as they come and kept for a picture.

A piece is a text and a style by name; the terminal and the picture each have their own way to paint it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reverie.cli.output import Paint, cut, width

Style: TypeAlias = Literal["", "bold", "dim", "accent", "good", "bad", "warning"]
Piece: TypeAlias = tuple[str, Style]
Line: TypeAlias = tuple[Piece, ...]

COLUMNS = 88
_BAR = 30
_KEY_S = 0.012


@dataclass(frozen=True, slots=True)
class Shown:
    """A line and when it came, in seconds of the story (typing and pauses counted, waiting for work not)."""

    line: Line
    at: float
    typed: bool = False


@dataclass(slots=True)
class DemoView:
    """Writes lines. `live`: on a terminal typing and pauses take their time; elsewhere everything comes at once."""

    paint: Paint
    live: bool
    write: Callable[[str], object] = sys.stdout.write
    shown: list[Shown] = field(default_factory=list[Shown])
    clock: float = 0.0
    columns: int = COLUMNS

    def line(self, *pieces: Piece, typed: bool = False) -> None:
        """One line, cut to the width."""
        kept = _within(pieces, self.columns)
        self.shown.append(Shown(kept, self.clock, typed))
        if typed and self.live:
            self._type(kept)
        else:
            self.write("".join(self._painted(piece) for piece in kept) + "\n")
            sys.stdout.flush()
        self.clock += 0.05 + (len(kept[-1][0]) * _KEY_S if typed and kept else 0.0)

    def gap(self, seconds: float = 0.0) -> None:
        """An empty line, and a moment to look."""
        self.line()
        self.pause(seconds)

    def pause(self, seconds: float) -> None:
        self.clock += seconds
        if self.live:
            time.sleep(seconds)

    def title(self, day: str, about: str) -> None:
        rule = "─" * max(0, self.columns - width(f"── {day} · {about} "))
        self.line(("── ", "accent"), (day, "bold"), (f" · {about} ", ""), (rule, "accent"))

    def layer(self, number: int | str, name: str, *told: Piece) -> None:
        """What a layer did."""
        self.line(("  ▸ ", "accent"), (f"{number} {name:<14}", "accent"), *told)

    def entry(self, name: str, text: str, style: Style = "") -> None:
        """A line of the ledger."""
        self.line((f"  {name:<12}", "dim"), (text, style))

    def below(self, text: str, style: Style = "") -> None:
        """More about what a layer did."""
        self.line((" " * 21, ""), (text, style))

    def meter(self, used: int, window: int, threshold: int, cached: float, cost: float) -> None:
        """The window, the cache and the cost on one line; the mark is where compaction begins."""
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
                self.write(self._painted((char, piece[1])))
                sys.stdout.flush()
                time.sleep(_KEY_S)
        self.write("\n")

    def _painted(self, piece: Piece) -> str:
        text, style = piece
        return getattr(self.paint, style)(text) if style else text


def _within(pieces: tuple[Piece, ...], columns: int) -> Line:
    kept, left = list[Piece](), columns
    for text, style in pieces:
        short = cut(text, left) if width(text) > left else text
        if short:
            kept.append((short, style))
        left -= width(short)
        if left <= 0:
            break
    return tuple(kept)
