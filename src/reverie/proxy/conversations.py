"""Finds the conversation of a request by its content, and asks its engine what to send.

Keeps a bounded number of engines open. A conversation that continues from an earlier point gets a copy of the
transcript, so that decisions about the common start stay the same in both branches.
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias
from weakref import WeakValueDictionary

from reverie.errors import PromptTooLong
from reverie.layers.base import BreakCause
from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.library.prepared import PreparedRequest
from reverie.library.wires import GivenMessage, wire_named
from reverie.library.wires.reading import Readings
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.proxy.bodies import (
    CACHED_S,
    Api,
    GivenResult,
    Marks,
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
    plan_marks,
    results_of,
    results_to_change,
    set_markers,
    text_of,
    tool_names,
)
from reverie.proxy.book import Book, chain, extended, hashed
from reverie.quick import dataclass
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.text.patterns import late
from reverie.types import JsonObject

Found: TypeAlias = Literal["known", "edited", "branch", "new"]
_TAKEN_BACK = BreakCause.TAKEN_BACK.value
_MOST_OPEN = 32
_MOST_HELD = 32_000_000
"""Bytes of the last requests of open conversations: large ones leave room for fewer."""
_BRANCHES = 16
"""The most branches of one conversation with a transcript of their own."""
_REWRITES = 8
"""How often a client may change what was said before, and once per ten requests on top."""
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
_LONG = 80
"""Characters of an answer that is not repeated by accident."""
_READERS = late(r"(?i)read|view|cat|open|file|bash|shell|exec|command|terminal|run")
"""Names of tools with which a model can read a file again."""
_LAYER_FLAGS: Mapping[str, tuple[str, ...]] = {
    "1": ("tool_results", "tool_results.message_budget"),
    "2": ("microcompact.time", "microcompact.economic"),
    "4": ("compaction.auto", "compaction.reactive"),
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
    marks: Marks = Marks()
    """Our cache markers, for a client that sets none."""
    at: float = 0.0


@dataclass(eq=False, slots=True)
class _Open:
    engine: Engine
    changed: Mapping[ResultName, str] | None = None
    """The results that the last request had changed; None at the start of a process."""
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
        self._window = window
        self._markers = markers and bool(layers)
        self._clock = clock
        self._open = OrderedDict[str, _Open]()
        self._finding = asyncio.Lock()
        self._readings = Readings()
        self._closing = set[asyncio.Task[None]]()
        self.unpaid = WeakValueDictionary[str, asyncio.Task[None]]()
        """The bill of the last request that broke the cache, until it is booked."""

    async def plan(self, api: Api, raw: bytes, body: JsonObject, client: str) -> Plan:
        """Decides what to send. Raises any `ReverieError`; then the request goes out as it came."""
        model = str(body.get("model") or "")
        if kept := kept_by_server(api, body):  # only the server has the history: there is nothing to decide about
            return Plan(raw, False, self._find_kept(kept, api, model, client), (), kept=True)
        read = self._readings.read(wire_named(api), items_of(api, body), len(raw))
        given = read.given
        states = chain(f"{api} {model}", [one.identity for one in given])
        if not states:
            return Plan(raw, False)
        async with self._finding:
            name, found = self._find(states, _last_answer(given), api, model, client)
        results = list(results_of(api, body))
        if self.book.state_of(name)[1]:
            return Plan(raw, False, name, tuple(states))
        if (bill := self.unpaid.get(name)) is not None:
            await asyncio.wait([bill])
        marks, now = Marks(), self._clock().timestamp()
        can_mark = self._markers and found == "known" and api == "messages" and len(raw) > 4_000
        if can_mark and b'"cache_control"' not in raw:
            marks = plan_marks(body, self.book.marked(name, now - CACHED_S), self._allowance(name, 0))
        if not self._has_work(api, body, raw, results):
            sent = dump(set_markers(body, marks)) if marks else raw
            return Plan(sent, bool(marks), name, tuple(states), marks=marks, at=now)
        opened = self._engine(name, model, api, len(raw))
        async with opened.alone:
            seen = _answered(given) if found == "new" else 0
            can_mark = opened.changed is not None and (marks or has_free_marker(body, raw))
            allowance = self._allowance(name, len(raw) if api == "messages" and not can_mark else 0) - marks.price
            made = await _prepare(opened.engine, api, body, read, seen=seen, allowance=max(0.0, allowance))
        plan = self._patched(api, raw, body, made, results, marks, name, states)
        # A client that only completed the last answer breaks nothing.
        breaks = (one for one in plan.breaks if found != "known" or one != _TAKEN_BACK)
        return replace(plan, breaks=tuple(breaks), at=now)

    async def shorter(self, plan: Plan, api: Api, raw: bytes, refusal: str) -> Plan | None:
        """The request again after a compaction, if the server said that it is too long; else None."""
        opened, body = self._open.get(plan.conversation), as_object(load_json(raw))
        if opened is None or not is_too_long(refusal):
            return None
        async with opened.alone:
            if not await opened.engine.recover(refusal):
                return None
            made = await _prepare(opened.engine, api, body, items_of(api, body), allowance=0)
        return self._patched(api, raw, body, made, list(results_of(api, body)), Marks(), plan.conversation, plan.states)

    def _patched(
        self,
        api: Api,
        raw: bytes,
        body: JsonObject,
        made: PreparedRequest,
        results: Sequence[GivenResult],
        marks: Marks,
        name: str,
        states: Sequence[bytes],
    ) -> Plan:
        told = tuple(one.cause for one in made.breaks)
        again = f"{self._home / 'projects'}/" in (calls := last_calls(api, body)) and "/tool-results/" in calls
        change = results_to_change(results, results_of(api, made.body))
        if change is None:  # a compaction: the messages are ours from here on
            key = list_key(api)
            body = {**body, key: made.body[key]}
            return Plan(dump(body), True, name, tuple(states), True, 0, True, told, again)
        body = change_results(api, body, results, change)
        if marks:
            body = set_markers(body, marks)
        opened = self._open.get(name)
        before = opened.changed if opened is not None else None
        if api == "messages" and before is not None:
            body = mark_before(body, {call for call, text in change.items() if before.get(call) != text})
        if opened is not None:
            opened.changed = change
        is_changed = bool(change or marks)
        raw = dump(body) if is_changed else raw
        return Plan(raw, is_changed, name, tuple(states), True, len(change), False, told, again, marks=marks)

    async def answered(self, plan: Plan, api: Api, message: JsonObject) -> None:
        """Records an answer, so that the next request is recognised. Call it before the client has the end of it."""
        if not plan.conversation:
            return
        said = wire_named(api).read_answer(message)
        states = [hashed("response", str(message["id"]))] if api == "responses" and message.get("id") else []
        if not plan.kept:
            states.append(extended(plan.states[-1], [one.identity for one in said])[-1])
        if states:
            self.book.answered(plan.conversation, *states, said=_last_answer(said))
        opened = self._open.get(plan.conversation)
        if plan.asked_engine and opened is not None:
            async with opened.alone:
                await opened.engine.observe(message)
                if self._learns and not _goes_on(api, message):
                    await opened.engine.end_turn()

    async def close(self) -> None:
        for opened in self._open.values():
            await opened.engine.close()
        self._open.clear()
        self.book.close()

    # Which conversation.

    def _find(
        self, states: Sequence[bytes], said: bytes | None, api: Api, model: str, client: str
    ) -> tuple[str, Found]:
        """The conversation of a request, and how it was found. `said`: the newest answer in the request."""
        found, how = self.book.find(states), "known"
        if found is not None and (found.is_newest or found.asked == states[-1]):
            name = found.conversation
        elif said is not None and (name := self.book.said_last(said)):
            self._rewritten(name)
            how = "edited"
        elif found is not None:
            name, how = self._branch(found.conversation, api, model, client), "branch"
        else:  # a client that asks again, because nobody answered, has the same conversation
            name, how = self.book.unanswered(states[-1], client) or self._begin(api, model, client), "new"
        self.book.asked(name, states[-1])
        return name, how

    def _find_kept(self, kept: str, api: Api, model: str, client: str) -> str:
        """The conversation of which the server keeps the history."""
        found = self.book.find([hashed("response", kept)])
        if found is not None:
            return found.conversation
        name = self._begin(api, model, client)
        self.book.answered(name, hashed("response", kept))
        return name

    def _begin(self, api: Api, model: str, client: str) -> str:
        name = f"proxy-{uuid.uuid4().hex[:16]}"
        self.book.begin(name, api, model, client)
        return name

    def _rewritten(self, name: str) -> None:
        """Counts that a client changed what was said before. If it does so again and again, its cache breaks in every
        request, and each time the transcript would have the history once more: then nothing is done."""
        self.book.add(name, rewrites=1)
        _, passes, requests, rewrites = self.book.state_of(name)
        if not passes and rewrites > _REWRITES + requests / 10:
            self.book.pass_on(name, "its client changes the history all the time: passed on as it comes")

    def _branch(self, parent: str, api: Api, model: str, client: str) -> str:
        """A conversation that goes on from an earlier point of another one. After many of them, all further ones are
        one conversation without a transcript."""
        root, branches = self.book.branches(parent)
        if branches >= _BRANCHES:
            name = f"{root}-more"
            self.book.begin(name, api, model, client)
            self.book.pass_on(
                name, f"after {_BRANCHES} branches of one conversation, others are passed on as they come"
            )
            return name
        name = self._begin(api, model, client)
        self.book.branch(name, parent)
        for path in self._home.glob(f"projects/*/{parent}.jsonl"):
            shutil.copyfile(path, path.with_name(f"{name}.jsonl"))
            path.with_name(f"{name}.jsonl").chmod(0o600)
        return name

    def _has_work(self, api: Api, body: JsonObject, raw: bytes, results: Sequence[GivenResult]) -> bool:
        """Whether a layer could do anything: a result that is not short and can be read again, or a full window."""
        if not self._layers or (len(raw) > _MOST_SAID and longest_text(api, body) > _MOST_SAID):
            return False
        if self._learns:
            return True
        if len(raw) > _FULL * 4 * (self._window or 200_000) and "4" in self._layers:
            return True
        if not any(len(text_of(one.content) or "") > _SHORT for one in results):
            return False
        return any(_READERS.search(name) for name in tool_names(api, body))

    def _allowance(self, name: str, written_again: int) -> float:
        """What a clearing may cost now: what the conversation has saved so far, and a small part of its direct bill.
        `written_again`: bytes that are written again, whatever is cleared, because no marker can go before it."""
        sent, direct = self.book.meters(name)
        spare = (1 + SPARE) * direct - sent
        return max(0.0, spare) if spare >= written_again / _BYTES_PER_WRITE else 0.0

    def _engine(self, name: str, model: str, api: Api, size: int) -> _Open:
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
        self._open[name], found.size = found, size
        while len(self._open) > _MOST_OPEN or sum(one.size for one in self._open.values()) > _MOST_HELD:
            oldest = next((key for key, one in self._open.items() if not one.alone.locked()), None)
            if oldest is None or oldest == name:
                break
            task = asyncio.get_running_loop().create_task(self._open.pop(oldest).engine.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return found


def _last_answer(given: Sequence[GivenMessage]) -> bytes | None:
    """The hash of the newest answer, if no other one is like it by accident: it is long, or has the id of a call."""
    end = _answered(given)
    begin = next((at + 1 for at in range(end - 1, -1, -1) if given[at].message.role != "assistant"), 0)
    said = given[begin:end]
    # A message that is recognised by something else than its fingerprint has the id of a call.
    is_unique = any(len(one.message.text) >= _LONG or one.identity != one.fingerprint for one in said)
    return hashed("answer", *(one.identity for one in said)) if is_unique else None


def _answered(given: Sequence[GivenMessage]) -> int:
    """How many messages an unknown conversation had up to its newest answer: the server may have cached them."""
    return max((place + 1 for place, one in enumerate(given) if one.message.role == "assistant"), default=0)


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
