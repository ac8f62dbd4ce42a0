"""The public API: open a session, send it messages, read its events, close it.

    session = await Session.open(cwd=Path.cwd())
    async for event in session.send("What does this project do?"):
        ...
    await session.close()

`ask("…")` does the same in one blocking line. A session joins the parts and carries out what layers decide; it has no
rules itself.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from reverie.context.compaction_report import CompactionReport, UndoReport
from reverie.context.conversation import unsent_break
from reverie.context.prefix import date_change, is_date_outdated
from reverie.errors import BlockingLimit, Cancelled, NoAnswer, ReverieError, StoppedByHook, UserError
from reverie.events import Event, Notice, TextStreamed, TurnEnded, TurnStarted
from reverie.instructions import load_instructions
from reverie.layers.base import ForkResult
from reverie.loop import INTERRUPTED, close_open_calls, run
from reverie.models.base import Model
from reverie.origins import UserInput, fence, input_blocks
from reverie.permissions.rules import Decision, ToolCall
from reverie.runtime.hooks import HookEvent
from reverie.runtime.live import LiveServer
from reverie.runtime.tasks import Task, TaskHandle
from reverie.session.assembly import Assembly, Outlet
from reverie.session.mcp_tools import open_servers
from reverie.session.parts import gather, look_at_model, resume_facts, tell_flag_mistakes
from reverie.session.verbs import verbs
from reverie.settings import Settings
from reverie.storage.cleanup import clean_tool_results, needs_cleaning
from reverie.storage.transcript.session_log import Clock, SessionLog, utc_now
from reverie.storage.transcript.view import Entry
from reverie.tools.base import Tool, ToolContext
from reverie.tools.registry import make_builtin_tools
from reverie.tools.snapshots import RestoredFiles
from reverie.types import Block, ImageBlock, JsonObject, Message, Origin, Purpose, TextBlock, Usage

CRASHED = "The session ended before this call was finished; it may have run partly."


class Session(Assembly):
    """One conversation. Create it with `Session.open`. One turn runs at a time."""

    # -- opening and closing --------------------------------------------------------------------------------------

    @classmethod
    async def open(
        cls,
        *,
        cwd: Path | str | None = None,
        model: str | Model | None = None,
        resume: str | None = None,
        session_id: str | None = None,
        interactive: bool = False,
        settings: Settings | None = None,
        overrides: JsonObject | None = None,
        tools: Sequence[Tool] | None = None,
        prompt: str = "",
        own_model: bool = True,
        mcp_servers: Mapping[str, object] | None = None,
        clock: Clock = utc_now,
    ) -> Session:
        """Opens a new session in `cwd`, or continues an old one (`resume`: an id, its start, or `last`).

        `prompt` replaces Reverie's own system prompt. `own_model`: whether its model, with its key, is needed.
        `mcp_servers`: more servers than the files name, in the form of `.mcp.json`.
        `interactive`: somebody answers `PermissionAsked` events; otherwise such calls are refused.
        Raises SessionBusy with the process if the session is open elsewhere.
        """
        outlet = Outlet()
        parts = gather(
            Path(cwd or Path.cwd()),
            model=model,
            resume=resume,
            session_id=session_id,
            overrides=overrides or {},
            settings=settings,
            clock=clock,
            emit=outlet.emit,
            prompt=prompt,
            own_model=own_model,
        )
        if model is None or isinstance(model, str):
            await look_at_model(parts, outlet.emit)
        if tools is None:
            servers = open_servers(parts, outlet.emit, mcp_servers)
            own = make_builtin_tools(parts.settings.tools, window=parts.limits.window)
            tools = (*own, *servers.tools) if servers is not None else own
        session = cls(parts, outlet, interactive=interactive, tools=tools, clock=clock, open_session=Session.open)
        close_open_calls(parts.log, CRASHED)
        session.conversation.announced = unsent_break(parts.log.records, parts.places.home) if parts.resumed else ()
        if parts.log.view.entries and parts.log.view.header is None:
            session.ensure_header()
        await session._listen()
        await session.messages.look()
        facts = resume_facts(parts, clock()) if parts.resumed else {}
        await session.hook_points.session_started("resume" if parts.resumed else "startup", facts)
        if interactive:
            session.mcp.start()
        session._clean_up()
        if session._syncs is not None:
            await session._syncs.start()
        if session.dreaming is not None:
            session.dreaming.recover()
        return session

    def _clean_up(self) -> None:
        project, kept = self.parts.places.project, self.parts.settings.tool_results
        if not needs_cleaning(project, skip=self.id):
            return

        async def work(task: TaskHandle) -> None:
            done = await asyncio.to_thread(
                clean_tool_results, project, keep_days=kept.keep_days, keep_bytes=kept.keep_bytes, skip=self.id
            )
            task.progress(f"{done.files} files, {done.bytes:,} bytes removed")

        self.tasks.start(Purpose.CLEANUP, "old tool results", work)

    async def _listen(self) -> None:
        """Answers other commands on a socket. Without a socket the session still works."""
        if self.parts.lease is None:
            return
        server = LiveServer(self.parts.places.socket(self.id), verbs(self))
        try:
            await server.start()
        except ReverieError as error:
            self.emit(Notice(f"other commands cannot reach this session: {error}", "warning"))
        else:
            self._server = server

    async def close(self) -> None:
        """Cancels a running turn, waits for background work, runs the end hooks and frees the lease."""
        self.closing = True
        self.cancel()
        await self.engine.compactor.stop_idle()
        if self._turn is not None:
            await asyncio.wait([self._turn])
        parts = self.parts
        try:
            await self.agents.end_waiting()
            await self.tasks.drain(parts.settings.background.exit_wait_s)
            if self._syncs is not None:
                await self._syncs.finish()
            await self.hook_points.session_ended("exit")
        finally:
            await self.mcp.close()
            await self.agents.close()
            await self.messages.close()
            if self._server is not None:
                await self._server.close()
            await self.engine.close()
            if self.telemetry is not None:
                self.telemetry.flush()
            parts.log.close()
            await parts.model.close()
            if parts.lease is not None:
                parts.lease.release()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- for callers ----------------------------------------------------------------------------------------------

    @property
    def log(self) -> SessionLog:
        """The transcript, record by record."""
        return self.parts.log

    @property
    def tool_context(self) -> ToolContext:
        """What the tools of the main agent see."""
        return self._thread.context

    @property
    def notes_path(self) -> Path:
        """The file of the session notes."""
        return self.engine.notes.path

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Passes events between turns (background tasks, notices), and those from opening, to `listener`."""
        self._outlet.listen(listener)

    async def send(self, text: UserInput, *, images: Sequence[ImageBlock] = ()) -> AsyncGenerator[Event, None]:
        """Runs one turn. The last event is always `TurnEnded`. Leaving the loop early cancels the turn
        (`contextlib.aclosing` does so at once). An empty text runs a turn for the waiting messages.
        A string is the user's input, with pasted material split off; a front end that knows more gives blocks."""
        said = input_blocks(text)
        await self.engine.compactor.stop_idle()
        if self.busy:
            what = "a turn is running" if self._turn is not None else "the conversation is being compacted"
            raise UserError(f"{what} in this session: wait for it, or cancel it")
        waiting = self.messages.waiting or self.hook_points.has_first_message
        if not any(block.text.strip() for block in said) and not images and not waiting:
            raise UserError("there is nothing to send: the message is empty")
        queue = self._outlet.open_turn()
        self._turn_is_over = False
        turn = self._turn = asyncio.create_task(self._run_turn(said, images))
        try:
            while True:
                getting = asyncio.ensure_future(queue.get())
                await asyncio.wait([getting, turn], return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    getting.cancel()
                    if turn.cancelled():  # before it had begun
                        yield TurnEnded("cancelled", "", Usage(), 0, None, Cancelled.exit_code)
                    else:
                        turn.result()  # raises the error of a bug
                    break
                event = getting.result()
                yield event
                if isinstance(event, TurnEnded):
                    break
        finally:
            turn.cancel()
            await asyncio.wait([turn])
            self._turn = None
            self._outlet.close_turn()

    async def ask(self, text: str) -> str:
        """Runs one turn and returns the answer. Raises `NoAnswer` with the text so far if it is not complete."""
        ended: TurnEnded | None = None
        async for event in self.send(text):
            if isinstance(event, TurnEnded):
                ended = event
        assert ended is not None
        if ended.reason != "answered":
            raise NoAnswer(ended.error or f"the turn ended without a whole answer ({ended.reason})", ended.text)
        return ended.text

    async def fork(
        self,
        directive: str,
        *,
        purpose: Purpose,
        permission: Callable[[ToolCall], Awaitable[Decision]],
        max_rounds: int,
        max_tokens: int | None = None,
    ) -> ForkResult:
        """Asks a fork of this conversation. Only its cost is added to the conversation."""
        self.ensure_header()
        return await self._forks.now().run(
            directive, purpose=purpose, permission=permission, max_rounds=max_rounds, max_tokens=max_tokens
        )

    # -- what the user can do to the context ------------------------------------------------------------------------

    async def compact(self, text: str = "", *, from_: str | None = None, up_to: str | None = None) -> CompactionReport:
        """Compacts now, or at the end of the current round; `from_` and `up_to` name the message where a part ends."""
        return await self.engine.compactor.compact(text, from_=from_, up_to=up_to)

    async def preview(self, text: str = "", *, from_: str | None = None, up_to: str | None = None) -> CompactionReport:
        """Shows the result of a compaction without changing anything."""
        return await self.engine.compactor.preview(text, from_=from_, up_to=up_to)

    async def undo(self, *, fit: bool = False) -> UndoReport:
        """Takes back the last compaction, rewind or clear; with `fit`, as much of it as fits."""
        return await self.engine.compactor.undo(fit=fit)

    async def undo_files(self) -> RestoredFiles:
        """Restores the files of the project as they were before the last turn in which commands changed them. Called
        again, it takes that back."""
        if self.busy:
            raise UserError("a turn is running in this session: wait for it, or cancel it")
        return await self.file_undo.restore()

    def rewind(self, message: str) -> str:
        """Goes back to before a message of the user (`-1` is the last one) and returns its text."""
        return self.engine.compactor.rewind(message)

    def user_messages(self) -> list[Entry]:
        """The messages that a rewind can go back to, oldest first."""
        return self.engine.compactor.messages()

    async def clear(self) -> None:
        """Starts with an empty conversation in the same session; pins stay."""
        await self.engine.compactor.clear()

    def pin(self, text: str) -> str:
        """Keeps a text through every compaction; returns the pin's id."""
        return self.engine.compactor.pin(text)

    def unpin(self, id: str) -> str:
        """Removes a pin; returns its text."""
        return self.engine.compactor.unpin(id)

    @property
    def pins(self) -> dict[str, str]:
        """The pinned texts by their ids."""
        return self.engine.compactor.pins

    def update_notes(self) -> Task[None]:
        """Updates the session notes now, in the background."""
        return self.engine.notes.update_now()

    # -- one turn -------------------------------------------------------------------------------------------------

    async def _run_turn(self, said: Sequence[TextBlock], images: Sequence[ImageBlock]) -> None:
        thread = self._thread
        reason, answer, error, code = "failed", "", None, 0
        thread.rounds, thread.usage = 0, Usage()
        self.file_undo.begin_turn()
        try:
            done = await self.commands.answer(said)
            refusal = await self._take_in(said, images) if done is None else None
            if done is not None:
                self.emit(TextStreamed(done))
                reason, answer = "answered", done
            elif refusal is None:
                outcome = await run(thread)
                reason, answer = outcome.reason, outcome.text
                code = 0 if reason == "answered" else ReverieError.exit_code
            else:
                reason, error, code = "refused", refusal, ReverieError.exit_code
        except asyncio.CancelledError:
            reason, code = "cancelled", Cancelled.exit_code
            close_open_calls(thread.log, INTERRUPTED)
            thread.log.append_message(Message("user", (fence(Origin.CODE, INTERRUPTED),)), isMeta=True)
        except StoppedByHook as problem:
            reason, error, code = "refused", str(problem), problem.exit_code
        except BlockingLimit as problem:
            reason, error, code = "blocked", str(problem), problem.exit_code
        except ReverieError as problem:
            error, code = str(problem), problem.exit_code
        finally:
            close_open_calls(thread.log, CRASHED)
            self.commands.turn_over()
        await self.engine.compactor.turn_over(cancelled=reason == "cancelled")
        self._turn_is_over = True  # at once: this turn does not wait for a compaction that is asked for from now on
        answered = reason in ("answered", "cut_off")
        if reason == "failed" and error is not None:
            self.engine.report_failure("request", error)
        tell_flag_mistakes(self.parts.flags, self.emit)
        self.engine.end_turn(answered=answered)
        self.emit(TurnEnded(reason, answer, thread.usage, thread.rounds, error, code))
        self.engine.idle(answered=answered)
        if self._syncs is not None:
            self._syncs.look()

    async def _take_in(self, said: Sequence[TextBlock], images: Sequence[ImageBlock]) -> str | None:
        text = "\n\n".join(block.text for block in said)
        self._prompt_id = str(uuid.uuid4())
        is_said = bool(text.strip() or images)
        refusal, added = await self.hook_points.check_prompt(text if is_said else None)
        if refusal is not None:
            return refusal
        meant = await self.commands.expand(said)
        if meant.refusal is not None:
            return meant.refusal
        added += meant.added
        await self._ensure_instructions()
        log, today = self.parts.log, self._today()
        if is_date_outdated(log.records, today):
            added.append(date_change(today))
        added += [*self.agents.new_reminders(log.view), *self.commands.new_reminders(log.view)]
        added += await self.mcp.new_reminders(log.view)
        record = None
        if added:
            record = log.append_message(Message("user", tuple(added)), isMeta=True, knownDate=today.isoformat())
        if came := self.messages.drain():
            record = log.append_message(Message("user", tuple(came)), isMeta=True)
        blocks: tuple[Block, ...] = (*said, *meant.more, *(replace(image, origin=Origin.ENTERED) for image in images))
        if blocks or record is None:
            record = log.append_message(Message("user", blocks, plain=len(blocks) == 1 and not images))
        self.emit(TurnStarted(record.uuid or ""))
        query = "\n".join(block.text for block in said if block.origin.is_users)
        await self.engine.begin_turn(query)
        return None

    async def _ensure_instructions(self) -> None:
        """Renders the prefix if there is none, and tells the hooks which instruction files it has."""
        parts, is_new = self.parts, self.parts.log.view.header is None
        self.ensure_header()
        if is_new and parts.hooks.listens_to(HookEvent.INSTRUCTIONS_LOADED):
            found = load_instructions(parts.places, parts.settings, window=parts.limits.window)
            await self.hook_points.instructions_loaded(found.files)


def ask(text: str, *, cwd: Path | str | None = None, model: str | None = None, resume: str | None = None) -> str:
    """Opens a session, asks, closes it, and returns the answer. Blocks."""

    async def once() -> str:
        async with await Session.open(cwd=cwd, model=model, resume=resume) as session:
            return await session.ask(text)

    return asyncio.run(once())
