"""The path of one conversation to a request and back: run the layers, assemble, send, count.

The main thread and every fork have one each, over the same parts. Companions do everything else around a round (hooks,
notes, recall, messages); a fork has none. `unsent_break` finds breaks that an interrupted session has not announced.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import field, replace
from datetime import datetime, timedelta
from pathlib import Path

from reverie.context.accounts import Account
from reverie.context.pipeline import Pipeline, Prepared
from reverie.context.request import End, ImageCount, assemble, count_unchanged, end_of
from reverie.errors import PromptTooLong
from reverie.events import Event, Notice, Retrying
from reverie.layers.base import AskFork, Break, BreakCause, CarryOut, Companion, Effect, EffectResult, Now
from reverie.layers.l4_compaction.stage import may_compact
from reverie.models.base import Finished, Model, Request, Response
from reverie.models.request_log import RequestLog
from reverie.models.sending import Retry, RetryPolicy, SendEvent, send
from reverie.models.window import Thresholds
from reverie.quick import dataclass
from reverie.storage.transcript.file import is_from_other_home
from reverie.storage.transcript.records import (
    AppliedEdits,
    Clears,
    CompactBoundary,
    Rewind,
    SessionHeader,
    Undo,
    from_record,
)
from reverie.storage.transcript.session_log import Clock, SessionLog, utc_now
from reverie.tools.base import ToolOutput
from reverie.types import Block, JsonObject, Message, Purpose, Record, ToolUseBlock

_BREAKS_ALL = (BreakCause.MODEL, BreakCause.HEADER)
"""Breaks after which nothing is read from the cache."""
_OWN_CONTEXT = ("autocompact", "reactive")
"""Stages of a fork that has its own conversation."""


@dataclass(frozen=True, slots=True)
class WindowBudget:
    """The state of the window, in tokens. Nothing is sent above `blocking`; None: this thread has no such limit."""

    used: int
    window: int
    percent_left: int
    blocking: int | None


async def _keep_output(_call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
    return output


async def _refuse_effect(effect: Effect) -> EffectResult:
    return EffectResult(ok=False, text=f"{type(effect).__name__} is not available in this conversation")


def _ignore_event(_event: Event) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Around:
    """The companions of a conversation in their order, layer 1 for its results, and what carries out effects."""

    companions: tuple[Companion, ...] = ()
    keep: Callable[[ToolUseBlock, ToolOutput], Awaitable[ToolOutput]] = _keep_output
    carry_out: CarryOut = _refuse_effect


def announcement(breaks: Iterable[Break]) -> str | None:
    """Joins announced breaks for a request; None if there are none."""
    return "; ".join(one.why for one in breaks) or None


@dataclass(slots=True)
class Conversation:
    """What one thread of the loop needs around it."""

    log: SessionLog
    model: Model
    thresholds: Thresholds
    emit: Callable[[Event], None]
    pipeline: Pipeline = field(default_factory=Pipeline)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    request_log: RequestLog | None = None
    purpose: Purpose = Purpose.MAIN
    thread: str = "main"
    reused: bool = True
    blocks_when_full: bool = True
    around: Around = field(default_factory=Around)
    clock: Clock = utc_now
    announced: tuple[Break, ...] = ()
    """Breaks of the prefix that the next request has."""
    breaks: tuple[Break, ...] = ()
    """Breaks of the prefix that the last prepared request has."""
    account: Account | None = None
    sent: End | None = None
    sent_messages: tuple[Message, ...] = ()
    own_from: int | None = None
    """In a fork: the index of the first message of its own."""
    shared: End | None = None
    """In a fork child: where the part that it shares with its siblings ends."""
    images: ImageCount = field(default_factory=ImageCount)
    images_left_out: int = 0
    ask: Callable[[Conversation, AskFork], Awaitable[EffectResult]] | None = None
    """Asks a fork of this conversation one question, for a layer that wants it."""
    retried: Callable[[str, str], None] = lambda _purpose, _why: None
    """Called when a request is sent again."""
    correction: int = 0
    """What is to be added to the estimate of the context, until a server has counted it here or it is compacted."""
    just_compacted: bool = False
    """The next request is the first after a compaction and is sent whatever the estimate says."""

    async def prepare(self, max_tokens: int) -> Request:
        """Runs every stage, then assembles the request."""
        before = self.log.view.boundaries
        done = await self.pipeline.prepare(self.log, self.now, self.carry_out)
        self.just_compacted = self.log.view.boundaries > before
        self.correction = 0 if self.just_compacted else self.correction
        self._tell(done)
        header = self.log.view.header
        assert header is not None, "a conversation has a header before its first request"
        messages = self.log.view.messages()
        self._leave_out_images(self.images.left_out(messages))
        request = assemble(
            header,
            messages,
            max_tokens=max_tokens,
            capabilities=self.model.capabilities,
            purpose=self.purpose,
            conversation=self.log.session_id,
            thread=self.thread,
            announced_break=announcement(self.announced),
            reused=self.reused,
            sent=self.sent,
            own_from=self.own_from,
            shared=self.shared,
            same=count_unchanged(self.sent_messages, messages) if self.announced else None,
            images_left_out=self.images_left_out,
            cache_edits=self.log.view.sent_cache_edits(),
            server_edits=self.log.view.server_edits,
        )
        self.breaks, self.announced = self.announced, ()
        return request

    def announce(self, cause: BreakCause, why: str) -> None:
        """Announces that the next request breaks the prefix."""
        self.announced = (*self.announced, Break(cause, why))

    def _leave_out_images(self, count: int) -> None:
        if count != self.images_left_out:
            self.images_left_out = count
            self.announce(BreakCause.IMAGES, "older images were left out")

    async def recover(self, error: PromptTooLong) -> bool:
        """Makes the context shorter, once, after the server said that the prompt is too long."""
        named = error.actual is not None and error.limit is not None
        excess = max(1, (error.actual or 0) - (error.limit or 0)) if named else None
        done = await self.pipeline.recover(self.log, lambda: replace(self.now(), excess=excess), self.carry_out)
        if done is None:
            return False
        self._tell(done)
        self.emit(Notice(f"{error}; the conversation was shortened and the request is sent again", "warning"))
        return True

    async def carry_out(self, effect: Effect) -> EffectResult:
        """Carries out an effect of a layer: this conversation asks forks, the session does everything else."""
        if isinstance(effect, AskFork) and self.ask is not None:
            return await self.ask(self, effect)
        return await self.around.carry_out(effect)

    def _tell(self, done: Prepared) -> None:
        self.announced = (*self.announced, *done.breaks)
        for text in done.notices:
            self.emit(Notice(text, source="layers"))

    def book(self, request: Request, response: Response, began: datetime) -> None:
        """Books the response to a request that the owner of another loop sent."""
        self._record_server_edits(response.applied_edits)
        if self.account is not None:
            self.account.finished(request, response, began)

    async def send(self, request: Request) -> AsyncIterator[SendEvent]:
        """Sends with retries, reports each retry, and books the response."""
        began, is_arriving, answered = self.clock(), False, False
        self.went_out(request)
        if self.account is not None:
            self.account.sending(request, began)

        def retrying(retry: Retry) -> None:
            nonlocal began
            began = self.clock() + timedelta(seconds=retry.seconds)
            self.retried(self.purpose.value, retry.reason)
            self.emit(Retrying(retry.reason, retry.seconds, retry.attempt))

        stream = send(self.model, request, policy=self.retry, on_retry=retrying, log=self.request_log)
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if not is_arriving:
                        is_arriving = True
                        await self.answer_began()
                    if isinstance(event, Finished):
                        answered = True
                        self.book(request, event.response, began)
                    yield event
        finally:
            if not answered and self.account is not None:
                self.account.failed(request)

    async def answer_began(self) -> None:
        for companion in self.around.companions:
            await companion.answer_began()

    def went_out(self, request: Request) -> None:
        """Remembers what was sent last, so that the next request finds its start in the cache."""
        self.sent, self.sent_messages = end_of(request.messages), request.messages

    def _record_server_edits(self, edits: tuple[JsonObject, ...]) -> None:
        if not edits or self.purpose is not Purpose.MAIN or edits == self.log.view.applied_edits:
            return
        self.log.append(AppliedEdits(edits))
        what = ", ".join(
            f"{edit.get('cleared_tool_uses') or edit.get('cleared_thinking_turns') or 0} "
            f"{'tool results' if 'cleared_tool_uses' in edit else 'turns of thinking'} "
            f"({edit.get('cleared_input_tokens', 0):,} tokens)"
            for edit in edits
        )
        self.emit(Notice(f"The server left out {what} of this request.", source="layers"))

    def now(self) -> Now:
        return Now(
            time=self.clock(),
            used=self._used(),
            window=self.thresholds.window,
            autocompact_at=self.thresholds.autocompact,
            main_thread=self.purpose is Purpose.MAIN,
            effective=self.thresholds.effective,
            blocking=self.thresholds.blocking,
            broken=any(one.cause in _BREAKS_ALL for one in self.announced),
        )

    def _used(self) -> int:
        meter = self.log.view.meter
        return meter.tokens if meter.is_reported else max(0, meter.tokens + self.correction)

    def budget(self) -> WindowBudget:
        used = self._used()
        limits = self.thresholds
        blocks = (
            self.blocks_when_full and not self.just_compacted and (limits.is_set or not self._is_prefix_too_large())
        )
        blocking = limits.blocking if blocks else None
        return WindowBudget(used, limits.window, limits.percent_left(used), blocking)

    def _is_prefix_too_large(self) -> bool:
        """Whether the system prompt and the tools of a first request fill the window by our estimate. The user cannot
        send less then, and a server may leave out tools that its model does not know: it decides."""
        view = self.log.view
        return view.rounds == 0 and view.with_entries(()).meter.tokens >= self.thresholds.blocking

    async def observe(self, response: Response, **extra: object) -> None:
        """Records a whole response; an empty one too, because it was paid for. `extra` are fields of its record."""
        fields = {
            "id": response.id,
            "type": "message",
            "model": response.model,
            "stop_reason": response.stop_reason,
            "stop_sequence": None,
            "usage": {**response.usage.wire(), **response.raw_usage},
        }
        message = Message("assistant", response.content, fields=fields)
        self.log.append_message(message, requestId=response.request_id, **extra)

    async def after_response(self) -> None:
        for companion in self.around.companions:
            await companion.after_response()

    async def keep(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        """Lets the companions replace one result, runs layer 1 on it and returns what is recorded."""
        for companion in self.around.companions:
            output = await companion.replace_result(call, output)
        return await self.around.keep(call, output)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        return [block for one in self.around.companions for block in await one.after_result(call, output)]

    async def between_rounds(self) -> Sequence[Block]:
        return [block for one in self.around.companions for block in await one.between_rounds()]

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None:
        for companion in self.around.companions:
            if more := await companion.may_stop(answer):
                return more
        return None

    def forked(self, log: SessionLog, *, purpose: Purpose, thread: str, reused: bool) -> Conversation:
        """Returns the same for a fork: same model, limits, retry and layer 1, but no companions."""
        messages = log.view.messages()
        answers = [i for i, message in enumerate(messages) if message.role == "assistant"]
        return replace(
            self,
            log=log,
            purpose=purpose,
            thread=thread,
            reused=reused,
            pipeline=self.pipeline.only("tool_result_budget", *(_OWN_CONTEXT if may_compact(purpose) else ())),
            just_compacted=False,
            around=Around(keep=self.around.keep, carry_out=self.around.carry_out),
            blocks_when_full=purpose not in (Purpose.COMPACTION, Purpose.NOTES),
            emit=_ignore_event,
            account=self.account.forked() if self.account is not None else None,
            own_from=answers[-1] + 1 if answers else 0,
        )


def unsent_break(records: Sequence[Record], home: Path) -> tuple[Break, ...]:
    """Returns why the next request may differ from the last one that was answered; nothing if it continues it."""
    found = list[str]()
    for record in reversed(records):
        if record.message is not None and record.message.role == "assistant" and not record.is_sidechain:
            if is_from_other_home(record, str(home)):
                return (Break(BreakCause.RESUMED, "Reverie's home was moved"),)
            break
        match from_record(record):
            case Clears():
                found.append("tool results were cleared")
            case CompactBoundary():
                found.append("the conversation was compacted")
            case Undo() | Rewind():
                found.append("the conversation was taken back")
            case SessionHeader():
                found.append("the prefix was rendered again")
            case _:
                pass
    reasons = ", ".join(dict.fromkeys(reversed(found)))
    return (Break(BreakCause.RESUMED, f"{reasons} before the session was interrupted"),) if reasons else ()
