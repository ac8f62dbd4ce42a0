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

from reverie.cli.chat.asking import PermissionQuestions
from reverie.cli.chat.attachments import find_pictures, run_shell
from reverie.cli.chat.commands import COMMANDS, command_in, completions
from reverie.cli.chat.figures import StatusFigures
from reverie.cli.chat.folding import KeptOutputs, fold_lines
from reverie.cli.chat.greeting import greet
from reverie.cli.chat.input import TWICE_S, ChatInput, PickRow, Said
from reverie.cli.chat.output import ChatOutput
from reverie.cli.chat.recap import recap
from reverie.cli.event_loop import CommandSignals
from reverie.cli.output import columns, plural
from reverie.cli.run_view import RunView, TextView
from reverie.cli.session_opening import Opening
from reverie.errors import ReverieError, UserError
from reverie.events import Event, PermissionAsked, TurnEnded
from reverie.instructions.commands import list_shown
from reverie.origins import strip_tags
from reverie.permissions.policy import PolicyMode
from reverie.types import Origin, TextBlock

if TYPE_CHECKING:
    from reverie.session.session import Session

_SHELL_LINES = 20
_LONG_S = 20.0  # the user may look elsewhere meanwhile


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
        self.questions = PermissionQuestions(self)
        self.origin = Origin.ENTERED
        """How the user gave the last command."""
        self.waiting: list[Said] = []
        """Messages that were typed while a turn runs, oldest first."""
        self.is_working = False
        """Whether a turn runs."""
        self.last_answer = ""
        self._material: list[TextBlock] = []
        self._shell: asyncio.Future[tuple[str, TextBlock]] | None = None
        self._came = asyncio.Event()
        self._wanted = wanted
        self._signals = signals
        self._given: ChatInput | None = None
        self._interrupted_at = -TWICE_S

    # -- the conversation -----------------------------------------------------------------------------------------

    async def talk(self, given: ChatInput) -> None:
        """Runs until the user leaves."""
        self._given = given
        self._signals.cancel = self.interrupt
        self._signals.closing = lambda: self.session.closing
        if given.interactive:
            greet(self)
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
        """Whether it can run during a turn: a command of the user, one that changes nothing, or one that is unknown."""
        if (found := _command(said)) is None:
            return bool(said.shell_command)
        command = COMMANDS.get(found[0])
        return self._find_own(said) is None if command is None else command.runs_during_turns(found[1])

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
        self.questions.cancel()
        if self._shell is not None:
            return self._shell.cancel()
        return self.session.cancel()

    def interrupt(self) -> bool:
        """Ctrl-C: stops the turn. A second Ctrl-C leaves the chat."""
        now = time.monotonic()
        self.leaving |= now - self._interrupted_at < TWICE_S
        self._interrupted_at = now
        if self._given is not None:
            self._given.note_interrupt()
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
            self._end_status()
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
        self.is_working, began = True, time.monotonic()
        try:
            async with aclosing(self.session.send(blocks, images=images)) as events:
                async for event in events:
                    self.outputs.keep(event, self.session.places.cwd)
                    view.show(event)
                    if isinstance(event, PermissionAsked):
                        await self.questions.ask(event)
                    if isinstance(event, TurnEnded):
                        self.last_answer = event.text or self.last_answer
                        self.code = self.code if terminal else self.code or event.exit_code
        finally:
            self.is_working = False
            self.view.pause()
        if time.monotonic() - began > _LONG_S:
            self.ring()

    def _show_between_turns(self, event: Event) -> None:
        if isinstance(event, PermissionAsked):
            if not self.session.gate.is_open(event.id):  # it was of the turn that has ended
                return
            self.view.tell(f"{event.reason} /agents allow {event.id}, or deny {event.id}", "warning")
            cwd = Path(event.cwd or self.session.places.cwd)
            self.questions.show(event.id, event.tool, event.input, cwd)
        self.view.show(event)

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
        self._end_status()
        if not self.leaving:
            self.view.say()

    def _end_status(self) -> None:
        """After a command: nothing runs any more, or the turn goes on."""
        self.view.pause()
        if self.is_working:
            self.view.go_on()

    async def confirm(self, question: str) -> bool:
        return await self.input.confirm(question)

    async def choose(self, question: str, offers: Mapping[str, str]) -> str:
        """Waits for one key and returns the word of that key."""
        return await self.input.choose(question, offers)

    def lend_terminal(self) -> AbstractAsyncContextManager[None]:
        """Gives the terminal to another program, such as an editor."""
        return self.input.lend()

    def ring(self) -> None:
        """Tells the user that the chat waits, if they want that."""
        if self.session.parts.settings.chat.bell:
            self.input.ring()

    def copy(self, text: str) -> bool:
        """Puts a text into the clipboard of the terminal; False if that is not possible."""
        return self._given is not None and self._given.copy(text)

    def next_mode(self) -> None:
        """Shift-Tab: asks, changes files without a question, only reads, and again from the beginning."""
        order = (PolicyMode.ASK, PolicyMode.ACCEPT_EDITS, PolicyMode.READ_ONLY)
        gate = self.session.gate
        gate.mode = order[(order.index(gate.mode) + 1) % len(order)] if gate.mode in order else PolicyMode.ASK

    def completions(self, text: str) -> Iterator[tuple[str, int, str]]:
        """Completes a line that begins with a slash."""
        return completions(self, text)

    async def pick(self, title: str, rows: Sequence[PickRow]) -> str | None:
        return await self.input.pick(title, rows)

    @property
    def input(self) -> ChatInput:
        assert self._given is not None
        return self._given

    @property
    def can_ask(self) -> bool:
        return self._given is not None and self._given.interactive

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
        mode = self.session.gate.mode
        await self.close()
        self.session = await again.open(interactive=self.input.interactive)
        self.session.gate.mode = mode
        self.session.listen(self._show_between_turns)

    async def resume(self, id: str) -> None:
        """Continues another session in this chat. If it cannot be opened, this one stays."""
        other = await replace(self._wanted, resume=id).open(interactive=self.input.interactive)
        await self.close()
        self.session = other
        self.session.listen(self._show_between_turns)
        recap(self)

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
        return StatusFigures.of(self.session).line(columns() - 3, [(6, "/help")])


def _command(said: Said) -> tuple[str, str] | None:
    return command_in("".join(strip_tags(block.text) for block in said.blocks)) if said.is_users else None
