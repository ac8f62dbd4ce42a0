"""Asks the engine of a conversation what to send, and tells it what was answered. Keeps a bounded number of engines
open."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from weakref import WeakValueDictionary

from reverie.layers.base import BreakCause
from reverie.layers.l1_tool_results.replacement import ResultLimits
from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.library.prepared import PreparedRequest
from reverie.library.wires import wire_named
from reverie.library.wires.reading import Readings
from reverie.models.catalogue import Catalogue
from reverie.models.registry import facts_of
from reverie.models.window import WindowSource, scaled, window_of
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.proxy.asking import is_too_long, prepare
from reverie.proxy.bodies import (
    Api,
    GivenResult,
    ResultName,
    change_results,
    dump,
    items_of,
    kept_by_server,
    last_calls,
    list_key,
    longest_text,
    new_results,
    results_of,
    results_to_change,
    text_of,
    tool_names,
)
from reverie.proxy.book import Book, chain, extended, hashed
from reverie.proxy.finding import Finder, count_answered, last_answer
from reverie.proxy.markers import (
    CACHED_S,
    NO_MARKS,
    Marks,
    has_free_marker,
    mark_before,
    move_last_marker,
    plan_marks,
    set_markers,
)
from reverie.proxy.read_back import OwnCall, ReadResult, name_of, reads_files, with_items
from reverie.proxy.recalled import add_memories, prompts_in
from reverie.proxy.saved_reads import Hidden, SavedReads
from reverie.quick import dataclass
from reverie.settings import Settings, load_settings
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.types import JsonObject

_log = logging.getLogger("reverie.proxy")
_TAKEN_BACK = BreakCause.TAKEN_BACK.value
_HEADER = BreakCause.HEADER.value
_MOST_OPEN = 32
_MOST_HELD = 32_000_000
"""Bytes of the last requests of open conversations: large ones leave room for fewer."""
_SHORT = 2_000
"""Characters of a result that no layer does anything about."""
_LARGE = ResultLimits().default
"""Characters of a result that surely goes to disk."""
_MOST_SAID = 2_000_000
"""Characters of one text that no compaction makes fit: then nothing is tried."""
SPARE = 0.01
"""The part of its direct bill that a conversation may lend to a clearing."""
_BYTES_PER_WRITE = 3.5
"""Bytes of a prompt for the price of one fresh token more, if all of it is written to the cache and not read."""
_GUESSED = (WindowSource.DEFAULT, WindowSource.UNLISTED)
_NEVER_FULL = 10**9
"""Tokens of a window that nobody knows: a guess would compact a conversation that has room."""
_FULL = 0.5
"""The share of the window above which the engine is asked although all results are short."""
_GOES_ON = ("tool_use", "pause_turn")
_LAYER_FLAGS: Mapping[str, tuple[str, ...]] = {
    "1": ("tool_results",),
    "2": ("microcompact.time", "microcompact.economic"),
    "4": ("compaction.auto", "compaction.reactive"),
    "recall": ("recall",),
}
LAYERS = tuple(_LAYER_FLAGS)
_TAKE_OUT = frozenset("12")
"""Layers that take results out of a conversation."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send instead of the bytes that came, and where the answer belongs."""

    body: bytes
    is_changed: bool
    conversation: str = ""
    states: tuple[bytes, ...] = ()
    """The states of the request, for the state after the answer."""
    asked_engine: bool = False
    results: int = 0
    compacted: bool = False
    breaks: tuple[str, ...] = ()
    reads_back: bool = False
    """Whether the model reads a result that we took out: without us, there would be no such request."""
    kept: bool = False
    """Whether the server keeps the history, and the request has only what is new."""
    given: JsonObject | None = None
    """The request with our tool and what the server has seen of it, before a layer changed it; None without a tool."""
    tool: str = ""
    """The name of our tool."""
    marks: Marks = NO_MARKS
    is_round: bool = False
    """Whether the client knows nothing of this request: it gives the model what it read with our tool."""
    recalled: int = 0
    """About how many tokens the memories in the request have."""
    learns: bool = False
    at: float = 0.0


@dataclass(eq=False, slots=True)
class _Open:
    engine: Engine
    changed: Mapping[ResultName, str] | None = None
    """The results that the last request had changed; None at the start of a process."""
    can_read: bool = True
    """Whether layers 1 and 2 may work: the model can read what they take out."""
    size: int = 0
    """Bytes of the last request."""
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)


