"""The story of `reverie demo`: three days with an agent, each day a real session.

Only the user's messages and two older memories are written down here. Tools, notes, compaction, extraction and the
dream are real.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reverie.cli.demo.metered_model import MeteredModel
from reverie.cli.demo.project import NEWS, OLDER_LINES, OLDER_MEMORIES, diary
from reverie.cli.demo.view import DemoView, Piece
from reverie.cli.output import format_size, format_tokens, one_line, plural
from reverie.cli.tool_lines import call_text
from reverie.context.ledger import Totals, total
from reverie.errors import Cancelled, ReverieError
from reverie.events import Notice, ToolFinished, ToolStarted, TurnEnded
from reverie.memory.changes import WriteInfo, Writer
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.types import Purpose, Usage

if TYPE_CHECKING:
    from reverie.cli.event_loop import CommandSignals
    from reverie.context.ledger import LedgerEntry
    from reverie.settings import Settings
    from reverie.simulator import Meter

_WRITTEN = datetime(2026, 2, 20, 8, 0, tzinfo=UTC).timestamp()
_ANSWER_LINES = 4
_TURN = timedelta(seconds=40)
_WAIT_S = 20.0
_CALL_ID = re.compile(r"(?<=/)toolu_embedded_\w+")


class _Snapshot(NamedTuple):
    """The state before a turn."""

    on_disk: int
    cleared: int
    boundaries: int
    forks: int
    notes: str
    memory: dict[str, bytes]


@dataclass(slots=True)
class DemoRun:
    """What the days share: the folder, the model, the view, and the totals."""

    folder: Path
    settings: Settings
    view: DemoView
    signals: CommandSignals
    meter: Meter
    now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    """The time in the story."""
    entries: list[LedgerEntry] = field(default_factory=list["LedgerEntry"])
    turns: int = 0
    sessions: int = 0
    calls: int = 0
    spared: dict[str, int] = field(default_factory=dict[str, int])
    transcript: Path | None = None

    @property
    def project(self) -> Path:
        return self.folder / "ferry-times"

    @property
    def totals(self) -> Totals:
        return total(self.entries)

    @asynccontextmanager
    async def day(self, name: str, about: str) -> AsyncGenerator[Session]:
        """A session. When it ends, its ledger is added to the totals, and the next morning comes."""
        self.view.title(name, about)
        self.view.gap(0.4)
        session = await Session.open(
            cwd=self.project,
            model=MeteredModel(self.meter, lambda: self.now.timestamp()),
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
            self.entries += ledger.entries
            for layer, count in ledger.spared_by().items():
                self.spared[layer] = self.spared.get(layer, 0) + count
        self.now = self.now.replace(hour=9, minute=0, second=0) + timedelta(days=1)

    def _type(self, mark: str, text: str) -> None:
        for number, line in enumerate(textwrap.wrap(text, self.view.columns - 2)):
            self.view.line((mark if number == 0 else "  ", "accent"), (line, "bold"), typed=True)
        self.view.pause(0.3)

    async def aside(self, session: Session, question: str) -> None:
        """A side question: a fork answers it, and the conversation does not change."""
        before = _take_snapshot(session)
        self._type("› ", f"/btw {question}")
        self._show_answer(session, await session.ask_aside(question))
        cached = _describe_cache(before, session, Purpose.SIDE_QUESTION.value)
        self.view.layer(7, "agents", ("a fork answered the side question", "bold"), (f"; it {cached}", ""))
        self.view.gap(0.6)

    async def say(self, session: Session, text: str, shown: str = "") -> None:
        """Plays one turn and shows its message, tool calls, answer, layers and meter.

        `shown` replaces a text that is too long to show.
        """
        before = _take_snapshot(session)
        if text:
            self._type("› ", shown or text)
        else:
            self.view.line((shown, "dim"))
        calls, notices, ended = dict[str, str](), list[str](), None
        async with aclosing(session.send(text)) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    calls[event.id] = call_text(event.name, event.input, self.project)
                elif isinstance(event, ToolFinished):
                    self._show_call(session, calls.get(event.id, event.name), event)
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
        self._show_answer(session, ended.text)
        self._show_layers(session, before, notices)
        self._show_meter(session)
        self.view.gap(0.6)

    def _show_call(self, session: Session, call: str, event: ToolFinished) -> None:
        self.calls += 1
        mark: Piece = ("  ✗ ", "bad") if event.is_error else ("  ✓ ", "good")
        lines = event.text.count("\n") + 1
        self.view.line(mark, (one_line(_shorten(session, call), 66), "dim"), (f"  {plural(lines, 'line')}", "dim"))

    def _show_answer(self, session: Session, text: str) -> None:
        lines = [line for line in _shorten(session, text).splitlines() if line.strip() and line.strip() != "```"]
        for line in lines[:_ANSWER_LINES]:
            for part in textwrap.wrap(line, self.view.columns - 4, subsequent_indent="  ")[:3]:
                self.view.line(("  ", ""), (part, ""))
        if len(lines) > _ANSWER_LINES:
            self.view.line((f"  … {plural(len(lines) - _ANSWER_LINES, 'more line')}", "dim"))

    def _show_layers(self, session: Session, before: _Snapshot, notices: list[str]) -> None:
        """Shows what changed since the snapshot, from the files and records on disk."""
        view, seen, now = self.view, session.view, _take_snapshot(session)
        for text in notices:
            if text.startswith("recalled "):
                view.layer("·", "recall", (text.removeprefix("recalled "), "bold"))
        for bytes_ in seen.on_disk[before.on_disk :]:
            size = f"{format_size(bytes_)} went to disk"
            view.layer(1, "tool results", (size, "bold"), (", the beginning stays in the window", ""))
        if now.cleared > before.cleared:
            count = plural(now.cleared - before.cleared, "old result")
            saved = f"{count} cleared, {format_tokens(seen.cleared_tokens)} tokens less"
            view.layer(2, "microcompact", (saved, "bold"))
        if shares := _child_cache_shares(before, session):
            cached = f"; each read {min(shares):.0%} or more of its prompt from the cache"
            view.layer(7, "agents", (f"{plural(len(shares), 'fork')} at once", "bold"), (cached, ""))
        if now.notes != before.notes:
            written = f"{plural(len(now.notes.splitlines()), 'line')} of notes"
            cached = f"; the fork {_describe_cache(before, session, 'notes')}"
            view.layer(3, "session notes", (written, "bold"), (cached, ""))
        if now.boundaries > before.boundaries and seen.survival is not None:
            report = seen.survival
            by = "from the notes, without a request" if report.writer == "notes" else f"by {report.writer}"
            count = f"{format_tokens(report.tokens_before)} → {format_tokens(report.tokens_after)} tokens"
            view.layer(4, "compaction", (count, "bold"), (f" {by}", ""))
            kept = [f"{report.kept[kind]}/{report.total[kind]} {kind}" for kind in report.total if report.total[kind]]
            view.below(f"still in the window: {', '.join(kept[:3])}", "dim")
        learnt = any(one.purpose == Purpose.EXTRACTION for one in seen.fork_usage[before.forks :])
        for name in sorted(now.memory.keys() - {"MEMORY.md"}):
            if before.memory.get(name) != now.memory[name]:
                body = now.memory[name].decode().rpartition("---\n")[2].strip().splitlines()
                view.layer(5 if learnt else "·", "extraction" if learnt else "memory", (name, "bold"))
                view.below(f"“{one_line(body[0] if body else '', 64)}”")
                if learnt:
                    view.below(f"the fork {_describe_cache(before, session, 'extraction')}", "dim")

    def _show_meter(self, session: Session) -> None:
        budget, limits = session.conversation.budget(), session.parts.limits
        last = session.view.last_usage or Usage()
        share = last.cache_read_input_tokens / last.prompt if last.prompt else 0.0
        cost = self.totals.cost + session.accounts.ledger.now().total.cost
        self.view.meter(budget.used, limits.window, limits.autocompact, share, cost)


def _take_snapshot(session: Session) -> _Snapshot:
    view, path = session.view, session.notes_path
    notes = path.read_text() if path.exists() else ""
    return _Snapshot(
        len(view.on_disk), len(view.cleared), view.boundaries, len(view.fork_usage), notes, _read_memory(session)
    )


def _read_memory(session: Session) -> dict[str, bytes]:
    assert session.memory is not None
    root = session.memory.directory.root
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.md"))}


def _shorten(session: Session, text: str) -> str:
    """The text with short names for the folders of the story."""
    memory = str(session.memory.directory.root) if session.memory is not None else "\0"
    text = text.replace(memory, "memory").replace(str(session.places.project), "sessions")
    return _CALL_ID.sub("…", text)


def _describe_cache(before: _Snapshot, session: Session, purpose: str) -> str:
    usages = [Usage.parse(one.usage) for one in session.view.fork_usage[before.forks :] if one.purpose == purpose]
    whole = sum((one for one in usages if one), Usage())
    if not whole.prompt:
        return "sent no request"
    return f"read {whole.cache_read_input_tokens / whole.prompt:.0%} from the cache"


def _child_cache_shares(before: _Snapshot, session: Session) -> list[float]:
    """For each new agent, the share of its first prompt that came from the cache."""
    first = dict[str, Usage]()
    for one in session.view.fork_usage[before.forks :]:
        usage = Usage.parse(one.usage)
        if one.purpose == Purpose.AGENT and usage is not None:
            first.setdefault(one.thread, usage)
    return [usage.cache_read_input_tokens / usage.prompt for usage in first.values()]


async def play(run: DemoRun) -> None:
    """Plays all three days."""
    async with run.day("Monday", "a long session in a small window") as session:
        await run.say(session, "Which pier is the default?")
        await run.say(session, "Run `cat data/departures.csv`")
        await _paste(run, session, "first", 0)
        await run.say(
            session,
            "No, never write times with am and pm. Always use the 24-hour clock, because the crew once read 6 pm"
            " as 6 am.",
        )
        await run.aside(session, "what did I say about the clock?")
        await _paste(run, session, "second", 1)
        for day in (1, 2, 3, 4):
            await run.say(session, f"What does {_log(day)}?")
        await run.say(session, "What did I ask about the fog?")
    async with run.day("Tuesday", "a new session: what was learnt is there") as session:
        await run.say(session, "May I write times with am and pm?")
        await run.say(session, "Remember that the inspection is next Friday, because the insurer asked for it.")
        await run.say(session, f"Let four agents look: what does {'?; what does '.join(map(_log, (1, 3, 5, 6)))}?")
        if session.messages.waiting:  # some may arrive during the turn
            await run.say(session, "", "✉ new messages")
        await run.say(session, "What did we talk about last time?")
    async with run.day("Wednesday", "a dream tidies up, and is undone") as session:
        await _dream_and_undo(run.view, session)


def _log(day: int) -> str:
    return f"logs/day-{day}.log say about {NEWS[day]}"


async def _paste(run: DemoRun, session: Session, name: str, half: int) -> None:
    said = f"I paste the mate's diary, the {name} half of February."
    text = diary(half)
    await run.say(session, f"{said}\n\n{text}", f"{said} [{format_size(len(text))}]")


async def _dream_and_undo(view: DemoView, session: Session) -> None:
    """Shows what a dream changes and why, and that undo restores every byte."""
    assert session.memory is not None and session.dreaming is not None
    directory = session.memory.directory
    for name, text in OLDER_MEMORIES.items():
        (directory.root / name).write_text(text)
        os.utime(directory.root / name, (_WRITTEN, _WRITTEN))
    index = directory.root / "MEMORY.md"
    index.write_text((index.read_text() if index.exists() else "") + OLDER_LINES)
    older = (", ".join(OLDER_MEMORIES), "")
    view.line(("  There are older memories: ", "dim"), older, (", and a pointer to a missing file", "dim"))
    view.line(("$ ", "accent"), ("reverie dream --now", "bold"), typed=True)
    before = _read_memory(session)
    task = session.dreaming.start()
    info = await task.wait()
    if task.result is None:
        raise ReverieError(info.error or "The dream had no result.")
    dreamt = task.result
    count = f"{plural(len(before), 'file')} → {plural(len(_read_memory(session)), 'file')}"
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
    same = _read_memory(session) == before
    text = "every byte is restored" if same else "something is different"
    view.layer(6, "undone", (text, "good" if same else "bad"), (f": {plural(len(before), 'file')} as before", ""))
    view.gap(0.8)
