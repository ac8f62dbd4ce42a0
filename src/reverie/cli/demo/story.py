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
from reverie.cli.demo.view import DemoView
from reverie.cli.output import format_size, format_tokens, one_line, plural
from reverie.cli.tool_lines import call_text, result_line
from reverie.context.ledger import total
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
    boundaries: int
    forks: int
    notes: str
    memory: dict[str, bytes]


@dataclass(slots=True)
class DemoRun:
    """What the days share: the project, the model, the view, and the bill."""

    project: Path
    settings: Settings
    view: DemoView
    signals: CommandSignals
    meter: Meter
    now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    """The time in the story."""
    entries: list[LedgerEntry] = field(default_factory=list["LedgerEntry"])

    @asynccontextmanager
    async def day(self, name: str, about: str) -> AsyncGenerator[Session]:
        """A session. When it ends, its ledger is added to the bill, and the next morning comes."""
        self.view.title(name, about)
        session = await Session.open(
            cwd=self.project,
            model=MeteredModel(self.meter, lambda: self.now.timestamp()),
            session_id=name.lower(),
            settings=self.settings,
            interactive=True,
            clock=lambda: self.now,
        )
        self.signals.cancel = session.cancel
        async with session:
            yield session
            self.entries += session.accounts.ledger.now().entries
        self.now = self.now.replace(hour=9, minute=0, second=0) + timedelta(days=1)

    async def aside(self, session: Session, question: str) -> None:
        """A side question: a fork answers it, and the conversation does not change."""
        before = _take_snapshot(session)
        self.view.typed("›", f"/btw {question}")
        self._show_answer(session, await session.ask_aside(question))
        cached = _describe_cache(before, session, Purpose.SIDE_QUESTION)
        self.view.layer(7, "agents", "a fork answered the side question", f"; it {cached}")
        self.view.gap(0.6)

    async def say(self, session: Session, text: str, shown: str = "") -> None:
        """Plays one turn and shows its message, tool calls, answer, layers and meter.

        `shown` replaces a text that is too long to show.
        """
        before = _take_snapshot(session)
        self.view.typed("›", shown or text)
        calls, notices, ended = dict[str, str](), list[str](), None
        async with aclosing(session.send(text)) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    calls[event.id] = _shorten(session, call_text(event.name, event.input, self.project))
                elif isinstance(event, ToolFinished):
                    call, text = calls.get(event.id, event.name), _shorten(session, event.text)
                    wide, paint = self.view.columns - 2, self.view.paint
                    self.view.line(f"  {result_line(call, text, event.is_error, None, paint, wide)}")
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
        self._show_answer(session, ended.text)
        self._show_layers(session, before, notices)
        budget, limits = session.conversation.budget(), session.parts.limits
        last = session.view.last_usage or Usage()
        share = last.cache_read_input_tokens / last.prompt if last.prompt else 0.0
        cost = total(self.entries).cost + session.accounts.ledger.now().total.cost
        self.view.meter(budget.used, limits.window, limits.autocompact, share, cost)
        self.view.gap(0.6)

    def _show_answer(self, session: Session, text: str) -> None:
        lines = [line for line in _shorten(session, text).splitlines() if line.strip() and line.strip() != "```"]
        for line in lines[:_ANSWER_LINES]:
            for part in textwrap.wrap(line, self.view.columns - 4, subsequent_indent="  ")[:3]:
                self.view.line(f"  {part}")
        if len(lines) > _ANSWER_LINES:
            self.view.line(self.view.paint.dim(f"  … {plural(len(lines) - _ANSWER_LINES, 'more line')}"))

    def _show_layers(self, session: Session, before: _Snapshot, notices: list[str]) -> None:
        """Shows what changed since the snapshot, from the files and records on disk."""
        view, seen, now = self.view, session.view, _take_snapshot(session)
        for text in notices:
            if text.startswith("recalled "):
                view.layer("·", "recall", text.removeprefix("recalled "))
        for size in seen.on_disk[before.on_disk :]:
            view.layer(1, "tool results", f"{format_size(size)} went to disk", ", the beginning stays in the window")
        if now.notes != before.notes:
            view.layer(3, "session notes", f"{plural(len(now.notes.splitlines()), 'line')} of notes")
        if now.boundaries > before.boundaries and (report := seen.survival) is not None:
            by = "from the notes, without a request" if report.writer == "notes" else f"by {report.writer}"
            count = f"{format_tokens(report.tokens_before)} → {format_tokens(report.tokens_after)} tokens"
            view.layer(4, "compaction", count, f" {by}")
            kept = [f"{report.kept[kind]}/{report.total[kind]} {kind}" for kind in report.total if report.total[kind]]
            view.below(f"still in the window: {', '.join(kept[:3])}")
        learnt = any(fork.purpose == Purpose.EXTRACTION for fork in seen.fork_usage[before.forks :])
        for name in sorted(now.memory.keys() - {"MEMORY.md"}):
            if before.memory.get(name) != now.memory[name]:
                body = now.memory[name].decode().rpartition("---\n")[2].strip().splitlines()
                view.layer(5 if learnt else "·", "extraction" if learnt else "memory", name)
                view.below(f"“{one_line(body[0] if body else '', 64)}”")
                if learnt:
                    view.below(f"the fork {_describe_cache(before, session, Purpose.EXTRACTION)}")


