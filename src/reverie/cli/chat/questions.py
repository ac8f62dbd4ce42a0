"""Questions at the open prompt: one key, a short text, or a row of a list. What is typed meanwhile stays.

Keys that are typed in the flow of a message do not answer a question that has just appeared, and a key that is held
down does not answer the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Window
from prompt_toolkit.layout.dimension import Dimension

from reverie.cli.chat.input import MORE, STOP, PickRow
from reverie.cli.chat.palette import rank
from reverie.cli.output import Paint, columns, one_line
from reverie.cli.screen import clean
from reverie.text.columns import cut, width

NO = "no, as it is"
_PAUSE_S = 0.5  # without keys, before a question takes one
_ROWS = 10


def ansi(text: str) -> ANSI:
    """Our own styles only: `ANSI` hides text between two control characters."""
    return ANSI(clean(text))


class Questions:
    """The question that is open, if one is. Other keys belong to the `message`."""

    def __init__(self, paint: Paint, message: Buffer, writes: Callable[[], bool]) -> None:
        self._paint = paint
        self._message = message
        self._writes = writes
        self._text = ""
        self._offers: Mapping[str, str] = {}
        self._answer: asyncio.Future[str | None] | None = None
        self._deaf_until = self._answered_at = 0.0
        self._keeps_keys = False
        self._last_key = 0.0  # of a message
        self._rows: Sequence[PickRow] = ()
        self._marked = 0
        self._filter = ""
        self._line = Buffer(multiline=False, accept_handler=self._take_line)
        self._keys = Window(
            FormattedTextControl(
                lambda: ansi(self._text), focusable=True, key_bindings=self._letters(), show_cursor=True
            ),
            wrap_lines=True,
            dont_extend_height=True,
        )
        self._entry = Window(
            BufferControl(self._line, key_bindings=self._ends(keep_text=True)),
            get_line_prefix=lambda _line, _wrap: ansi(self._text),
            dont_extend_height=True,
        )
        self._list = Window(
            FormattedTextControl(lambda: ansi(self._list_text()), focusable=True, key_bindings=self._arrows()),
            height=Dimension(max=_ROWS + 3),
            dont_extend_height=True,
        )
        self._shown: Window | None = None
        self._one_at_a_time = asyncio.Lock()
        self.container = HSplit([self._when(one) for one in (self._keys, self._entry, self._list)])

    @property
    def is_open(self) -> bool:
        return self._answer is not None

    def note_key(self, _sender: object) -> None:
        """A key was pressed. Without a question it belongs to a message, and no longer to an answer."""
        if not self.is_open:
            self._last_key, self._answered_at = time.monotonic(), 0.0

    def _when(self, window: Window) -> ConditionalContainer:
        return ConditionalContainer(window, Condition(lambda: self._shown is window))

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        """Waits for one of the offered keys. Esc and Ctrl-D say no, Ctrl-C stops."""
        paint = self._paint
        self._offers = offers
        shown = "  ".join(f"{paint.bold(key)} {text}" for key, text in offers.items())
        return await self._open(self._keys, f"  {question}  {shown} {paint.accent('›')} ") or NO

    async def enter(self, question: str) -> str:
        """Waits for a short text."""
        self._line.reset()
        return await self._open(self._entry, self._paint.dim(f"  {question} ")) or ""

    async def pick(self, title: str, rows: Sequence[PickRow]) -> str | None:
        """Waits for a row of the list."""
        self._rows, self._marked, self._filter = rows, 0, ""
        found = await self._open(self._list, title)
        return None if found == STOP else found

    async def _open(self, window: Window, text: str) -> str | None:
        async with self._one_at_a_time:
            return await self._show(window, text)

    async def _show(self, window: Window, text: str) -> str | None:
        app, now = get_app(), time.monotonic()
        before = app.layout.current_window
        self._text, self._shown = text, window
        self._keeps_keys = self._writes() and now - self._last_key < _PAUSE_S
        is_early = self._keeps_keys or now - self._answered_at < _PAUSE_S
        self._deaf_until = now + _PAUSE_S if is_early and window is self._keys else 0.0
        answer = self._answer = asyncio.get_running_loop().create_future()
        app.layout.focus(window)
        app.invalidate()
        try:
            return await answer
        finally:
            self._answer = self._shown = None
            app.layout.focus(before)
            app.invalidate()

    def end(self, word: str | None) -> None:
        """Answers the open question."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(word)

    def _take_line(self, buffer: Buffer) -> bool:
        self.end(buffer.text)
        return False

    def _ends(self, *, keep_text: bool) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c", eager=True)
        @keys.add("<sigint>")
        def _(_event: KeyPressEvent) -> None:
            self.end(STOP)

        @keys.add("escape")
        @keys.add("c-d")
        def _(_event: KeyPressEvent) -> None:
            self.end("" if keep_text else NO)

        return keys

    def _letters(self) -> KeyBindings:
        keys = self._ends(keep_text=False)

        @keys.add("<any>")
        def _(event: KeyPressEvent) -> None:
            now = time.monotonic()
            if now < self._deaf_until:
                self._deaf_until = now + _PAUSE_S
                if self._keeps_keys:
                    self._message.insert_text(event.data)
            elif word := self._offers.get(event.data.lower()):
                self._answered_at = now if word != MORE else 0.0
                self.end(word)

        @keys.add("enter")
        def _(_event: KeyPressEvent) -> None:
            """Ignored: it would be an answer by accident."""

        return keys

    # -- a list ---------------------------------------------------------------------------------------------------

    def _found(self) -> list[PickRow]:
        return rank(self._filter, self._rows, lambda row: f"{row.text} {row.value}")

    def _arrows(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c", eager=True)
        @keys.add("<sigint>")
        @keys.add("escape")
        @keys.add("c-d")
        def _(_event: KeyPressEvent) -> None:
            self.end(None)

        @keys.add("up")
        @keys.add("c-p")
        def _(_event: KeyPressEvent) -> None:
            self._marked = max(0, self._marked - 1)

        @keys.add("down")
        @keys.add("c-n")
        @keys.add("tab")
        def _(_event: KeyPressEvent) -> None:
            self._marked = min(max(0, len(self._found()) - 1), self._marked + 1)

        @keys.add("enter")
        def _(_event: KeyPressEvent) -> None:
            found = self._found()
            if found:
                self.end(found[min(self._marked, len(found) - 1)].value)

        @keys.add("backspace")
        def _(_event: KeyPressEvent) -> None:
            self._filter, self._marked = self._filter[:-1], 0

        @keys.add("<any>")
        def _(event: KeyPressEvent) -> None:
            if event.data.isprintable():
                self._filter, self._marked = self._filter + event.data, 0

        return keys

    def _list_text(self) -> str:
        paint, wide, found = self._paint, columns() - 1, self._found()
        lines = [paint.bold(cut(self._text, wide)), f"{paint.accent('›')} {one_line(self._filter, wide - 3)}"]
        first = max(0, min(self._marked - _ROWS // 2, len(found) - _ROWS))
        for at, row in enumerate(found[first : first + _ROWS], first):
            note = cut(one_line(row.note), wide // 3)
            text = cut(one_line(row.text), wide - width(note) - 4)
            gap = " " * max(1, wide - 2 - width(text) - width(note))
            mark = paint.accent("❯ ") if at == self._marked else "  "
            lines.append(mark + (paint.bold(text) if at == self._marked else text) + gap + paint.dim(note))
        if not found:
            lines.append(paint.dim("  nothing fits"))
        help = f"{len(found)} of {len(self._rows)} · ↑↓ Enter Esc · type to search"
        return "\n".join([*lines, paint.dim(cut(help, wide))])
