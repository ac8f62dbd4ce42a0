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
from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.library.prepared import PreparedRequest
from reverie.library.wires import wire_named
from reverie.library.wires.reading import Readings
from reverie.models.server_errors import ServerRefusal, model_error
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
    results_of,
    results_to_change,
    set_markers,
    text_of,
    tool_names,
)
from reverie.proxy.book import Book, chain, extended, hashed
from reverie.proxy.finding import Finder, count_answered, last_answer
from reverie.proxy.recalled import add_memories, prompts_in
from reverie.quick import dataclass
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.text.patterns import late
from reverie.types import JsonObject

_TAKEN_BACK = BreakCause.TAKEN_BACK.value
_MOST_OPEN = 32
_COLLECT_EVERY = 16
_SHORT = 2_000
"""Characters of a result that no layer does anything about."""
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
_READERS = late(r"(?i)read|view|cat|open|file|bash|shell|exec|command|terminal|run")
"""Names of tools with which a model can read a file again."""
_GOES_ON = ("tool_use", "pause_turn")
_LAYER_FLAGS: Mapping[str, tuple[str, ...]] = {
    "1": ("tool_results", "tool_results.message_budget"),
    "2": ("microcompact.time", "microcompact.economic"),
    "4": ("compaction.auto", "compaction.reactive"),
    "recall": ("recall",),
}
LAYERS = tuple(_LAYER_FLAGS)


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
    recalled: int = 0
    """About how many tokens the memories in the request have."""
    learns: bool = False


