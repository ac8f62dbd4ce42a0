"""The end of a conversation that continues, as the chat showed it, so that the user knows where they are.

It has the last turns in a bounded number of lines: what was said, and one line per call. `reverie sessions show` has
the rest. Outputs of the calls are kept for /show, and the last answer for /copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from reverie.cli.chat.attachments import shorten_paste
from reverie.cli.chat.folding import fold_words
from reverie.cli.chat.markdown_stream import MarkdownStream
from reverie.cli.chat.view import message_lines
from reverie.cli.output import plural, visible_width
from reverie.cli.tool_lines import call_text, result_line, result_note
from reverie.loop import INTERRUPTED
from reverie.origins import strip_tags
from reverie.storage.transcript.view import Entry
from reverie.text.columns import cut
from reverie.text.patterns import late
from reverie.types import Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat

MOST_LINES = 40
_MOST_TURNS = 3
_LEAST_LINES = 6  # of a turn
_FIRST_LINES = 3  # of a turn that is shortened: what the user asked
_FENCE = late(r"(?m)^\s{0,3}(?:```|~~~)")
_WIDEST = 500  # columns of a line where the terminal wraps: a screen reader does not get a page as one line


def recap(chat: Chat) -> None:
    """Says which session continues, and shows its end to a user."""
    session, view = chat.session, chat.view
    history = session.view.history
    view.say(view.paint.dim(f"Continuing {session.id[:8]}, {plural(len(history), 'message')}."))
    if not chat.can_ask:
        return
    turns = list(_split_turns(history))
    chat.last_answer = next((text for entry in reversed(history) if (text := _answer(entry.message))), "")
    shown, left = list[list[str]](), MOST_LINES
    is_shortened = False
    for turn in reversed(turns[-_MOST_TURNS:]):
        if left < _LEAST_LINES:
            break
        reader = _TurnLines(chat)
        kept = _shorten(reader.read(turn), reader.skipped, left, chat)
        is_shortened |= len(kept) < len(reader.lines)
        left -= len(kept)
        shown.insert(0, kept)
    above = len(turns) - len(shown)
    mark = "" if chat.input.in_words else "  … "
    if above or is_shortened:
        what = f"{plural(above, 'turn')} above" if above else "all of it"
        view.say(view.paint.dim(f"{mark}{what}: reverie sessions show {session.id[:8]}"))
    for lines in shown:
        view.say_all(["", *lines])


def _split_turns(history: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The conversation, cut before each message of the user."""
    turn = list[Entry]()
    for entry in history:
        if turn and _message(entry.message):
            yield turn
            turn = []
        turn.append(entry)
    if turn:
        yield turn


def _message(message: Message) -> str:
    """What the user wrote, with marks for long pastes; empty if it is not a message of the user."""
    parts, pastes = list[str](), 0
    for block in message.content if message.role == "user" else ():
        if isinstance(block, TextBlock) and block.origin.is_given and block.text.strip():
            text = strip_tags(block.text).strip()
            if not block.origin.is_users and (mark := shorten_paste(text, pastes + 1)):
                text, pastes = mark, pastes + 1
            parts.append(text)
    return " ".join(parts)


def _answer(message: Message) -> str:
    return message.text.strip() if message.role == "assistant" else ""


class _TurnLines:
    """The lines of one turn, as the view of this chat shows them while the turn runs."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._paint = chat.view.paint
        self._in_words = chat.input.in_words
        self._columns = min(chat.view.columns, _WIDEST)
        self._most = 4 * MOST_LINES * self._columns
        """Characters of a text that are looked at: lines beyond them are not shown anyway."""
        self.lines = list[str]()
        self.skipped = 0
        """Lines that are not in `lines`."""
        self._after = ""  # what the last line belongs to

    def read(self, turn: Sequence[Entry]) -> list[str]:
        results = {result.tool_use_id: result for entry in turn for result in entry.message.tool_results}
        if message := _message(turn[0].message):
            message = cut(message, self._most)
            marked = message_lines(message, self._paint, self._columns - 1)
            self._add("message", [f"You: {message}"] if self._in_words else marked)
        for entry in turn:
            for block in entry.message.content:
                match block:
                    case TextBlock() if entry.message.role == "assistant":
                        self._add("text", self._text(block.text))
                    case TextBlock() if block.origin is Origin.CODE and strip_tags(block.text) == INTERRUPTED:
                        stopped = "Stopped."
                        self._add("stop", [stopped if self._in_words else f"{self._paint.warning('■')} {stopped}"])
                    case ToolUseBlock():
                        self._add("call", [self._call(block, results.get(block.id))])
                    case _:
                        pass
        return self.lines

    def _add(self, kind: str, lines: Sequence[str]) -> None:
        if not lines:
            return
        if self.lines and not self._in_words and (kind, self._after) not in (("call", "call"), ("call", "text")):
            self.lines.append("")
        self.lines += (part for line in lines for part in fold_words(line, self._columns))
        self._after = kind

    def _text(self, text: str) -> list[str]:
        text = text.strip()
        if not text:
            return []
        if len(text) > self._most:
            start = text.find("\n", len(text) - self._most) + 1 or len(text) - self._most
            self.skipped += text.count("\n", 0, start)
            opens = len(_FENCE.findall(text, 0, start)) % 2  # the rest begins in a block of code
            text = "```\n" * opens + text[start:]
        pieces = list[str]()
        stream = MarkdownStream(pieces.append, self._paint, self._columns)
        stream.feed(f"Answer: {text}" if self._in_words else text)
        stream.finish()
        return "".join(pieces).removesuffix("\n").split("\n")

    def _call(self, call: ToolUseBlock, result: ToolResultBlock | None) -> str:
        """One line, and its output for /show."""
        shown = call_text(call.name, call.input, self._chat.session.places.cwd)
        text, is_error = (result.text, bool(result.is_error)) if result else ("no result", True)
        self._chat.outputs.add(shown, text)
        if self._in_words:
            return f"{'Failed tool' if is_error else 'Tool'}: {shown}, {result_note(text, is_error)}."
        return f"  {result_line(shown, text, is_error, None, self._paint, self._columns - 2)}"


def _shorten(lines: list[str], skipped: int, most: int, chat: Chat) -> list[str]:
    """At most so many rows of the terminal: the first lines, which say what was asked, and the last."""
    columns = min(chat.view.columns, _WIDEST)
    rows = [max(1, -(-visible_width(line) // columns)) for line in lines]
    if sum(rows) <= most and not skipped:
        return lines
    first, last = 0, len(lines)
    left = most - 1
    while first < _FIRST_LINES and rows[first] <= left:
        left -= rows[first]
        first += 1
    while last > first and rows[last - 1] <= left:
        last -= 1
        left -= rows[last]
    mark = "" if chat.input.in_words else "  … "
    return [*lines[:first], chat.view.paint.dim(f"{mark}{plural(last - first + skipped, 'more line')}"), *lines[last:]]
