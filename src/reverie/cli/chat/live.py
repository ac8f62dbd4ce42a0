"""The lines below the finished text while the prompt is open: the line that streams, and what runs now.

Finished lines are written once, above the prompt, and never change. Only the lines here are drawn again. Each change
goes to the terminal in one write, so that nothing flickers.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from reverie.cli.screen import guard_streams


class LiveRegion:
    """Takes all output while a prompt is open. `print_above` writes whole lines, `redraw` shows the region again."""

    def __init__(self) -> None:
        self.tail = ""
        """The line that is not complete yet."""
        self.activity = ""
        """What runs now; `since` says since when."""
        self.since = 0.0
        self._lines = list[str]()
        self._print_above: Callable[[str], None] | None = None
        self._redraw: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._flushes = False

    @property
    def is_open(self) -> bool:
        return self._print_above is not None

    def show_activity(self, text: str) -> None:
        if text != self.activity:
            self.activity, self.since = text, time.monotonic()
            self._redraw()

    @contextmanager
    def opened(
        self, print_above: Callable[[str], None], redraw: Callable[[], None], terminal: TextIO
    ) -> Generator[None]:
        """Sends standard output and standard error through this region."""
        self._print_above, self._redraw = print_above, redraw
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = cast(TextIO, _LiveStream(self.write, terminal))
        try:
            with guard_streams():
                yield
        finally:
            if self.tail:
                self.write("\n")
            self.flush()
            sys.stdout, sys.stderr = before
            self._print_above, self._redraw = None, lambda: None

    def write(self, text: str) -> None:
        """Takes clean text. Whole lines go above the prompt, the rest is shown until its line is complete."""
        if threading.get_ident() != self._thread and self._loop is not None:
            self._loop.call_soon_threadsafe(self.write, text)
            return
        whole, newline, rest = text.rpartition("\n")
        if newline:
            self._lines.append(f"{self.tail}{whole}\n")
            self.tail = rest
        else:
            self.tail += rest
        if not self._flushes and self._loop is not None:
            self._flushes = True
            self._loop.call_soon(self.flush)  # what comes at the same moment is written together

    def flush(self) -> None:
        self._flushes = False
        lines, self._lines = "".join(self._lines), []
        if self._print_above is None:
            return
        if lines:
            self._print_above(lines)
        else:
            self._redraw()


class _LiveStream:
    """A text stream into the region."""

    def __init__(self, write: Callable[[str], None], below: TextIO) -> None:
        self._write = write
        self._below = below

    def write(self, text: str) -> int:
        self._write(text)
        return len(text)

    def flush(self) -> None:
        """The region decides when it draws."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)
