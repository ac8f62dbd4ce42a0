"""The story that `reverie demo` plays: three days with an agent, every one of them a real session.

Nothing is acted. The tools run, transcripts and memories are files, notes, compaction, extraction and the dream are the
layers at work; only what the person types is written down here, and two older memories for the dream to find.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.cli.demo.project import diary
from reverie.cli.demo.view import DemoView, Piece
from reverie.cli.output import one_line, plural, size, tokens
from reverie.cli.tool_lines import call_text
from reverie.context.ledger import Totals, total
from reverie.errors import Cancelled, ReverieError
from reverie.events import Notice, ToolFinished, ToolStarted, TurnEnded
from reverie.types import Purpose, Usage

if TYPE_CHECKING:
    from reverie.cli.demo.mind import MeteredMind
    from reverie.cli.running import Signals
    from reverie.context.ledger import Entry
    from reverie.session.session import Session
    from reverie.settings import Settings

_MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_ANSWER_LINES = 4
_TURN = timedelta(seconds=40)
_WAIT_S = 20.0
_CALL_ID = re.compile(r"(?<=/)toolu_embedded_\w+")


@dataclass(slots=True)
class StoryClock:
    """The time in the story: it passes from turn to turn, and overnight."""

    now: datetime = _MONDAY

    def __call__(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        return self.now.timestamp()

    def next_day(self) -> None:
        self.now = self.now.replace(hour=9, minute=0, second=0) + timedelta(days=1)


@dataclass(slots=True)
class Stage:
    """What the scenes share: where they play, who thinks, what is shown, and what it all added up to."""

    folder: Path
    settings: Settings
    view: DemoView
    signals: Signals
    clock: StoryClock
    mind: Callable[[], MeteredMind]
    booked: list[Entry] = field(default_factory=list["Entry"])
    turns: int = 0
    sessions: int = 0
    calls: int = 0
    spared: dict[str, int] = field(default_factory=dict[str, int])
    transcript: Path | None = None

    @property
    def project(self) -> Path:
        return self.folder / "ferry-times"

    @property
    def so_far(self) -> Totals:
        return total(self.booked)

    async def open(self, name: str) -> Session:
        from reverie.session.session import Session

        session = await Session.open(
            cwd=self.project,
            model=self.mind(),
            session_id=name,
            settings=self.settings,
            interactive=True,
            clock=self.clock,
        )
        self.signals.cancel = session.cancel
        self.sessions += 1
        self.transcript = session.places.transcript(session.id)
        return session

    def closed(self, session: Session) -> None:
        """Takes the session's ledger into the sum."""
        ledger = session.accounts.ledger.now()
        self.booked += ledger.entries
        for layer, count in ledger.spared_by().items():
            self.spared[layer] = self.spared.get(layer, 0) + count

    def _typed(self, mark: str, text: str) -> None:
        for number, line in enumerate(textwrap.wrap(text, self.view.columns - 2)):
            self.view.line((mark if number == 0 else "  ", "accent"), (line, "bold"), typed=True)
        self.view.pause(0.3)

    async def aside(self, session: Session, question: str) -> None:
        """A question beside the work: a fork answers it, and the conversation does not change."""
        before = _Before.of(session)
        self._typed("› ", f"/btw {question}")
        self._answer(session, await session.ask_aside(question))
        cached = _cached(before, session, Purpose.SIDE_QUESTION.value)
        self.view.layer(7, "agents", ("a fork answered beside the work", "bold"), (f"; it {cached}", ""))
        self.view.gap(0.6)

    async def say(self, session: Session, text: str, shown: str = "") -> None:
        """One turn: what is typed, what is called, what is answered, what the layers did, and where that leaves us.

        `shown` stands for a text that is too long to be looked at.
        """
        view = self.view
        before = _Before.of(session)
        if text:
            self._typed("› ", shown or text)
        else:
            view.line((shown, "dim"))
        calls = dict[str, str]()
        notices = list[str]()
        ended: TurnEnded | None = None
        async with aclosing(session.send(text)) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    calls[event.id] = call_text(event.name, event.input, self.project)
                elif isinstance(event, ToolFinished):
                    self._called(session, calls.get(event.id, event.name), event)
                elif isinstance(event, Notice):
                    notices.append(event.text)
                elif isinstance(event, TurnEnded):
                    ended = event
        assert ended is not None
        if ended.reason != "answered":
            kind = Cancelled if ended.reason == "cancelled" else ReverieError
            raise kind(ended.error or f"The demo's turn ended without an answer ({ended.reason}).")
        await session.tasks.drain(_WAIT_S)
        self.clock.now += _TURN
        self.turns += 1
        self._answer(session, ended.text)
        self._layers(session, before, notices)
        self._meter(session)
        view.gap(0.6)

    def _called(self, session: Session, call: str, event: ToolFinished) -> None:
        self.calls += 1
        mark: Piece = ("  ✗ ", "bad") if event.is_error else ("  ✓ ", "good")
        lines = event.text.count("\n") + 1
        self.view.line(mark, (one_line(self.short(session, call), 66), "dim"), (f"  {plural(lines, 'line')}", "dim"))

    def short(self, session: Session, text: str) -> str:
        """The text with the story's own folders named shortly."""
        memory = str(session.memory.directory.root) if session.memory is not None else "\0"
        text = text.replace(memory, "memory").replace(str(session.places.project), "sessions")
        return _CALL_ID.sub("…", text)

    def _answer(self, session: Session, text: str) -> None:
        lines = [line for line in self.short(session, text).splitlines() if line.strip() and line.strip() != "```"]
        for line in lines[:_ANSWER_LINES]:
            for part in textwrap.wrap(line, self.view.columns - 4, subsequent_indent="  ")[:3]:
                self.view.line(("  ", ""), (part, ""))
        if len(lines) > _ANSWER_LINES:
            self.view.line((f"  … {plural(len(lines) - _ANSWER_LINES, 'more line')}", "dim"))

    def _layers(self, session: Session, before: _Before, notices: list[str]) -> None:
        """What changed since: told by what is on disk and on record, not by what was meant to happen."""
        view, seen = self.view, session.view
        for told in notices:
            if told.startswith("recalled "):
                view.layer("·", "recall", (told.removeprefix("recalled "), "bold"))
        for bytes_ in seen.on_disk[before.on_disk :]:
            kept = size(bytes_)
            view.layer(1, "tool results", (f"{kept} went to disk", "bold"), (", the beginning stays in view", ""))
        if len(seen.cleared) > before.cleared:
            count = plural(len(seen.cleared) - before.cleared, "old result")
            view.layer(2, "microcompact", (f"{count} cleared, {tokens(seen.cleared_tokens)} tokens less", "bold"))
        if shares := _children(before, session):
            told = f"; each read {min(shares):.0%} or more of its prompt from the cache"
            view.layer(7, "agents", (f"{plural(len(shares), 'fork')} at once", "bold"), (told, ""))
        if (notes := _notes(session)) != before.notes:
            written = f"{plural(len(notes.splitlines()), 'line')} of notes"
            view.layer(3, "session notes", (written, "bold"), (f"; the fork {_cached(before, session, 'notes')}", ""))
        if seen.boundaries > before.boundaries and seen.survival is not None:
            report = seen.survival
            by = "from the notes, no model call" if report.writer == "notes" else f"by {report.writer}"
            count = f"{tokens(report.tokens_before)} → {tokens(report.tokens_after)} tokens"
            view.layer(4, "compaction", (count, "bold"), (f" {by}", ""))
            kept = [f"{report.kept[kind]}/{report.total[kind]} {kind}" for kind in report.total if report.total[kind]]
            view.line((" " * 21, ""), (f"still in view: {', '.join(kept[:3])}", "dim"))
        memory = _memory(session)
        for name in sorted(name for name in memory if before.memory.get(name) != memory[name] and name != "MEMORY.md"):
            body = memory[name].rpartition("---\n")[2].strip().splitlines()
            learnt = any(one.purpose == Purpose.EXTRACTION for one in seen.fork_usage[before.forks :])
            self._saved(name, body[0] if body else "", 5 if learnt else "·", _cached(before, session, "extraction"))

    def _saved(self, name: str, text: str, number: int | str, cached: str) -> None:
        self.view.layer(number, "extraction" if number == 5 else "memory", (name, "bold"))
        self.view.line((" " * 21, ""), (f"“{one_line(text, 64)}”", ""))
        if number == 5:
            self.view.line((" " * 21, ""), (f"the fork {cached}", "dim"))

    def _meter(self, session: Session) -> None:
        budget, limits = session.conversation.budget(), session.parts.limits
        ledger = session.accounts.ledger.now()
        last = session.view.last_usage or Usage()
        share = last.cache_read_input_tokens / last.prompt if last.prompt else 0.0
        cost = self.so_far.cost + ledger.total.cost
        self.view.meter(budget.used, limits.window, limits.autocompact, share, cost)


