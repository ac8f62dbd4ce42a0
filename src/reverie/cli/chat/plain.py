"""The chat for screen readers and simple terminals (`--plain`, TERM=dumb): whole lines, words instead of symbols.

Nothing is drawn again, there is no status line and no colour. The terminal itself edits the line that is typed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reverie import events
from reverie.cli.chat.folding import THINKING, KeptOutputs
from reverie.cli.chat.input import AskingInput, PickRow, PipedInput, Said
from reverie.cli.chat.live import LiveRegion
from reverie.cli.chat.view import ChatView
from reverie.cli.output import Paint, format_seconds, one_line
from reverie.cli.tool_lines import result_note
from reverie.origins import fence
from reverie.types import Origin

_LEVELS = {"info": "Note", "warning": "Warning", "error": "Error"}
_WIDE = 10_000  # the terminal wraps: a reader speaks whole sentences
_LISTED = 20
_TOGETHER_S = 0.05


class PlainView(ChatView):
    """Says in words what the other view shows with symbols."""

    def __init__(self, cwd: Path, outputs: KeptOutputs) -> None:
        super().__init__(cwd, Paint(False), LiveRegion(), outputs)

    @property
    def columns(self) -> int:
        return _WIDE

    def tell(self, text: str, level: str = "info") -> None:
        self.say(f"{_LEVELS[level]}: {one_line(text)}")

    def user_message(self, text: str) -> None:
        """The terminal has shown it."""

    def show(self, event: events.Event) -> None:
        if isinstance(event, events.ToolStarted):
            super().show(event)
            self.say(f"Tool: {self._calls[event.id]}")
        else:
            super().show(event)
        if isinstance(event, events.TurnEnded):
            self.say("Ready.")

    def _show_result(self, event: events.ToolFinished) -> None:
        self._calls.pop(event.id, None)
        self._inputs.pop(event.id, None)
        changed = self._changes.pop(event.id, [])
        took = max(0.0, event.seconds - self._waited.pop(event.id, 0.0))
        state = "Failed" if event.is_error else "Finished"
        note = result_note(event.text, event.is_error)
        self.say(f"{state} after {format_seconds(took)}: {note}. Output {self._outputs.last}.")
        if changed and not event.is_error:
            self.say_all(changed)

    def _end_thinking(self) -> None:
        took = self._stop_thinking()
        self.say(f"Thought for {format_seconds(took)}. Output {self._outputs.last_of(THINKING)}.")


class PlainInput(AskingInput, PipedInput):
    """Reads whole lines of a terminal. A question takes the next line."""

    in_words = True

    def __init__(self) -> None:
        super().__init__()
        self._answers: asyncio.Queue[str | None] | None = None
        self._came = list[str]()

    def deliver(self, line: str | None) -> None:
        """Waits a moment for more lines: nobody types two at once, so together they are pasted."""
        if line is None:
            self._deliver_together()
            self._give(None)
            return
        if not self._came:
            asyncio.get_running_loop().call_later(_TOGETHER_S, self._deliver_together)
        self._came.append(line)

    def _deliver_together(self) -> None:
        lines, self._came = self._came, []
        if len(lines) == 1:
            self._give(lines[0])
        elif lines:  # neither commands nor answers
            super().deliver("\n".join(lines))

    def _give(self, line: str | None) -> None:
        if self._answers is not None:
            self._answers.put_nowait(line)
        else:
            super().deliver(line)

    async def next(self) -> Said | None:
        said = await super().next()
        if said is None or "\n" not in said.shown:
            return said
        return Said((fence(Origin.PASTED, said.shown),), said.shown)

    @contextmanager
    def _asking(self) -> Generator[asyncio.Queue[str | None]]:
        """The lines that answer; those of a question within a question too."""
        before, lines = self._answers, self._answers or asyncio.Queue[str | None]()
        self._answers = lines
        self.start()
        try:
            yield lines
        finally:
            self._answers = before

    async def _ask_line(self, question: str) -> str | None:
        with self._asking() as lines:
            print(question, flush=True)
            return await lines.get()

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        shown = ", ".join(f"{key} for {text}" for key, text in offers.items())
        with self._asking():
            while (line := await self._ask_line(f"{question} Type {shown}, and press Enter.")) is not None:
                given = line.strip().lower()
                if word := offers.get(given) or next((one for one in offers.values() if one == given), None):
                    return word
                if " " in given:  # a sentence was meant for the model
                    super().deliver(line)
                    print("This waits as a message. The question is still open.", flush=True)
        return list(offers.values())[-1]

    async def ask_reason(self) -> str:
        return await self._ask_line("Why not? Enter alone: no reason.") or ""

    async def pick(self, title: str, rows: Sequence[PickRow]) -> str | None:
        shown = rows[:_LISTED]
        for number, row in enumerate(shown, 1):
            print(f"{number}. {', '.join(one_line(part) for part in (row.text, row.note) if part)}")
        while True:
            line = await self._ask_line(f"{title} Type a number, or only Enter for none.")
            if not line or not line.strip():
                return None
            if line.strip().isdigit() and 1 <= int(line) <= len(shown):
                return shown[int(line) - 1].value
