"""Shows the chat on the full screen: events and our own lines become blocks of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic

from reverie import events
from reverie.cli.full_screen.blocks import Answer, Block, Call, Message, Thinking, sentence
from reverie.cli.full_screen.conversation import Conversation
from reverie.cli.output import Paint, plural
from reverie.cli.run_view import end_reason, retry_line
from reverie.cli.tool_lines import call_text
from reverie.origins import strip_tags
from reverie.storage.transcript.view import Entry
from reverie.types import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

_BATCH = 40  # messages that are loaded at a time


class FullScreenView:
    """The output of a chat. `activity` and `since` say what runs now; `changed` is called when they change."""

    def __init__(self, conversation: Conversation, cwd: Path, paint: Paint, changed: Callable[[], None]) -> None:
        self.paint = paint
        self.activity = ""
        self.since = 0.0
        self._conversation = conversation
        self._cwd = cwd
        self._changed = changed
        self._calls = dict[str, Call]()
        self._names = dict[str, str]()
        self._waited = 0.0
        self._answer: Answer | None = None
        self._thinking: Thinking | None = None

    @property
    def columns(self) -> int:
        return max(20, self._conversation.size.width - 4)

    # -- between turns --------------------------------------------------------------------------------------------

    def say(self, text: str = "") -> None:
        self._settle()
        self._conversation.say(text)

    def say_all(self, lines: Iterable[str]) -> None:
        self.say("\n".join(lines))

    def tell(self, text: str, level: str = "info") -> None:
        self._settle()
        self._conversation.add(sentence(" ".join(text.split()), level, self.paint))

    def show_status(self, text: str) -> None:
        if text != self.activity:
            self.activity, self.since = text, monotonic()
            self._changed()

    def pause(self) -> None:
        self._settle()
        self.show_status("")

    def add_wait(self, duration: float) -> None:
        for call in self._calls.values():
            call.waited += duration
        self.go_on()

    def go_on(self) -> None:
        self.show_status(self._running())

    def user_message(self, text: str) -> None:
        self._settle()
        self._conversation.add(Message(text))
        self._conversation.scroll_to_end()

    def recall(self, entries: Sequence[Entry]) -> bool:
        """Shows the whole conversation. Older messages are loaded when the user scrolls to them."""
        if any(isinstance(block, Message | Answer) for block in self._conversation.blocks):
            self._conversation.clear()  # of another session
        self._conversation.load(_batches(entries, self._cwd, self.paint))
        return True

    def _settle(self) -> None:
        self._answer = None
        if self._thinking is not None:
            self._thinking.over = True
            self._thinking.changed()
            self._thinking = None

    # -- a turn ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._settle()
        self.show_status("working")

    def show(self, event: events.Event) -> None:
        match event:
            case events.TextStreamed():
                self._text(event.text)
            case events.ThinkingStreamed():
                self._think(event.text)
            case events.ToolStarted():
                self._start_call(event)
            case events.ToolFinished():
                self._finish_call(event)
            case events.AnswerRestarted() | events.Retrying():
                if isinstance(event, events.AnswerRestarted) and self._answer is not None:
                    self._conversation.take_away(self._answer)
                self.say(retry_line(event, self.paint))
                self.show_status("waiting" if isinstance(event, events.Retrying) else "working")
            case events.Notice():
                self.tell(event.text, event.level)
            case events.TaskChanged():
                self._changed()
                if event.state == "failed":
                    self.tell(f"Background task failed: {event.title or event.purpose}; `reverie log` says more.")
            case events.RoundFinished():
                if not event.cut_off:  # else the next round continues in the middle of a sentence
                    self._settle()
                    self.show_status("working")
                self._changed()
            case events.TurnEnded():
                self._end_turn(event)
            case events.SessionOpened() | events.TurnStarted() | events.PermissionAsked():
                pass

    def _text(self, text: str) -> None:
        if self._answer is None:
            self._settle()
            self._answer = Answer(text)
            self._conversation.add(self._answer)
            self.show_status("answering")
        else:
            self._answer.feed(text)
            self._conversation.redraw()

    def _think(self, text: str) -> None:
        if self._thinking is None:
            self._settle()
            self._thinking = Thinking(text, over=False)
            self._conversation.add(self._thinking)
            self.show_status("thinking")
        else:
            self._thinking.feed(text)
            self._conversation.redraw()

    def _running(self) -> str:
        names = list(self._names.values()) or ["working"]
        return names[0] if len(names) == 1 else plural(len(names), "call") + f": {', '.join(names)}"

    def _start_call(self, event: events.ToolStarted) -> None:
        self._settle()
        call = Call(event.name, event.input, self._cwd, self.paint)
        call.gap = bool(self._conversation.blocks) and not isinstance(self._conversation.blocks[-1], Call)
        call.remember_preview()
        self._calls[event.id] = call
        self._names[event.id] = call_text(event.name, event.input, self._cwd)
        self._conversation.add(call)
        self.show_status(self._running())

    def _finish_call(self, event: events.ToolFinished) -> None:
        self._names.pop(event.id, None)
        call = self._calls.pop(event.id, None)
        if call is None:
            call = Call(event.name, {}, self._cwd, self.paint)
            self._conversation.add(call)
        call.finish(event.text, event.is_error, max(0.0, event.seconds - call.waited))
        self._conversation.redraw()
        self.show_status(self._running())

    def _end_turn(self, event: events.TurnEnded) -> None:
        self._settle()
        for call in self._calls.values():
            call.finish("not finished", is_error=True)
        self._calls.clear()
        self._names.clear()
        if event.reason == "cancelled":
            self._conversation.say(f"{self.paint.warning('■')} Stopped. The conversation so far is saved.")
        elif event.reason != "answered":
            self.tell(end_reason(event), "error")
        self.show_status("")
        self._conversation.redraw(now=True)


def _batches(entries: Sequence[Entry], cwd: Path, paint: Paint) -> Iterator[list[Block]]:
    """The blocks of a conversation in batches, the last first. A batch begins before a tool call, not after it."""
    end = len(entries)
    while end > 0:
        start = max(0, end - _BATCH)
        while start > 0 and _has_results(entries[start]):
            start -= 1
        blocks = _blocks(entries[start:end], cwd, paint)
        end = start
        if blocks:
            yield blocks


def _has_results(entry: Entry) -> bool:
    return any(isinstance(block, ToolResultBlock) for block in entry.message.content)


def _blocks(entries: Sequence[Entry], cwd: Path, paint: Paint) -> list[Block]:
    blocks, calls = list[Block](), dict[str, Call]()
    for entry in entries:
        said = list[str]()
        for part in entry.message.content:
            match part:
                case TextBlock() if entry.message.role == "assistant":
                    if part.text.strip():
                        blocks.append(Answer(part.text))
                case TextBlock() if part.origin.is_given:
                    said.append(strip_tags(part.text))
                case ThinkingBlock():
                    blocks.append(Thinking(part.thinking))
                case ToolUseBlock():
                    call = calls[part.id] = Call(part.name, part.input, cwd, paint)
                    call.gap = bool(blocks) and not isinstance(blocks[-1], Call)
                    blocks.append(call)
                case ToolResultBlock() if part.tool_use_id in calls:
                    calls[part.tool_use_id].finish(part.text, bool(part.is_error))
                case _:
                    pass
        if said:
            blocks.append(Message("\n".join(said)))
    return blocks