@dataclass(eq=False, slots=True)
class _Open:
    engine: Engine
    changed: Mapping[ResultName, str] | None = None
    """The results that the last request had changed; None at the start of a process."""
    can_read: bool = True
    """Whether layers 1 and 2 may work: the model can read what they take out."""
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
        self._window = window
        self._markers = markers and bool(layers)
        self._clock = clock
        self._open = OrderedDict[str, _Open]()
        self._finder = Finder(book, home)
        self._finding = asyncio.Lock()
        self._closed = 0
        self._readings = Readings()
        self.unpaid = dict[str, asyncio.Task[None]]()
        """The bill of the last request that broke the cache, if it is not booked yet."""

    async def plan(self, api: Api, raw: bytes, body: JsonObject, client: str) -> Plan:
        """Decides what to send. Raises any `ReverieError`; then the request goes out as it came."""
        model = str(body.get("model") or "")
        if kept := kept_by_server(api, body):  # only the server has the history: there is nothing to decide about
            return Plan(raw, False, self._finder.find_kept(kept, api, model, client), (), kept=True)
        read = self._readings.read(wire_named(api), items_of(api, body), len(raw))
        given = read.given
        states = chain(f"{api} {model}", [one.identity for one in given])
        if not states:
            return Plan(raw, False)
        async with self._finding:
            name, found = self._finder.find(states, last_answer(given), api, model, client)
        results = list(results_of(api, body))
        stopped, passes, answers, _ = self.book.state_of(name)
        if passes:
            return Plan(raw, False, name, tuple(states))
        markers = self._markers and found == "known" and not stopped and answers >= _ANSWERS
        markers = markers and api == "messages" and b'"cache_control"' not in raw and len(raw) > 4_000
        uses_memory = (self._learns or self._recalls) and not self._finder.is_beside(
            name, found, given, tool_names(api, body)
        )
        if not self._has_work(api, body, raw, results, uses_memory):
            return Plan(dump(set_markers(body)) if markers else raw, markers, name, tuple(states))
        if (bill := self.unpaid.pop(name, None)) is not None:
            await asyncio.wait([bill])
        opened = self._engine(name, model, api, can_read=_can_read(api, body))
        async with opened.alone:
            seen = count_answered(given) if found == "new" else 0
            can_mark = opened.changed is not None and (markers or has_free_marker(body, raw))
            allowance = self._allowance(name, len(raw) if api == "messages" and not can_mark else 0)
            made = await _prepare(opened.engine, api, body, read, seen=seen, allowance=allowance, recalls=uses_memory)
        plan = replace(
            self._patched(api, raw, body, made, results, markers, name, states), learns=self._learns and uses_memory
        )
        # A client that only completed the last answer breaks nothing.
        return replace(plan, breaks=tuple(one for one in plan.breaks if found != "known" or one != _TAKEN_BACK))

    async def shorter(self, plan: Plan, api: Api, raw: bytes, refusal: str) -> Plan | None:
        """The request again after a compaction, if the server said that it is too long; else None."""
        opened, body = self._open.get(plan.conversation), as_object(load_json(raw))
        if opened is None or not is_too_long(refusal):
            return None
        async with opened.alone:
            if not await opened.engine.recover(refusal):
                return None
            made = await _prepare(opened.engine, api, body, items_of(api, body), allowance=0)
        return self._patched(api, raw, body, made, list(results_of(api, body)), False, plan.conversation, plan.states)

    def _patched(
        self,
        api: Api,
        raw: bytes,
        body: JsonObject,
        made: PreparedRequest,
        results: Sequence[GivenResult],
        markers: bool,
        name: str,
        states: Sequence[bytes],
    ) -> Plan:
        told = tuple(one.cause for one in made.breaks)
        again = f"{self._home / 'projects'}/" in (calls := last_calls(api, body)) and "/tool-results/" in calls
        change = results_to_change(results, results_of(api, made.body))
        if change is None or made.is_compacted:  # the messages are ours from here on
            key = list_key(api)
            body = {**body, key: made.body[key]}
            return Plan(dump(body), True, name, tuple(states), True, 0, True, told, again)
        shown = add_memories(api, change_results(api, body, results, change), made.added)
        body = shown.body
        if markers:
            body = set_markers(body)
        opened = self._open.get(name)
        before = opened.changed if opened is not None else None
        if api == "messages" and before is not None:
            body = mark_before(body, {call for call, text in change.items() if before.get(call) != text})
        if opened is not None:
            opened.changed = change
        is_changed = bool(change or shown.tokens) or markers
        raw = dump(body) if is_changed else raw
        found = Plan(raw, is_changed, name, tuple(states), True, len(change), False, told, again)
        return replace(found, recalled=shown.tokens)

    async def answered(self, plan: Plan, api: Api, message: JsonObject) -> None:
        """Records an answer, so that the next request is recognised. Call it before the client has the end of it."""
        if not plan.conversation:
            return
        said = wire_named(api).read_answer(message)
        states = [hashed("response", str(message["id"]))] if api == "responses" and message.get("id") else []
        if not plan.kept:
            states.append(extended(plan.states[-1], [one.identity for one in said])[-1])
        if states:
            self.book.answered(plan.conversation, *states, said=last_answer(said))
        if self._learns or self._recalls:
            self.book.wrote(prompts_in(said))
        opened = self._open.get(plan.conversation)
        if plan.asked_engine and opened is not None:
            async with opened.alone:
                await opened.engine.observe(message)
                if plan.learns and wire_named(api).read_response(message).stop_reason not in _GOES_ON:
                    await opened.engine.end_turn()

    async def close(self) -> None:
        for opened in self._open.values():
            await opened.engine.close()
        self._open.clear()
        self.book.close()

    def _has_work(self, api: Api, body: JsonObject, raw: bytes, results: Sequence[GivenResult], asks: bool) -> bool:
        """Whether a layer could do anything: a result that is not short and can be read again, or a full window.
        `asks`: memories are recalled or written."""
        if len(raw) > _MOST_SAID and longest_text(api, body) > _MOST_SAID:
            return False
        if asks or not self._layers:
            return asks
        if len(raw) > _FULL * 4 * (self._window or 200_000) and "4" in self._layers:
            return True
        if not any(len(text_of(one.content) or "") > _SHORT for one in results):
            return False
        return _can_read(api, body)

    def _allowance(self, name: str, written_again: int) -> float:
        """What a clearing may cost now: what the conversation has saved so far, and a small part of its direct bill.
        `written_again`: bytes that are written again, whatever is cleared, because no marker can go before it."""
        sent, direct = self.book.meters(name)
        spare = (1 + SPARE) * direct - sent
        return max(0.0, spare) if spare >= written_again / _BYTES_PER_WRITE else 0.0

    def _engine(self, name: str, model: str, api: Api, *, can_read: bool) -> _Open:
        found = self._open.pop(name, None)
        if found is not None and can_read and not found.can_read:
            asyncio.get_running_loop().create_task(self._forget(found))
            found = None
        if found is None:
            layers = self._layers if can_read else self._layers - {"1", "2"}
            flags = {flag: layer in layers for layer, names in _LAYER_FLAGS.items() for flag in names}
            engine = Engine.open(
                name,
                model=model,
                memory=self._memory,
                wire=api,
                window=self._window,
                home=self._home,
                clock=self._clock,
                flags={**flags, "extraction": self._learns, "dream": self._learns, "recall.no_index": True},
            )
            found = _Open(engine, can_read=can_read)
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


def _can_read(api: Api, body: JsonObject) -> bool:
    """Whether the model of a client can read what was taken out: only then is anything taken out."""
    return any(_READERS.search(name) for name in tool_names(api, body))


async def _prepare(
    engine: Engine,
    api: Api,
    body: JsonObject,
    items: Sequence[JsonObject],
    *,
    allowance: float,
    seen: int = 0,
    recalls: bool = False,
) -> PreparedRequest:
    return await engine.prepare(
        messages=items,
        system=None if api == "chat" else body.get("instructions" if api == "responses" else "system", []),
        tools=body.get("tools", []),
        max_tokens=_limit(body),
        whole=True,
        seen=seen,
        allowance=allowance,
        recalls=recalls,
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
