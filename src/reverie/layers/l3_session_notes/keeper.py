"""Keeps the session's notes: checks in every round whether they are due, and lets code or a fork update them.

Runs in the background, one update at a time. A failed update leaves the notes unchanged and is tried again later; the
conversation does not notice it. A fork starts when the main answer has begun: then the newest round is in the cache.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, replace
from functools import partial
from pathlib import Path
from time import monotonic

from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice
from reverie.layers.base import Companion, Fork, ForkResult, Forks
from reverie.layers.l2_microcompact.economic import Rates
from reverie.layers.l3_session_notes.sections import is_empty, is_intact, repair_notes
from reverie.layers.l3_session_notes.trigger import (
    ASKED,
    WRITER,
    NoteNumbers,
    is_due,
    measure_growth,
    pays,
    safe_point,
)
from reverie.layers.l3_session_notes.writer import TEMPLATE, directive, only_edit, template_or_default
from reverie.layers.l4_compaction.by_code import Limits, without_secrets, write_notes
from reverie.layers.l4_compaction.summary import compact_instructions
from reverie.models.tokens import PROSE_BYTES
from reverie.paths import make_private
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.runtime.heartbeat import Heartbeat, run_figures
from reverie.runtime.parts import Parts
from reverie.runtime.tasks import Task, TaskHandle, Tasks
from reverie.storage.atomic import storage_error, write_atomic
from reverie.storage.transcript.records import Cursor
from reverie.storage.transcript.view import Entry
from reverie.tools.base import SeenFile
from reverie.tools.files import digest
from reverie.types import Purpose, Usage

SERIAL = "notes"


def note_numbers(parts: Parts) -> NoteNumbers:
    """Returns the numbers of layer 3 for the current settings and window."""
    return parts.numbers(NoteNumbers, "notes").for_window(parts.limits.window)


@dataclass(eq=False)
class NoteKeeper(Companion):
    """The notes of one session."""

    parts: Parts
    tasks: Tasks
    forks: Forks
    _: KW_ONLY
    auto_on: Callable[[], bool]
    emit: Callable[[Event], None]

    def __post_init__(self) -> None:
        declined = self.parts.tally.declined
        self._heartbeat = Heartbeat(self.parts.places.heartbeat(WRITER), stopped=lambda gate: declined(WRITER, gate))
        self._tried: str | None = None
        self._written: str | None = None
        """What code has written last."""
        self._reported = set[str]()

    @property
    def path(self) -> Path:
        return self.parts.places.session_notes(self.parts.log.session_id)

    @property
    def _is_economic(self) -> bool:
        return self.parts.settings.notes.cadence == "economic"

    async def answer_began(self) -> None:
        await self.consider()

    async def after_response(self) -> None:
        """At the end of a turn; within a turn, the next answer is awaited."""
        if not self.parts.log.view.open_calls:
            await self.consider()

    async def consider(self) -> None:
        """Starts an update if one is due and none is running."""
        parts, view = self.parts, self.parts.log.view
        if (why := self._why_off()) is not None:
            self._heartbeat.stop(why)
            return
        if view.open_calls or any(info.purpose is Purpose.NOTES for info in self.tasks.running):
            return
        numbers = note_numbers(parts)
        patience = 1 + self.tasks.failures_in_a_row(Purpose.NOTES)  # after failures the notes are due later
        patient = replace(numbers, growth_tokens=numbers.growth_tokens * patience)
        if not self._is_economic or not self._pays(numbers):
            if not is_due(measure_growth(view, self._tried), patient):
                return
            if self._is_economic:
                self.tasks.start(Purpose.NOTES, "session notes, by code", self._keep_by_code, serial=SERIAL)
                return
        if (why := self.forks.may_begin(Purpose.NOTES)) is not None:
            self._heartbeat.stop(why)
            return
        self._start()

    def _pays(self, numbers: NoteNumbers) -> bool:
        parts, view = self.parts, self.parts.log.view
        rates = Rates.of(parts.facts, view.header.ttl if view.header is not None else "5m")
        return pays(view, numbers, rates, full_at=parts.limits.autocompact, window=parts.limits.window)

    def _why_off(self) -> str | None:
        if not self.parts.flags.on("session_notes"):
            return "the flag `session_notes` is off"
        return None if self.auto_on() else "auto-compaction is off, and notes are taken for it"

    def update_now(self) -> Task[None]:
        """Starts an update by hand, at any size of the conversation. It waits for a running one."""
        if not self.parts.log.view.entries:
            raise UserError("there is nothing to write notes about yet")
        return self._start()

    def set_aside(self) -> None:
        """Begins new notes, as after /clear. The old ones stay next to them."""
        number = 1
        while (aside := self.path.with_name(f"summary-{number}.md")).exists():
            number += 1
        try:
            self.path.rename(aside)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise storage_error(error, self.path, "put aside") from error
        self._tried = None
        for writer in (WRITER, ASKED) if ASKED in self.parts.log.view.cursors else (WRITER,):
            self.parts.log.append(Cursor(writer, None))

    def _start(self) -> Task[None]:
        fork = self.forks.kept()  # the conversation goes on meanwhile
        work = partial(self._run_update, fork)
        return self.tasks.start(Purpose.NOTES, "session notes", work, serial=SERIAL)

    # -- one update -----------------------------------------------------------------------------------------------

    async def _keep_by_code(self, _task: TaskHandle) -> None:
        """Writes the notes without a model, unless a model or the user has written in them."""
        view, template, began = self.parts.log.view, self._template(), monotonic()
        history, cursor, reached = list(view.history), view.cursors.get(WRITER), safe_point(view)
        self._tried = history[-1].uuid if history else None
        now = self._read(self.path)
        if now is not None and now != self._written and not is_empty(now, template):
            names = [entry.uuid for entry in history]
            covered = history[: names.index(cursor) + 1] if cursor in names else []
            if now != await asyncio.to_thread(self._write_up, covered, template):
                return
        self._written = await asyncio.to_thread(self._write_up, history, template)
        make_private(self.path.parent)
        write_atomic(self.path, self._written.encode("utf-8", "replace"))
        self.parts.log.append(Cursor(WRITER, reached))
        self._heartbeat.success(**run_figures(Usage(), rounds=0, seconds=monotonic() - began))

    async def _run_update(self, fork: Fork, task: TaskHandle) -> None:
        began = monotonic()
        try:
            result = await self._update(fork, task)
        except ReverieError as error:
            if self._heartbeat.failure(str(error)):
                text = f"taking notes has failed three times in a row: {error} (`reverie doctor` says more)"
                self.emit(Notice(text, "warning", "notes"))
            raise
        self._heartbeat.success(**run_figures(result.usage, rounds=result.rounds, seconds=monotonic() - began))

    async def _update(self, fork: Fork, task: TaskHandle) -> ForkResult:
        parts, path, view = self.parts, self.path, fork.view
        reached, self._tried = safe_point(view), next((e.uuid for e in reversed(view.entries) if e.uuid), None)
        if self._is_economic:
            parts.log.append(Cursor(ASKED, self._tried))
        template = self._template()
        before = self._load(template)
        instructions = compact_instructions(view.header.reminder) if view.header is not None else ""
        numbers = note_numbers(parts)
        asked = directive(
            before.decode(), path, template, numbers, prompt=self._own("prompt.md"), instructions=instructions
        )
        status = path.stat()
        seen = SeenFile(status.st_mtime_ns, status.st_size, digest(before), partial=False, order=0)
        try:
            result = await self.forks.attempt(
                Purpose.NOTES,
                fork,
                lambda fork: fork.run(
                    asked,
                    purpose=Purpose.NOTES,
                    permission=only_edit(path),
                    max_rounds=numbers.max_rounds,
                    seen={Path(os.path.realpath(path)): seen},
                    progress=task.progress,
                    enough=lambda calls: len(calls) > 1,  # a single edit may be the first of several
                ),
            )
            self._check(before, template, is_new=reached != view.cursors.get(WRITER))
        except ReverieError:
            if is_empty(before.decode(), template):  # better than none; never overwrites what a model wrote
                self._by_code(template)
                parts.log.append(Cursor(WRITER, reached))
            raise
        if reached is not None:
            parts.log.append(Cursor(WRITER, reached))
        return result

    def _check(self, before: bytes, template: str, *, is_new: bool) -> None:
        """Raises if the fork broke the notes, which are then restored, or changed nothing although there was news."""
        now = self._read(self.path)
        if now is None or not is_intact(now, template):
            write_atomic(self.path, before)
            raise ReverieError("the update changed a heading or a hint of the notes and was taken back")
        if now.encode() == before and is_new:
            write_atomic(self.path, before)  # if the disk refuses this, the error names the disk
            raise ReverieError("the update left the notes as they were")

    def _by_code(self, template: str) -> None:
        text = self._write_up(self.parts.log.view.history, template)
        write_atomic(self.path, text.encode("utf-8", "replace"))

    def _write_up(self, history: Sequence[Entry], template: str) -> str:
        numbers = note_numbers(self.parts)
        limits = Limits(total=numbers.total_tokens * PROSE_BYTES, ledger=numbers.section_tokens * PROSE_BYTES)
        text = write_notes(history, template, limits, cwd=str(self.parts.places.cwd))
        return repair_notes(without_secrets(text, history), template)

    def _load(self, template: str) -> bytes:
        """Returns the notes; writes the template if there are none, and repairs broken headings."""
        text = self._read(self.path)
        if text is None:
            make_private(self.path.parent)
        if text is None or not is_intact(text, template):
            text = repair_notes(text or "", template) if text else template
            write_atomic(self.path, text.encode("utf-8", "replace"))
        return text.encode("utf-8", "replace")

    def _template(self) -> str:
        template, problem = template_or_default(self._own(TEMPLATE))
        if problem is not None and problem not in self._reported:
            self._reported.add(problem)
            where = self.parts.places.notes_config / TEMPLATE
            self.emit(Notice(f"{where} is not used: {problem}", "warning", "notes"))
        return template

    def _own(self, name: str) -> str | None:
        return self._read(self.parts.places.notes_config / name)

    def _read(self, path: Path) -> str | None:
        try:
            return read_regular_text(path, errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise storage_error(error, path, "read") from error
