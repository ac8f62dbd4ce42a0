"""Asks the user about tool calls: shows the whole call, waits for the answer, and tells the gate."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.cli.diff_preview import Pages, preview
from reverie.cli.output import columns, exact, one_line, plural
from reverie.cli.tool_lines import call_text
from reverie.events import PermissionAsked
from reverie.permissions.answers import AnswerKind, PermissionAnswer
from reverie.permissions.rules import Profile
from reverie.types import Json

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat


class PermissionQuestions:
    """The permission questions of a chat. `unseen`: pages that /agents has not shown yet, by the question's ID."""

    def __init__(self, chat: Chat) -> None:
        self.unseen: dict[str, Pages] = {}
        self._chat = chat
        self._asking: asyncio.Future[PermissionAnswer | None] | None = None

    def cancel(self) -> None:
        """Ends the open question without an answer."""
        if self._asking is not None:
            self._asking.cancel()

    async def ask(self, event: PermissionAsked) -> None:
        """Asks about a call of the turn that runs."""
        chat, view = self._chat, self._chat.view
        view.pause()
        chat.ring()
        asked_at = time.monotonic()
        self._asking = asyncio.ensure_future(self._show_and_ask(event))
        try:
            verdict = await self._asking
        except asyncio.CancelledError:
            if not chat.session.cancel():
                raise
            return
        finally:
            self._asking = None
        if verdict is None:
            chat.interrupt()
            return
        if verdict.kind is AnswerKind.DENY and verdict.reason.strip():
            verdict = replace(verdict, reason=f"The user refused: {verdict.reason.strip()}")
        chat.session.gate.settle(event.id, verdict)
        if verdict.kind is AnswerKind.ALWAYS and chat.session.gate.is_saved:
            view.tell(f"Saved in {event.saves_to}; /permissions lists and removes rules.")
        view.add_wait(time.monotonic() - asked_at)

    async def _show_and_ask(self, event: PermissionAsked) -> PermissionAnswer | None:
        view, given = self._chat.view, self._chat.input
        cwd = Path(event.cwd or self._chat.session.places.cwd)
        view.say()
        view.say(f"{view.paint.warning('?')} {view.paint.bold(call_text(event.tool, event.input, cwd, columns() - 2))}")
        view.say(view.paint.dim(f"  {one_line(event.reason)}"))
        pages = Pages(preview(event.tool, event.input, cwd, view.paint, columns() - 2))
        self._show_page(pages)
        lasting = self._lasting_answers(event)
        profiles = [Profile(choice) for choice in event.choices]
        return await given.ask(lasting, pages, lambda: self._show_page(pages), profiles)

    def _lasting_answers(self, event: PermissionAsked) -> tuple[str, ...]:
        """Shows the rules in full and returns the answers that hold longer than this call."""
        if not event.rules:
            return ()
        how = "for this session, or always" if event.saves_to else "for this session"
        how = f"outside of the sandbox {how}" if event.choices else how
        self._chat.view.say(self._chat.view.paint.dim(f"  {how}: {exact(', '.join(event.rules))}"))
        return ("session", "always") if event.saves_to else ("session",)

    def show(self, id: str, tool: str, given: Json, cwd: Path) -> None:
        """Shows the next page of an agent's question, or the first page again after the last."""
        pages = self.unseen.pop(id, None) or Pages(preview(tool, given, cwd, self._chat.view.paint, columns() - 2))
        self._show_page(pages)
        if pages.left:
            self.unseen[id] = pages

    def _show_page(self, pages: Pages) -> None:
        view = self._chat.view
        for line in pages.next():
            view.say(f"  {line}")
        if pages.left:
            view.say(view.paint.warning(f"  … {plural(pages.left, 'more line')}"))
