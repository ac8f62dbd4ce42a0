"""Whatever happens to a conversation, every request the model gets is one the API takes, and fits."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reverie.context.compaction_report import CompactionReport
from reverie.errors import Overloaded, PromptTooLong, ReverieError
from reverie.events import Event, ToolFinished
from reverie.models.base import Request
from reverie.session import Session
from reverie.types import Block, JsonObject, Origin, Purpose, TextBlock, ToolUseBlock
from tests.counts import count
from tests.layers.strict_model import SUMMARY, StrictModel
from tests.layers.talks import SESSION, said
from tests.sessions import ended

T = TypeVar("T")
_numbers = itertools.count(1)
WINDOWS = (32_000, 200_000, 1_000_000)


class LongTalk(RuleBasedStateMachine):
    """One session, opened and closed as it comes, in one of three windows."""

    @initialize(window=st.sampled_from(WINDOWS))
    def begin(self, window: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.window = window
        self.name = f"{SESSION}-{next(_numbers)}"
        self.part = window // 32  # what a file or a long message weighs, in characters
        for number in range(1, 5):
            (self.path / f"f{number}.txt").write_text("a line of text\n" * max(1, self.part * number // 15))
        skill = self.path / ".claude" / "skills" / "care" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("Work with care.\n" * max(1, self.part // 15))
        self.names = (*(f"f{number}.txt" for number in range(1, 5)), str(skill))
        self.runner = asyncio.Runner()
        self.model = StrictModel(window, watching=self.watch)
        self.session = self.opened(None)
        self.calls = 0
        self.told = list[str]()
        self.pins = dict[str, str]()

    def opened(self, resume: str | None) -> Session:
        overrides = {
            "window.context_window": self.window,
            "model.retries": 0,
            "permissions.mode": "accept_all",
        }
        return self.run(
            lambda: Session.open(
                cwd=self.path,
                model=self.model,
                overrides=overrides,
                **({"resume": resume} if resume else {"session_id": self.name}),  # type: ignore[arg-type]
            )
        )

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def go() -> T:
            return await work()

        return self.runner.run(go())

    def watch(self, request: Request, tokens: int) -> None:
        """Asked for every request: the main thread's never go out over the blocking limit."""
        if request.purpose is Purpose.MAIN:
            budget = self.session.conversation.budget()
            assert budget.blocking is None or budget.used < budget.blocking
            assert tokens <= self.window, "the window is never overrun"

    # -- what may happen ------------------------------------------------------------------------------------------

    @rule(
        size=st.sampled_from([10, 300, 3_000]),
        rounds=st.integers(0, 6),
        parallel=st.integers(1, 3),
        compacts=st.booleans(),
    )
    def talk(self, size: int, rounds: int, parallel: int, compacts: bool) -> None:
        """A turn with so many rounds of parallel reads; in the first of them somebody may ask for a compaction."""
        answers = deque[tuple[Block, ...]]()
        for _ in range(rounds):
            blocks = list[Block]([TextBlock("Let me look.", Origin.MODEL)])
            for _ in range(parallel):
                self.calls += 1
                name = self.names[self.calls % len(self.names)]
                blocks.append(ToolUseBlock(f"call-{self.calls}", "Read", {"file_path": name}))
            answers.append(tuple(blocks))
        self.model.answers = answers
        text = f"Message {len(self.told) + 1}: " + "please mind this " * (size * self.window // 32_000 // 40)
        self.told.append(text)
        event = ended(self.run(lambda: self.turn(text, compacts=compacts)))
        assert event.reason in ("answered", "blocked"), event
        self.model.answers.clear()

    async def turn(self, text: str, *, compacts: bool) -> list[Event]:
        events, asked = list[Event](), list[asyncio.Future[object]]()
        async for event in self.session.send(text):
            events.append(event)
            if compacts and not asked and isinstance(event, ToolFinished):
                asked.append(asyncio.ensure_future(self.session.compact()))
        for came in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(came, CompactionReport | ReverieError), came
        return events

    @rule(instructions=st.sampled_from(["", "keep the plan"]))
    def compact(self, instructions: str) -> None:
        self.attempt(lambda: self.session.compact(instructions))

    @rule(back=st.integers(1, 6))
    def compact_from(self, back: int) -> None:
        self.attempt(lambda: self.session.compact(from_=f"-{back}"))

    @rule(back=st.integers(1, 6))
    def compact_up_to(self, back: int) -> None:
        self.attempt(lambda: self.session.compact(up_to=f"-{back}"))

    @rule(fit=st.booleans())
    def undo(self, fit: bool) -> None:
        self.attempt(lambda: self.session.undo(fit=fit))
        self.told = said(self.session)

    @rule(back=st.integers(1, 3))
    def rewind(self, back: int) -> None:
        async def go() -> None:
            self.session.rewind(f"-{back}")

        self.attempt(go)
        self.told = said(self.session)

    @rule()
    def clear(self) -> None:
        self.run(self.session.clear)
        self.told = []

    @rule(text=st.sampled_from(["never do this", "always do that", "a third thing"]))
    def pin(self, text: str) -> None:
        async def go() -> None:
            self.pins[self.session.pin(text)] = text

        self.attempt(go)

    @precondition(lambda self: bool(self.pins))
    @rule()
    def unpin(self) -> None:
        name = next(iter(self.pins))

        async def go() -> None:
            self.session.unpin(name)

        self.run(go)
        del self.pins[name]

    @rule(kind=st.sampled_from(["fine", "overloaded", "too long", "empty", "inflated"]))
    def mood(self, kind: str) -> None:
        """From now on the summariser is like this."""
        self.model.summary = {
            "fine": lambda: SUMMARY,
            "overloaded": lambda: Overloaded("overloaded"),
            "too long": lambda: PromptTooLong("too long", actual=self.window + 900, limit=self.window),
            "empty": lambda: "",
            "inflated": lambda: "<summary>" + "long " * self.window + "</summary>",
        }[kind]

    @precondition(lambda self: any(record.message is not None for record in self.session.log.records))
    @rule()
    def resume(self) -> None:
        """The session is closed and opened again: what the model sees is the same, byte for byte."""
        before, pins = self.wire(), self.session.pins
        self.run(self.session.close)
        self.session = self.opened(self.name)
        assert self.wire() == before and self.session.pins == pins

    def attempt(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            self.run(work)
        except ReverieError as error:
            assert str(error)

    def wire(self) -> list[JsonObject]:
        return [message.wire() for message in self.session.view.messages()]

    # -- what always holds ----------------------------------------------------------------------------------------

    @invariant()
    def everything_said_is_in_reach(self) -> None:
        if not hasattr(self, "session"):
            return
        assert said(self.session) == self.told
        log = self.session.log
        if not log.view.boundaries:
            return
        shown = "\n".join(message.text for message in log.view.messages())
        kept = list(self.session.places.session(self.session.id).glob("requests/*.txt"))
        files = "\n".join(path.read_text() for path in kept)
        for text in self.told:
            assert text in shown or text in files or text.strip() in shown

    @invariant()
    def pins_are_in_view_after_a_compaction(self) -> None:
        if not hasattr(self, "session"):
            return
        view = self.session.view
        assert view.pins == self.pins

    def teardown(self) -> None:
        if hasattr(self, "session"):
            self.run(self.session.close)
            self.runner.close()
            self.folder.cleanup()


LongTalk.TestCase.settings = settings(
    max_examples=count(6, 300),
    stateful_step_count=count(25, 80),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLongTalk = pytest.mark.soak(pytest.mark.timeout(3_600)(LongTalk.TestCase))
