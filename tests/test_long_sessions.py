"""Sessions far longer than their window, from the first message to the last: nothing overruns, loops or gets lost."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reverie.models.base import Request
from reverie.session import Session
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import CompactBoundary, Undo, from_record, to_data
from reverie.storage.transcript.view import Entry, View
from reverie.tools.base import ToolContext, ToolOutput
from reverie.types import Block, Json, JsonObject, Origin, Purpose, Record, TextBlock, ToolUseBlock
from tests.counts import SOAK, count
from tests.layers.strict_model import StrictModel
from tests.layers.talks import boundaries, flags, said
from tests.sessions import ended, in_session, turn
from tests.shared_data import data, sample


@dataclass(slots=True)
class Replayed:
    """A tool that returns what the recording says its calls returned, in order."""

    name: str
    results: dict[str, deque[str | tuple[Block, ...]]] = field(
        default_factory=dict[str, "deque[str | tuple[Block, ...]]"]
    )

    @property
    def schema(self) -> JsonObject:
        return {"name": self.name, "description": "recorded", "input_schema": {"type": "object"}}

    def is_read_only(self, given: JsonObject) -> bool:
        return True

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        waiting = self.results.get(json.dumps(given, sort_keys=True, default=str))
        return ToolOutput(waiting.popleft() if waiting else "nothing was recorded")


@dataclass(slots=True)
class Watch:
    """What every request of the main thread must satisfy."""

    window: int
    session: Session | None = None
    rounds: int = 0
    compacted_at: list[int] = field(default_factory=list[int])
    _seen: int = 0

    def __call__(self, request: Request, tokens: int) -> None:
        if request.purpose is not Purpose.MAIN or self.session is None:
            return
        self.rounds += 1
        assert tokens <= self.window, f"round {self.rounds}: {tokens:,} tokens in a window of {self.window:,}"
        budget = self.session.conversation.budget()
        assert budget.blocking is None or budget.used < budget.blocking
        made = self.session.view.boundaries
        if made != self._seen:
            self._seen = made
            self.compacted_at.append(self.rounds)


def wire(view: View) -> list[JsonObject]:
    return [message.wire() for message in view.messages()]


def everything_is_in_reach(session: Session) -> None:
    """Every message of the person's is in the context word for word, or in a file the context names."""
    shown = "\n".join(message.text for message in session.view.messages())
    folder = session.places.session(session.id) / "requests"
    kept = {path: path.read_text(errors="replace") for path in folder.glob("*.txt")} if folder.is_dir() else {}
    named = [text for path, text in kept.items() if str(path) in shown]
    for text in said(session):
        clean = text.encode("utf-8", "replace").decode()
        assert clean in shown or any(clean in whole for whole in named), f"lost: {text[:200]!r}"


def resume_is_exact(session: Session) -> None:
    loaded = read_records(session.places.transcript(session.id))
    assert wire(View.of(conversation(loaded.records))) == wire(session.view)


def undo_is_exact(session: Session) -> None:
    """With every compaction taken back, the conversation is as if there had never been one."""
    records = list(session.log.records)
    for one in session.log.records:
        if isinstance(from_record(one), CompactBoundary):
            records.append(
                Record({"type": "system", "subtype": Undo.subtype, "reverie": to_data(Undo(one.uuid or ""))})
            )
    plain = [
        one
        for one in session.log.records
        if not isinstance(from_record(one), CompactBoundary) and "compactOf" not in one.data
    ]
    assert wire(View.of(conversation(records))) == wire(View.of(plain))


def not_a_loop(watch: Watch, session: Session) -> None:
    gaps = [later - earlier for earlier, later in zip(watch.compacted_at, watch.compacted_at[1:], strict=False)]
    assert all(gap >= 2 for gap in gaps), f"compacted again at once: {watch.compacted_at}"
    assert session.engine.compaction.breakers.open_reason is None


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("window", [32_000, 200_000])
def test_two_thousand_rounds(tmp_path: Path, window: int) -> None:
    wanted = count(70 if window == 32_000 else 45, 2_000)
    seed = random.Random(7)
    scale = window // 32_000
    for number in range(40):
        lines = "def harbour_light(number): return number * 7  # the lamp\n" * (seed.randint(10, 60) * scale)
        (tmp_path / f"f{number}.py").write_text(lines)
    watch = Watch(window)
    model = StrictModel(window, watching=watch)
    numbers = iter(range(1, 10_000_000))

    def answers(rounds: int) -> deque[tuple[Block, ...]]:
        made = deque[tuple[Block, ...]]()
        for _ in range(rounds):
            blocks = list[Block]()
            for _ in range(seed.randint(1, 3)):
                name = f"call-{next(numbers)}"
                kind = seed.random()
                if kind < 0.7:
                    blocks.append(ToolUseBlock(name, "Read", {"file_path": f"f{seed.randrange(40)}.py"}))
                elif kind < 0.9:
                    blocks.append(ToolUseBlock(name, "Grep", {"pattern": "lamp", "output_mode": "content"}))
                else:
                    blocks.append(ToolUseBlock(name, "Bash", {"command": f"echo done {next(numbers)}; exit 1"}))
            made.append((TextBlock("Looking.", Origin.MODEL), *blocks))
        return made

    async def work(session: Session) -> None:
        watch.session = session
        turns = 0
        while watch.rounds < wanted:
            turns += 1
            model.answers = answers(seed.randint(0, 40))
            text = f"Turn {turns}: never forget number {seed.randrange(10**9)}. " + "word " * seed.choice([0, 20, 900])
            event = ended(await turn(session, text))
            assert event.reason == "answered", event
            if seed.random() < 0.15:
                everything_is_in_reach(session)
                resume_is_exact(session)
                undo_is_exact(session)
        assert len(boundaries(session)) >= (3 if window == 32_000 else 1)
        everything_is_in_reach(session)
        resume_is_exact(session)
        undo_is_exact(session)
        not_a_loop(watch, session)

    overrides = {"window.context_window": window, "permissions.mode": "accept_all"}
    in_session(work, cwd=tmp_path, model=model, overrides=overrides)