@dataclass(frozen=True, slots=True)
class _Before:
    """What there was before a turn."""

    on_disk: int
    cleared: int
    boundaries: int
    forks: int
    notes: str
    memory: dict[str, str]

    @classmethod
    def of(cls, session: Session) -> _Before:
        view = session.view
        return cls(
            len(view.on_disk),
            len(view.cleared),
            view.boundaries,
            len(view.fork_usage),
            _notes(session),
            _memory(session),
        )


def _notes(session: Session) -> str:
    path = session.notes_path
    return path.read_text() if path.exists() else ""


def _memory(session: Session) -> dict[str, str]:
    if session.memory is None:
        return {}
    root = session.memory.directory.root
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.md")}


def _cached(before: _Before, session: Session, purpose: str) -> str:
    """How much of what its fork sent was read from the cache."""
    usages = [Usage.parse(one.usage) for one in session.view.fork_usage[before.forks :] if one.purpose == purpose]
    prompt = sum(one.prompt for one in usages if one)
    read = sum(one.cache_read_input_tokens for one in usages if one)
    return f"read {read / prompt:.0%} from the cache" if prompt else "asked nobody"


def _children(before: _Before, session: Session) -> list[float]:
    """Of the first request of each agent that was started since, how much was read from the cache."""
    first = dict[str, Usage]()
    for one in session.view.fork_usage[before.forks :]:
        usage = Usage.parse(one.usage)
        if one.purpose == Purpose.AGENT and usage is not None:
            first.setdefault(one.thread, usage)
    return [usage.cache_read_input_tokens / usage.prompt for usage in first.values()]


