"""The prompt of the chat on a terminal: history, several lines, completion, a toolbar, one-key answers.

Only this module uses prompt_toolkit.
"""

from __future__ import annotations

import os
import re
import sys
import termios
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from reverie.cli.chat.input import TWICE_S, ChatInput, PermissionAnswer, Said
from reverie.cli.diff_preview import Pages
from reverie.cli.output import Paint, one_line, plural
from reverie.cli.screen import clean, guard_streams, printable, raw_stream
from reverie.errors import StorageError
from reverie.origins import SHORT_PASTE, fence
from reverie.paths import make_private
from reverie.regular_files import open_regular
from reverie.types import Origin, TextBlock

_STOP = "stop"
_MOST_PATHS = 200
_PASTE = re.compile(r"(\[Pasted text \d+: [\d,]+ lines?, [\d,]+ characters\])")
_AT = re.compile(r"(?:^|\s)@(\S*)$")
_PLAIN = Style.from_dict({"bottom-toolbar": "noreverse", "completion-menu.completion.current": "reverse"})

SlashCompletion = Callable[[str], Iterable[tuple[str, int, str]]]
"""Completes a line that begins with a slash: the text, how far back it begins, its description."""


# prompt_toolkit draws completions and typed text itself. It shows control characters as our own writer does.
_DRAWN = (*range(0x80, 0x3000), *range(0xD800, 0xE000), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0100))
Char.display_mappings |= {chr(code): shown for code in _DRAWN if (shown := printable(chr(code))) != chr(code)}


