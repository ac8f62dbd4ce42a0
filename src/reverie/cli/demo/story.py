"""The story that `reverie demo` plays: three days with an agent, every one of them a real session.

Nothing is acted. The tools run, transcripts and memories are files, notes, compaction, extraction and the dream are the
layers at work; only what the person types is written down here, and two older memories for the dream to find.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reverie.cli.demo.mind import MeteredMind
from reverie.cli.demo.project import NEWS, OLDER_LINES, OLDER_MEMORIES, diary
from reverie.cli.demo.view import DemoView, Piece
from reverie.cli.output import one_line, plural, size, tokens
from reverie.cli.tool_lines import call_text
from reverie.context.ledger import Totals, total
from reverie.errors import Cancelled, ReverieError
from reverie.events import Notice, ToolFinished, ToolStarted, TurnEnded
from reverie.memory.changes import WriteInfo, Writer
from reverie.session.session import Session
from reverie.types import Purpose, Usage

if TYPE_CHECKING:
    from reverie.cli.running import Signals
    from reverie.context.ledger import LedgerEntry
    from reverie.settings import Settings
    from reverie.simulator import Meter

_WRITTEN = datetime(2026, 2, 20, 8, 0, tzinfo=UTC).timestamp()
_ANSWER_LINES = 4
_TURN = timedelta(seconds=40)
_WAIT_S = 20.0
_CALL_ID = re.compile(r"(?<=/)toolu_embedded_\w+")


class _Before(NamedTuple):
    """What there was before a turn."""

    on_disk: int
    cleared: int
    boundaries: int
    forks: int
    notes: str
    memory: dict[str, bytes]


@dataclass(slots=True)
class Stage:
    """What the days share: where they play, who thinks, what is shown, and what it all added up to."""

    folder: Path
    settings: Settings
    view: DemoView
    signals: Signals
    meter: Meter
    now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    """The time in the story: it passes from turn to turn, and overnight."""
    booked: list[LedgerEntry] = field(default_factory=list["LedgerEntry"])
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

    @asynccontextmanager
    async def day(self, name: str, about: str) -> AsyncGenerator[Session]:
        """A session; when it ends, its ledger is taken into the sum, and it is the next morning."""
        self.view.title(name, about)
        self.view.gap(0.4)
        session = await Session.open(
            cwd=self.project,
            model=MeteredMind(self.meter, lambda: self.now.timestamp()),
            session_id=name.lower(),
            settings=self.settings,
            interactive=True,
            clock=lambda: self.now,
        )
        self.signals.cancel = session.cancel
        self.sessions += 1
        self.transcript = session.places.transcript(session.id)
        async with session:
            yield session
            ledger = session.accounts.ledger.now()
            self.booked += ledger.entries
            for layer, count in ledger.spared_by().items():
                self.spared[layer] = self.spared.get(layer, 0) + count
        self.now = self.now.replace(hour=9, minute=0, second=0) + timedelta(days=1)

    def _typed(self, mark: str, text: str) -> None:
        for number, line in enumerate(textwrap.wrap(text, self.view.columns - 2)):
            self.view.line((mark if number == 0 else "  ", "accent"), (line, "bold"), typed=True)
        self.view.pause(0.3)

    async def aside(self, session: Session, question: str) -> None:
        """A question beside the work: a fork answers it, and the conversation does not change."""
        before = _before(session)
        self._typed("› ", f"/btw {question}")
        self._answer(session, await session.ask_aside(question))
        cached = _cached(before, session, Purpose.SIDE_QUESTION.value)
        self.view.layer(7, "agents", ("a fork answered beside the work", "bold"), (f"; it {cached}", ""))
        self.view.gap(0.6)

    async def say(self, session: Session, text: str, shown: str = "") -> None:
        """One turn: what is typed, what is called, what is answered, what the layers did, and where that leaves us.

        `shown` stands for a text that is too long to be looked at.
        """
        before = _before(session)
        if text:
            self._typed("› ", shown or text)
        else:
            self.view.line((shown, "dim"))
        calls, notices, ended = dict[str, str](), list[str](), None
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
        self.now += _TURN
        self.turns += 1
        self._answer(session, ended.text)
        self._layers(session, before, notices)
        self._meter(session)
        self.view.gap(0.6)

    def _called(self, session: Session, call: str, event: ToolFinished) -> None:
        self.calls += 1
        mark: Piece = ("  ✗ ", "bad") if event.is_error else ("  ✓ ", "good")
        lines = event.text.count("\n") + 1
        self.view.line(mark, (one_line(_short(session, call), 66), "dim"), (f"  {plural(lines, 'line')}", "dim"))

    def _answer(self, session: Session, text: str) -> None:
        lines = [line for line in _short(session, text).splitlines() if line.strip() and line.strip() != "```"]
        for line in lines[:_ANSWER_LINES]:
            for part in textwrap.wrap(line, self.view.columns - 4, subsequent_indent="  ")[:3]:
                self.view.line(("  ", ""), (part, ""))
        if len(lines) > _ANSWER_LINES:
            self.view.line((f"  … {plural(len(lines) - _ANSWER_LINES, 'more line')}", "dim"))

    def _layers(self, session: Session, before: _Before, notices: list[str]) -> None:
        """What changed since: told by what is on disk and on record, not by what was meant to happen."""
        view, seen, now = self.view, session.view, _before(session)
        for told in notices:
            if told.startswith("recalled "):
                view.layer("·", "recall", (told.removeprefix("recalled "), "bold"))
        for bytes_ in seen.on_disk[before.on_disk :]:
            view.layer(
                1, "tool results", (f"{size(bytes_)} went to disk", "bold"), (", the beginning stays in view", "")
            )
        if now.cleared > before.cleared:
            count = plural(now.cleared - before.cleared, "old result")
            view.layer(2, "microcompact", (f"{count} cleared, {tokens(seen.cleared_tokens)} tokens less", "bold"))
        if shares := _children(before, session):
            told = f"; each read {min(shares):.0%} or more of its prompt from the cache"
            view.layer(7, "agents", (f"{plural(len(shares), 'fork')} at once", "bold"), (told, ""))
        if now.notes != before.notes:
            written = f"{plural(len(now.notes.splitlines()), 'line')} of notes"
            view.layer(3, "session notes", (written, "bold"), (f"; the fork {_cached(before, session, 'notes')}", ""))
        if now.boundaries > before.boundaries and seen.survival is not None:
            report = seen.survival
            by = "from the notes, no model call" if report.writer == "notes" else f"by {report.writer}"
            count = f"{tokens(report.tokens_before)} → {tokens(report.tokens_after)} tokens"
            view.layer(4, "compaction", (count, "bold"), (f" {by}", ""))
            kept = [f"{report.kept[kind]}/{report.total[kind]} {kind}" for kind in report.total if report.total[kind]]
            view.below(f"still in view: {', '.join(kept[:3])}", "dim")
        learnt = any(one.purpose == Purpose.EXTRACTION for one in seen.fork_usage[before.forks :])
        for name in sorted(now.memory.keys() - {"MEMORY.md"}):
            if before.memory.get(name) != now.memory[name]:
                body = now.memory[name].decode().rpartition("---\n")[2].strip().splitlines()
                view.layer(5 if learnt else "·", "extraction" if learnt else "memory", (name, "bold"))
                view.below(f"“{one_line(body[0] if body else '', 64)}”")
                if learnt:
                    view.below(f"the fork {_cached(before, session, 'extraction')}", "dim")

    def _meter(self, session: Session) -> None:
        budget, limits = session.conversation.budget(), session.parts.limits
        last = session.view.last_usage or Usage()
        share = last.cache_read_input_tokens / last.prompt if last.prompt else 0.0
        cost = self.so_far.cost + session.accounts.ledger.now().total.cost
        self.view.meter(budget.used, limits.window, limits.autocompact, share, cost)


def _before(session: Session) -> _Before:
    view, path = session.view, session.notes_path
    notes = path.read_text() if path.exists() else ""
    return _Before(len(view.on_disk), len(view.cleared), view.boundaries, len(view.fork_usage), notes, _memory(session))


def _memory(session: Session) -> dict[str, bytes]:
    assert session.memory is not None
    root = session.memory.directory.root
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.md"))}


def _short(session: Session, text: str) -> str:
    """The text with the story's own folders named shortly."""
    memory = str(session.memory.directory.root) if session.memory is not None else "\0"
    text = text.replace(memory, "memory").replace(str(session.places.project), "sessions")
    return _CALL_ID.sub("…", text)


