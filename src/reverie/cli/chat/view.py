"""Shows a turn in the chat: the answer while it streams, one line per tool call, nothing redrawn.

Knows events and the terminal, not the session. The chat asks permission questions itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from reverie import events
from reverie.cli.chat.folding import THINKING, KeptOutputs, change_lines, fold_lines, fold_words
from reverie.cli.chat.live import LiveRegion
from reverie.cli.chat.markdown_stream import MarkdownStream
from reverie.cli.output import Paint, columns, format_seconds, plural, wrap_hanging
from reverie.cli.run_view import end_reason, retry_line
from reverie.cli.screen import printable
from reverie.cli.tool_lines import call_text, result_line
from reverie.types import Json

_MARKS = {"info": "·", "warning": "!", "error": "✗"}


def message_lines(text: str, paint: Paint, columns: int) -> list[str]:
    """A message of the user, in lines that fit."""
    first, *rest = [part for line in printable(text).split("\n") for part in fold_words(f"  {line}", columns)]
    return [f"{paint.bold(paint.accent('›'))} {first[2:]}", *rest]


class ChatView:
    """Writes all output of the chat, so that lines do not mix."""

    def __init__(self, cwd: Path, paint: Paint, live: LiveRegion, outputs: KeptOutputs) -> None:
        self._outputs = outputs
        self.paint = paint
        self._cwd = cwd
        self._live = live
        self._stream = MarkdownStream(self._write, paint, self.columns)
        self._calls = dict[str, str]()
        self._changes = dict[str, list[str]]()  # of files, by call
        self._inputs = dict[str, tuple[str, Json]]()
        self._thinks_since = 0.0
        self._waited = dict[str, float]()  # how long a call has waited for the user
        self._last = ""  # the last output: text, line, or nothing yet

    @property
    def columns(self) -> int:
        return columns()

    def user_message(self, text: str) -> None:
        self.say_all(message_lines(text, self.paint, self.columns - 1))

    def _write(self, text: str) -> None:
        sys.stdout.write(text)  # not stored: an open prompt replaces standard output
        sys.stdout.flush()

    # -- between turns --------------------------------------------------------------------------------------------

    def say(self, text: str = "") -> None:
        self._settle()
        for line in text.split("\n"):
            self._write("\n".join(fold_words(line, self.columns)) + "\n")
        self._last = "line"

    def say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def tell(self, text: str, level: str = "info") -> None:
        """Writes one wrapped sentence with a mark before it."""
        painted = {"info": self.paint.dim, "warning": self.paint.warning, "error": self.paint.bad}[level]
        self.say(wrap_hanging(text, f"{painted(_MARKS[level])} ", 2))

    def show_status(self, text: str) -> None:
        """Shows on the status line what is running."""
        self._live.show_activity(text)

    def pause(self) -> None:
        """Removes the status line until the next event, for example before a question."""
        self._settle()
        self._live.show_activity("")

    def add_wait(self, duration: float) -> None:
        """Records how long the user took to answer; the tools did not need this time."""
        for call in self._calls:
            self._waited[call] = self._waited.get(call, 0.0) + duration
        self.go_on()

    def go_on(self) -> None:
        """Shows again what the turn does."""
        self._live.show_activity(self._running_text())

    def _settle(self) -> None:
        self._stream.finish()

    # -- a turn ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._stream = MarkdownStream(self._write, self.paint, self.columns)
        self._last = ""
        self._live.show_activity("working")

    def show(self, event: events.Event) -> None:
        if self._thinks_since and not isinstance(event, events.ThinkingStreamed):
            self._end_thinking()
        match event:
            case events.TextStreamed():
                self._text(event.text)
            case events.ThinkingStreamed():
                self._settle()
                self._thinks_since = self._thinks_since or time.monotonic()
                self._live.show_activity("thinking")
            case events.ToolStarted():
                self._settle()
                self._calls[event.id] = call_text(event.name, event.input, self._cwd)
                self._inputs[event.id] = (event.name, event.input)
                wide = columns() - 5
                self._changes[event.id] = change_lines(event.name, event.input, self._cwd, self.paint, wide)
                self._live.show_activity(self._running_text())
            case events.ToolFinished():
                self._show_result(event)
            case events.AnswerRestarted() | events.Retrying():
                self.say(retry_line(event, self.paint))
                if isinstance(event, events.Retrying):
                    self._live.show_activity("waiting")
            case events.Notice():
                self.tell(event.text, event.level if event.level in _MARKS else "info")
            case events.TaskChanged():
                if event.state == "failed":
                    self.tell(f"Background task failed: {event.title or event.purpose}; `reverie log` says more.")
            case events.RoundFinished():
                if not event.cut_off:  # else the next round continues in the middle of a sentence
                    self._settle()
                    self._live.show_activity("working")
            case events.TurnEnded():
                self._end_turn(event)
            case events.PermissionAsked():  # the question shows the change
                for id, asked in self._inputs.items():
                    if asked == (event.tool, event.input):
                        self._changes.pop(id, None)
            case events.SessionOpened() | events.TurnStarted():
                pass

    def _text(self, text: str) -> None:
        self._live.show_activity("")
        if self._last != "text":
            self._write("\n")
        self._last = "text"
        self._stream.feed(text)

    def _running_text(self) -> str:
        names = list(self._calls.values()) or ["working"]
        return names[0] if len(names) == 1 else plural(len(names), "call") + f": {', '.join(names)}"

    def _show_result(self, event: events.ToolFinished) -> None:
        call = self._calls.pop(event.id, event.name)
        took = max(0.0, event.seconds - self._waited.pop(event.id, 0.0))
        line = result_line(call, event.text, event.is_error, took, self.paint, columns() - 2, event.how)
        if not self._last:
            self._write("\n")
        self.say(f"  {line}")
        name, _ = self._inputs.pop(event.id, (event.name, None))
        changed = self._changes.pop(event.id, [])
        if changed and not event.is_error:
            self.say_all(f"    {one}" for one in changed)
        elif name == "Bash" and "\n" in (text := event.text.strip()):
            if event.is_error and text.startswith("Exit code "):
                text = text.partition("\n")[2]  # the line above says it
            self.say_all(f"    {one}" for one in fold_lines(text, self._outputs.last, self.paint, columns() - 5))
        self._live.show_activity(self._running_text())

    def _end_thinking(self) -> None:
        took = self._stop_thinking()
        if not self._last:
            self._write("\n")
        number = self._outputs.last_of(THINKING)
        more = f" · /show {number}" if number else ""
        self.say(self.paint.dim(f"  ✻ thought for {format_seconds(took)}{more}"))

    def _stop_thinking(self) -> float:
        took, self._thinks_since = time.monotonic() - self._thinks_since, 0.0
        return took

    def _end_turn(self, event: events.TurnEnded) -> None:
        self._settle()
        self._live.show_activity("")
        self._calls.clear()
        self._waited.clear()
        self._inputs.clear()
        self._changes.clear()
        if event.reason == "cancelled":
            self.say(self.paint.warning("■ ") + self.paint.dim("Stopped. The conversation so far is saved."))
        elif event.reason != "answered":
            self.tell(end_reason(event), "error")
        self._write("\n")