class Conversations:
    """All conversations of one proxy."""

    def __init__(
        self,
        book: Book,
        home: Path,
        *,
        layers: Sequence[str] = LAYERS,
        memory: Memory | None = None,
        learns: bool = False,
        window: int | None = None,
        markers: bool = True,
        clock: Clock = utc_now,
    ) -> None:
        self.book = book
        self._home = home
        self._layers = frozenset(layers)
        self._memory = memory
        self._learns = learns
        self._recalls = memory is not None and "recall" in layers
        self._limit = window
        self._windows = dict[str, int]()
        self._settings: Settings | None = None
        self._markers = markers and bool(layers)
        self._clock = clock
        self._open = OrderedDict[str, _Open]()
        self._finder = Finder(book, home)
        self._saved = SavedReads(book, home)
        self._finding = asyncio.Lock()
        self._readings = Readings()
        self._closing = set[asyncio.Task[None]]()
        self.unpaid = WeakValueDictionary[str, asyncio.Task[None]]()
        """The bill of the last request that broke the cache, until it is booked."""

    async def plan(self, api: Api, raw: bytes, body: JsonObject, client: str, *, is_near: bool = True) -> Plan:
        """Decides what to send. `is_near`: the client is on this machine, and may read our files. Raises any
        `ReverieError`; then the request goes out as it came."""
        model = str(body.get("model") or "")
        if kept := kept_by_server(api, body):  # only the server has the history: there is nothing to decide about
            return self._plan_kept(raw, body, self._finder.find_kept(kept, api, model, client), kept)
        read = items = self._readings.read(wire_named(api), items_of(api, body), len(raw))
        given = read.given
        seed = f"{api} {model}"
        states = chain(seed, [one.identity for one in given])
        if not states:
            return Plan(raw, False)
        async with self._finding:
            name, found = self._finder.find(states, last_answer(given), api, model, client)
        if self.book.state_of(name)[1]:
            return Plan(raw, False, name, tuple(states))
        if (bill := self.unpaid.get(name)) is not None:
            await asyncio.wait([bill])
        calls = last_calls(api, body)
        again = f"{self._home / 'projects'}/" in calls and "/tool-results/" in calls
        now = self._clock().timestamp()
        plan = Plan(raw, False, name, tuple(states), reads_back=again, at=now)
        is_first = found == "new" and not count_answered(given)
        names = tool_names(api, body)
        reads = is_near and reads_files(names)
        tool, had = None, self.book.tool(name)
        if had or (self._layers & _TAKE_OUT and not reads):
            taken = new_results(api, body, scaled(_LARGE, self._window(model))) if "1" in self._layers else 0
            tool = self._saved.tool_of(name, api, body, size=len(raw), taken=taken, is_first=is_first)
        if tool is not None:
            came, body = body, self._saved.server_side(name, api, body, tool, seed)
            key = list_key(api)
            items = read if body[key] is came[key] else items_of(api, body)
            plan = replace(plan, body=dump(body), is_changed=True, given=body, tool=name_of(tool))
        marks = NO_MARKS
        can_mark = self._markers and found == "known" and api == "messages" and len(raw) > 4_000
        if can_mark and b'"cache_control"' not in raw:
            marks = plan_marks(body, self.book.marked(name, now - CACHED_S), self._allowance(name, 0))
        if marks:
            plan = replace(plan, body=dump(set_markers(body, marks)), is_changed=True, marks=marks)
        uses_memory = (self._learns or self._recalls) and not self._finder.is_beside(name, found, given, names)
        plan, can_read = replace(plan, learns=self._learns and uses_memory), reads or tool is not None
        results, reported = list(results_of(api, body)), self.book.reported(name) if found == "known" else 0
        is_full = max(len(raw) / 4, reported) > _FULL * self._window(model)
        if not self._has_work(api, body, raw, results if can_read else (), uses_memory, is_full):
            return plan
        opened = self._engine(name, model, api, len(raw), can_read=can_read)
        async with opened.alone:
            seen = count_answered(given) if found == "new" else 0
            if tool is not None and self._is_dearer(name):
                seen = len(items)  # the model reads too much of it again: new results stay
            can_mark = opened.changed is not None and (marks or has_free_marker(body, raw))
            allowance = self._allowance(name, len(raw) if api == "messages" and not can_mark else 0)
            spare = max(0.0, allowance - marks.price)
            told = {"seen": seen, "reported": reported}
            made = await prepare(opened.engine, api, body, items, **told, allowance=spare, recalls=uses_memory)
        plan = self._patched(plan, api, body, made, results)
        # A client that only completed the last answer breaks nothing.
        breaks = [one for one in plan.breaks if found != "known" or one != _TAKEN_BACK]
        if tool is not None and not had and not is_first:
            breaks.append(_HEADER)
        return replace(plan, breaks=tuple(dict.fromkeys(breaks)))

    def _plan_kept(self, raw: bytes, body: JsonObject, name: str, kept: str) -> Plan:
        """A request whose history the server keeps: only our tool goes on with it, if it began with one."""
        plan = Plan(raw, False, name, kept=True)
        if (known := self._saved.server_side_kept(name, body, kept)) is None:
            return plan
        body, tool = known
        return replace(plan, body=dump(body), is_changed=True, given=body, tool=tool)

    async def next_round(self, plan: Plan, api: Api, items: Sequence[JsonObject]) -> Plan:
        """The request that gives the model what it read with our tool: the last one, the answer, and the results."""
        given = plan.given or {}
        body = sent = with_items(api, given, [*items_of(api, given), *items])
        if api == "messages":
            sent = set_markers(body, plan.marks) if plan.marks else move_last_marker(body)
        plan = replace(plan, body=dump(sent), is_changed=True, given=body, results=0, compacted=False, breaks=())
        plan = replace(plan, reads_back=True, is_round=True)
        if not plan.asked_engine:
            return plan
        opened = self._engine(plan.conversation, str(body.get("model") or ""), api)
        async with opened.alone:
            made = await prepare(opened.engine, api, sent, items_of(api, sent), allowance=0)
        return self._patched(plan, api, sent, made, list(results_of(api, sent)))

    async def shorter(self, plan: Plan, api: Api, raw: bytes, refusal: str) -> Plan | None:
        """The request again after a compaction, if the server said that it is too long; else None."""
        opened, body = self._open.get(plan.conversation), plan.given or as_object(load_json(raw))
        if opened is None or not is_too_long(refusal):
            return None
        async with opened.alone:
            if not await opened.engine.recover(refusal):
                return None
            made = await prepare(opened.engine, api, body, items_of(api, body), allowance=0)
        return self._patched(replace(plan, marks=NO_MARKS), api, body, made, list(results_of(api, body)))

    def _patched(
        self, plan: Plan, api: Api, body: JsonObject, made: PreparedRequest, results: Sequence[GivenResult]
    ) -> Plan:
        """The plan with what the engine decided about this body."""
        causes = tuple(one.cause for one in made.breaks)
        is_compacted = BreakCause.COMPACTED.value in causes
        if is_compacted:
            _log.warning("Conversation %s was compacted, because it did not fit the window.", plan.conversation)
        plan = replace(plan, asked_engine=True, breaks=causes, compacted=plan.compacted or is_compacted)
        change = results_to_change(results, results_of(api, made.body))
        if change is None or made.is_compacted:  # the messages are ours from here on
            key = list_key(api)
            return replace(plan, body=dump({**body, key: made.body[key]}), is_changed=True, recalled=0)
        shown = add_memories(api, change_results(api, body, results, change), made.added)
        body = shown.body
        if plan.marks:
            body = set_markers(body, plan.marks)
        opened = self._open.get(plan.conversation)
        before = opened.changed if opened is not None else None
        if api == "messages" and before is not None:
            body = mark_before(body, {call for call, text in change.items() if before.get(call) != text})
        if opened is not None:
            opened.changed = change
        if not change and not shown.tokens:
            return plan
        return replace(plan, body=dump(body), is_changed=True, results=len(change), recalled=shown.tokens)

    async def answered(
        self, plan: Plan, api: Api, message: JsonObject, shown: JsonObject | None = None, hidden: Hidden | None = None
    ) -> None:
        """Records an answer, so that the next request is recognised. Call it before the client has the end of it.
        `shown`: what the client gets, if that is another answer; `hidden`: what the server has in its place."""
        if not plan.conversation:
            return
        shown = shown or message
        said = wire_named(api).read_answer(shown)
        states = [hashed("response", str(shown["id"]))] if api == "responses" and shown.get("id") else []
        if not plan.kept:
            states.append(extended(plan.states[-1], [one.identity for one in said])[-1])
        if states:
            usage = wire_named(api).read_response(message).usage
            self.book.answered(plan.conversation, *states, said=last_answer(said), reported=usage.total)
        if self._learns or self._recalls:
            self.book.wrote(prompts_in(said))
        await self.heard(plan, api, message)
        if hidden is not None:
            folder = await self._engine(plan.conversation, str((plan.given or {}).get("model")), api).engine.folder()
            self._saved.hide(folder, None if plan.kept else states[-1], said, hidden, str(shown.get("id")))

    async def heard(self, plan: Plan, api: Api, message: JsonObject) -> None:
        """Tells the engine what the server answered."""
        opened = self._open.get(plan.conversation)
        if plan.asked_engine and opened is not None:
            async with opened.alone:
                await opened.engine.observe(message)
                if plan.learns and wire_named(api).read_response(message).stop_reason not in _GOES_ON:
                    await opened.engine.end_turn()

    async def read_saved(self, plan: Plan, api: Api, call: OwnCall) -> ReadResult:
        """Answers a call of our tool."""
        given = plan.given or {}
        model = str(given.get("model") or "")
        self.book.add(plan.conversation, reads=1)
        results = results_of(api, given)
        return await self._saved.read(
            plan.conversation, call, lambda name: self._engine(name, model, api).engine, results
        )

    async def close(self) -> None:
        for opened in self._open.values():
            await opened.engine.close()
        self._open.clear()
        self.book.close()

    def _window(self, model: str) -> int:
        """The tokens of the window of a model, at most those that the user allows."""
        if model not in self._windows:
            if len(self._windows) >= _MOST_OPEN:  # the names come from clients
                self._windows.clear()
            settings = self._settings = self._settings or load_settings(self._home, home=self._home)
            found = window_of(model, facts_of(model, Catalogue.load(settings.catalogue.files)), settings)
            tokens = _NEVER_FULL if found.source in _GUESSED else found.tokens
            self._windows[model] = min(tokens, self._limit or tokens)
        return self._windows[model]

    def _has_work(
        self, api: Api, body: JsonObject, raw: bytes, results: Sequence[GivenResult], asks: bool, is_full: bool
    ) -> bool:
        """Whether a layer could do anything: a result that is not short, or a full window. `results`: those that can be
        read back. `asks`: memories are recalled or written."""
        if len(raw) > _MOST_SAID and longest_text(api, body) > _MOST_SAID:
            return False
        if asks or not self._layers:
            return asks
        if is_full and "4" in self._layers:
            return True
        return any(len(text_of(one.content) or "") > _SHORT for one in results)

    def _allowance(self, name: str, written_again: int) -> float:
        """What a clearing may cost now: what the conversation has saved so far, and a small part of its direct bill.
        `written_again`: bytes that are written again, whatever is cleared, because no marker can go before it."""
        sent, direct = self.book.meters(name)
        spare = (1 + SPARE) * direct - sent
        return max(0.0, spare) if spare >= written_again / _BYTES_PER_WRITE else 0.0

    def _is_dearer(self, name: str) -> bool:
        """Whether a conversation has cost more so far than is promised, and results were read again in it."""
        sent, direct = self.book.meters(name)
        return sent > (1 + SPARE) * direct and self.book.family(name)[name] > 0

    def _engine(self, name: str, model: str, api: Api, size: int = 0, *, can_read: bool = True) -> _Open:
        found = self._open.pop(name, None)
        if found is not None and can_read and not found.can_read:
            self._close(found)
            found = None
        if found is None:
            layers = self._layers if can_read else self._layers - _TAKE_OUT
            flags = {flag: layer in layers for layer, names in _LAYER_FLAGS.items() for flag in names}
            engine = Engine.open(
                name,
                model=model,
                memory=self._memory,
                wire=api,
                window=self._window(model),
                home=self._home,
                clock=self._clock,
                flags={**flags, "extraction": self._learns, "dream": self._learns, "recall.no_index": True},
            )
            found = _Open(engine, can_read=can_read)
        self._open[name], found.size = found, size or found.size
        while len(self._open) > _MOST_OPEN or sum(one.size for one in self._open.values()) > _MOST_HELD:
            oldest = next((key for key, one in self._open.items() if not one.alone.locked()), None)
            if oldest is None or oldest == name:
                break
            self._close(self._open.pop(oldest))
        return found

    def _close(self, opened: _Open) -> None:
        task = asyncio.get_running_loop().create_task(opened.engine.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