def _cached(before: _Before, session: Session, purpose: str) -> str:
    """How much of what its fork sent was read from the cache."""
    usages = [Usage.parse(one.usage) for one in session.view.fork_usage[before.forks :] if one.purpose == purpose]
    whole = sum((one for one in usages if one), Usage())
    return f"read {whole.cache_read_input_tokens / whole.prompt:.0%} from the cache" if whole.prompt else "asked nobody"


def _children(before: _Before, session: Session) -> list[float]:
    """Of the first request of each agent that was started since, how much was read from the cache."""
    first = dict[str, Usage]()
    for one in session.view.fork_usage[before.forks :]:
        usage = Usage.parse(one.usage)
        if one.purpose == Purpose.AGENT and usage is not None:
            first.setdefault(one.thread, usage)
    return [usage.cache_read_input_tokens / usage.prompt for usage in first.values()]


async def play(stage: Stage) -> None:
    """All three days."""
    async with stage.day("Monday", "a long session in a small window") as session:
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
        for day in (1, 2, 3, 4):
            await stage.say(session, f"What does {_log(day)}?")
        await stage.say(session, "What did I ask about the fog?")
    async with stage.day("Tuesday", "a new session: what was learnt is there") as session:
        await stage.say(session, "May I write times with am and pm?")
        await stage.say(session, "Remember that the inspection is next Friday, because the insurer asked for it.")
        await stage.say(session, f"Let four agents look: what does {'?; what does '.join(map(_log, (1, 3, 5, 6)))}?")
        if session.messages.waiting:  # some may have come while it was still speaking
            await stage.say(session, "", "✉ messages have come")
        await stage.say(session, "What did we talk about last time?")
    async with stage.day("Wednesday", "a dream tidies up, and is undone") as session:
        await _dream_and_undo(stage.view, session)


