"""The input of the chat on the full screen: messages from the composer, answers from dialogs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from textual.app import App
from textual.screen import Screen

from reverie.cli.chat.input import ActList, ChatInput, PickRow, Said
from reverie.cli.chat.palette import rank
from reverie.cli.diff_preview import preview
from reverie.cli.full_screen.dialogs import DIALOG_COLUMNS, STOP, Choice, Permission, Picker
from reverie.cli.output import Paint
from reverie.cli.tool_lines import call_text
from reverie.events import PermissionAsked
from reverie.permissions.answers import AnswerKind, PermissionAnswer

T = TypeVar("T")


class FullScreenInput(ChatInput):
    """Waits for what the user does in the app."""

    interactive = True
    asks_in_full = True

    def __init__(self, app: App[None], paint: Paint, offer: Callable[[str], None]) -> None:
        self._app = app
        self._offer = offer
        self._paint = paint
        self._given: asyncio.Queue[Said | None] = asyncio.Queue()

    def give(self, said: Said | None) -> None:
        """Takes a message from the composer; None leaves the chat."""
        self._given.put_nowait(said)

    async def next(self) -> Said | None:
        return await self._given.get()

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        with self._app.suspend():
            yield

    async def ask_in_full(self, event: PermissionAsked, cwd: Path) -> PermissionAnswer | None:
        room = min(self._app.size.width, DIALOG_COLUMNS) - 5
        texts = preview(event.tool, event.input, cwd, self._paint, room)
        title = call_text(event.tool, event.input, cwd, room)
        word = await self._open(Permission(title, event.reason, texts, event.rules, saves_to=event.saves_to))
        if word is None or word == STOP:
            return None
        kinds = {"once": AnswerKind.ONCE, "session": AnswerKind.SESSION, "always": AnswerKind.ALWAYS}
        return (
            PermissionAnswer(kinds[word]) if word in kinds else PermissionAnswer.deny(word.removeprefix("no").strip())
        )

    def put(self, text: str) -> None:
        self._offer(text)

    def ring(self) -> None:
        self._app.bell()

    def copy(self, text: str) -> bool:
        self._app.copy_to_clipboard(text)
        return True

    async def confirm(self, question: str) -> bool:
        return await self.choose(question, {"y": "yes", "n": "no"}) == "yes"

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        return await self._open(Choice(question, offers)) or "no, as it is"

    async def pick(self, title: str, rows: Sequence[PickRow]) -> str | None:
        return await self._open(Picker(title, lambda: rows, rank_rows))

    async def manage(self, listed: ActList) -> bool:
        await self._open(Picker(listed.title, listed.rows, rank_rows, listed))
        return True

    async def _open(self, screen: Screen[T]) -> T | None:
        """Shows a dialog and waits for its result. If the wait is cancelled, the dialog closes."""
        answer: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def take(result: T | None) -> None:
            if not answer.done():
                answer.set_result(result)

        self._app.push_screen(screen, take)
        try:
            return await answer
        finally:
            if answer.cancelled() and screen.is_current and self._app.is_running:
                screen.dismiss()


def rank_rows(typed: str, rows: Sequence[PickRow]) -> list[PickRow]:
    return rank(typed, rows, lambda row: f"{row.text} {row.note} {row.value}")
