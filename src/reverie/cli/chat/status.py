"""The one line that moves: what is going on and for how long, below everything that stays. Gone before anything else
is written. Shows nothing where there is no terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from reverie.cli.output import Paint, cut
from reverie.cli.screen import CLEAR_LINE

_PATIENCE_S = 0.8


class StatusLine:
    """`show` what is going on; `clear` before writing anything else. Times are counted once a second."""

    def __init__(self, write: Callable[[str], object], paint: Paint, columns: Callable[[], int]) -> None:
        self._write = write
        self._paint = paint
        self._columns = columns
        self._text = ""
        self._since = 0.0
        self._shown = False
        self._ticker: asyncio.Task[None] | None = None

    def show(self, text: str) -> None:
        """From now on this is going on. Things that are over in a blink are never shown."""
        if not sys.stdout.isatty():
            return
        if text != self._text:
            self._text, self._since = text, time.monotonic()
        if self._ticker is None:
            self._ticker = asyncio.ensure_future(self._tick())

    def clear(self) -> None:
        """Takes the line away; what is going on is shown again when it goes on."""
        if self._shown:
            self._write(CLEAR_LINE)
            self._shown = False

    def stop(self) -> None:
        self.clear()
        self._text = ""
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None

    async def _tick(self) -> None:
        while True:
            passed = time.monotonic() - self._since
            if self._text and passed >= _PATIENCE_S:
                line = cut(f"  ⋯ {self._text} {passed:.0f} s", self._columns() - 1)
                self._write(CLEAR_LINE + self._paint.dim(line))
                self._shown = True
            await asyncio.sleep(0.5)
