"""Where the chat's lines come from: a terminal (see `prompt.py`) or a pipe, one line per turn."""

from __future__ import annotations

import asyncio
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from reverie.cli.diff_preview import Pages
from reverie.origins import split_material
from reverie.permissions.answers import AnswerKind, PermissionAnswer
from reverie.permissions.rules import Profile
from reverie.quick import dataclass
from reverie.types import Origin, TextBlock

STOP = "stop"
"""The answer that stops the turn."""
MORE = "more"
"""The answer that shows the next page of the call."""
TWICE_S = 2.0
"""Ctrl-C twice within this time leaves the chat."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user: its parts with their origins, and as it is shown, with marks for long pastes."""

    blocks: tuple[TextBlock, ...]
    shown: str

    @property
    def is_users(self) -> bool:
        return self.blocks[0].origin.is_users

    @property
    def shell_command(self) -> str:
        """The command after an exclamation mark, if the user typed one."""
        text = self.blocks[0].text.strip()
        return text[1:].strip() if len(self.blocks) == 1 and self.is_users and text.startswith("!") else ""


@dataclass(frozen=True, slots=True)
class PickRow:
    """A row of a picker: the value that is returned, the text, and a note such as an age."""

    value: str
    text: str
    note: str = ""


class ChatInput(ABC):
    """The input of a chat. The methods here are for an input without a user."""

    interactive = False
    """Whether a user can be asked."""
    in_words = False
    """Whether words are used instead of symbols, for screen readers."""

    @abstractmethod
    async def next(self) -> Said | None:
        """The next message; None when the user leaves. It is called again while a turn runs, if `interactive`."""

    async def close(self) -> None:  # noqa: B027
        """Ends the reading; the terminal is as it was before."""

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Gives the terminal to another program for a while, such as an editor."""
        yield

    def note_interrupt(self) -> None:  # noqa: B027
        """Records that Ctrl-C stopped a turn: at the prompt it counts as the first of two."""

    async def ask(
        self, lasting: Sequence[str], pages: Pages, show: Callable[[], None], profiles: Sequence[Profile] = ()
    ) -> PermissionAnswer | None:
        """Asks about the call that was shown; None as the answer stops the turn.

        `lasting`: which of the answers `session` and `always` can be chosen. `show` shows the next page while `pages`
        has one. `profiles`: it ran in the sandbox, and may run again in one of these.
        """
        del lasting, pages, show, profiles
        return PermissionAnswer.deny("No user can be asked.")

    def put(self, text: str) -> None:
        """Offers a text as the next message, if the user has not begun one."""
        del text

    def switch_vi_keys(self) -> bool | None:
        """Switches the keys of vi on or off and says which; None if this input has none."""
        return None

    def ring(self) -> None:  # noqa: B027
        """Rings the bell of the terminal."""

    def copy(self, text: str) -> bool:
        """Puts a text into the clipboard of the terminal; False if that is not possible."""
        del text
        return False

    async def confirm(self, question: str) -> bool:
        """Asks yes or no. Without a user, the answer is yes."""
        del question
        return True

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        """Waits for one of the offered keys and returns its word. Without a user, the last one."""
        del question
        return list(offers.values())[-1]

    async def pick(self, title: str, rows: Sequence[PickRow]) -> str | None:
        """Lets the user choose one row with the arrow keys and by typing; its value, or None. Without a user, None."""
        del title, rows
        return None


async def edit_message(given: ChatInput, text: str) -> str:
    """The message after the user has edited it in another program. Raises a ReverieError if that is not possible."""
    from reverie.cli.memory.change import edit_text

    async with given.lend():
        return (await asyncio.to_thread(edit_text, text, "message.md")).rstrip("\n")


class AskingInput(ChatInput):
    """An input with a user, who is asked by keys or by lines."""

    interactive = True

    async def ask(
        self, lasting: Sequence[str], pages: Pages, show: Callable[[], None], profiles: Sequence[Profile] = ()
    ) -> PermissionAnswer | None:
        again = {"o" if profile is Profile.FREE else "p": profile for profile in profiles}
        words = {"p": "in the project", "o": "outside of the sandbox"}
        yes = {key: words[key] for key in again} or {"y": "yes"}
        while True:
            # The user can only allow a call that was shown in full.
            offers = {"m": MORE} if pages.left else {**yes, **{word[0]: word for word in lasting}}
            answer = await self.choose("Run it again?" if again else "Allow?", {**offers, "n": "no"})
            if answer != MORE:
                break
            show()
        kinds = {"yes": AnswerKind.ONCE, "session": AnswerKind.SESSION, "always": AnswerKind.ALWAYS}
        for key, profile in again.items():
            if answer == words[key]:
                return PermissionAnswer.once(profile)
        if answer in kinds:
            return PermissionAnswer(kinds[answer])
        reason = await self.ask_reason() if answer == "no" else ""
        return None if STOP in (answer, reason) else PermissionAnswer.deny(reason)

    async def ask_reason(self) -> str:
        """Why a call was refused; empty if there is no reason."""
        return ""

    async def confirm(self, question: str) -> bool:
        return await self.choose(question, {"y": "yes", "n": "no"}) == "yes"


class LineReader(ChatInput):
    """Whole lines from standard input. Bytes that are not UTF-8 are replaced."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._reading = False

    async def read_line(self) -> str | None:
        """The next line; None at the end."""
        self.start()
        return await self._lines.get()

    def start(self) -> None:
        if not self._reading:
            self._reading = True
            # A daemon thread: a thread that waits in a read cannot be ended.
            threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()

    def deliver(self, line: str | None) -> None:
        """Takes a line that was read."""
        self._lines.put_nowait(line)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for raw in sys.stdin.buffer:
                loop.call_soon_threadsafe(self.deliver, raw.decode("utf-8", "replace").rstrip("\r\n"))
            loop.call_soon_threadsafe(self.deliver, None)
        except RuntimeError:  # the loop is closed: the chat ended before its input
            return


class PipedInput(LineReader):
    """Lines from a pipe; its end is the end of the chat."""

    async def next(self) -> Said | None:
        while (line := await self.read_line()) is not None:
            if line.strip():
                return Said(tuple(split_material(line, Origin.ENTERED)), line)
        return None