# -- recorded sessions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    text: str
    answers: list[tuple[Block, ...]]


def turns_of(entries: list[Entry]) -> Iterator[Turn]:
    """A recording as turns: what the person said, and the answers that followed."""
    text, answers, last = "", list[tuple[Block, ...]](), None
    for entry in entries:
        message = entry.message
        if message.role == "assistant":
            blocks = tuple(block for block in message.content if isinstance(block, TextBlock | ToolUseBlock))
            if blocks and last is not None and message.id == last:
                answers[-1] += blocks
            elif blocks:
                answers.append(blocks)
            last = message.id if blocks else last
            continue
        typed = [b.text for b in message.content if isinstance(b, TextBlock) and b.origin.is_given]
        if any(part.strip() for part in typed):
            if text:
                yield Turn(text, answers)
            text, answers, last = "\n".join(typed), [], None
    if text:
        yield Turn(text, answers)


def recorded_tools(entries: list[Entry], most: int) -> list[Replayed]:
    """The tools of a recording. A result longer than `most` is cut: tools in such a window are modest."""
    calls: dict[str, ToolUseBlock] = {}
    tools: dict[str, Replayed] = {}
    for entry in entries:
        for use in entry.message.tool_uses:
            calls[use.id] = use
            tools.setdefault(use.name, Replayed(use.name))
        for block in entry.message.tool_results:
            call = calls.get(block.tool_use_id)
            if call is not None:
                given: Json = call.input
                key = json.dumps(given, sort_keys=True, default=str)
                tools[call.name].results.setdefault(key, deque()).append(block.text[:most] or "(nothing)")
    return list(tools.values())


def longest(folder: Path, number: int) -> list[Path]:
    found = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_size, reverse=True)
    return found[:number]


def test_a_session_of_our_own_end_to_end(tmp_path: Path, own_home: Path) -> None:
    recorded_end_to_end(tmp_path, own_home, longest(sample("transcripts"), 1)[0], 16_000)


@pytest.mark.soak
@pytest.mark.evals
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("window", [32_000, 64_000])
def test_the_longest_recorded_sessions_end_to_end(tmp_path: Path, own_home: Path, place: int, window: int) -> None:
    if not SOAK and (place, window) not in ((0, 64_000), (4, 32_000)):
        pytest.skip("one of each window is enough outside a soak")
    recorded_end_to_end(tmp_path, own_home, longest(data("transcripts"), 10)[place], window)


def recorded_end_to_end(tmp_path: Path, own_home: Path, path: Path, window: int) -> None:
    if window > 32_000:  # layer 2 alone would keep most of them small enough
        flags(own_home, "[microcompact]\neconomic = false\n")
    entries = View.of(conversation(read_records(path).records)).history
    watch = Watch(window)
    model = StrictModel(window, watching=watch)

    async def work(session: Session) -> None:
        watch.session = session
        for number, recorded in enumerate(turns_of(entries)):
            model.answers = deque(recorded.answers)
            event = ended(await turn(session, recorded.text))
            assert event.reason == "answered", event
            if number % 7 == 6:
                resume_is_exact(session)
                undo_is_exact(session)
        everything_is_in_reach(session)
        resume_is_exact(session)
        undo_is_exact(session)
        not_a_loop(watch, session)
        assert boundaries(session), "it did not fit, and was compacted"

    overrides = {"window.context_window": window, "permissions.mode": "accept_all", "tools.max_rounds": 2_000}
    in_session(work, cwd=tmp_path, model=model, overrides=overrides, tools=recorded_tools(entries, window // 4))
