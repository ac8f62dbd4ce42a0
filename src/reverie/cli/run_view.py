"""What `reverie run` prints: the answer on standard output, everything else on standard error, or events as JSON.

On a terminal text appears as it streams. Elsewhere standard output gets the answer and nothing but the answer: text is
held back until it is known to stand, and what was said between tool calls goes to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

from reverie.cli.chat.markdown_stream import MarkdownStream
from reverie.cli.output import Paint, columns, one_line, paint_for, seconds
from reverie.cli.screen import json_text, printable
from reverie.cli.tool_lines import call_text, finished_line
from reverie.events import (
    AnswerRestarted,
    Event,
    Notice,
    Retrying,
    RoundFinished,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    to_json,
)


class RunView(Protocol):
    def show(self, event: Event) -> None:
        """Takes one event, in the order they happen."""
        ...


class JsonView:
    """Every event, one JSON object a line, the moment it happens."""

    def show(self, event: Event) -> None:
        sys.stdout.write(json_text(to_json(event)) + "\n")
        sys.stdout.flush()


class TextView:
    """The answer as text."""

    def __init__(self, cwd: Path, *, quiet: bool) -> None:
        self._cwd = cwd
        self._quiet = quiet
        self._live = sys.stdout.isatty()
        self._paint = paint_for(sys.stderr)
        self._calls = dict[str, str]()
        self._round = list[str]()  # text of the round that is streaming; void if it is restarted
        self._standing = list[str]()  # text of finished rounds, an answer unless a tool call follows
        self._cut_off = False  # the last of them goes on in the next round
        self._stream = MarkdownStream(sys.stdout.write, paint_for(sys.stdout), columns())

    def show(self, event: Event) -> None:
        match event:
            case TextStreamed():
                self._streamed(event.text)
            case RoundFinished():
                said = "".join(self._round)
                self._standing += [self._standing.pop() + said] if self._cut_off else [said]
                self._cut_off = event.cut_off
                self._round.clear()
            case AnswerRestarted():
                self._round.clear()
                self._aside(again_line(event, self._paint))
            case ToolStarted():
                self._between_calls()
                self._calls[event.id] = call_text(event.name, event.input, self._cwd)
            case ToolFinished():
                call = self._calls.pop(event.id, event.name)
                wide = columns() if sys.stderr.isatty() else 200
                line = finished_line(call, event.text, event.is_error, event.seconds, self._paint, wide - 2)
                self._aside(f"  {line}")
            case Retrying():
                self._aside(again_line(event, self._paint))
            case Notice():
                mark = "✗" if event.level == "error" else "!" if event.level == "warning" else "·"
                if event.level != "info" or not self._quiet:
                    self._aside(f"{self._paint.warning(mark)} {one_line(event.text)}", even_if_quiet=True)
            case TurnEnded():
                self._ended(event)
            case _:
                pass

    def _streamed(self, text: str) -> None:
        self._round.append(text)
        if self._live:
            self._stream.feed(text)
            sys.stdout.flush()

    def _between_calls(self) -> None:
        """What was said before a tool call is no answer: on its way it is told beside."""
        said, self._standing = "\n".join(part for part in self._standing if part.strip()), []
        if self._live:
            self._stream.finish()
            sys.stdout.flush()
        elif said:
            self._aside(self._paint.dim(printable(said.strip())))

    def _aside(self, line: str, *, even_if_quiet: bool = False) -> None:
        if self._quiet and not even_if_quiet:
            return
        if self._live:
            self._stream.finish()
            sys.stdout.flush()
        print(line, file=sys.stderr, flush=True)

    def _ended(self, event: TurnEnded) -> None:
        if self._live:
            self._stream.finish()
        elif event.reason in ("answered", "cut_off", "max_rounds", "refused") and self._standing:
            answer = "\n".join(part for part in self._standing if part.strip())
            sys.stdout.write(answer + "\n" * bool(answer and not answer.endswith("\n")))
        else:
            self._between_calls()
        sys.stdout.flush()
        if event.reason != "answered":
            print(f"reverie: {why_it_ended(event)}", file=sys.stderr, flush=True)


def again_line(event: AnswerRestarted | Retrying, paint: Paint) -> str:
    """What is done once more, and why."""
    if isinstance(event, Retrying):
        told = f"{event.reason} Trying again in {seconds(event.seconds)} (attempt {event.attempt})."
    else:
        told = f"from the start again: {event.reason}"
    return paint.warning("↻ ") + paint.dim(one_line(told))


def why_it_ended(event: TurnEnded) -> str:
    """The sentence for a turn that ended without an answer."""
    if event.error:
        line = one_line(event.error)
        return line if line.endswith((".", "?", "!", ")")) else line + "."
    told = {
        "cancelled": "Cancelled; what was said so far is kept (--continue goes on).",
        "cut_off": "The answer is not complete: it was cut off at a limit of the model (--continue goes on).",
        "max_rounds": f"Stopped after {event.rounds} rounds without an answer (--continue goes on).",
        "refused": "The model refused to answer.",
    }
    return told.get(event.reason, "The turn ended without an answer.")