class TerminalInput(ChatInput):
    """Reads from the terminal. `toolbar` gives the line below the prompt, `slash` completes commands."""

    interactive = True

    def __init__(
        self, cwd: Path, history: Path, paint: Paint, *, toolbar: Callable[[], str], slash: SlashCompletion
    ) -> None:
        self._paint = paint
        self._toolbar = toolbar
        self._interrupted_at = -TWICE_S
        self._typed = True
        self._pastes: dict[str, str] = {}
        depth = None if paint.on else ColorDepth.DEPTH_1_BIT
        with redirect_stdout(raw_stream(sys.stdout)):  # prompt_toolkit draws the screen itself
            output = get_app_session().output
        open_prompt = partial(PromptSession[Any], output=output, style=_PLAIN, color_depth=depth)
        self._session = open_prompt(
            history=_history(history),
            multiline=True,
            prompt_continuation="  ",
            key_bindings=self._keys(),
            completer=_ChatCompleter(cwd, slash),
            complete_while_typing=Condition(self._completes),
            bottom_toolbar=self._bottom,
            refresh_interval=1.0,
        )
        self._offered = frozenset[str]()
        self._asking = open_prompt(key_bindings=_answer_keys(lambda key: key in self._offered))
        self._why = open_prompt(key_bindings=_stop_keys())
        for session in (self._session, self._asking, self._why):
            session.app.renderer.cpr_not_supported_callback = None  # no warning about a simple terminal

    async def next(self) -> Said | None:
        self._typed = True
        # Output of background work appears above the prompt, through our own writer.
        with patch_stdout(raw=True), guard_streams():
            try:
                text = await self._session.prompt_async(_ansi(self._paint.bold(self._paint.accent("›")) + " "))
            except EOFError:
                return None
        return None if text is None else Said(tuple(self._split_by_origin(text)), text)

    def _split_by_origin(self, text: str) -> list[TextBlock]:
        """Text and long pastes, each with its origin. Text that was not typed key by key counts as entered."""
        own = Origin.TYPED if self._typed else Origin.ENTERED
        pieces = _PASTE.split(text) if self._pastes else [text]
        pasted = self._pastes
        made = [fence(Origin.PASTED, pasted[one]) if one in pasted else TextBlock(one, own) for one in pieces]
        return [block for block in made if block.text.strip()] or [TextBlock(text, own)]

    def _paste(self, buffer: Buffer, data: str) -> None:
        """Inserts a short line as text; a longer paste is replaced by a mark."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) <= SHORT_PASTE and "\n" not in text.strip("\n"):
            self._typed = False
            buffer.insert_text(text.strip("\n"))
            return
        lines = plural(text.count("\n") + 1, "line")
        mark = f"[Pasted text {len(self._pastes) + 1}: {lines}, {len(text):,} characters]"
        self._pastes[mark] = text
        buffer.insert_text(mark)

    def _completes(self) -> bool:
        text = self._session.default_buffer.document.text_before_cursor
        return text.startswith("/") or _AT.search(text) is not None

    def note_interrupt(self) -> None:
        self._interrupted_at = time.monotonic()

    def _bottom(self) -> ANSI:
        if time.monotonic() - self._interrupted_at < TWICE_S:
            return _ansi(self._paint.dim(" Ctrl-C again leaves"))
        return _ansi(self._paint.dim(f" {self._toolbar()}"))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
                buffer.complete_state = None  # Enter takes the completion that is marked
                return
            if buffer.document.text_before_cursor.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            elif buffer.text.strip():
                self._typed &= buffer.working_index == len(buffer._working_lines) - 1  # pyright: ignore[reportPrivateUsage]
                buffer.validate_and_handle()

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            self._paste(event.current_buffer, event.data)

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            now = time.monotonic()
            if now - self._interrupted_at < TWICE_S:
                event.app.exit(result=None)
                return
            self._interrupted_at = now
            event.current_buffer.reset()

        return keys

    async def confirm(self, question: str) -> bool:
        return await self.choose(question, {"y": "yes", "n": "no"}) == "yes"

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        """Waits for one of the offered keys and ignores all others."""
        paint = self._paint
        self._offered = frozenset(offers)
        shown = "  ".join(f"{paint.bold(key)} {text}" for key, text in offers.items())
        return await self._asking.prompt_async(ANSI(f"  {question}  {shown} {paint.accent('›')} "))

    async def ask(self, rule: str | None, pages: Pages, show: Callable[[], None]) -> PermissionAnswer | None:
        paint = self._paint
        # Keys that were typed before the question do not answer it.
        clear_typeahead(self._asking.input)
        with suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        while True:
            always = {"a": f"always {paint.dim(f'({rule})')}"} if rule else {}
            # The user can only allow a call that was shown in full.
            offers = {"m": "more"} if pages.left else {"y": "yes", **always}
            answer = await self.choose("Allow?", {**offers, "n": "no"})
            if answer != "more":
                break
            show()
        if answer in ("yes", "always"):
            return PermissionAnswer(True, always=answer == "always")
        reason = ""
        if answer == "no":
            reason = await self._why.prompt_async(_ansi(paint.dim("  Why not? (Enter: no reason) ")))
        return None if _STOP in (answer, reason) else PermissionAnswer(False, reason=reason)


def _ansi(text: str) -> ANSI:
    """Our own styles only: `ANSI` hides text between two control characters."""
    return ANSI(clean(text))


def _answer_keys(is_offered: Callable[[str], bool]) -> KeyBindings:
    """One key per answer. A letter works only while it is offered; the keys that mean no always work."""
    keys = KeyBindings()

    def answers(key: str, word: str) -> None:
        @keys.add(key, eager=True, filter=Condition(lambda: len(key) > 1 or is_offered(key.lower())))
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.text = word
            event.app.exit(result=word)

    letters = {"y": "yes", "a": "always", "m": "more", "n": "no", "s": "skip", "q": "quit"}
    ends = {"escape": "no, as it is", "c-d": "no, as it is", "c-c": _STOP, "<sigint>": _STOP}
    for key, word in {**letters, **ends}.items():
        answers(key, word)
        if len(key) == 1:
            answers(key.upper(), word)

    @keys.add("<any>")
    @keys.add("enter")
    def _(_event: KeyPressEvent) -> None:
        """Ignores every other key."""

    return keys


def _stop_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(result=_STOP)

    @keys.add("c-d")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(result="")

    return keys


def _history(path: Path) -> History:
    """The history of this project in a private file, or in memory if the disk refuses."""
    try:
        make_private(path.parent)
        os.close(open_regular(path, append=True))
    except (OSError, StorageError):
        return InMemoryHistory()
    return FileHistory(str(path))


class _ChatCompleter(Completer):
    """Commands after a slash, files after an @."""

    def __init__(self, cwd: Path, slash: SlashCompletion) -> None:
        self._cwd = cwd
        self._slash = slash

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            for word, back, about in self._slash(text):
                yield Completion(word, start_position=-back, display=one_line(word), display_meta=one_line(about))
        elif found := _AT.search(text):
            yield from self._paths(found[1])

    def _paths(self, typed: str) -> Iterator[Completion]:
        folder, _, name = typed.rpartition("/")
        where = self._cwd / Path(f"{folder}/" if typed.startswith("/") else folder or ".").expanduser()
        try:
            entries = sorted(os.scandir(where), key=lambda entry: entry.name)
        except (OSError, ValueError):
            return
        for entry in entries[: _MOST_PATHS * 10]:
            if entry.name.lower().startswith(name.lower()) and (name.startswith(".") or not entry.name.startswith(".")):
                end = "/" if entry.is_dir() else ""
                yield Completion(entry.name + end, start_position=-len(name), display=one_line(entry.name + end))
