"""What `reverie run` prints: the answer on standard output, everything else on standard error, or events as JSON.

On a terminal, text appears while it streams. Elsewhere standard output gets only the answer: text is held back until
the turn ends, and text before a tool call goes to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

from reverie import events
from reverie.cli.chat.markdown_stream import MarkdownStream
from reverie.cli.output import Paint, columns, format_seconds, one_line, paint_for
from reverie.cli.screen import json_text, printable
from reverie.cli.tool_lines import call_text, result_line


class RunView(Protocol):
    def show(self, event: events.Event) -> None:
        """Shows one event."""
        ...


class JsonView:
    """Every event as one JSON object per line, at once."""

    def show(self, event: events.Event) -> None:
        sys.stdout.write(json_text(events.to_json(event)) + "\n")
        sys.stdout.flush()


class TextView:
    """The answer as text."""

    def __init__(self, cwd: Path, *, quiet: bool) -> None:
        self._cwd = cwd
        self._quiet = quiet
        self._live = sys.stdout.isatty()
        self._paint = paint_for(sys.stderr)
        self._calls = dict[str, str]()
        self._round = list[str]()  # text of the current round; dropped if the round restarts
        self._complete = list[str]()  # text of finished rounds; the answer, unless a tool call follows
        self._cut_off = False  # the next round continues the last text
        self._stream = MarkdownStream(sys.stdout.write, paint_for(sys.stdout), columns())

    def show(self, event: events.Event) -> None:
        match event:
            case events.TextStreamed():
                self._stream_text(event.text)
            case events.RoundFinished():
                said = "".join(self._round)
                self._complete += [self._complete.pop() + said] if self._cut_off else [said]
                self._cut_off = event.cut_off
                self._round.clear()
            case events.AnswerRestarted() | events.Retrying():
                if isinstance(event, events.AnswerRestarted):
                    self._round.clear()
                self._write_aside(retry_line(event, self._paint))
            case events.ToolStarted():
                self._show_remarks()
                self._calls[event.id] = call_text(event.name, event.input, self._cwd)
            case events.ToolFinished():
                call = self._calls.pop(event.id, event.name)
                wide = columns() if sys.stderr.isatty() else 200
                line = result_line(call, event.text, event.is_error, event.seconds, self._paint, wide - 2, event.how)
                self._write_aside(f"  {line}")
            case events.Notice():
                mark = "✗" if event.level == "error" else "!" if event.level == "warning" else "·"
                if event.level != "info" or not self._quiet:
                    self._write_aside(f"{self._paint.warning(mark)} {one_line(event.text)}", even_if_quiet=True)
            case events.TurnEnded():
                self._end_turn(event)
            case _:
                pass

    def _stream_text(self, text: str) -> None:
        self._round.append(text)
        if self._live:
            self._stream.feed(text)
            sys.stdout.flush()

    def _show_remarks(self) -> None:
        """Shows text before a tool call on standard error: it is not the answer."""
        said, self._complete = "\n".join(part for part in self._complete if part.strip()), []
        if self._live:
            self._stream.finish()
            sys.stdout.flush()
        elif said:
            self._write_aside(self._paint.dim(printable(said.strip())))

    def _write_aside(self, line: str, *, even_if_quiet: bool = False) -> None:
        if self._quiet and not even_if_quiet:
            return
        if self._live:
            self._stream.finish()
            sys.stdout.flush()
        print(line, file=sys.stderr, flush=True)

    def _end_turn(self, event: events.TurnEnded) -> None:
        if self._live:
            self._stream.finish()
        elif event.reason in ("answered", "cut_off", "max_rounds", "refused") and self._complete:
            answer = "\n".join(part for part in self._complete if part.strip())
            sys.stdout.write(answer + "\n" * bool(answer and not answer.endswith("\n")))
        else:
            self._show_remarks()
        sys.stdout.flush()
        if event.reason != "answered":
            print(f"reverie: {end_reason(event)}", file=sys.stderr, flush=True)


def retry_line(event: events.AnswerRestarted | events.Retrying, paint: Paint) -> str:
    """A line about a request that is sent again, and why."""
    if isinstance(event, events.Retrying):
        text = f"{event.reason} Trying again in {format_seconds(event.seconds)} (attempt {event.attempt})."
    else:
        text = f"starting the answer again: {event.reason}"
    return paint.warning("↻ ") + paint.dim(one_line(text))


def end_reason(event: events.TurnEnded) -> str:
    """Why a turn ended without an answer, as a sentence."""
    if event.error:
        line = one_line(event.error)
        return line if line.endswith((".", "?", "!", ")")) else line + "."
    reasons = {
        "cancelled": "Cancelled. The conversation so far is saved; --continue resumes it.",
        "cut_off": "The answer is not complete: the model reached a limit. --continue resumes it.",
        "max_rounds": f"Stopped after {event.rounds} rounds without an answer. --continue resumes it.",
        "refused": "The model refused to answer.",
    }
    return reasons.get(event.reason, "The turn ended without an answer.")
