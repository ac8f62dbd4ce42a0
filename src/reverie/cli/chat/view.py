"""A turn as the chat shows it: the answer as it streams, tool calls on one line each, nothing redrawn.

Knows events and the terminal; never the session. What needs an answer (permission questions) is the chat's business.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from reverie.cli.chat.markdown_stream import MarkdownStream
from reverie.cli.output import Paint, columns, cut, hanging, plural
from reverie.cli.run_view import again_line, why_it_ended
from reverie.cli.screen import CLEAR_LINE
from reverie.cli.tool_lines import call_text, finished_line
from reverie.events import (
    AnswerRestarted,
    Event,
    Notice,
    PermissionAsked,
    Retrying,
    RoundFinished,
    SessionOpened,
    TaskChanged,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)

_MARKS = {"info": "·", "warning": "!", "error": "✗"}
_PATIENCE_S = 0.8


class ChatView:
    """Everything the chat writes goes through here, so that lines never run into each other."""

    def __init__(self, cwd: Path, paint: Paint) -> None:
        self.paint = paint
        self._cwd = cwd
        self._status = StatusLine(self._write, paint)
        self._stream = MarkdownStream(self._write, paint, columns())
        self._calls = dict[str, str]()
        self._waited = dict[str, float]()  # how long a call has waited for a person
        self._last = ""  # what was written last: text, line, or nothing yet

    def _write(self, text: str) -> None:
        sys.stdout.write(text)  # looked up each time: while a prompt is open, standard output is another
        sys.stdout.flush()

    # -- between turns --------------------------------------------------------------------------------------------

    def say(self, text: str = "") -> None:
        """Writes lines as they are."""
        self._settle()
        self._write(text + "\n")
        self._last = "line"

    def say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def tell(self, text: str, level: str = "info") -> None:
        """One sentence with a mark before it, wrapped."""
        painted = {"info": self.paint.dim, "warning": self.paint.warning, "error": self.paint.bad}[level]
        self.say(hanging(text, f"{painted(_MARKS[level])} ", 2))

    def going_on(self, text: str) -> None:
        """Shows on the moving line what takes a while."""
        self._status.show(text)

    def pause(self) -> None:
        """Nothing moves until the next event: somebody is about to be asked."""
        self._settle()
        self._status.stop()

    def waited(self, duration: float) -> None:
        """The person has answered after so many seconds, which are not the tools' own."""
        for call in self._calls:
            self._waited[call] = self._waited.get(call, 0.0) + duration
        self._status.show(self._running())

    def _settle(self) -> None:
        self._status.clear()
        self._stream.finish()

    # -- a turn ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._stream = MarkdownStream(self._write, self.paint, columns())
        self._last = ""
        self._status.show("working")

    def show(self, event: Event) -> None:
        match event:
            case TextStreamed():
                self._text(event.text)
            case ThinkingStreamed():
                self._settle()
                self._status.show("thinking")
            case ToolStarted():
                self._settle()
                self._calls[event.id] = call_text(event.name, event.input, self._cwd)
                self._status.show(self._running())
            case ToolFinished():
                self._finished(event)
            case AnswerRestarted():
                self.say(again_line(event, self.paint))
            case Retrying():
                self.say(again_line(event, self.paint))
                self._status.show("waiting")
            case Notice():
                self.tell(event.text, event.level if event.level in _MARKS else "info")
            case TaskChanged():
                if event.state == "failed":
                    self.tell(f"In the background, {event.title or event.purpose} failed; `reverie log` says more.")
            case RoundFinished():
                if not event.cut_off:  # else the next round goes on in the middle of this one's sentence
                    self._settle()
                    self._status.show("working")
            case TurnEnded():
                self._ended(event)
            case SessionOpened() | TurnStarted() | PermissionAsked():
                pass

    def _text(self, text: str) -> None:
        self._status.stop()
        if self._last != "text":
            self._write("\n")
        self._last = "text"
        self._stream.feed(text)

    def _running(self) -> str:
        names = list(self._calls.values()) or ["working"]
        return names[0] if len(names) == 1 else plural(len(names), "call") + f": {', '.join(names)}"

    def _finished(self, event: ToolFinished) -> None:
        call = self._calls.pop(event.id, event.name)
        took = max(0.0, event.seconds - self._waited.pop(event.id, 0.0))
        line = finished_line(call, event.text, event.is_error, took, self.paint, columns() - 2)
        if not self._last:
            self._write("\n")
        self.say(f"  {line}")
        self._status.show(self._running())

    def _ended(self, event: TurnEnded) -> None:
        self._settle()
        self._status.stop()
        self._calls.clear()
        self._waited.clear()
        if event.reason == "cancelled":
            self.say(self.paint.warning("■ ") + self.paint.dim("Stopped. What was said so far is kept."))
        elif event.reason != "answered":
            self.tell(why_it_ended(event), "error")
        self._write("\n")


@dataclass(slots=True)
class StatusLine:
    """The one line that moves, below everything that stays: what is going on and for how long.

    `show` what is going on; `clear` before writing anything else. Shows nothing where there is no terminal.
    """

    _write: Callable[[str], object]
    _paint: Paint
    _text: str = ""
    _since: float = 0.0
    _shown: bool = False
    _ticker: asyncio.Task[None] | None = None

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
                line = cut(f"  ⋯ {self._text} {passed:.0f} s", columns() - 1)
                self._write(CLEAR_LINE + self._paint.dim(line))
                self._shown = True
            await asyncio.sleep(0.5)
