"""Keeps the session's notes: asks after every response whether they are due, and has a fork bring them up to date.

Runs in the background, one update after the other. A failed update is counted and tried again when more was said; it
never reaches the conversation, and leaves the notes as they were.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice
from reverie.layers.base import Companion, ForkResult, Forks
from reverie.layers.l3_session_notes.numbers import NoteNumbers
from reverie.layers.l3_session_notes.sections import is_empty, is_intact, mended
from reverie.layers.l3_session_notes.trigger import WRITER, due, growth, safe_point
from reverie.layers.l3_session_notes.writer import TEMPLATE, directive, only_edit, template_or_default
from reverie.layers.l4_compaction.by_code import Limits, write_notes
from reverie.layers.l4_compaction.summary import compact_instructions
from reverie.models.tokens import PROSE_BYTES
from reverie.paths import make_private
from reverie.regular_files import read_regular_text
from reverie.runtime.heartbeat import Heartbeat, run_figures
from reverie.runtime.parts import Parts
from reverie.runtime.tasks import Task, TaskHandle, Tasks
from reverie.storage.atomic import storage_error, write_atomic
from reverie.storage.transcript.records import Cursor
from reverie.tools.base import SeenFile
from reverie.tools.files import digest
from reverie.types import Block, Purpose

SERIAL = "notes"


def note_numbers(parts: Parts) -> NoteNumbers:
    """The numbers of layer 3 as they hold now, for the window."""
    return parts.numbers(NoteNumbers, "notes").for_window(parts.limits.window)


class NoteKeeper(Companion):
    """One a session."""

    def __init__(
        self,
        parts: Parts,
        tasks: Tasks,
        forks: Forks,
        *,
        auto_on: Callable[[], bool],
        emit: Callable[[Event], None],
    ) -> None:
        self._parts = parts
        self._tasks = tasks
        self._forks = forks
        self._auto_on = auto_on
        self._emit = emit
        self._heartbeat = Heartbeat(parts.places.heartbeat(WRITER))
        self._tried: str | None = None
        self._told = set[str]()

    @property
    def path(self) -> Path:
        return self._parts.places.session_notes(self._parts.log.session_id)

    async def after_response(self) -> None:
        """Asked when a response is recorded; where it made calls, the end of the round is waited for."""
        if not self._parts.log.view.open_calls:
            await self.consider()

    async def between_rounds(self) -> tuple[Block, ...]:
        """Asked when the results of a round are in."""
        await self.consider()
        return ()

    async def consider(self) -> None:
        """Starts an update if one is due and none is under way."""
        parts = self._parts
        if (why := self._switched_off()) is not None:
            self._heartbeat.stop(why)
            return
        if self._under_way():
            return
        numbers = note_numbers(parts)
        patience = 1 + self._tasks.failures_in_a_row(Purpose.NOTES)  # whoever keeps failing is asked less and less
        numbers = replace(numbers, growth_tokens=numbers.growth_tokens * patience)
        if not due(growth(parts.log.view, self._tried), numbers):
            return
        if (why := self._forks.may_begin(Purpose.NOTES)) is not None:
            self._heartbeat.stop(why)
            return
        self._start()
        await asyncio.sleep(0)  # its request goes out before ours: it shares what is cached now

    def _switched_off(self) -> str | None:
        if not self._parts.flags.on("session_notes"):
            return "the flag `session_notes` is off"
        return None if self._auto_on() else "auto-compaction is off, and notes are taken for it"

    def update_now(self) -> Task[None]:
        """Starts an update by hand, whatever the conversation's size; it waits for one under way."""
        if not self._parts.log.view.entries:
            raise UserError("there is nothing to take notes of yet")
        return self._start()

    def set_aside(self) -> None:
        """Begins new notes, as after /clear; the old ones stay beside them."""
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
        self._parts.log.append(Cursor(WRITER, None))

    def _under_way(self) -> bool:
        return any(info.purpose is Purpose.NOTES for info in self._tasks.running)

    def _start(self) -> Task[None]:
        return self._tasks.start(Purpose.NOTES, "session notes", self._counted, serial=SERIAL)

    # -- one update -----------------------------------------------------------------------------------------------

    async def _counted(self, task: TaskHandle) -> None:
        """One update, and what the heartbeat keeps of it."""
        began = monotonic()
        try:
            result = await self._update(task)
        except ReverieError as error:
            if self._heartbeat.failure(str(error)):
                text = f"taking notes has failed three times in a row: {error} (`reverie doctor` says more)"
                self._emit(Notice(text, "warning", "notes"))
            raise
        self._heartbeat.success(**run_figures(result.usage, rounds=result.rounds, seconds=monotonic() - began))

    async def _update(self, task: TaskHandle) -> ForkResult:
        parts, path = self._parts, self.path
        view = parts.log.view
        reached, self._tried = safe_point(view), next((e.uuid for e in reversed(view.entries) if e.uuid), None)
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
            result = await self._forks.attempt(
                Purpose.NOTES,
                self._forks.now(),
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
            if is_empty(before.decode(), template):  # better than none; what a model wrote is not overwritten
                self._by_code(template)
                parts.log.append(Cursor(WRITER, reached))
            raise
        if reached is not None:
            parts.log.append(Cursor(WRITER, reached))
        return result

    def _check(self, before: bytes, template: str, *, is_new: bool) -> None:
        """Raises if the fork broke the notes, which are then put back, or changed nothing although there was news."""
        now = self._read(self.path)
        if now is None or not is_intact(now, template):
            write_atomic(self.path, before)
            raise ReverieError("the update changed a heading or a hint of the notes and was taken back")
        if now.encode() == before and is_new:
            write_atomic(self.path, before)  # where the disk refuses that, it is the disk that is named
            raise ReverieError("the update left the notes as they were")

    def _by_code(self, template: str) -> None:
        numbers, parts = note_numbers(self._parts), self._parts
        limits = Limits(total=numbers.total_tokens * PROSE_BYTES, ledger=numbers.section_tokens * PROSE_BYTES)
        text = write_notes(parts.log.view.history, template, limits, cwd=str(parts.places.cwd))
        write_atomic(self.path, mended(text, template).encode("utf-8", "replace"))

    def _load(self, template: str) -> bytes:
        """The notes as they are; begun from the template, and mended where somebody broke them."""
        text = self._read(self.path)
        if text is None:
            make_private(self.path.parent)
        if text is None or not is_intact(text, template):
            text = mended(text or "", template) if text else template
            write_atomic(self.path, text.encode("utf-8", "replace"))
        return text.encode("utf-8", "replace")

    def _template(self) -> str:
        template, problem = template_or_default(self._own(TEMPLATE))
        if problem is not None and problem not in self._told:
            self._told.add(problem)
            where = self._parts.places.notes_config / TEMPLATE
            self._emit(Notice(f"{where} is not used: {problem}", "warning", "notes"))
        return template

    def _own(self, name: str) -> str | None:
        return self._read(self._parts.places.notes_config / name)

    def _read(self, path: Path) -> str | None:
        try:
            return read_regular_text(path, errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise storage_error(error, path, "read") from error
