"""The prompt of the chat on a terminal. It stays open while a turn runs: what is typed is visible and waits.

Finished text goes above it, into the terminal's own scrollback. Only the modules around this one use prompt_toolkit.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions, is_searching, vi_insert_mode, vi_navigation_mode
from prompt_toolkit.formatted_text import ANSI, to_formatted_text
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.containers import VerticalAlign
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_term_environment_variable
from prompt_toolkit.widgets import SearchToolbar

from reverie.cli.chat.application import LiveApplication, OneWrite
from reverie.cli.chat.attachments import Pastes
from reverie.cli.chat.completer import ChatCompleter, is_completed
from reverie.cli.chat.input import STOP, TWICE_S, AskingInput, PickRow, Said, edit_message
from reverie.cli.chat.live import LiveRegion
from reverie.cli.chat.questions import Questions, ansi
from reverie.cli.diff_preview import Pages
from reverie.cli.output import Paint, columns, format_seconds, one_line
from reverie.cli.screen import clean, clipboard_sequence, printable, raw_stream
from reverie.errors import ReverieError, StorageError
from reverie.paths import make_private
from reverie.permissions.answers import PermissionAnswer
from reverie.permissions.rules import Profile
from reverie.regular_files import open_regular
from reverie.text.columns import cut
from reverie.text.patterns import late
from reverie.types import Origin, TextBlock

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat

_STYLES = {
    "completion-menu": "noinherit",
    "completion-menu.completion": "noinherit",
    "completion-menu.completion.current": "noinherit bold ansicyan",
    "completion-menu.meta.completion": "noinherit dim",
    "completion-menu.meta.completion.current": "noinherit",
    "scrollbar.background": "noinherit",
    "scrollbar.button": "noinherit reverse",
}
_STYLE = Style.from_dict(_STYLES)
_STYLE_ON_WHITE = Style.from_dict({key: value.replace("ansicyan", "ansiblue") for key, value in _STYLES.items()})
_ESCAPE_S = 0.05  # a lone Esc, and not the beginning of another key
_MENU_ROWS = 8
_WAITING_SHOWN = 5
_COMMAND = late(r"/\S+")


# prompt_toolkit draws completions and typed text itself. It shows control characters as our own writer does.
_DRAWN = (*range(0x80, 0x3000), *range(0xD800, 0xE000), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0100))
Char.display_mappings |= {chr(code): shown for code in _DRAWN if (shown := printable(chr(code))) != chr(code)}


class TerminalInput(AskingInput):
    """Reads from the terminal, and draws the lines of `live` above the prompt."""

    def __init__(self, chat: Chat, live: LiveRegion, paint: Paint) -> None:
        self._chat = chat
        self._live = live
        self._paint = paint
        self._interrupted_at = self._escaped_at = -TWICE_S
        self._typed = True
        self._pastes = Pastes()
        self._given: asyncio.Queue[Said | None] = asyncio.Queue()
        self._running: asyncio.Task[None] | None = None
        places = chat.session.places
        self._buffer = Buffer(
            history=open_history(places.chat_history),
            multiline=True,
            completer=ChatCompleter(places.cwd, chat.completions),
            complete_while_typing=Condition(lambda: is_completed(self._buffer.document.text_before_cursor)),
            accept_handler=self._accept,
        )
        self._questions = Questions(paint, self._buffer, lambda: bool(self._buffer.text or chat.waiting))
        self._output = cast(OneWrite, OneWrite.from_pty(raw_stream(sys.stdout), get_term_environment_variable()))
        self._output.enable_cpr = False
        self._app = self._make_app()

    def _make_app(self) -> LiveApplication:
        search = SearchToolbar()
        asks = Condition(lambda: self._questions.is_open)
        field = Window(
            BufferControl(self._buffer, search_buffer_control=search.control, preview_search=True),
            get_line_prefix=self._prefix,
            height=Dimension(min=1, max=12),
            wrap_lines=True,
            dont_extend_height=True,
        )
        rows = [
            ConditionalContainer(
                Window(FormattedTextControl(self._above), wrap_lines=True, dont_extend_height=True),
                Condition(lambda: bool(self._live.tail or self._live.activity or self._chat.waiting)),
            ),
            ConditionalContainer(self._questions.container, asks),
            ConditionalContainer(HSplit([field, CompletionsMenu(max_height=_MENU_ROWS), search]), ~asks),
            Window(FormattedTextControl(self._bottom), height=1, dont_extend_height=True),
        ]
        app = LiveApplication(
            Layout(HSplit(rows, align=VerticalAlign.TOP), focused_element=field),
            key_bindings=self._keys(),
            output=self._output,
            style=_STYLE_ON_WHITE if self._paint.light else _STYLE,
            editing_mode=EditingMode.VI if self._chat.session.parts.settings.chat.vi_keys else EditingMode.EMACS,
            cursor=ModalCursorShapeConfig(),
            color_depth=None if self._paint.on else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            min_redraw_interval=0.02,
            refresh_interval=0.5,
        )
        app.ttimeoutlen = _ESCAPE_S
        app.timeoutlen = _ESCAPE_S
        app.key_processor.before_key_press += self._questions.note_key
        return app

    # -- the open prompt ------------------------------------------------------------------------------------------

    async def next(self) -> Said | None:
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        getting = asyncio.ensure_future(self._given.get())
        try:
            await asyncio.wait([getting, self._running], return_when=asyncio.FIRST_COMPLETED)
            return getting.result() if getting.done() else None
        finally:
            getting.cancel()

    async def _run(self) -> None:
        with self._live.opened(self._app.print_above, self._app.invalidate, self._output.stdout):
            try:
                await self._app.run_async(handle_sigint=False)
            except EOFError:
                return

    async def close(self) -> None:
        if self._running is not None:
            self._questions.end(STOP)
            if self._app.is_running:
                self._app.exit()
            with suppress(asyncio.CancelledError):
                await self._running

    def copy(self, text: str) -> bool:
        sequence = clipboard_sequence(text)
        if sequence:
            self._output.write_raw(sequence)
            self._output.flush()
        return bool(sequence)

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        async with self._app.lend():
            yield

    # -- what is drawn --------------------------------------------------------------------------------------------

    def _prefix(self, line: int, wrap: int) -> Any:
        first = line == 0 and wrap == 0
        return to_formatted_text(ansi(f"{self._paint.bold(self._paint.accent('›'))} " if first else "  "))

    def _above(self) -> ANSI:
        """The line that streams, what runs, and what waits."""
        live, paint, wide = self._live, self._paint, columns() - 1
        lines = [live.tail] if live.tail else []
        if live.activity:
            passed = time.monotonic() - live.since
            took = f" {format_seconds(int(passed))}" if passed >= 1 else ""
            end = f"{took} · Esc stops" if self._chat.is_working else took
            text = one_line(live.activity, max(10, wide - len(end) - 4))
            lines += ["", clean(paint.dim(f"  ⋯ {text}{end}"))]
        waiting = self._chat.waiting
        for number, one in enumerate(waiting[-_WAITING_SHOWN:], max(1, len(waiting) - _WAITING_SHOWN + 1)):
            how = " · Up takes it back" if number == len(waiting) else ""
            shown = one_line(one.shown, max(10, wide - len(how) - 12))
            lines.append(clean(f"  {paint.accent('waits:')} {shown}{paint.dim(how)}"))
        return ANSI("\n".join(lines))

    def _bottom(self) -> ANSI:
        if time.monotonic() - self._interrupted_at < TWICE_S:
            return ansi(self._paint.dim("  Ctrl-C again leaves"))
        vi = "NORMAL · " if vi_navigation_mode() else ""
        return ansi(self._paint.dim(cut(f"  {vi}{self._chat.toolbar()}", columns() - 1)))

    # -- a message ------------------------------------------------------------------------------------------------

    def _accept(self, buffer: Buffer) -> bool:
        text = buffer.text
        own = Origin.TYPED if self._typed else Origin.ENTERED
        self._given.put_nowait(Said(self._pastes.split(text, own), text))
        self._typed = True
        self._app.vi_state.input_mode = InputMode.INSERT
        return False

    def _names_nothing(self, text: str) -> bool:
        """Whether these are letters of a command, and not its name."""
        return _COMMAND.fullmatch(text) is not None and text not in {one for one, _, _ in self._chat.completions(text)}

    def _paste(self, buffer: Buffer, data: str) -> None:
        text, is_mark = self._pastes.take(data)
        self._typed &= is_mark
        buffer.insert_text(text)

    def note_interrupt(self) -> None:
        self._interrupted_at = time.monotonic()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        types = Condition(lambda: not self._questions.is_open) & ~is_searching
        is_empty = types & Condition(lambda: not self._buffer.text)

        @keys.add("enter", filter=types)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if (state := buffer.complete_state) is not None and state.current_completion is not None:
                buffer.complete_state = None  # Enter takes the completion that is marked
                return
            if state is not None and state.completions and self._names_nothing(buffer.text):
                buffer.apply_completion(state.completions[0])
                return
            if buffer.document.text_before_cursor.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            elif buffer.text.strip():
                self._typed &= buffer.working_index == len(buffer._working_lines) - 1  # pyright: ignore[reportPrivateUsage]
                buffer.validate_and_handle()

        @keys.add(Keys.BracketedPaste, filter=types)
        def _(event: KeyPressEvent) -> None:
            self._paste(event.current_buffer, event.data)

        @keys.add("escape", "enter", filter=types)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("escape", filter=types & ~has_completions & ~vi_insert_mode)
        def _(_event: KeyPressEvent) -> None:
            now = time.monotonic()
            if not self._chat.stop() and not self._buffer.text and now - self._escaped_at < TWICE_S:
                self._give_command("/rewind")
            self._escaped_at = now

        @keys.add("c-g", filter=types)
        @keys.add("c-x", "c-e", filter=types)
        def _(event: KeyPressEvent) -> None:
            event.app.create_background_task(self._edit())

        @keys.add("s-tab", filter=types & ~has_completions)
        def _(event: KeyPressEvent) -> None:
            self._chat.next_mode()
            event.app.invalidate()

        @keys.add("escape", filter=types & has_completions)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.cancel_completion()

        @keys.add("up", filter=is_empty & Condition(lambda: bool(self._chat.waiting)))
        def _(_event: KeyPressEvent) -> None:
            if (taken := self._chat.take_back()) is not None:
                self._typed = all(block.origin is not Origin.ENTERED for block in taken.blocks)
                self._set_text(taken.shown)

        @keys.add("c-c", filter=types)
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            now = time.monotonic()
            if now - self._interrupted_at < TWICE_S:
                self._leave()
                return
            self._interrupted_at = now
            if not self._chat.stop():
                self._buffer.reset()
            event.app.invalidate()

        @keys.add("c-d", filter=is_empty)
        def _(_event: KeyPressEvent) -> None:
            self._leave()

        @keys.add("c-k", filter=is_empty)
        def _(_event: KeyPressEvent) -> None:
            self._buffer.insert_text("/")

        def runs(key: str, command: str) -> None:
            @keys.add(key, filter=types)
            def _(_event: KeyPressEvent) -> None:
                self._give_command(command)

        runs("c-o", "/show")
        runs("c-t", "/tasks end")
        return keys

    def _give_command(self, command: str) -> None:
        self._given.put_nowait(Said((TextBlock(command, Origin.ENTERED),), command))

    async def _edit(self) -> None:
        """Opens the message in the user's editor."""
        try:
            text = await edit_message(self, self._buffer.text)
        except ReverieError as error:
            self._chat.view.tell(str(error), "error")
            return
        if text != self._buffer.text:
            self._typed = False
            self._set_text(text)

    def _set_text(self, text: str) -> None:
        self._buffer.text = text
        self._buffer.cursor_position = len(text)

    def put(self, text: str) -> None:
        if not self._buffer.text:
            self._typed = False
            self._set_text(text)

    def ring(self) -> None:
        self._output.bell()
        self._output.flush()

    def switch_vi_keys(self) -> bool:
        on = self._app.editing_mode is not EditingMode.VI
        self._app.editing_mode = EditingMode.VI if on else EditingMode.EMACS
        self._app.vi_state.input_mode = InputMode.INSERT
        return on

    def _leave(self) -> None:
        self._given.put_nowait(None)

    # -- questions ------------------------------------------------------------------------------------------------

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        """Waits for one of the offered keys; other keys do nothing."""
        self._live.flush()  # what the question is about is on the screen first
        answer = await self._questions.choose(question, offers)
        shown = one_line(f"{question} {answer.partition(',')[0] if answer != STOP else 'stopped'}")
        sys.stdout.write(self._paint.dim(f"  {shown}") + "\n")
        return answer

    async def pick(self, title: str, rows: Sequence[PickRow]) -> str | None:
        self._live.flush()
        return await self._questions.pick(title, rows)

    async def ask(
        self, lasting: Sequence[str], pages: Pages, show: Callable[[], None], profiles: Sequence[Profile] = ()
    ) -> PermissionAnswer | None:
        with suppress(termios.error):  # keys that were typed before the question do not answer it
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        return await super().ask(lasting, pages, show, profiles)

    async def ask_reason(self) -> str:
        return await self._questions.enter("Why not? (Enter: no reason)")


def open_history(path: Path) -> History:
    """The history of this project in a private file, or in memory if the disk refuses."""
    try:
        make_private(path.parent)
        os.close(open_regular(path, append=True))
    except (OSError, StorageError):
        return InMemoryHistory()
    return FileHistory(str(path))
