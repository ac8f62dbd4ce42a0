"""One conversation of anyone's loop: prepare a request, observe its response, keep a result, end a turn.

The caller has the client, the tools and the loop. The transcript is the state: what the engine has seen and decided is
appended to it, so a restart, or another process with the same home, continues with the same bytes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from reverie.context.ledger import Ledger
from reverie.errors import PromptTooLong, StorageError, UserError
from reverie.events import Event, Notice
from reverie.library.asking import Ask, open_ask
from reverie.library.conversation import ForeignConversation
from reverie.library.given import without_injected
from reverie.library.memory import Memory
from reverie.library.opening import gather_parts, library_overrides, with_flags
from reverie.library.prepared import (
    AnnouncedBreak,
    CompactedMessages,
    Cost,
    KeptResult,
    PreparedRequest,
    as_blocks,
    check_given,
)
from reverie.library.read_tool import READ_TOOL, read_tool
from reverie.library.recording import read_origin
from reverie.library.wires import Wire, wire_named
from reverie.library.wires.reading import ReadItems
from reverie.memory.changes import Evidence
from reverie.memory.evidence import gather_evidence
from reverie.models.base import Request
from reverie.models.catalogue import Catalogue
from reverie.models.registry import facts_of
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.models.window import output_caps
from reverie.paths import make_private
from reverie.session.parts import in_memory
from reverie.settings import find_home, load_settings
from reverie.settings.schema import with_values
from reverie.storage.locks import LockTimeout, exclusive_in_loop
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.types import JsonObject

_WIRES = {"openai": "chat"}
_LOCK_S = 300.0
_READ_CHARACTERS = 20_000
_READ_ON = 200
"""Characters for the line that says how to read on."""


class Engine:
    """The layers around one conversation. Create it with `Engine.open`; one engine serves many requests."""

    def __init__(
        self,
        conversation: Callable[[Callable[[Event], None]], ForeignConversation],
        wire: Wire,
        on_event: Callable[[Event], None] | None,
        conversation_id: str,
    ) -> None:
        self.conversation_id = conversation_id
        self._open = conversation
        self._wire = wire
        self._on_event = on_event
        self._state: ForeignConversation | None = None
        self._alone = asyncio.Lock()
        self._notices = list[str]()
        self._unlocked = False
        self._closed = False

    @classmethod
    def open(
        cls,
        conversation_id: str,
        *,
        model: str,
        memory: Memory | None = None,
        ask: Ask | None = None,
        wire: Literal["messages", "chat", "responses"] | None = None,
        window: int | None = None,
        cwd: Path | str | None = None,
        home: Path | str | None = None,
        settings: Mapping[str, object] | None = None,
        flags: Mapping[str, bool] | None = None,
        on_event: Callable[[Event], None] | None = None,
        clock: Clock = utc_now,
    ) -> Engine:
        """Opens a conversation, new or known. It sends nothing and reads nothing yet.

        `model` is the model that you call. It decides prices, `window` (in tokens; give a smaller one to keep requests
        small) and `wire`: the shape of your messages, "messages", "chat" or "responses". `memory` adds recall,
        extraction and dreams. `ask` does the work beside the conversation (summaries, extraction, dreams): a model's
        name, or an async function that gets the body of a Messages request; without it, code does this work.
        `home` is Reverie's home, `cwd` the project that the transcript belongs to; without it that of the memory, or
        the home itself, so that every process with the same home finds the conversation. `settings` are `section.key`
        values, and `flags` switch layers off (`reverie settings --flags`). `on_event` receives notices and tasks.
        """
        opened = memory.opened if memory is not None else None
        if opened is not None:
            home = home or opened.places.home
            cwd = cwd or opened.places.cwd
        place = Path(cwd) if cwd is not None else find_home(home)
        overrides = library_overrides(settings or {}, thinks=ask is not None)
        loaded = with_flags(load_settings(place, overrides=overrides, home=home), flags or {})
        if opened is not None:
            loaded = with_values(loaded, {"memory.path": str(opened.directory.root)})
        chosen = wire_named(
            wire or _WIRES.get(facts_of(model, Catalogue.load(loaded.catalogue.files)).provider, "messages")
        )
        beside = open_ask(ask, loaded, model=model)

        def start(emit: Callable[[Event], None]) -> ForeignConversation:
            parts = gather_parts(
                conversation_id,
                model,
                loaded,
                place,
                beside,
                markers=chosen.name == "messages",
                is_own=callable(ask) or ask == model,
                window=window,
                clock=clock,
                on_storage_error=lambda error: emit(in_memory(error)),
            )
            return ForeignConversation(parts, opened, emit=emit, clock=clock)

        return cls(start, chosen, on_event, conversation_id)

    # -- the four calls of a loop ---------------------------------------------------------------------------------

    async def prepare(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        system: str | Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        max_tokens: int | None = None,
        origin: str = "entered",
        whole: bool | None = None,
        seen: int = 0,
        allowance: float | None = None,
        recalls: bool = True,
        reported: int = 0,
        **fields: Any,
    ) -> PreparedRequest:
        """Returns the request to send: old results cleared, the history compacted if it must be, memories that fit
        the newest user message added, cache markers set.

        `messages` is the whole history, or only what is new since the last call; `whole` says which, if the engine
        should not find out. `origin` says who wrote the new user text ("typed", "entered", "pasted", "page", …).
        `seen` messages at the start were sent before without the engine: layer 1 leaves them, they may be cached.
        `allowance` is what clearing old results may cost in this request, in tokens of fresh input; it pays back later.
        `recalls=False` adds no memory for the newest message. `reported` is how many tokens the server counted up to
        the newest answer, if that went by without `observe`; else this is estimated.
        Other fields are passed on in the body. Raises `BlockingLimit` if the request cannot fit the window.
        """
        async with self._at_work() as state:
            before, state.allowance = set(state.parts.log.view.surfaced), allowance
            wire = self._wire
            check_given(max_tokens or 0, int, "max_tokens")
            self._set_prefix(state, system, messages, tools, fields.get("thinking"))
            is_read = isinstance(messages, ReadItems)
            given = messages.given if is_read else wire.read_messages(messages, continued=whole is False)
            await state.take_in(given, whole=whole, origin=read_origin(origin), seen=seen, recalls=recalls)
            if not state.parts.log.view.messages():
                raise UserError("there is nothing to send: `messages` holds no message that a server accepts")
            state.count(reported)
            request = await state.prepare(max_tokens or self._output_cap(state))
            budget = state.layers.conversation.budget()
            body = self._body(state, request, fields)
            notices, self._notices = tuple(self._notices), []  # also those of calls since the last request
            return PreparedRequest(
                body=body,
                breaks=tuple(AnnouncedBreak(one.cause.value, one.why) for one in state.layers.conversation.breaks),
                tokens=budget.used,
                window=budget.window,
                notices=notices,
                recalled=tuple(name for name in state.parts.log.view.surfaced if name not in before),
                added=state.added,
                is_compacted=state.parts.log.view.boundaries > 0,
            )

    async def observe(self, response: object) -> None:
        """Takes in the response to the last prepared request: an object of an SDK or a dictionary. Its usage makes the
        count exact and is booked."""
        async with self._at_work() as state:
            await state.observe(self._wire.read_response(response), self._wire.read_answer(response))

    async def keep(self, tool_use_id: str, tool_name: str, output: object) -> KeptResult:
        """Returns the tool result to put into your messages: `output`, or its beginning and the path of the whole if it
        is large. `output` is a text, a list of content blocks, or anything that JSON can hold."""
        async with self._at_work() as state:
            check_given(tool_use_id, str, "tool_use_id")
            content = as_blocks(output)
            kept = await state.keep(tool_use_id, tool_name, content)
        if kept.content is content:
            return KeptResult(output)
        if not isinstance(kept.content, str):
            return KeptResult([block.wire() for block in kept.content])
        folder = state.parts.places.tool_results(state.parts.log.session_id)
        found = re.search(re.escape(str(folder)) + r"/[\w.-]+", kept.content) if kept.kept_bytes else None
        return KeptResult(kept.content, Path(found[0]) if found else None)

    async def end_turn(self, *, answered: bool = True) -> None:
        """Call when the user has the answer: lessons are written to memory, and a dream begins if its gates are open.
        Both run in the background; `close` waits for them."""
        async with self._at_work() as state:
            state.layers.end_turn(answered=answered)
            state.layers.idle(answered=answered)
            if state.syncs is not None:
                state.syncs.look()

    # -- more -----------------------------------------------------------------------------------------------------

    async def knows(self, messages: Sequence[Mapping[str, Any]], *, model: str | None = None) -> bool:
        """Whether a request belongs to this conversation, for programs that also ask other things: `model`, if it is
        given, is the engine's; and nothing was answered yet, or the messages begin as the conversation does, or they
        have a tool call or a long answer of it."""
        async with self._at_work() as state:
            parts = state.parts
            catalogue = Catalogue.load(parts.settings.catalogue.files)
            if model is not None and facts_of(model, catalogue).name != parts.facts.name:
                return False
            return state.knows(self._wire.read_messages(messages))

    async def recover(self, error: object = "") -> bool:
        """Call when the server says that the prompt is too long: makes the context shorter. Returns whether it did;
        then prepare the request again."""
        async with self._at_work() as state:
            said = model_error(ServerRefusal.read(400, {"message": str(error)}, {}, "no reason given"))
            named = next((one for one in (error, said) if isinstance(one, PromptTooLong)), PromptTooLong(str(error)))
            return await state.layers.conversation.recover(named)

    async def evidence(self) -> tuple[Evidence, ...]:
        """Returns what was said in the conversation, with its origins: `said` for `Memory.tool`."""
        async with self._at_work() as state:
            return gather_evidence(without_injected(state.parts.log.view.history))

    async def compact(
        self, messages: Sequence[Mapping[str, Any]] = (), *, instructions: str = "", origin: str = "entered"
    ) -> CompactedMessages:
        """Compacts now and returns the messages that replace the history. Later requests continue from there, and you
        may go on passing the whole history, or begin again with these messages."""
        async with self._at_work() as state:
            self._set_prefix(state, None, messages, None, None)
            await state.take_in(self._wire.read_messages(messages), origin=read_origin(origin))
            done = await state.layers.compactor.compact(instructions)
            request = await state.prepare(self._output_cap(state))
            body = self._body(state, request, {})
            shown: list[dict[str, Any]] = body.get("input") or body.get("messages") or []
            state.hand_over(self._wire.read_messages(shown))
            return CompactedMessages(shown, done.tokens_before, done.tokens_after, done.text, done.notice)

    @property
    def wire(self) -> str:
        """The shape of your messages: "messages", "chat" or "responses"."""
        return self._wire.name

    @property
    def read_tool(self) -> dict[str, Any]:
        """The definition of a tool that reads kept results back, for agents without a file tool. Answer its calls with
        `read`."""
        return read_tool(self._wire.name)

    async def read(self, path: str, offset: int = 0) -> str:
        """Returns a part of a kept result of this conversation that fits the window, and says how to read on. The files
        that a summary names can be read too. Raises `UserError` for any other path."""
        async with self._at_work() as state:
            places, name = state.parts.places, state.parts.log.session_id
            most = min(_READ_CHARACTERS, state.layers.result_limit(READ_TOOL) - _READ_ON)
        check_given(path, str, "path")
        check_given(offset, int, "offset")
        wanted = Path(path)
        own = wanted.parent in (places.tool_results(name), places.session(name) / "requests")
        if not (own or wanted == places.transcript(name)) or wanted.is_symlink() or not wanted.is_file():
            raise UserError(f"{path[:200]!r} is not a kept result of this conversation")
        text = await asyncio.to_thread(wanted.read_text, "utf-8", "replace")
        end = max(0, offset) + max(1, most)
        more = f"\n[{len(text) - end:,} characters more: read on with offset {end}]" if end < len(text) else ""
        return text[max(0, offset) : end] + more

    async def cost(self) -> Cost:
        """Returns what the conversation has cost so far, with the work beside it."""
        async with self._at_work() as state:
            ledger = Ledger.of_session(state.parts.log.records, Catalogue.load(state.parts.settings.catalogue.files))
        total = ledger.total
        used = total.usage
        return Cost(
            total.requests,
            used.input_tokens,
            used.cache_read_input_tokens,
            used.cache_creation_input_tokens,
            used.output_tokens,
            total.cost,
            total.saved,
            {name: one.cost for name, one in ledger.by("layer").items()},
        )

    async def folder(self) -> Path:
        """Returns the folder of this conversation below the home, for files that belong to it."""
        async with self._at_work() as state:
            return state.parts.places.session(state.parts.log.session_id)

    async def settle(self) -> None:
        """Waits until the background work is done."""
        if self._state is not None:
            for info in self._state.tasks.running:
                await self._state.tasks.settle(info.purpose, self._state.parts.settings.background.exit_wait_s)

    async def close(self) -> None:
        """Waits for background work and closes the transcript."""
        async with self._alone:
            state, self._state, self._closed = self._state, None, True
        if state is not None:
            await state.close()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- inside ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _at_work(self) -> AsyncGenerator[ForeignConversation]:
        """One call at a time, in this process and in all others; the transcript is read again if it grew elsewhere."""
        async with self._alone:
            if self._closed:
                raise UserError("this engine is closed: open the conversation again")
            if self._state is None:
                self._state = self._open(self._emit)
            state = self._state
            folder = state.parts.places.session(state.parts.log.session_id)
            try:
                make_private(folder)
                lock = exclusive_in_loop(folder / "engine.lock", timeout_s=_LOCK_S, what="this conversation")
                await lock.__aenter__()
            except LockTimeout:
                raise
            except StorageError as error:
                lock = None
                if not self._unlocked:
                    self._unlocked = True
                    self._emit(Notice(f"{error} The conversation continues in memory.", "error", "storage"))
            try:
                if lock is not None:
                    state.refresh()
                yield state
            finally:
                if lock is not None:
                    await lock.__aexit__(None, None, None)

    def _emit(self, event: Event) -> None:
        if isinstance(event, Notice) and event.source == "background" and event.level == "info":
            return  # that code does the work beside the conversation is what the caller chose
        if isinstance(event, Notice):
            self._notices.append(event.text)
        if self._on_event is not None:
            self._on_event(event)

    def _output_cap(self, state: ForeignConversation) -> int:
        return output_caps(state.parts.settings, state.parts.facts, state.parts.limits.window)[0]

    def _set_prefix(
        self, state: ForeignConversation, system: object, messages: object, tools: object, thinking: JsonObject | None
    ) -> None:
        """Records the caller's prefix. What is not given stays as it was."""
        wire, header = self._wire, state.parts.log.view.header
        given = wire.read_system(system, messages)
        texts, form = given.texts, given.form
        if system is None and not texts and header is not None:
            texts, form = header.system, header.form
        schemas = wire.read_tools(tools) if tools is not None or header is None else header.tools
        state.set_prefix(texts, schemas, thinking, form)

    def _body(self, state: ForeignConversation, request: Request, fields: Mapping[str, Any]) -> dict[str, Any]:
        header = state.parts.log.view.header
        kept_elsewhere = (
            {"previous_response_id", "conversation"} & fields.keys() if self._wire.name == "responses" else ()
        )
        if kept_elsewhere:  # the body holds the whole conversation: with these, the server would see it twice
            self._emit(Notice(f"{', '.join(sorted(kept_elsewhere))} left out: the engine sends the history itself"))
        left_out = {*kept_elsewhere, *(("thinking",) if request.thinking is not None else ())}
        rest = {name: value for name, value in fields.items() if name not in left_out}
        return self._wire.write_body(request, rest, header.form if header is not None else None)
