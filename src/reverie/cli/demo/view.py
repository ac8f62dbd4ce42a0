"""What the demo looks like: styled lines that are written as they come. On a terminal, typing and pauses take time."""

from __future__ import annotations

import sys
import textwrap
import time

from reverie.cli.output import Paint, visible_width
from reverie.cli.screen import STYLE
from reverie.quick import dataclass
from reverie.text.columns import cut

COLUMNS = 88
_BAR = 30
_KEY_S = 0.012


@dataclass(frozen=True, slots=True)
class DemoView:
    """Writes lines. `live`: typing and pauses take time."""

    paint: Paint
    live: bool
    columns: int = COLUMNS

    def line(self, text: str = "") -> None:
        """Writes one line, cut to the width."""
        self._write((text if visible_width(text) <= self.columns else cut(STYLE.sub("", text), self.columns)) + "\n")

    def typed(self, mark: str, text: str) -> None:
        """Writes what the user types."""
        for number, line in enumerate(textwrap.wrap(text, self.columns - 2)):
            self._write(self.paint.accent(f"{' ' if number else mark} "))
            for part in line if self.live else (line,):
                self._write(self.paint.bold(part))
                self.pause(_KEY_S)
            self._write("\n")
        self.pause(0.3)

    def gap(self, seconds: float = 0.0) -> None:
        """Writes an empty line and pauses."""
        self.line()
        self.pause(seconds)

    def pause(self, seconds: float) -> None:
        if self.live:
            time.sleep(seconds)

    def title(self, day: str, about: str) -> None:
        rule = "─" * max(0, self.columns - len(f"── {day} · {about} "))
        self.line(f"{self.paint.accent('──')} {self.paint.bold(day)} · {about} {self.paint.accent(rule)}")
        self.gap(0.4)

    def layer(self, number: int | str, name: str, what: str, more: str = "") -> None:
        """Shows what a layer did."""
        self.line(f"{self.paint.accent(f'  ▸ {number} {name:<14}')}{self.paint.bold(what)}{more}")

    def below(self, text: str) -> None:
        """Shows more about what a layer did."""
        self.line(" " * 21 + self.paint.dim(text))

    def meter(self, used: int, window: int, threshold: int, cached: float, cost: float) -> None:
        """Shows window, cache and cost on one line; a mark shows where compaction begins."""
        paint, mark = self.paint, round(_BAR * threshold / window)
        bar = "█" * min(_BAR, round(_BAR * used / window))
        colour = paint.bad if used >= threshold else paint.warning if used > 0.8 * threshold else paint.good
        rest = "".join("┊" if at == mark else "·" for at in range(len(bar), _BAR))
        filled = f" {used / 1000:4.1f}k of {window / 1000:.0f}k"
        self.line(
            f"{paint.dim('  window ')}{colour(bar)}{paint.dim(rest)}{filled}"
            f"{paint.dim('   cache ')}{cached:4.0%}{paint.dim('   cost ')}${cost:.3f}"
        )

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