def _log(day: int) -> str:
    return f"logs/day-{day}.log say about {NEWS[day]}"


async def _paste(stage: Stage, session: Session, name: str, half: int) -> None:
    said = f"I paste the mate's diary, the {name} half of February."
    text = diary(half)
    await stage.say(session, f"{said}\n\n{text}", f"{said} [{size(len(text))}]")


async def _dream_and_undo(view: DemoView, session: Session) -> None:
    """Shows what a dream changes, why, and that undoing it brings back every byte."""
    assert session.memory is not None and session.dreaming is not None
    directory = session.memory.directory
    for name, text in OLDER_MEMORIES.items():
        (directory.root / name).write_text(text)
        os.utime(directory.root / name, (_WRITTEN, _WRITTEN))
    index = directory.root / "MEMORY.md"
    index.write_text((index.read_text() if index.exists() else "") + OLDER_LINES)
    view.line(("  Older memories are there too: ", "dim"), (", ".join(OLDER_MEMORIES), ""), (", a dead pointer", "dim"))
    view.line(("$ ", "accent"), ("reverie dream --now", "bold"), typed=True)
    before = _memory(session)
    task = session.dreaming.start()
    info = await task.wait()
    if task.result is None:
        raise ReverieError(info.error or "The dream came to nothing.")
    dreamt = task.result
    count = f"{plural(len(before), 'file')} → {plural(len(_memory(session)), 'file')}"
    view.layer(6, "dreaming", (f"{dreamt.outcome} as one version: {count}", "bold"))
    for change in dreamt.proposal.changes if dreamt.proposal is not None else ():
        view.below(f"{change.verb} {change.name}")
        view.below(f"  {one_line(change.reason, 64)}", "dim")
    view.below(f"it cost ${dreamt.cost_usd:.3f} and read {dreamt.hit_rate:.0%} from the cache", "dim")
    view.gap(0.8)
    view.line(("$ ", "accent"), ("reverie dream undo", "bold"), typed=True)
    if dreamt.landed is None or dreamt.landed.version is None:
        raise ReverieError("The dream changed nothing, so there is nothing to undo.")
    directory.undo(dreamt.landed.version.id, WriteInfo(Writer.USER, "Undone in the demo."))
    same = _memory(session) == before
    told = "every byte is back" if same else "something is different"
    view.layer(6, "undone", (told, "good" if same else "bad"), (f": {plural(len(before), 'file')} as before", ""))
    view.gap(0.8)
