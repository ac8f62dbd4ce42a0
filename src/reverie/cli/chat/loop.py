"""The loop of the chat: read a message, run the turn, answer its questions.

Holds one session at a time; /model replaces it. A view shows everything.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.cli.chat.attachments import find_pictures, run_shell
from reverie.cli.chat.commands import COMMANDS, command_in, completions
from reverie.cli.chat.figures import StatusFigures
from reverie.cli.chat.folding import THINKING, KeptOutputs, fold_lines
from reverie.cli.chat.greeting import greet, recap
from reverie.cli.chat.input import TWICE_S, ChatInput, PickRow, Said
from reverie.cli.chat.output import ChatOutput
from reverie.cli.diff_preview import Pages, preview
from reverie.cli.event_loop import CommandSignals
from reverie.cli.output import columns, exact, one_line, plural
from reverie.cli.run_view import RunView, TextView
from reverie.cli.session_opening import Opening
from reverie.cli.tool_lines import call_text
from reverie.errors import ReverieError, UserError
from reverie.events import Event, PermissionAsked, ThinkingStreamed, ToolFinished, ToolStarted, TurnEnded
from reverie.instructions.commands import list_shown
from reverie.origins import strip_tags
from reverie.permissions.answers import AnswerKind, PermissionAnswer
from reverie.types import Json, Origin, TextBlock

if TYPE_CHECKING:
    from reverie.session.session import Session

_SHELL_LINES = 20


class Chat:
    """One chat. `leaving` ends it after the current turn; `code` is the exit code."""

    def __init__(
        self,
        session: Session,
        wanted: Opening,
        view: ChatOutput,
        signals: CommandSignals,
        outputs: KeptOutputs | None = None,
    ) -> None:
        self.session = session
        self.outputs = outputs or KeptOutputs()
        """Outputs of tools and thinking, for /show."""
        self.view = view
        self.leaving = False
        self.code = 0
        self.unseen: dict[str, Pages] = {}
        """Pages not shown yet of the questions that /agents answers, by their ID."""
        self.origin = Origin.ENTERED
        """How the user gave the last command."""
        self.waiting: list[Said] = []
        """Messages that were typed while a turn runs, oldest first."""
        self.is_working = False
        """Whether a turn runs."""
        self.last_answer = ""
        self._thought = ""
        self._titles: dict[str, str] = {}
        self._material: list[TextBlock] = []
        self._shell: asyncio.Future[tuple[str, TextBlock]] | None = None
        self._came = asyncio.Event()
        self._wanted = wanted
        self._signals = signals
        self._input: ChatInput | None = None
        self._asking: asyncio.Future[PermissionAnswer | None] | None = None
        self._interrupted_at = -TWICE_S

    # -- the conversation -----------------------------------------------------------------------------------------

    async def talk(self, given: ChatInput) -> None:
        """Runs until the user leaves."""
        self._input = given
        self._signals.cancel = self.interrupt
        self._signals.closing = lambda: self.session.closing
        if given.interactive:
            greet(self.session, self.view, in_words=given.in_words)
        self.session.listen(self._show_between_turns)
        reading = asyncio.create_task(self._read(given)) if given.interactive else None
        try:
            if self.session.hook_points.has_first_message:
                await self._run_turn(Said((), ""))
            while not self.leaving and self._signals.ended_by is None:
                said = await (given.next() if reading is None else self._next_waiting(reading))
                if said is None:
                    break
                await self._take(said)
        finally:
            if reading is not None:
                reading.cancel()
            await given.close()

    async def _read(self, given: ChatInput) -> None:
        """Reads on while a turn runs. Messages wait; commands that change nothing run at once."""
        while (said := await given.next()) is not None:
            if self.is_working and self._runs_at_once(said):
                await self._take(said)
            else:
                self.waiting.append(said)
                self._came.set()
        self.leaving = True
        self._came.set()
        self.stop()

    def _runs_at_once(self, said: Said) -> bool:
        """Whether it can run during a turn: a command of the user, or one that changes nothing."""
        found = _command(said)
        return bool(said.shell_command) or (found is not None and found[0] in COMMANDS and COMMANDS[found[0]].any_time)

    async def _next_waiting(self, reading: asyncio.Task[None]) -> Said | None:
        while not self.waiting and not self.leaving and not reading.done():
            self._came.clear()
            coming = asyncio.ensure_future(self._came.wait())
            await asyncio.wait([coming, reading], return_when=asyncio.FIRST_COMPLETED)
            coming.cancel()
        if reading.done() and not self.leaving:
            reading.result()
        return self.waiting.pop(0) if self.waiting and not self.leaving else None

    async def _take(self, said: Said) -> None:
        if self.can_ask:
            self.view.user_message(said.shown)
        if self.can_ask and (command := said.shell_command):
            await self._run_shell(command)
        elif not await self.run_if_command(said):
            await self._run_turn(said)

    async def run_if_command(self, said: Said) -> bool:
        """Runs a message that is a command of the chat; False if it is a message for the model."""
        found = _command(said)
        if not found or (found[0] not in COMMANDS and self._find_own(said) is not None):
            return False
        given_as = {block.origin for block in said.blocks}
        self.origin = given_as.pop() if len(given_as) == 1 else Origin.PASTED
        await self.run_command(*found)
        return True

    def _find_own(self, said: Said) -> object | None:
        """The user's own command, from a file, that this message names."""
        return self.session.commands.find(said.blocks[0].text)

    def take_back(self) -> Said | None:
        """Removes the last waiting message, so that the user can change it."""
        return self.waiting.pop() if self.waiting else None

    def stop(self) -> bool:
        """Stops the turn; False if none runs."""
        if self._asking is not None:
            self._asking.cancel()
        if self._shell is not None:
            return self._shell.cancel()
        return self.session.cancel()

    def interrupt(self) -> bool:
        """Ctrl-C: stops the turn. A second Ctrl-C leaves the chat."""
        now = time.monotonic()
        self.leaving |= now - self._interrupted_at < TWICE_S
        self._interrupted_at = now
        if self._input is not None:
            self._input.note_interrupt()
        return self.stop()

    async def _run_shell(self, command: str) -> None:
        """Runs a command of the user. The next message tells the model about it."""
        self._shell = asyncio.ensure_future(run_shell(self.session, command))
        self.view.show_status(f"$ {command}")
        try:
            text, block = await self._shell
        except asyncio.CancelledError:
            if not self._shell.cancelled():
                raise
            self.view.tell("Stopped.", "warning")
            return
        finally:
            self._shell = None
            self.view.pause()
        self._material.append(block)
        number = self.outputs.add(f"$ {command}", text)
        shown = fold_lines(text, number, self.view.paint, self.view.columns - 3, most=_SHELL_LINES)
        self.view.say_all([*(f"  {line}" for line in shown), ""])

    async def _run_turn(self, said: Said) -> None:
        try:
            images = await find_pictures(self.session, said.blocks)
        except UserError as error:
            self.view.tell(str(error), "error")
            return
        blocks, self._material = [*self._material, *said.blocks], []
        terminal = self.can_ask
        view: RunView = self.view if terminal else TextView(self.session.places.cwd, quiet=False)
        if terminal:
            self.view.begin()
        self.is_working = True
        try:
            async with aclosing(self.session.send(blocks, images=images)) as events:
                async for event in events:
                    self._keep(event)
                    view.show(event)
                    if isinstance(event, PermissionAsked):
                        await self._ask_permission(event)
                    if isinstance(event, TurnEnded):
                        self.last_answer = event.text or self.last_answer
                        self.code = self.code if terminal else self.code or event.exit_code
        finally:
            self.is_working = False
            self.view.pause()

    def _keep(self, event: Event) -> None:
        """Keeps what is shown in short."""
        if isinstance(event, ThinkingStreamed):
            self._thought += event.text
            return
        if self._thought:
            self.outputs.add(THINKING, self._thought)
            self._thought = ""
        if isinstance(event, ToolStarted):
            self._titles[event.id] = call_text(event.name, event.input, self.session.places.cwd)
        elif isinstance(event, ToolFinished):
            self.outputs.add(self._titles.pop(event.id, event.name), event.text)

    def _show_between_turns(self, event: Event) -> None:
        if isinstance(event, PermissionAsked):
            if not self.session.gate.is_open(event.id):  # it was of the turn that has ended
                return
            self.view.tell(f"{event.reason} /agents allow {event.id}, or deny {event.id}", "warning")
            self.show_question(event.id, event.tool, event.input, Path(event.cwd or self.session.places.cwd))
        self.view.show(event)

    # -- questions ------------------------------------------------------------------------------------------------

    async def _ask_permission(self, event: PermissionAsked) -> None:
        assert self._input is not None
        view, cwd = self.view, Path(event.cwd or self.session.places.cwd)
        view.pause()
        asked_at = time.monotonic()
        self._asking = asyncio.ensure_future(self._show_and_ask(event, cwd))
        try:
            verdict = await self._asking
        except asyncio.CancelledError:
            if not self.session.cancel():
                raise
            return
        finally:
            self._asking = None
        if verdict is None:
            self.interrupt()
            return
        if verdict.kind is AnswerKind.DENY and verdict.reason.strip():
            verdict = replace(verdict, reason=f"The user refused: {verdict.reason.strip()}")
        self.session.gate.settle(event.id, verdict)
        if verdict.kind is AnswerKind.ALWAYS:
            view.tell(f"Saved in {event.saves_to}; /permissions lists and removes rules.")
        view.add_wait(time.monotonic() - asked_at)

    async def _show_and_ask(self, event: PermissionAsked, cwd: Path) -> PermissionAnswer | None:
        assert self._input is not None
        if self._input.asks_in_full:
            return await self._input.ask_in_full(event, cwd)
        view = self.view
        view.say()
        view.say(f"{view.paint.warning('?')} {view.paint.bold(call_text(event.tool, event.input, cwd, columns() - 2))}")
        view.say(view.paint.dim(f"  {one_line(event.reason)}"))
        pages = Pages(preview(event.tool, event.input, cwd, view.paint, columns() - 2))
        self.show_page(pages)
        lasting = self._lasting_answers(event)
        return await self._input.ask(lasting, pages, lambda: self.show_page(pages))

    def _lasting_answers(self, event: PermissionAsked) -> tuple[str, ...]:
        """Shows the rules in full and returns the answers that hold longer than this call."""
        if not event.rules:
            return ()
        how = "for this session, or always" if event.saves_to else "for this session"
        self.view.say(self.view.paint.dim(f"  {how}: {exact(', '.join(event.rules))}"))
        return ("session", "always") if event.saves_to else ("session",)

    def show_question(self, id: str, tool: str, given: Json, cwd: Path) -> None:
        """Shows the next page of an agent's question, or the first page again after the last."""
        pages = self.unseen.pop(id, None) or Pages(preview(tool, given, cwd, self.view.paint, columns() - 2))
        self.show_page(pages)
        if pages.left:
            self.unseen[id] = pages

    def show_page(self, pages: Pages) -> None:
        for line in pages.next():
            self.view.say(f"  {line}")
        if pages.left:
            self.view.say(self.view.paint.warning(f"  … {plural(pages.left, 'more line')}"))

    # -- commands -------------------------------------------------------------------------------------------------

    async def run_command(self, name: str, rest: str) -> None:
        """Runs one command and shows its error."""
        command = COMMANDS.get(name)
        try:
            if command is None:
                from reverie.cli.app import unknown_name

                own = (one.name for one in list_shown(self.session.commands.load(), COMMANDS))
                known = {f"/{one}": None for one in (*COMMANDS, *own)}
                raise UserError(unknown_name("command", f"/{name}", known))
            await command.run(self, rest)
        except ReverieError as error:
            self.view.pause()
            self.view.tell(str(error), "error")
        self.view.pause()
        if not self.leaving:
            self.view.say()

    async def confirm(self, question: str) -> bool:
        assert self._input is not None
        return await self._input.confirm(question)

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        """Waits for one key and returns the word of that key."""
        assert self._input is not None
        return await self._input.choose(question, offers)

    def lend_terminal(self) -> AbstractAsyncContextManager[None]:
        """Gives the terminal to another program, such as an editor."""
        assert self._input is not None
        return self._input.lend()

    def copy(self, text: str) -> bool:
        """Puts a text into the clipboard of the terminal; False if that is not possible."""
        return self._input is not None and self._input.copy(text)

    def completions(self, text: str) -> Iterator[tuple[str, int, str]]:
        """Completes a line that begins with a slash."""
        return completions(self, text)

    async def pick(self, title: str, rows: Sequence[PickRow]) -> str | None:
        assert self._input is not None
        return await self._input.pick(title, rows)

    @property
    def can_ask(self) -> bool:
        return self._input is not None and self._input.interactive

    async def change_model(self, name: str) -> None:
        """Continues the conversation with another model. Raises if there is no such model."""
        from reverie.models.catalogue import Catalogue
        from reverie.models.registry import doubt_about, model_access, open_model

        settings, before = self.session.parts.settings, self.session.model_name
        access, catalogue = model_access(settings), Catalogue.load(settings.catalogue.files)
        tried = open_model(name, access, catalogue)
        is_listed = None
        if doubt_about(name, access, catalogue) is not None and (ask := getattr(tried, "listed", None)) is not None:
            self.view.show_status("asking the server which models it has")
            is_listed = await ask()
        await tried.close()
        if is_listed is False:
            self.view.pause()
            self.view.tell(f"The server does not list {name}; /model {before} switches back.", "warning")
        has_begun = bool(self.session.view.entries)
        self._wanted = replace(self._wanted, model=name)
        again = replace(self._wanted, resume=self.session.id if has_begun else None)
        assert self._input is not None
        await self.close()
        self.session = await again.open(interactive=self._input.interactive)
        self.session.listen(self._show_between_turns)

    async def resume(self, id: str) -> None:
        """Continues another session in this chat. If it cannot be opened, this one stays."""
        assert self._input is not None
        other = await replace(self._wanted, resume=id).open(interactive=self._input.interactive)
        await self.close()
        self.session = other
        self.session.listen(self._show_between_turns)
        recap(self.session, self.view, in_words=self._input.in_words)

    async def close(self) -> None:
        """Ends the session and waits for its background work."""
        running = self.session.tasks.running
        if running and sys.stdout.isatty():
            self.view.tell(f"Waiting for {plural(len(running), 'background task')} (Ctrl-C skips).")
        try:
            await self.session.close()
        finally:
            self.view.pause()

    # -- what is shown around the turns ---------------------------------------------------------------------------

    def toolbar(self) -> str:
        return StatusFigures.of(self.session).line(columns() - 2, [(6, "/help")])


def _command(said: Said) -> tuple[str, str] | None:
    return command_in("".join(strip_tags(block.text) for block in said.blocks)) if said.is_users else None
