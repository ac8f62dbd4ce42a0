"""A terminal for tests: a program on a pseudo-terminal, keys to press, and a wait for what it shows."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from pathlib import Path
from types import TracebackType

from tests import warm

_STYLE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[=>]|\][^\x07]*\x07|\([A-Z0-9])")


PROMPT = "⌨"
"""Stands in what is shown where a program begins to read keys."""

_READS_KEYS, _WHERE_AM_I = "\x1b[?2004h", "\x1b[6n"


class Terminal:
    """`reverie` with these arguments on a terminal of 80 columns. Use it in a `with`."""

    def __init__(self, *args: str, cwd: Path, env: dict[str, str], columns: int = 80) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._columns = columns
        self.raw = ""
        self._seen = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

        self.process = warm.Process(
            *args, cwd=cwd, env={**env, "TERM": "xterm-256color"}, streams=[slave] * 3, terminal=True
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    @property
    def shown(self) -> str:
        """All that was written so far, without styles; `PROMPT` where keys are read."""
        return _STYLE.sub("", self.raw.replace(_READS_KEYS, PROMPT)).replace("\r", "")

    @property
    def screen(self) -> list[str]:
        """The lines as a person sees them, from the first that was written: what was drawn again is there once."""
        return draw(self.raw, self._columns)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def say(self, text: str) -> None:
        """Waits for the prompt and types a line."""
        self.until(PROMPT)
        self.press(text)
        self.until(text[-10:])
        self.press("\r")

    def until(self, text: str, seconds: float = 60.0) -> str:
        """Reads until `text` shows up after what was waited for before; what came up to there."""
        ends = time.monotonic() + seconds
        while True:
            found = self.shown.find(text, self._seen)
            if found >= 0:
                before, self._seen = self.shown[self._seen : found], found + len(text)
                return before
            left = ends - time.monotonic()
            assert left > 0, f"no {text!r} within {seconds} s in:\n{self.shown[self._seen :]}"
            self._read(left)

    def until_all(self, *texts: str) -> None:
        """Reads until all of them have shown up, in any order."""
        start = end = self._seen
        for text in texts:
            self._seen = start
            self.until(text)
            end = max(end, self._seen)
        self._seen = end

    def wait_for_prompt(self) -> None:
        """Waits for the prompt, as `say` does before it types; what comes next may wait for it too."""
        seen = self._seen
        self.until(PROMPT)
        self._seen = seen

    def ended(self, seconds: float = 60.0) -> int:
        """Waits for the end; the exit code."""
        ends = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < ends, f"it goes on after {seconds} s:\n{self.shown[self._seen :]}"
            self._read(0.1)
        self._read(0.1)
        return self.process.returncode

    def _read(self, seconds: float) -> None:
        if select.select([self._master], [], [], min(seconds, 0.2))[0]:
            try:
                new = self._decoder.decode(os.read(self._master, 65536))
                self.raw += new
                for _ in range(new.count(_WHERE_AM_I)):
                    self.press("\x1b[1;1R")
            except OSError:  # the other end is closed
                time.sleep(0.05)


_PIECE = re.compile(
    r"\x1b\[([0-9;?]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[=>]|\x1b\([A-Z0-9]|(.)", re.DOTALL
)


def draw(raw: str, columns: int) -> list[str]:
    """What a terminal shows: the moves and erasures that prompt_toolkit writes, and nothing else."""
    rows: list[list[str]] = [[]]
    x = y = 0
    for found in _PIECE.finditer(raw):
        numbers, final, char = found.groups()
        count = int(numbers) if (numbers or "").isdigit() else 0
        match final or (char if char < " " else "text"):
            case "A":
                y = max(0, y - (count or 1))
            case "B":
                y += count or 1
            case "C":
                x += count or 1
            case "D" | "\b":
                x = max(0, x - (count or 1))
            case "J":
                del rows[y + 1 :]
                del rows[y][x:]
            case "K":
                del rows[y][x:]
            case "\r":
                x = 0
            case "\n":
                y += 1
            case "text":
                if x >= columns:
                    x, y = 0, y + 1
                rows += [[] for _ in range(y + 1 - len(rows))]
                rows[y] += " " * (x - len(rows[y]))
                rows[y][x : x + 1] = char
                x += 1
            case _:
                pass
        rows += [[] for _ in range(y + 1 - len(rows))]
    return ["".join(row).rstrip() for row in rows]
