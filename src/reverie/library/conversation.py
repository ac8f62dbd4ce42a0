"""A conversation that somebody else's loop runs, in typed messages: what of it is known, what is new, and its layers.

It appends to the transcript what the caller gives, and derives everything else from there. The markers of a request
depend on the last answered request in the transcript, not on what this process did.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from reverie.context.engine import EngineHost, LayerEngine
from reverie.context.prefix import indexes
from reverie.context.request import end_of
from reverie.context.ttl import choose_ttl
from reverie.errors import BlockingLimit
from reverie.events import Event, Notice, TaskChanged
from reverie.library.forks import ApartFork
from reverie.library.given import (
    GIVEN,
    TOLD,
    KnownItem,
    count_said,
    grouped,
    is_answer,
    is_said_by,
    joined,
    known_items,
    recalled_text,
    said_by_user,
    unsent_breaks,
    with_origin,
)
from reverie.library.recognition import recognise
from reverie.library.wires.base import GivenMessage
from reverie.library.wires.calls import open_call, with_unique_calls
from reverie.memory.opening import OpenedMemory
from reverie.memory.recall.reminder import has_reminder
from reverie.models.base import Request, Response
from reverie.models.window import output_caps
from reverie.models.wire import model_id
from reverie.origins import fence
from reverie.permissions.rules import Decision, Deny, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.prompts import render
from reverie.runtime.tasks import TaskInfo, Tasks
from reverie.session.forks import SessionForks
from reverie.session.parts import SessionParts, new_header, open_accounts
from reverie.session.team_sync import SessionSyncs
from reverie.storage.transcript.chain import can_be_parent, conversation
from reverie.storage.transcript.records import (
    Handed,
    Rewind,
    SessionHeader,
    from_record,
)
from reverie.storage.transcript.session_log import Clock
from reverie.storage.transcript.view import View
from reverie.tools.base import Caller, ReadCache, ToolContext, ToolOutput
from reverie.tools.registry import list_schemas, make_builtin_tools
from reverie.types import Block, JsonObject, Message, Origin, Record, ToolResultBlock, ToolUseBlock


class ForeignConversation:
    """The layers around one foreign conversation."""

    def __init__(
        self, parts: SessionParts, memory: OpenedMemory | None, *, emit: Callable[[Event], None], clock: Clock
    ) -> None:
        self.parts = parts
        self._memory = memory
        self._emit = emit
        self._clock = clock
        self.allowance: float | None = None
        """What clearing may cost at once, in tokens of fresh input."""
        self._others = 0
        """The bytes of the transcript that this process did not write."""
        self._answered: tuple[Message, ...] = ()
        """The messages of the last request that was answered."""
        self.tasks = Tasks(parts.background, self._task_changed)
        self.syncs = SessionSyncs(parts, self.tasks, memory, emit) if memory is not None else None
        self._load()
        self.accounts = open_accounts(parts, emit, clock)
        forks = SessionForks(parts, self.accounts, emit, self._fork)
        self.layers = LayerEngine(
            parts,
            EngineHost(
                forks=forks,
                ask=forks.ask,
                render_header=lambda old: old,
                ensure_header=lambda: None,
                in_turn=lambda: False,
                keeps_notes=False,
                clears_any_tool=True,
                allowance=lambda: self.allowance,
            ),
            tasks=self.tasks,
            accounts=self.accounts,
            memory=memory,
            interactive=True,
            emit=emit,
            clock=clock,
        )
        self._tools = make_builtin_tools(parts.settings.tools, window=parts.limits.window)
        self._sent: tuple[Request, datetime, int] | None = None
        """The request that waits for its response, when it was sent, and how many items were known."""

    # -- the transcript -------------------------------------------------------------------------------------------

    def _load(self) -> None:
        log = self.parts.log
        self._others = self._written_by_others()  # before reading: what others append meanwhile is seen later
        log.reload()
        self._fold()
        records = log.records
        last = next((i for i in range(len(records) - 1, -1, -1) if is_answer(records[i])), 0)
        self._answered = View.of(conversation(records[:last])).messages()

    def _written_by_others(self) -> int:
        log = self.parts.log
        return (log.path.stat().st_size if log.path is not None and log.path.exists() else 0) - log.written

    def refresh(self) -> None:
        """Reads the transcript again if another process has appended to it."""
        others = self._written_by_others()
        if others < self._others:
            self._emit(Notice("the transcript was removed or cut: what it held is lost", "warning", "storage"))
        if others != self._others:
            self._load()

    def _fold(self) -> None:
        """Derives what is known from the records."""
        self._known, self._added = list[KnownItem](), list[tuple[int, str]]()
        for record in conversation(self.parts.log.records):
            self._known += known_items(record)
            self._note_added(record)

    def _note_added(self, record: Record) -> None:
        if text := recalled_text(record):
            self._added.append((count_said(self._known), text))

    @property
    def added(self) -> tuple[tuple[int, str], ...]:
        """The memories that were added, each text with the number of items after it."""
        total = count_said(self._known) if self._added else 0
        return tuple((total - place, text) for place, text in self._added)

    @property
    def is_answered(self) -> bool:
        """Whether the last known message is an answer."""
        return bool(self._known) and is_said_by("assistant", self._known[-1].record)

    # -- what the caller gives ------------------------------------------------------------------------------------

    def knows(self, given: Sequence[GivenMessage]) -> bool:
        """Whether the messages continue this conversation, or begin it: so far it has no answer."""
        known = [one for one in self._known if one.fingerprint]
        if all(one.record.message is None or one.record.message.role != "assistant" for one in known):
            return True
        told = [one.fingerprint for one in given if one.fingerprint]
        unique = {one.fingerprint for one in known if one.is_unique}
        return told[:1] == [known[0].fingerprint] or not unique.isdisjoint(told)

    def set_prefix(
        self, system: tuple[str, ...], tools: tuple[JsonObject, ...], thinking: JsonObject | None, form: JsonObject
    ) -> None:
        """Records the caller's prefix if it is new or changed. `form`: how the caller writes the system prompt."""
        parts, header = self.parts, self.parts.log.view.header
        if header is not None:
            now = replace(header, model=parts.model_name, system=system, tools=tools, thinking=thinking, form=form)
            if now != header:
                parts.log.append(now)
            return
        kept = choose_ttl(parts.places.project, parts.facts, parts.model.capabilities.ttls, skip=parts.log.session_id)
        flags = dict(parts.flags.snapshot().to_json())
        parts.log.append(
            SessionHeader(
                parts.model_name,
                system,
                tools,
                reminder=self._reminder(),
                date=self._clock().astimezone().date().isoformat(),
                flags=flags,
                ttl=kept.ttl,
                ttl_reason=kept.reason,
                thinking=thinking,
                form=form,
            )
        )

    def _reminder(self) -> str:
        """The index of the memory, which the model sees from the first message on; rendered once."""
        parts = self.parts
        if self._memory is None or not parts.flags.on("recall") or parts.prefix_flag("recall.no_index"):
            return ""
        shown = [one.text for one in indexes(self._memory.directory.root, team=False) if one.text.strip()]
        if not shown:
            return ""
        return fence(Origin.CODE, render("reverie.library", "known.md", {"index": "\n".join(shown)})).text

    async def take_in(
        self,
        given: Sequence[GivenMessage],
        *,
        whole: bool | None = None,
        origin: Origin = Origin.ENTERED,
        seen: int = 0,
        recalls: bool = True,
    ) -> None:
        """Appends what is new in the caller's messages, and if wanted recalls what fits the newest of the user's. The
        results of the first `seen` messages stay as they are."""
        handed = self._handed(given) if whole is None else 0
        given, whole = given[handed:], False if handed else whole
        found = recognise(
            [one.fingerprint for one in self._known],
            [one.fingerprint for one in given],
            unique={one.fingerprint for one in self._known if one.is_unique},
            answered=self.is_answered,
            whole=whole,
        )
        is_edited = found.kept < len(self._known)
        start = self._go_back(found.kept, found.new) if is_edited else found.new
        new = [with_origin(one, origin) for one in given[start:]]
        # The first one answers the last request; other answers were not given to requests of ours.
        is_answer = bool(self._known) and not is_edited and not self.is_answered
        asked = next((i for i in range(len(new) - 1, -1, -1) if new[i].message.role == "assistant"), -1) + 1
        query = "\n\n".join(text for one in new[asked:] if (text := said_by_user(one.message)))
        at = first = start + handed
        for group in grouped(new):
            await self._append(group, is_answer=is_answer and at == first, keeps=at >= seen)
            at += len(group)
        if query:
            end = len(self.parts.log.records)
            shown = any(has_reminder(one.message.text) for one in new[asked:])
            await self.layers.begin_turn(query if recalls and not shown else "")
            for record in self.parts.log.records[end:]:
                self._note_added(record)

    def _handed(self, given: Sequence[GivenMessage]) -> int:
        """Returns how many messages at the start are those that the last compaction by hand gave to the caller."""
        for record in reversed(self.parts.log.records):
            payload = from_record(record)
            if isinstance(payload, Handed):
                names = tuple(one.fingerprint for one in given[: len(payload.fingerprints)])
                return len(names) if names == payload.fingerprints else 0
        return 0

    def hand_over(self, given: Sequence[GivenMessage]) -> None:
        """Records that the caller may begin its history with these messages from now on."""
        self.parts.log.append(Handed(tuple(one.fingerprint for one in given)))

    def _go_back(self, kept: int, new: int) -> int:
        """Leaves the known items after the first `kept` out; returns the first given one to append."""
        log, gone = self.parts.log, self._known[kept].record
        inside = sum(1 for one in self._known[:kept] if one.record is gone)  # items of one response
        header, before = log.view.header, gone.parent
        for record in conversation(log.records):  # its parent may be lost, in a damaged file
            if record.uuid == gone.uuid:
                break
            before = record.uuid if can_be_parent(record) else before
        log.append(Rewind(before, "edited"))
        if log.view.header is None and header is not None:
            log.append(header)
        self._fold()
        place = "the start" if kept == inside else f"message {kept - inside + 1}"
        self._emit(Notice(f"the caller changed the history from {place} on", "warning", "library"))
        return new - inside

    async def _append(self, given: Sequence[GivenMessage], *, is_answer: bool, keeps: bool = True) -> None:
        """Appends one message, or the items of one response."""
        log = self.parts.log
        fields: JsonObject = {GIVEN: [one.fingerprint for one in given]}
        message = with_unique_calls(log.view, joined(given))
        if message.role == "assistant":
            self._answered = log.view.messages() if is_answer else self._answered
            fields |= {} if is_answer else {TOLD: True}
        elif keeps:
            kept = [await self._keep(block) for block in message.content]
            message = replace(message, content=tuple(block for block, _ in kept))
            if stored := sum(size for _, size in kept):
                fields["keptBytes"] = stored
        self._known += known_items(log.append_message(message, **fields))

    async def _keep(self, block: Block) -> tuple[Block, int]:
        if not isinstance(block, ToolResultBlock) or block.content is None:
            return block, 0
        name = self.parts.log.view.call_name(block.tool_use_id) or ""
        output = await self.keep(block.tool_use_id, name, block.content)
        if output.content is block.content:
            return block, 0
        return replace(block, content=output.content), output.kept_bytes

    async def keep(self, call: str, name: str, content: str | tuple[Block, ...]) -> ToolOutput:
        """Runs layer 1 on one result."""
        own = open_call(self.parts.log.view, call)
        return await self.layers.conversation.keep(ToolUseBlock(own, name, {}), ToolOutput(content))

    # -- requests and responses -----------------------------------------------------------------------------------

    def count(self, reported: int) -> None:
        """Takes the tokens that the server counted up to the newest answer, if the transcript has no count of it. What
        came since is estimated."""
        view, talk = self.parts.log.view, self.layers.conversation
        talk.correction = 0
        if reported and not view.meter.is_reported:
            messages = view.messages()
            end = max((place for place, one in enumerate(messages) if one.role == "assistant"), default=-1) + 1
            talk.correction = reported + view.meter.estimate(messages[end:]) - view.meter.tokens

    async def prepare(self, max_tokens: int) -> Request:
        """Runs the layers and returns the next request. Raises `BlockingLimit` if it does not fit the window."""
        talk = self.layers.conversation
        if self.syncs is not None:
            await self.syncs.start()
        if self._sent is not None and talk.account is not None:
            talk.account.failed(self._sent[0])  # nobody observed its response
        talk.sent, talk.sent_messages = end_of(self._answered), self._answered
        talk.announced = tuple(unsent_breaks(self.parts.log.records if self._answered else ()))
        request = await talk.prepare(max_tokens)
        used, limits = talk.budget().used, talk.thresholds
        limit = limits.window - max_tokens if talk.just_compacted else limits.blocking
        if used >= limit:
            raise BlockingLimit(
                f"the context holds about {used:,} tokens and the limit is {limit:,}: it does not fit the window even "
                "after a compaction; send less, or use a model with a larger window"
            )
        now = self._clock()
        if talk.account is not None:
            talk.account.sending(request, now)
        self._sent = (request, now, len(self._known))
        return request

    async def observe(self, response: Response, given: Sequence[GivenMessage]) -> None:
        """Records a response and books it."""
        talk, log = self.layers.conversation, self.parts.log
        names = [one.fingerprint for one in given]
        is_open = self._sent is not None and self._sent[2] == len(self._known)
        if not is_open and names and names == [one.fingerprint for one in self._known[-len(names) :]]:
            self._sent = None
            return  # observed twice, by this process or another one
        self._answered = log.view.messages()
        response = replace(
            response, id=self._unused_id(response.id), model=response.model or model_id(self.parts.model_name)
        )
        if self._sent is not None:
            talk.book(self._sent[0], response, self._sent[1])
        self._sent = None
        await talk.answer_began()
        message = with_unique_calls(log.view, joined(given))
        await talk.observe(replace(response, content=message.content), **{GIVEN: names})
        self._known += known_items(log.records[-1])
        await talk.after_response()

    def _unused_id(self, name: str) -> str:
        """Returns an id that no other response has: some servers repeat theirs, and one id is one response."""
        used = {
            record.message.id for record in self.parts.log.records if is_said_by("assistant", record) and record.message
        }
        return name if name and name not in used else f"{name or 'response'}-{uuid.uuid4().hex[:12]}"

    # -- work beside it -------------------------------------------------------------------------------------------

    def _fork(self) -> ApartFork:
        parts = self.parts
        cap, raised = output_caps(parts.settings, parts.facts, parts.limits.window)
        context = ToolContext(
            cwd=parts.places.cwd,
            caller=Caller(),
            permission=_nobody_asks,
            read_cache=ReadCache(),
            sandboxes=Sandboxes(wanted=parts.settings.permissions.sandbox, private=[parts.places.home]),
            keep_dir=parts.places.tool_results(parts.log.session_id),
        )
        tools = {tool.name: tool for tool in self._tools}
        return ApartFork(self.layers.conversation, tools, context, cap, raised, parts, self._own_header)

    def _own_header(self) -> SessionHeader:
        """The prefix of background work with tools of ours."""
        today = self._clock().astimezone().date()
        return new_header(self.parts, list_schemas(self._tools), today, self._emit)

    def _task_changed(self, info: TaskInfo) -> None:
        progress = info.progress[-1] if info.progress else ""
        self._emit(TaskChanged(info.id, info.purpose, info.title, info.state.value, progress))
        if info.state.is_over and self.layers.dreaming is not None:
            self.layers.dreaming.task_over(info.id)

    async def close(self) -> None:
        parts = self.parts
        try:
            await self.tasks.drain(parts.settings.background.exit_wait_s)
            if self.syncs is not None:
                await self.syncs.finish()
        finally:
            await self.layers.close()
            parts.log.close()
            parts.flags.close()
            await parts.model.close()


async def _nobody_asks(_call: ToolCall) -> Decision:
    return Deny("only background work calls tools here")