Scene = Callable[[Stage], Awaitable[None]]


async def monday(stage: Stage) -> None:
    """A long session: a big result, notes, a correction, a window that fills."""
    stage.view.title("Monday", "a long session in a small window")
    stage.view.gap(0.4)
    session = await stage.open("monday")
    async with session:
        await stage.say(session, "Which pier is the default?")
        await stage.say(session, "Run `cat data/departures.csv`")
        await _paste(stage, session, "first", 0)
        await stage.say(
            session,
            "No, never write times with am and pm. Always use the 24-hour clock, because the crew once read 6 pm"
            " as 6 am.",
        )
        await stage.aside(session, "what did I say about the clock?")
        await _paste(stage, session, "second", 1)
        for day, about in ((1, "fog"), (2, "the bow thruster"), (3, "the gangway"), (4, "ice")):
            await stage.say(session, f"What does logs/day-{day}.log say about {about}?")
        await stage.say(session, "What did I ask about the fog?")
        stage.closed(session)


async def _paste(stage: Stage, session: Session, name: str, half: int) -> None:
    said = f"I paste the mate's diary, the {name} half of February."
    text = diary(half)
    await stage.say(session, f"{said}\n\n{text}", f"{said} [{size(len(text))}]")


async def tuesday(stage: Stage) -> None:
    """The next session knows what the last one was taught."""
    stage.clock.next_day()
    stage.view.title("Tuesday", "a new session: what was learnt is there")
    stage.view.gap(0.4)
    session = await stage.open("tuesday")
    async with session:
        await stage.say(session, "May I write times with am and pm?")
        await stage.say(session, "Remember that the inspection is next Friday, because the insurer asked for it.")
        await stage.say(
            session,
            "Let four agents look: what does logs/day-1.log say about fog?; what does logs/day-3.log say about the"
            " gangway?; what does logs/day-5.log say about the radio?; what does logs/day-6.log say about dry dock?",
        )
        if session.letters.waiting:  # some may have come while it was still speaking
            await stage.say(session, "", "✉ letters have come")
        await stage.say(session, "What did we talk about last time?")
        stage.closed(session)


async def wednesday(stage: Stage) -> None:
    """A dream puts memory in order, and is taken back."""
    stage.clock.next_day()
    stage.view.title("Wednesday", "a dream tidies up, and is undone")
    stage.view.gap(0.4)
    session = await stage.open("wednesday")
    async with session:
        await _dream(stage, session)
        stage.closed(session)


async def _dream(stage: Stage, session: Session) -> None:
    from reverie.cli.demo.dream import dream_and_undo

    await dream_and_undo(stage.view, session)


SCENES: tuple[Scene, ...] = (monday, tuesday, wednesday)
