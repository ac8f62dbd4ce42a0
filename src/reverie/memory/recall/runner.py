"""Recall for a running conversation: finds what fits a message and records it next to the message. A model selects; the
local ranker does it when the model is slow, fails, or must not be asked. A failure is logged, and the turn goes on
without memories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any, TypeVar, cast

from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.last_use import LastUse
from reverie.memory.gate.marks import Marks
from reverie.memory.gate.review import list_statements
from reverie.memory.recall.ranker import RankedMemory, Ranker, Ranking
from reverie.memory.recall.reminder import (
    CANDIDATES,
    RecalledMemory,
    limit_inferred,
    reason_against_recall,
    render_reminder,
)
from reverie.memory.recall.selection import Selector
from reverie.memory.references import RepoNames
from reverie.memory.scan import NEWEST, ScanEntry, scan
from reverie.memory.taxonomy import MemoryType, Trust
from reverie.runtime.parts import Parts
from reverie.storage.transcript.records import Surfaced
from reverie.storage.transcript.session_log import Clock
from reverie.tools.base import ReadCache
from reverie.tools.ripgrep import find_ripgrep
from reverie.types import JsonObject, Message, Origin, TextBlock

T = TypeVar("T")

_RECENT_CALLS = 12
_RECENT_ENTRIES = 60
_GRACE_S = 0.25
"""The time for the local ranker and the repository check when the selecting model used up the time."""


class Recall:
    """One per conversation. `why_not_ask`: why the model must not select now; `takes_over` receives why the ranker
    does."""

    def __init__(
        self,
        parts: Parts,
        directory: MemoryDirectory,
        *,
        why_not_ask: Callable[[], str | None],
        takes_over: Callable[[str], None],
        emit: Callable[[Event], None],
        clock: Clock,
    ) -> None:
        self._parts = parts
        self._directory = directory
        self._why_not_ask = why_not_ask
        self._takes_over = takes_over
        self._emit = emit
        self._clock = clock
        self._selector = Selector(parts)
        self._ranker: Ranker | None = None
        self._repo = RepoNames(parts.places.checkout, find_ripgrep)
        self._thread: ThreadPoolExecutor | None = None
        self._marks = Marks(directory.root)
        self._used = LastUse(directory.root)

    async def recall(self, query: str, read: ReadCache) -> None:
        """Finds what fits the user's message and records it, even if nothing fits. Raises only when cancelled."""
        parts = self._parts
        if not parts.flags.on("recall"):
            return
        shown_bytes = sum(parts.log.view.surfaced.values())
        if reason_against_recall(query, shown_bytes, limit=parts.settings.memory.recall_session_bytes) is not None:
            return
        try:
            memories, by = await self._find(query, self._known(read))
        except (ReverieError, TimeoutError) as error:
            parts.background.write("recall_failed", error=str(error) or "it took too long")
            return
        text = render_reminder(memories, self._now()) if memories else ""
        names = tuple(memory.name for memory in memories)
        parts.log.append(Surfaced(names, len(text.encode("utf-8", "replace")), by=by))
        if memories:
            inferred = [memory.name for memory in memories if memory.trust is Trust.INFERRED]
            await asyncio.to_thread(self._used.note, inferred, self._now())
            parts.log.append_message(Message("user", (TextBlock(text, Origin.RECALLED),)), isMeta=True)
            gone = sum(len(memory.missing) for memory in memories)
            stale = f"; {gone} of the things they name are missing" if gone else ""
            self._emit(Notice(f"recalled {', '.join(names)}{stale}", source="memory"))

    async def _find(self, query: str, known: set[str]) -> tuple[list[RecalledMemory], str]:
        """The memories to show, and who chose them. The local ranker replaces a model that is slow or fails."""
        tools = self._tools_in_use()
        until = monotonic() + self._parts.settings.memory.recall_ceiling_s
        local = asyncio.ensure_future(self._in_thread(lambda: self._rank(query, tools, known)))
        try:
            names, by = None, "model"
            why_not = self._why_not_ask() if self._selector.available else None
            if why_not is not None:
                self._takes_over(why_not)
            elif self._selector.available:
                names = await self._select(query, tools, known, local, until)
                if self._selector.failed:
                    self._takes_over(self._selector.failed)
            if names is None:
                async with asyncio.timeout(max(until - monotonic(), _GRACE_S)):
                    names, by = [candidate.path for candidate in (await local).shown], "ranker"
        finally:
            local.cancel()
        return await self._read_and_check(names, until), by

    async def _select(
        self, query: str, tools: Sequence[str], known: set[str], local: asyncio.Future[Ranking], until: float
    ) -> list[str] | None:
        """The model's choice; if a list cannot hold all memories, among the ranker's best."""
        try:
            async with asyncio.timeout(max(until - monotonic(), 0.0)):
                found = await asyncio.to_thread(scan, self._directory.root)
                entries = [entry for entry in found.entries if entry.name not in known]
                if found.total > NEWEST:
                    ranked = (await asyncio.shield(local)).ranked[:NEWEST]
                    entries = [self._entry(candidate) for candidate in ranked]
        except TimeoutError:
            return None
        if not entries:
            return []
        return await self._selector.select(query, entries, tools, max(until - monotonic(), 0.0))

    def _entry(self, one: RankedMemory) -> ScanEntry:
        path = self._directory.root / one.path
        return ScanEntry(one.path, path, one.mtime, 0, one.name, one.description, MemoryType.read(one.type), None)

    def _rank(self, query: str, tools: Sequence[str], known: set[str]) -> Ranking:
        if self._ranker is None:
            places, root = self._parts.places, self._directory.root
            self._ranker = Ranker.open(root, places.search_index(root), models_dir=places.models)
        return self._ranker.rank(query, tools_in_use=tools, exclude=known, now=self._now(), limit=CANDIDATES)

    async def _read_and_check(self, names: Sequence[str], until: float) -> list[RecalledMemory]:
        """The texts, each with the names that the repository does not have, if there is time to look."""
        found = await asyncio.to_thread(self._read, names)
        try:
            async with asyncio.timeout(max(until - monotonic(), _GRACE_S)):
                gone = await self._in_thread(lambda: [self._repo.find_missing(one.text) for one in found])
        except TimeoutError:
            return found
        return [replace(one, missing=missing) for one, missing in zip(found, gone, strict=True)]

    def _read(self, names: Sequence[str]) -> list[RecalledMemory]:
        """The chosen memories with their marks, without inferred ones that nobody uses."""
        found, now = list[RecalledMemory](), self._now()
        for name in names:
            with suppress(UserError):  # removed since it was chosen
                document = self._directory.read(name)
                statements = tuple(list_statements(name, document.text, self._marks))
                path = self._directory.root / name
                one = RecalledMemory(name, path, document.text, document.modified, statements=statements)
                if one.trust is not Trust.INFERRED or not self._used.is_unused(name, now):
                    found.append(one)
        return limit_inferred(found, lambda one: one.trust is Trust.INFERRED)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Runs in our own thread, one piece at a time: work that nobody waits for can still finish."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="reverie-recall")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _known(self, read: ReadCache) -> set[str]:
        """Memories that were shown already, or that the agent read."""
        root = self._directory.root
        opened = {path.relative_to(root).as_posix() for path in read.newest() if path.is_relative_to(root)}
        return set(self._parts.log.view.surfaced) | opened

    def _tools_in_use(self) -> list[str]:
        used = dict[str, None]()
        for entry in reversed(self._parts.log.view.entries[-_RECENT_ENTRIES:]):
            for call in entry.message.tool_uses:
                if call.name == "Bash":
                    given: Any = call.input
                    command = cast(JsonObject, given).get("command", "") if isinstance(given, dict) else ""
                    used[f"Bash({str(command)[:200]})"] = None
                else:
                    used[call.name] = None
        return list(used)[:_RECENT_CALLS]

    def _now(self) -> float:
        return self._clock().timestamp()

    async def close(self) -> None:
        if self._thread is not None:
            ranker = self._ranker
            if ranker is not None:
                self._thread.submit(ranker.close)
            self._thread.shutdown(wait=False)
        await self._selector.close()
