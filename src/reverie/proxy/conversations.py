"""Asks the engine of a conversation what to send, and tells it what was answered. Keeps a bounded number of engines
open."""

from __future__ import annotations

import asyncio
import gc
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from reverie.errors import PromptTooLong
from reverie.layers.base import BreakCause
from reverie.layers.l1_tool_results.replacement import ResultLimits
from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.library.prepared import PreparedRequest
from reverie.library.wires import wire_named
from reverie.library.wires.reading import Readings
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.models.window import scaled
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.proxy.bodies import (
    Api,
    GivenResult,
    ResultName,
    change_results,
    dump,
    has_free_marker,
    items_of,
    kept_by_server,
    last_calls,
    list_key,
    longest_text,
    mark_before,
    move_last_marker,
    new_results,
    results_of,
    results_to_change,
    set_markers,
    text_of,
    tool_names,
)
from reverie.proxy.book import Book, chain, extended, hashed
from reverie.proxy.finding import Finder, count_answered, last_answer
from reverie.proxy.read_back import OwnCall, ReadResult, name_of, reads_files, with_items
from reverie.proxy.saved_reads import Hidden, SavedReads
from reverie.quick import dataclass
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.types import JsonObject

_TAKEN_BACK = BreakCause.TAKEN_BACK.value
_HEADER = BreakCause.HEADER.value
_MOST_OPEN = 32
_COLLECT_EVERY = 16
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
_FULL = 0.5
"""The share of the window above which the engine is asked although all results are short."""
_ANSWERS = 2
"""The least answers of a conversation that gets cache markers: writing costs more than sending, and pays only if more
requests follow."""
_LAYER_FLAGS: Mapping[str, tuple[str, ...]] = {
    "1": ("tool_results", "tool_results.message_budget"),
    "2": ("microcompact.time", "microcompact.economic"),
    "4": ("compaction.auto", "compaction.reactive"),
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
    markers: bool = False
    is_round: bool = False
    """Whether the client knows nothing of this request: it gives the model what it read with our tool."""


@dataclass(eq=False, slots=True)
class _Open:
    engine: Engine
    changed: Mapping[ResultName, str] | None = None
    """The results that the last request had changed; None at the start of a process."""
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
        self._window = window
        self._markers = markers and bool(layers)
        self._clock = clock
        self._open = OrderedDict[str, _Open]()
        self._finder = Finder(book, home)
        self._saved = SavedReads(book, home)
        self._finding = asyncio.Lock()
        self._closed = 0
        self._readings = Readings()
        self.unpaid = dict[str, asyncio.Task[None]]()
        """The bill of the last request that broke the cache, if it is not booked yet."""

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
        stopped, passes, answers, _ = self.book.state_of(name)
        if passes:
            return Plan(raw, False, name, tuple(states))
        calls = last_calls(api, body)
        again = f"{self._home / 'projects'}/" in calls and "/tool-results/" in calls
        plan = Plan(raw, False, name, tuple(states), reads_back=again)
        is_first = found == "new" and not count_answered(given)
        reads = is_near and reads_files(tool_names(api, body))
        tool, had = None, self.book.tool(name)
        if had or (self._layers & _TAKE_OUT and not reads):
            taken = new_results(api, body, scaled(_LARGE, self._window or 10**9)) if "1" in self._layers else 0
            tool = self._saved.tool_of(name, api, body, size=len(raw), taken=taken, is_first=is_first)
        if tool is not None:
            came, body = body, self._saved.server_side(name, api, body, tool, seed)
            key = list_key(api)
            items = read if body[key] is came[key] else items_of(api, body)
            plan = replace(plan, body=dump(body), is_changed=True, given=body, tool=name_of(tool))
        markers = self._markers and found == "known" and not stopped and answers >= _ANSWERS
        markers = markers and api == "messages" and b'"cache_control"' not in raw and len(raw) > 4_000
        if markers:
            plan = replace(plan, body=dump(set_markers(body)), is_changed=True, markers=True)
        results = list(results_of(api, body))
        if not self._has_work(api, body, raw, results if reads or tool is not None else ()):
            return plan
        if (bill := self.unpaid.pop(name, None)) is not None:
            await asyncio.wait([bill])
        opened = self._engine(name, model, api)
        async with opened.alone:
            seen = count_answered(given) if found == "new" else 0
            if tool is not None and self._is_dearer(name):
                seen = len(items)  # the model reads too much of it again: new results stay
            can_mark = opened.changed is not None and (markers or has_free_marker(body, raw))
            allowance = self._allowance(name, len(raw) if api == "messages" and not can_mark else 0)
            made = await _prepare(opened.engine, api, body, items, seen=seen, allowance=allowance)
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
            sent = set_markers(body) if plan.markers else move_last_marker(body)
        plan = replace(plan, body=dump(sent), is_changed=True, given=body, results=0, compacted=False, breaks=())
        plan = replace(plan, reads_back=True, is_round=True)
        if not plan.asked_engine:
            return plan
        opened = self._engine(plan.conversation, str(body.get("model") or ""), api)
        async with opened.alone:
            made = await _prepare(opened.engine, api, sent, items_of(api, sent), allowance=0)
        return self._patched(plan, api, sent, made, list(results_of(api, sent)))

    async def shorter(self, plan: Plan, api: Api, raw: bytes, refusal: str) -> Plan | None:
        """The request again after a compaction, if the server said that it is too long; else None."""
        opened, body = self._open.get(plan.conversation), plan.given or as_object(load_json(raw))
        if opened is None or not is_too_long(refusal):
            return None
        async with opened.alone:
            if not await opened.engine.recover(refusal):
                return None
            made = await _prepare(opened.engine, api, body, items_of(api, body), allowance=0)
        return self._patched(replace(plan, markers=False), api, body, made, list(results_of(api, body)))

    def _patched(
        self, plan: Plan, api: Api, body: JsonObject, made: PreparedRequest, results: Sequence[GivenResult]
    ) -> Plan:
        """The plan with what the engine decided about this body."""
        plan = replace(plan, asked_engine=True, breaks=tuple(one.cause for one in made.breaks))
        change = results_to_change(results, results_of(api, made.body))
        if change is None:  # a compaction: the messages are ours from here on
            key = list_key(api)
            return replace(plan, body=dump({**body, key: made.body[key]}), is_changed=True, compacted=True)
        body = change_results(api, body, results, change)
        if plan.markers:
            body = set_markers(body)
        opened = self._open.get(plan.conversation)
        before = opened.changed if opened is not None else None
        if api == "messages" and before is not None:
            body = mark_before(body, {call for call, text in change.items() if before.get(call) != text})
        if opened is not None:
            opened.changed = change
        if not change:
            return plan
        return replace(plan, body=dump(body), is_changed=True, results=len(change))

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
            self.book.answered(plan.conversation, *states, said=last_answer(said))
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
                if self._learns and not _goes_on(api, message):
                    await opened.engine.end_turn()

    async def read_saved(self, plan: Plan, api: Api, call: OwnCall) -> ReadResult:
        """Answers a call of our tool."""
        model = str((plan.given or {}).get("model") or "")
        self.book.add(plan.conversation, reads=1)
        return await self._saved.read(plan.conversation, call, lambda name: self._engine(name, model, api).engine)

    async def close(self) -> None:
        for opened in self._open.values():
            await opened.engine.close()
        self._open.clear()
        self.book.close()

    def _has_work(self, api: Api, body: JsonObject, raw: bytes, results: Sequence[GivenResult]) -> bool:
        """Whether a layer could do anything: a result that is not short, or a full window. `results`: those that can be
        read back."""
        if not self._layers or (len(raw) > _MOST_SAID and longest_text(api, body) > _MOST_SAID):
            return False
        if self._learns:
            return True
        if len(raw) > _FULL * 4 * (self._window or 200_000) and "4" in self._layers:
            return True
        return any(len(text_of(one.content) or "") > _SHORT for one in results)

    def _allowance(self, name: str, written_again: int) -> float:
        """What a clearing may cost now: what the conversation has saved so far, and a small part of its direct bill.
        `written_again`: bytes that are written again, whatever is cleared, because no marker can go before it."""
        sent, direct = self.book.meters(name)
        spare = (1 + SPARE) * direct - sent
        return max(0.0, spare) if spare >= written_again / _BYTES_PER_WRITE else 0.0

    def _is_dearer(self, name: str) -> bool:
        """Whether a conversation has cost more so far than is promised."""
        sent, direct = self.book.meters(name)
        return sent > (1 + SPARE) * direct

    def _engine(self, name: str, model: str, api: Api) -> _Open:
        found = self._open.pop(name, None)
        if found is None:
            flags = {flag: layer in self._layers for layer, names in _LAYER_FLAGS.items() for flag in names}
            engine = Engine.open(
                name,
                model=model,
                memory=self._memory,
                wire=api,
                window=self._window,
                home=self._home,
                clock=self._clock,
                flags={**flags, "extraction": self._learns, "dream": self._learns, "recall": False},
            )
            found = _Open(engine)
        self._open[name] = found
        while len(self._open) > _MOST_OPEN:
            oldest = next((key for key, one in self._open.items() if not one.alone.locked()), None)
            if oldest is None or oldest == name:
                break
            asyncio.get_running_loop().create_task(self._forget(self._open.pop(oldest)))
        return found

    async def _forget(self, opened: _Open) -> None:
        """Closes an engine. Its parts refer to each other: now and then they are collected, or memory would grow."""
        await opened.engine.close()
        self._closed += 1
        if self._closed % _COLLECT_EVERY == 0:
            gc.collect()


async def _prepare(
    engine: Engine, api: Api, body: JsonObject, items: Sequence[JsonObject], *, allowance: float, seen: int = 0
) -> PreparedRequest:
    return await engine.prepare(
        messages=items,
        system=None if api == "chat" else body.get("instructions" if api == "responses" else "system", []),
        tools=body.get("tools", []),
        max_tokens=_limit(body),
        whole=True,
        seen=seen,
        allowance=allowance,
    )


def is_too_long(refusal: str) -> bool:
    """Whether a server refuses a prompt because of its length."""
    said: Any = refusal
    with suppress(ValueError):
        said = load_json(refusal)
    return isinstance(model_error(ServerRefusal.read(400, said, {}, "")), PromptTooLong)


def _limit(body: JsonObject) -> int | None:
    given = body.get("max_tokens") or body.get("max_completion_tokens") or body.get("max_output_tokens")
    return given if isinstance(given, int) and given > 0 else None


def _goes_on(api: Api, message: JsonObject) -> bool:
    if api == "messages":
        return message.get("stop_reason") in ("tool_use", "pause_turn")
    return '"tool_calls"' in str(message) or "function_call" in str(message.get("output"))
