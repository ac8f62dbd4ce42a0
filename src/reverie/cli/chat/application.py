"""The application of the open prompt: it knows that a terminal wraps lines again when it becomes narrower.

Uses inner parts of prompt_toolkit, because it has no other way to write lines above an application at once.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from prompt_toolkit.application import Application
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.data_structures import Point
from prompt_toolkit.output.vt100 import Vt100_Output

from reverie.cli.screen import HOLD, SHOW


class OneWrite(Vt100_Output):
    """Collects what belongs together and writes it at once, so that nothing half drawn is seen."""

    held = False

    def flush(self) -> None:
        if not self.held:
            super().flush()


class LiveApplication(Application[None]):
    """Draws its lines below the finished text."""

    _kept = ""

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Gives the terminal to another program. What is written meanwhile appears afterwards."""
        try:
            async with in_terminal():
                yield
        finally:
            kept, self._kept = self._kept, ""
            if kept:
                self.print_above(kept)

    def print_above(self, text: str) -> None:
        """Writes finished lines, and draws the application again below them."""
        output = self.output
        assert isinstance(output, OneWrite)
        if self._running_in_terminal:
            self._kept += text
            return
        if not self.is_running:
            output.write_raw(text)
            output.flush()
            return
        self._follow_wrapping()
        output.held = True
        output.write_raw(HOLD)
        self.renderer.erase()
        output.write_raw(text.replace("\n", "\r\n"))
        self._redraw()
        output.write_raw(SHOW)
        output.held = False
        output.flush()

    def _on_resize(self) -> None:
        self._follow_wrapping()
        super()._on_resize()

    def _redraw(self, render_as_done: bool = False) -> None:
        self._follow_wrapping()
        super()._redraw(render_as_done)

    def _follow_wrapping(self) -> None:
        """After a resize, finds the cursor again: each drawn line may take more rows than before."""
        drawer, size = self.renderer, self.output.get_size()
        screen, before = drawer._last_screen, drawer._last_size
        if screen is None or before is None or size.columns >= before.columns:
            return
        at = drawer._cursor_pos
        rows = (screen.data_buffer[y] for y in range(at.y))
        wide = (max((x + 1 for x, char in row.items() if char.char.strip()), default=1) for row in rows)
        wrapped = sum((columns - 1) // size.columns for columns in wide) + at.x // size.columns
        drawer._cursor_pos = Point(at.x % size.columns, at.y + wrapped)
        drawer._last_screen = None
