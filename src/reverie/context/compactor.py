"""What the user can do to the context: compact, preview, undo, pin, rewind and clear. Used by chat, CLI and socket.

Each of them appends a record; nothing on disk is rewritten. During a turn a compaction waits for the end of the round,
pins and previews work at once, and changes that would remove what the turn needs are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, field

from reverie.context.compaction_report import CompactionReport, UndoReport, report_of
from reverie.context.conversation import Conversation
from reverie.context.pipeline import follow, record
from reverie.errors import ReverieError, StorageError, Unreachable, UserError
from reverie.events import Event, Notice
from reverie.layers.base import (
    AskFork,
    BreakCause,
    CarryOut,
    Companion,
    Effect,
    EffectResult,
    ReadFile,
    StageCommit,
    WaitFor,
)
from reverie.layers.l4_compaction.partial import is_from_user
from reverie.layers.l4_compaction.pins import check_pin, find_pin, next_id
from reverie.layers.l4_compaction.setup import CompactionRequest
from reverie.layers.l4_compaction.stage import Compaction
from reverie.models.tokens import estimate_text
from reverie.origins import fence
from reverie.quick import dataclass
from reverie.runtime.parts import Parts
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.records import CompactBoundary, Pin, Rewind, Undo, from_record, to_data
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import Entry, View
from reverie.types import Block, Message, Origin, Record

UNDO = "undo"
"""The reason of a rewind that takes another one back."""
_PREVIEW = "a preview does not call a model"
_SUMMARY_SHARES = (0.5, 1.0)
"""The part of its budget that `undo --fit` leaves to a summary of a model; more if that was too little."""


@dataclass(eq=False)
class Compactor(Companion):
    """The compactor of one conversation. `on_clear` is called after the context is empty."""

    parts: Parts
    compaction: Compaction
    talk: Callable[[], Conversation]
    _: KW_ONLY
    ensure_header: Callable[[], None]
    in_turn: Callable[[], bool]
    set_notes_aside: Callable[[], None]
    on_clear: Callable[[], Awaitable[None]]
    emit: Callable[[Event], None]
    _running: asyncio.Task[object] | None = field(default=None, init=False)
    _idle: asyncio.Task[None] | None = field(default=None, init=False)
    _waiting: tuple[CompactionRequest, asyncio.Future[CompactionReport]] | None = field(default=None, init=False)

    async def between_rounds(self) -> Sequence[Block]:
        await self._serve()
        return ()

    @property
    def running(self) -> bool:
        """Whether the context is changing right now, so that no turn can begin."""
        return self._running is not None and self._running is not self._idle

    def cancel(self) -> bool:
        """Stops the current compaction; nothing of it is recorded. Returns False if there is none."""
        return self._running is not None and self._running.cancel()

    # -- compacting -----------------------------------------------------------------------------------------------

    async def compact(self, text: str = "", *, from_: str | None = None, up_to: str | None = None) -> CompactionReport:
        """Compacts now, or at the end of the current round. `text` has instructions for the summary; `from_` and
        `up_to` name the message where a part begins or ends."""
        await self.stop_idle()
        wanted = self._check_request(text, from_, up_to)
        if self.in_turn():
            return await self._at_the_end_of_the_round(wanted)
        with self._alone():
            return await self._compact(wanted)

    async def _compact(self, wanted: CompactionRequest) -> CompactionReport:
        self.ensure_header()
        commit = await self._walk(self.compaction, self._log.view, wanted, self.talk().carry_out)
        record(self._log, commit)
        self._announce(BreakCause.COMPACTED, commit.breaks.why if commit.breaks else "the conversation was compacted")
        self._confirm()
        self.emit(Notice(commit.notice or "", source="layers"))
        return report_of(commit)

    async def _at_the_end_of_the_round(self, wanted: CompactionRequest) -> CompactionReport:
        if self._waiting is not None:
            raise UserError("a compaction waits for the end of this round already")
        done = asyncio.get_running_loop().create_future()
        self._waiting = (wanted, done)
        self.emit(Notice("The conversation will be compacted at the end of this round.", source="layers"))
        try:
            return await done
        finally:
            self._forget(done)  # the caller may have gone

    def _forget(self, done: asyncio.Future[CompactionReport]) -> None:
        if self._waiting is not None and self._waiting[1] is done:
            self._waiting = None

    async def _serve(self) -> None:
        """Runs the waiting compaction inside the turn. The caller gets its error; the turn goes on."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        wanted, done = waiting
        try:
            made = await self._compact(wanted)
        except ReverieError as error:
            _settle(done, error)
        except asyncio.CancelledError:
            _settle(done, UserError("the turn was cancelled, and the compaction with it: nothing was changed"))
            raise
        else:
            _settle(done, made)

    async def turn_over(self, *, cancelled: bool) -> None:
        """Runs what still waits after a turn, unless the turn was cancelled."""
        if cancelled and self._waiting is not None:
            _settle(self._waiting[1], UserError("the turn was cancelled, and the compaction that waited with it"))
            self._waiting = None
        while self._waiting is not None:  # somebody may ask while another is served
            with suppress(asyncio.CancelledError):  # nothing of it was recorded, and the turn was over before
                await self._serve()

    def compact_when_idle(self) -> None:
        """Compacts after some minutes without a message, if the context is nearly full: before the cache expires."""
        given = self.parts.settings.compaction
        if given.idle and self._is_nearly_full():
            self._idle = asyncio.create_task(self._compact_after(60 * given.idle_minutes))

    async def stop_idle(self) -> None:
        """Ends the wait, or the compaction that it led to: nothing of that is recorded."""
        idle, self._idle = self._idle, None
        if idle is not None:
            idle.cancel()
            if self._running is idle:
                await asyncio.wait([idle])

    async def _compact_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self.in_turn() or self._running is not None or not self._is_nearly_full():
            return
        with self._alone():
            try:
                await self._compact(CompactionRequest("auto"))
            except ReverieError as error:
                self.emit(Notice(f"no compaction during the pause: {error}", source="layers"))

    def _is_nearly_full(self) -> bool:
        view = self._log.view
        return view.meter.tokens > self.talk().thresholds.warning and not view.undone and self.compaction.may_run()

    async def preview(self, text: str = "", *, from_: str | None = None, up_to: str | None = None) -> CompactionReport:
        """Returns what a compaction would leave, without records, writes, model calls or hooks."""
        wanted = self._check_request(text, from_, up_to)
        self.ensure_header()
        view = self._log.view.copy()
        return report_of(await self._walk(Compaction(self.compaction.ground), view, wanted, self._pretend))

    def _check_request(self, text: str, from_: str | None, up_to: str | None) -> CompactionRequest:
        parts = self.parts
        if parts.settings.window.disable_compact:
            raise UserError("compaction is switched off (REVERIE_DISABLE_COMPACT, window.disable_compact)")
        if from_ is not None and up_to is not None:
            raise UserError("--from and --up-to cannot be given together: each compacts one part")
        if (from_ is not None or up_to is not None) and not parts.flags.on("compaction.partial"):
            raise UserError("compacting a part is switched off (flag compaction.partial)")
        if not self._log.view.entries:
            raise UserError("there is nothing to compact yet: nothing was said")
        return CompactionRequest("manual", text.strip(), from_, up_to)

    async def _walk(
        self, compaction: Compaction, view: View, wanted: CompactionRequest, carry_out: CarryOut
    ) -> StageCommit:
        now = self.talk().now()
        commit = await follow(compaction.steps(view, now, wanted), carry_out)
        if not commit.appends:
            raise ReverieError(commit.notice or "the conversation was not compacted")
        return commit

    async def _pretend(self, effect: Effect) -> EffectResult:
        if isinstance(effect, ReadFile | WaitFor):
            return await self.talk().carry_out(effect)
        if isinstance(effect, AskFork):
            return EffectResult(ok=False, text=_PREVIEW, error=Unreachable(_PREVIEW))
        return EffectResult(ok=True)

    # -- taking back ----------------------------------------------------------------------------------------------

    async def undo(self, *, fit: bool = False) -> UndoReport:
        """Takes back the last compaction, rewind or clear; turns after a compaction stay.

        If the whole history does not fit the window, raises `UserError`; with `fit` brings back as much as fits, the
        newest first, and summarises the rest.
        """
        with self._alone():
            left = self._last_rewind()
            if left is not None:
                self._log.append(Rewind(left.parent, UNDO))
                self._announce(BreakCause.TAKEN_BACK, "a rewind was taken back")
                self._confirm()
                tokens = self._log.view.meter.tokens
                return UndoReport(left.uuid or "", tokens, "The conversation is where it was before.")
            boundary = self._last_boundary()
            then = self._view_without(boundary)
            tokens, limit = then.meter.tokens, self.talk().thresholds.blocking
            if tokens >= limit and not fit:
                raise UserError(
                    f"the full history is about {tokens:,} tokens and the limit is {limit:,}: it does not fit. "
                    f"`undo --fit` brings back as much as does, the newest first; /rewind goes back to an earlier "
                    "message; a model with a larger window takes all of it"
                )
            self._log.append(Undo(boundary))
            self._announce(BreakCause.TAKEN_BACK, "a compaction was taken back")
            self._confirm()
        if tokens < limit:
            return UndoReport(
                boundary, tokens, f"The compaction is taken back: the context holds {tokens:,} tokens again."
            )
        done = await self._compact_as_little_as_fits()
        kept = f"{done.tokens_after:,} of {tokens:,} tokens are back; what is older is summarised"
        return UndoReport(boundary, done.tokens_after, f"The compaction is taken back as far as it fits: {kept}.")

    def _last_rewind(self) -> Record | None:
        taken_back = 0
        for one in reversed(self._log.records):
            payload = from_record(one)
            if isinstance(payload, Rewind) and payload.reason == UNDO:
                taken_back += 1
            elif isinstance(payload, Rewind):
                if not taken_back:
                    return one
                taken_back -= 1
            elif isinstance(payload, CompactBoundary):
                return None
        return None

    def _last_boundary(self) -> str:
        for one in reversed(conversation(self._log.records)):
            if isinstance(from_record(one), CompactBoundary) and one.uuid is not None:
                return one.uuid
        raise UserError("there is no compaction to take back in this conversation")

    def _view_without(self, boundary: str) -> View:
        undo = Record({"type": "system", "subtype": Undo.subtype, "reverie": to_data(Undo(boundary))})
        return View.of(conversation([*self._log.records, undo]))

    async def _compact_as_little_as_fits(self) -> CompactionReport:
        for share in _SUMMARY_SHARES[:-1]:
            with suppress(ReverieError):  # the summary was larger
                return await self.compact(up_to=await self._cut_point(share))
        return await self.compact(up_to=await self._cut_point(_SUMMARY_SHARES[-1]))

    async def _cut_point(self, share: float) -> str:
        """Returns the message up to which has to be summarised so that the rest fits, found with previews."""
        view, numbers = self._log.view, self.compaction.ground.numbers()
        names = [entry.uuid for entry in view.entries if entry.uuid is not None]

        async def fits(name: str) -> bool:
            try:
                made = await self.preview(up_to=name)
            except ReverieError:
                return False
            more = max(0, int(numbers.summary_tokens * share) - estimate_text(made.text))
            return made.tokens_after + more < self.talk().thresholds.autocompact

        low, high = 0, len(names) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if await fits(names[middle]) else (middle + 1, high)
        return names[low]

    def rewind(self, given: str) -> str:
        """Goes back to before a message of the user and returns its text; later messages are left out.

        `given` is the message's uuid, the beginning of one, or `-n` for the n-th from the end.
        """
        with self._alone():
            entry = self._find_user_message(given)
            found = next(one for one in self._log.records if one.uuid == entry.uuid)
            self._log.append(Rewind(found.parent))
            self._announce(BreakCause.TAKEN_BACK, "the conversation was rewound")
            if self._log.view.header is None:
                self.ensure_header()
            self._confirm()
        return entry.message.text

    def messages(self) -> list[Entry]:
        """Returns the messages of the user that a rewind can go back to, oldest first."""
        return [entry for entry in self._log.view.history if is_from_user(entry) and entry.uuid is not None]

    def _find_user_message(self, given: str) -> Entry:
        said = self.messages()
        if given.startswith("-") and given[1:].isdigit() and 0 < int(given[1:]) <= len(said):
            return said[-int(given[1:])]
        found = [entry for entry in said if given and (entry.uuid or "").startswith(given)]
        if len(found) != 1:
            what = f"{len(found)} of your messages begin" if found else "none of your messages begins"
            raise UserError(f"{what} with {given!r}: -1 is your last one, and /rewind alone lists them")
        return found[0]

    async def clear(self) -> None:
        """Empties the context of this session. The messages stay in the file, and pins stay."""
        with self._alone():
            self._log.append(Rewind(None, "clear"))
            self.set_notes_aside()
            self._announce(BreakCause.EMPTIED, "the conversation was cleared")
            self.ensure_header()
        await self.on_clear()
        self._confirm()

    # -- pins -----------------------------------------------------------------------------------------------------

    @property
    def pins(self) -> dict[str, str]:
        return dict(self._log.view.pins)

    def pin(self, text: str) -> str:
        """Keeps a text through every compaction and shows it to the model at once. Returns the pin's id."""
        budget = self.compaction.ground.numbers().pins_bytes
        clean = check_pin(text, self.pins, budget)
        name = next_id(self.pins)
        known = any(clean in entry.message.text for entry in self._log.view.entries)
        self._log.append(Pin(name, clean))
        if not known and self._log.view.header is not None:
            told = fence(Origin.CODE, f"The user pinned this, to be kept in mind from now on:\n{clean}")
            self._log.append_message(Message("user", (told,)), isMeta=True)
        self._confirm()
        return name

    def unpin(self, given: str) -> str:
        """Removes a pin and returns its text."""
        name = find_pin(given, self.pins)
        text = self.pins[name]
        self._log.append(Pin(name, removed=True))
        self._confirm()
        return text

    # -- around it ------------------------------------------------------------------------------------------------

    @property
    def _log(self) -> SessionLog:
        return self.parts.log

    def _confirm(self) -> None:
        """Waits until the change is on disk. If the disk refuses it, the change stays in memory only."""
        try:
            self._log.confirm()
        except StorageError as error:
            said = str(error).rstrip(".")
            raise StorageError(f"{said}; this change is not stored and is gone when the session ends.") from error

    def _announce(self, cause: BreakCause, why: str) -> None:
        self.talk().announce(cause, why)

    @contextmanager
    def _alone(self) -> Generator[None]:
        if self.in_turn() or self._running is not None:
            what = "a turn is running" if self.in_turn() else "the conversation is being compacted"
            raise UserError(f"{what} in this session: wait for it, or cancel it")
        self._running = asyncio.current_task()
        try:
            yield
        finally:
            self._running = None


def _settle(done: asyncio.Future[CompactionReport], came: CompactionReport | ReverieError) -> None:
    if done.done():  # whoever asked did not wait
        return
    if isinstance(came, ReverieError):
        done.set_exception(came)
    else:
        done.set_result(came)