def _take_snapshot(session: Session) -> _Snapshot:
    view, path = session.view, session.notes_path
    notes = path.read_text() if path.exists() else ""
    return _Snapshot(len(view.on_disk), view.boundaries, len(view.fork_usage), notes, _read_memory(session))


def _read_memory(session: Session) -> dict[str, bytes]:
    assert session.memory is not None
    root = session.memory.directory.root
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.md"))}


def _shorten(session: Session, text: str) -> str:
    """The text with short names for the folders of the story."""
    memory = str(session.memory.directory.root) if session.memory is not None else "\0"
    text = text.replace(memory, "memory").replace(str(session.places.project), "sessions")
    return _CALL_ID.sub("…", text)


def _describe_cache(before: _Snapshot, session: Session, purpose: Purpose) -> str:
    forks = [fork for fork in session.view.fork_usage[before.forks :] if fork.purpose == purpose]
    whole = sum((usage for fork in forks if (usage := Usage.parse(fork.usage))), Usage())
    return f"read {whole.cache_read_input_tokens / max(1, whole.prompt):.0%} from the cache"


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
        for day, (news, _) in NEWS.items():
            await run.say(session, f"What does logs/day-{day}.log say about {news}?")
        await run.say(session, "What did I ask about the fog?")
    async with run.day("Tuesday", "a new session: what was learnt is there") as session:
        await run.say(session, "May I write times with am and pm?")
        await run.say(session, "Remember that the inspection is next Friday, because the insurer asked for it.")
        await run.say(session, "What did we talk about last time?")
    async with run.day("Wednesday", "a dream tidies up, and is undone") as session:
        await _dream_and_undo(run.view, session)


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
    view.line(f"  There are older memories, {', '.join(OLDER_MEMORIES)}, and a dead pointer.")
    view.typed("$", "reverie dream --now")
    before = _read_memory(session)
    task = session.dreaming.start()
    info = await task.wait()
    if task.result is None:
        raise ReverieError(info.error or "The dream had no result.")
    dreamt = task.result
    count = f"{plural(len(before), 'file')} → {plural(len(_read_memory(session)), 'file')}"
    view.layer(6, "dreaming", f"{dreamt.outcome} as one version: {count}")
    for change in dreamt.proposal.changes if dreamt.proposal is not None else ():
        view.line(" " * 21 + f"{change.verb} {change.name}")
        view.below(f"  {one_line(change.reason, 64)}")
    view.below(f"it cost ${dreamt.cost_usd:.3f} and read {dreamt.hit_rate:.0%} from the cache")
    view.gap(0.8)
    view.typed("$", "reverie dream undo")
    if dreamt.landed is None or dreamt.landed.version is None:
        raise ReverieError("The dream changed nothing, so there is nothing to undo.")
    directory.undo(dreamt.landed.version.id, WriteInfo(Writer.USER, "Undone in the demo."))
    text = "every byte is restored" if _read_memory(session) == before else "something is different"
    view.layer(6, "undone", text, f": {plural(len(before), 'file')} as before")
    view.gap(0.8)
