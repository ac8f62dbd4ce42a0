"""Coalescing, the trailing run, the cursor and the exclusion, held against a model of the rules in a real session."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reverie.errors import BadRequest
from reverie.layers.l5_extraction.gates import WRITER
from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.models.base import Capabilities, Finished, ModelEvent, Request, Response
from reverie.session import Session
from reverie.storage.transcript.records import CompactBoundary, Rewind
from reverie.types import Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from tests.counts import count

_COUNTED = re.compile(r"The last (?:(\d+) messages|message) before this one")


class Held:
    """A mind whose every answer waits until the test lets it go."""

    name = "scripted:held"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.waiting: list[tuple[Request, asyncio.Future[bool]]] = []

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.waiting.append((request, answer))
        try:
            if not await answer:
                raise BadRequest("no such luck", status=400)
        finally:
            self.waiting = [(one, held) for one, held in self.waiting if held is not answer]
        said = TextBlock("nothing", Origin.MODEL)
        yield Finished(Response("msg", "held", (said,), "end_turn", Usage(input_tokens=1, output_tokens=1)))

    async def close(self) -> None:
        pass


@dataclass
class Said:
    """A turn as the rules see it: the uuids of its messages, and whether the agent saved a memory in it."""

    uuids: list[str]
    saved: bool = False


@dataclass
class Rules:
    """The rules, written down a second time: plain lists, nothing shared with the code."""

    every: int
    talk: list[Said] = field(default_factory=list[Said])
    cursors: list[str] = field(default_factory=list[str])
    running: list[Said] | None = None
    pending: list[Said] | None = None
    turns: int = 0

    def new(self, talk: list[Said]) -> list[Said]:
        ends = [turn.uuids[-1] for turn in talk]
        for cursor in reversed(self.cursors):
            if cursor in ends:
                return talk[ends.index(cursor) + 1 :]
        return talk

    def turn_ended(self) -> None:
        if self.running is not None:
            self.pending, self.turns = list(self.talk), self.turns + 1
        elif any(turn.saved for turn in self.new(self.talk)):
            self.cursors.append(self.talk[-1].uuids[-1])
        elif self.turns + 1 < self.every:
            self.turns += 1
        else:
            self.running, self.turns = list(self.talk), 0

    def ended(self, *, well: bool) -> None:
        assert self.running is not None
        if well:
            self.cursors.append(self.running[-1].uuids[-1])
        self.running, self.pending = self.pending, None
        if self.running is None:
            return
        self.turns = 0
        new = self.new(self.running)
        if any(turn.saved for turn in new):
            self.cursors.append(self.running[-1].uuids[-1])
            self.running = None
        elif not new:
            self.running = None

    def killed(self) -> None:
        self.running = self.pending = None

    @property
    def told(self) -> int | None:
        """How many messages the run under way is told are new."""
        return None if self.running is None else sum(len(turn.uuids) for turn in self.new(self.running))


class Machine(RuleBasedStateMachine):
    @initialize(every=st.sampled_from([1, 1, 1, 2, 3]))
    def begin(self, every: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.mind = Held()
        self.rules = Rules(every)
        self.session = self.do(
            Session.open(
                cwd=Path(self.folder.name),
                model=self.mind,
                interactive=True,
                overrides={"extraction.every_turns": every},
            )
        )
        self.session.ensure_header()

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def settle(self) -> None:
        """Lets everything happen that can happen without an answer of the mind's."""

        async def until_quiet() -> None:
            for _ in range(400):
                await asyncio.sleep(0.001)
                running = [info for info in self.session.tasks.running if info.purpose is Purpose.EXTRACTION]
                if len(running) == len(self.mind.waiting):
                    return

        self.do(until_quiet())

    def tell(self, *, answered: bool) -> None:
        async def in_the_loop() -> None:
            self.session.engine.extractor.turn_ended(answered=answered)

        self.do(in_the_loop())

    def append(self, message: Message) -> str:
        return str(self.session.log.append_message(message).uuid)

    def turn(self, saved: bool, failed_save: bool) -> None:
        uuids = [self.append(Message("user", (TextBlock("I like it so.", Origin.TYPED),)))]
        if saved or failed_save:
            assert self.session.memory is not None
            path = self.session.memory.directory.root / "user_taste.md"
            call = ToolUseBlock(f"call-{uuids[0]}", "Write", {"file_path": str(path), "content": "…"})
            uuids.append(self.append(Message("assistant", (call,))))
            if saved:
                log = self.session.log
                info = WriteInfo(Writer.USER, "a test", log.session_id, log.head or "")
                self.session.memory.directory.transaction([Change(path.name, f"Taste {uuids[0]}.\n")], info)
            result = ToolResultBlock(call.id, "…", is_error=True if failed_save else None)
            uuids.append(self.append(Message("user", (result,))))
        uuids.append(self.append(Message("assistant", (TextBlock("Yes.", Origin.MODEL),))))
        self.rules.talk.append(Said(uuids, saved))

    @rule(saved=st.sampled_from([False, False, False, True]), failed_save=st.sampled_from([False, False, True]))
    def a_turn_ends(self, saved: bool, failed_save: bool) -> None:
        self.turn(saved, failed_save and not saved)
        self.tell(answered=True)
        self.rules.turn_ended()
        self.settle()

    @rule()
    def a_turn_is_cancelled(self) -> None:
        """What was said is looked at with the next turn."""
        self.turn(False, False)
        self.tell(answered=False)
        self.settle()

    @precondition(lambda self: self.mind.waiting)
    @rule(well=st.booleans())
    def the_run_ends(self, well: bool) -> None:
        self.mind.waiting[0][1].set_result(well)
        self.settle()
        self.rules.ended(well=well)
        self.settle()

    @precondition(lambda self: self.mind.waiting)
    @rule()
    def the_run_is_killed(self) -> None:
        for info in self.session.tasks.running:
            self.do(self.session.tasks.kill(info.id))
        self.rules.killed()

    @precondition(lambda self: self.rules.talk)
    @rule()
    def the_conversation_is_compacted(self) -> None:
        log = self.session.log
        boundary = log.append(CompactBoundary("auto", 1, log.head))
        summary = Message("user", (TextBlock("They like it so.", Origin.SUMMARY),))
        log.append_message(summary, compactOf=boundary.uuid, isCompactSummary=True)
        self.rules.talk.clear()

    @precondition(lambda self: len(self.rules.talk) > 1)
    @rule(data=st.data())
    def the_conversation_is_rewound(self, data: st.DataObject) -> None:
        keep = data.draw(st.integers(1, len(self.rules.talk) - 1))
        self.session.log.append(Rewind(self.rules.talk[keep - 1].uuids[-1]))
        del self.rules.talk[keep:]

    @invariant()
    def one_run_at_most_and_it_is_told_what_is_new(self) -> None:
        if not hasattr(self, "session"):
            return
        told = [_COUNTED.search(request.messages[-1].text) for request, _ in self.mind.waiting]
        assert [int(found[1] or 1) for found in told if found] == ([self.rules.told] if self.rules.told else [])

    @invariant()
    def the_cursor_moves_on_success_only(self) -> None:
        if hasattr(self, "session"):
            view = self.session.view
            assert view.cursors.get(WRITER) == (self.rules.cursors[-1] if self.rules.cursors else None)

    def teardown(self) -> None:
        if hasattr(self, "session"):
            for info in self.session.tasks.running:
                self.do(self.session.tasks.kill(info.id))
            self.do(self.session.close())
            self.loop.close()
            self.folder.cleanup()


def _machine(examples: int) -> Any:
    case = Machine.TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    return case


TestRules = pytest.mark.soak(_machine(count(25, 400)))
