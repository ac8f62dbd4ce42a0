"""The app: the conversation, what runs and what waits, the composer, the status line, and the keys.

The chat (`cli/chat/loop.py`) decides everything; the app shows it and passes on what the user does. The mouse belongs
to the terminal unless the user switches it on, so that text can be selected as everywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer, TimerCallback
from textual.widgets import Input, Static

from reverie.cli.chat.commands import explain
from reverie.cli.chat.completer import ChatCompleter
from reverie.cli.chat.figures import StatusFigures
from reverie.cli.chat.input import TWICE_S, PickRow, Said, edit_message
from reverie.cli.chat.prompt import open_history
from reverie.cli.chat.slash.tasks import manage_tasks
from reverie.cli.full_screen.composer import Composer, Offers
from reverie.cli.full_screen.conversation import Conversation
from reverie.cli.full_screen.dialogs import DIALOG_COLUMNS, Picker, Reader
from reverie.cli.full_screen.input import FullScreenInput, rank_rows
from reverie.cli.full_screen.markdown import OnWhite
from reverie.cli.full_screen.view import FullScreenView
from reverie.cli.output import Paint, format_seconds, one_line, plural
from reverie.errors import ReverieError
from reverie.types import Origin, TextBlock

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat

_WAITING_SHOWN = 3
_KEYS = (
    ("Enter", "send; while it works, the message waits for its turn"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "new line"),
    ("Up, Down", "earlier messages; Up takes back the last message that waits"),
    ("/", "commands"),
    ("@", "files"),
    ("!", "run a shell command"),
    ("Esc", "stop"),
    ("Ctrl-C", "stop, or clear the line; twice: leave"),
    ("Ctrl-D", "leave"),
    ("Ctrl-P, Ctrl-K", "all commands"),
    ("Ctrl-R", "search your earlier messages"),
    ("Ctrl-S", "continue another session"),
    ("Ctrl-G", "edit the message in $VISUAL or $EDITOR"),
    ("Shift-Tab", "permissions: ask, accept edits, read only"),
    ("Esc twice", "go back to an earlier message"),
    ("Ctrl-T", "background tasks"),
    ("Ctrl-F", "search the conversation"),
    ("PgUp, PgDn", "scroll"),
    ("Tab", "move through the conversation, and back"),
    ("F1", "these keys"),
    ("", ""),
    ("In the conversation:", ""),
    ("Up, Down, k, j", "block above, block below"),
    ("Enter, Space", "open; show the next page; fold"),
    ("Left, h", "fold"),
    ("y, c", "copy the block to the clipboard (OSC 52)"),
    ("g, G", "beginning, end"),
    ("n, N", "next place that was searched for, upwards or downwards"),
)


class _Main(Screen[None]):
    """The screen below the dialogs. It draws a change after 4 ms instead of 16: the first word waits for it."""

    def set_interval(
        self,
        interval: float,
        callback: TimerCallback | None = None,
        *,
        name: str | None = None,
        repeat: int = 0,
        pause: bool = False,
    ) -> Timer:
        period = 0.004 if name == "screen_update" else interval
        return super().set_interval(period, callback, name=name, repeat=repeat, pause=pause)


class FullScreen(App[None]):
    """The full screen of a chat."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+d", "leave", show=False, priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
        Binding("escape", "stop", show=False),
        Binding("ctrl+p,ctrl+k", "palette", show=False, priority=True),
        Binding("ctrl+r", "history", show=False, priority=True),
        Binding("ctrl+s", "command('resume')", show=False, priority=True),
        Binding("ctrl+g", "edit", show=False, priority=True),
        Binding("ctrl+t", "tasks", show=False, priority=True),
        Binding("ctrl+f", "search", show=False, priority=True),
        Binding("f1", "keys", show=False, priority=True),
        Binding("pageup", "scroll_page(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_page(1)", show=False, priority=True),
        Binding("n", "find_again(-1)", show=False),
        Binding("N", "find_again(1)", show=False),
    ]

    def __init__(self, paint: Paint) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"  # the terminal's own colours and background
        self.animation_level = "none"  # what moves would flicker over a slow line, and pass lines unread
        self.paint = paint
        self.conversation = Conversation()
        self.given = FullScreenInput(self, paint, self._offer)
        self._chat: Chat | None = None
        self._view: FullScreenView | None = None
        self._talking: asyncio.Task[None] | None = None
        self._interrupted_at = self._escaped_at = -TWICE_S
        self._wanted = ""
        self._shown = (Text(), Text())
        self.typed_ahead = ""
        """What was typed before the app began to read keys."""

    # -- the chat -------------------------------------------------------------------------------------------------

    def attach(self, chat: Chat, view: FullScreenView) -> None:
        self._chat, self._view = chat, view

    @property
    def chat(self) -> Chat:
        assert self._chat is not None
        return self._chat

    def get_default_screen(self) -> Screen[None]:
        return _Main(id="_default")

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *([OnWhite()] if self.paint.light else [])]

    def compose(self) -> ComposeResult:
        places = self.chat.session.places
        yield self.conversation
        with Vertical(id="bottom"):
            yield Static("", id="activity", markup=False)
            yield Offers()
            yield Input(placeholder="search: Enter finds, Esc closes", id="search", compact=True)
            yield Composer(open_history(places.chat_history), ChatCompleter(places.cwd, self.chat.completions))
            yield Static("", id="status", markup=False)

    @property
    def composer(self) -> Composer:
        return self.screen_stack[0].query_one(Composer)

    def on_mount(self) -> None:
        self.query_one(Offers).display = self.query_one("#search").display = False
        self.composer.has_waiting = lambda: bool(self.chat.waiting)
        self.composer.focus()
        self.put(self.typed_ahead)
        self.set_interval(0.5, self.show_state)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self._talking = asyncio.create_task(self._talk())
        self._talking.add_done_callback(lambda _task: self.exit())

    async def _talk(self) -> None:
        try:
            await self.chat.talk(self.given)
        finally:
            await self.chat.close()

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_state)

    async def end(self) -> None:
        """Ends the chat if the app ended before it. Raises what ended the chat."""
        if self._talking is None:
            await self.chat.close()
            return
        self.chat.leaving = True
        self.chat.stop()
        self.given.give(None)
        await self._talking

    # -- what is shown --------------------------------------------------------------------------------------------

    def show_state(self) -> None:
        """Shows again what runs, what waits and the figures."""
        if not self.is_running or self._chat is None or self._view is None:
            return
        screen = self.screen_stack[0]
        shown = (self._activity(self._view, screen.size.width), self._status(screen.size.width))
        if shown == self._shown:
            return
        above, status = screen.query_one("#activity", Static), screen.query_one("#status", Static)
        rows = [text.plain.count("\n") for text in (self._shown[0], shown[0])]
        above.update(shown[0], layout=rows[0] != rows[1])
        status.update(shown[1], layout=False)
        self._shown = shown

    def _activity(self, view: FullScreenView, wide: int) -> Text:
        lines = list[Text]()
        if view.activity:
            passed = monotonic() - view.since
            took = f" {format_seconds(int(passed))}" if passed >= 1 else ""
            end = f"{took} · Esc stops" if self.chat.is_working else took
            lines.append(Text(f"  ⋯ {one_line(view.activity, max(10, wide - len(end) - 4))}{end}", style="dim"))
        waiting = self.chat.waiting
        if len(waiting) > _WAITING_SHOWN:
            lines.append(Text(f"  {plural(len(waiting) - _WAITING_SHOWN, 'more message')} before these", style="dim"))
        for one in waiting[-_WAITING_SHOWN:]:
            how = " · Up takes it back" if one is waiting[-1] else ""
            shown = one_line(one.shown, max(10, wide - len(how) - 11))
            lines.append(Text.assemble(("  waits: ", "cyan"), shown, (how, "dim")))
        return Text("\n").join(lines)

    def _status(self, wide: int) -> Text:
        if monotonic() - self._interrupted_at < TWICE_S:
            return Text(" Ctrl-C again leaves", style="dim")
        figures = StatusFigures.of(self.chat.session)
        more = [(3, "Ctrl-T shows them")] if figures.tasks else []
        return Text(f" {figures.line(wide - 2, [*more, (6, 'F1 keys')])}", style="dim", no_wrap=True)

    # -- what the user does ---------------------------------------------------------------------------------------

    def on_composer_sent(self, event: Composer.Sent) -> None:
        self.given.give(event.said)
        self.conversation.scroll_to_end()
        self.call_later(self.show_state)

    def on_composer_take_back(self) -> None:
        if (taken := self.chat.take_back()) is not None:
            self.composer.put(taken.shown)
            self.show_state()

    def on_composer_left(self) -> None:
        self.conversation.focus()

    def on_conversation_copied(self, event: Conversation.Copied) -> None:
        self.copy_to_clipboard(event.text)
        self.notify(f"Copied {plural(len(event.text), 'character')}.", markup=False, timeout=2)

    def on_key(self, event: events.Key) -> None:
        """In the conversation, Tab and letters go back to the composer."""
        if self.focused is not self.conversation or len(self.screen_stack) > 1:
            return
        if event.key in ("tab", "shift+tab", "escape", "i"):
            self.composer.focus()
            event.stop()
            event.prevent_default()
        elif event.is_printable and event.character in ("/", "@", "!"):
            self.composer.focus()
            self.composer.insert(event.character)

    def action_interrupt(self) -> None:
        now = monotonic()
        if now - self._interrupted_at < TWICE_S:
            self.chat.leaving = True
            self.chat.stop()
            self.given.give(None)
            return
        self._interrupted_at = now
        if len(self.screen_stack) > 1:
            self.screen.dismiss(None)
        if not self.chat.stop():
            self.composer.empty()
        self.show_state()

    def action_leave(self) -> None:
        if len(self.screen_stack) == 1 and not self.composer.text:
            self.given.give(None)

    def action_stop(self) -> None:
        search = self.query_one("#search", Input)
        if search.has_focus:
            search.display = False
            self.composer.focus()
            return
        now = monotonic()
        if not self.chat.stop() and not self.composer.text and now - self._escaped_at < TWICE_S:
            self.action_command("rewind")
        self._escaped_at = now
        self.composer.focus()

    def on_composer_next_mode(self) -> None:
        self.chat.next_mode()
        self.show_state()

    def action_edit(self) -> None:
        if self.chat.is_working:  # its output would be written over the editor
            self.notify("The editor opens when the agent has finished.", timeout=3)
        elif len(self.screen_stack) == 1:
            self.run_worker(self._edit())

    async def _edit(self) -> None:
        try:
            text = await edit_message(self.given, self.composer.text)
        except ReverieError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        if text != self.composer.text:
            self.composer.put(text)

    def action_history(self) -> None:
        if len(self.screen_stack) == 1:
            rows = [PickRow(text, text) for text in dict.fromkeys(self.composer.past)]
            self.push_screen(Picker("Your messages", lambda: rows, rank_rows), self.put)

    def _offer(self, text: str) -> None:
        if not self.composer.text:
            self.put(text)

    def put(self, text: str | None) -> None:
        """Offers a text as the next message."""
        if text:
            self.composer.put(text)
            self.composer.focus()

    def action_scroll_page(self, step: int) -> None:
        if len(self.screen_stack) == 1:
            height = max(1, self.conversation.size.height - 1)
            self.conversation.scroll_relative(y=step * height, animate=False)
        elif isinstance(self.focused, Conversation):
            return
        elif self.focused is not None:
            (self.focused.action_page_down if step > 0 else self.focused.action_page_up)()

    def action_command(self, name: str) -> None:
        if len(self.screen_stack) == 1:
            text = f"/{name}"
            self.given.give(Said((TextBlock(text, Origin.ENTERED),), text))

    # -- screens --------------------------------------------------------------------------------------------------

    def action_palette(self) -> None:
        if len(self.screen_stack) > 1:
            return
        rows = [PickRow(word, word, about) for word, _, about in self.chat.completions("/")]
        self.push_screen(Picker("Commands", lambda: rows, rank_rows), lambda word: self.put(word and f"{word} "))

    def action_keys(self) -> None:
        if len(self.screen_stack) > 1:
            return
        wide = min(self.size.width, DIALOG_COLUMNS) - 5
        self.push_screen(Reader("Keys", list(explain(_KEYS, self.paint, wide))))

    def action_tasks(self) -> None:
        if len(self.screen_stack) == 1:
            self.run_worker(manage_tasks(self.chat))

    # -- search ---------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        if len(self.screen_stack) == 1:
            search = self.query_one("#search", Input)
            search.display = True
            search.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "search" and event.value:
            self._wanted = event.value
            event.input.display = False
            self.conversation.focus()
            self.action_find_again(-1)

    def action_find_again(self, step: int) -> None:
        if self._wanted and self.conversation.find(self._wanted, step) is None:
            self.notify("No other place.", timeout=2)
