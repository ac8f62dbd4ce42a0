"""Recall for a running conversation: finds what fits a message and records it next to the message. A model selects; the
local ranker does it when the model is slow, fails, or must not be asked. What the model chooses too late is shown with
the next round. A failure is logged, and the turn goes on without memories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
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
from reverie.tools.base import unwrap_call
from reverie.tools.ripgrep import find_ripgrep
from reverie.types import JsonObject, Message, Origin, TextBlock, ToolUseBlock

T = TypeVar("T")

_RECENT_CALLS = 12
_RECENT_ENTRIES = 60
_RECENT_VERSIONS = 40
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
        self._late: asyncio.Task[list[str] | None] | None = None
        """A model's choice that the last message did not wait for."""
        self._ranker: Ranker | None = None
        self._repo = RepoNames(parts.places.checkout, find_ripgrep, directory.root)
        self._thread: ThreadPoolExecutor | None = None
        self._marks = Marks(directory.root)
        self._used = LastUse(directory.root)

    async def recall(self, query: str) -> None:
        """Finds what fits the user's message and records it, even if nothing fits. Raises only when cancelled."""
        if not self._parts.flags.on("recall"):
            return
        self._add(await self.take_late())
        self.drop_late()
        limit = self._parts.settings.memory.recall_session_bytes
        if reason_against_recall(query, self._shown_bytes(), limit=limit) is not None:
            return
        try:
            memories, by = await self._find(query)
        except (ReverieError, TimeoutError) as error:
            self._parts.background.write("recall_failed", error=str(error) or "it took too long")
            return
        self._add(self._show(memories, by))

    async def take_late(self) -> Sequence[TextBlock]:
        """What a model has chosen since the last request, to show with the next one."""
        late = self._late
        if late is None or not late.done():
            return ()
        self._late = None
        try:
            names = late.result()
        except ReverieError as error:
            self._parts.background.write("recall_failed", error=str(error))
            return ()
        if names is None or self._shown_bytes() >= self._parts.settings.memory.recall_session_bytes:
            return ()
        known = await self._known()
        new = [name for name in names if name not in known]
        return self._show(await self._read_and_check(new, _GRACE_S), "model")

    def drop_late(self) -> None:
        """Nobody waits any more for what a model chooses."""
        late, self._late = self._late, None
        if late is not None:
            late.cancel()

    def _shown_bytes(self) -> int:
        return sum(self._parts.log.view.surfaced.values())

    def _show(self, memories: Sequence[RecalledMemory], by: str) -> list[TextBlock]:
        """Records what was chosen; returns it as the model sees it."""
        text = render_reminder(memories, self._now()) if memories else ""
        names = tuple(memory.name for memory in memories)
        self._parts.log.append(Surfaced(names, len(text.encode("utf-8", "replace")), by=by))
        if not memories:
            return []
        self._used.note([memory.name for memory in memories if memory.trust is Trust.INFERRED], self._now())
        gone = sum(len(memory.missing) for memory in memories)
        stale = f"; {gone} of the things they name are missing" if gone else ""
        self._emit(Notice(f"recalled {', '.join(names)}{stale}", source="memory"))
        return [TextBlock(text, Origin.RECALLED)]

    def _add(self, blocks: Sequence[TextBlock]) -> None:
        if blocks:
            self._parts.log.append_message(Message("user", tuple(blocks)), isMeta=True)

    async def _find(self, query: str) -> tuple[list[RecalledMemory], str]:
        """The memories to show, and who chose them. The local ranker replaces a model that is slow or fails."""
        tools = self._tools_in_use()
        until = monotonic() + self._parts.settings.memory.recall_ceiling_s
        known = await self._known()
        local = asyncio.ensure_future(self._in_thread(lambda: self._rank(query, tools, known)))
        choosing: asyncio.Task[list[str] | None] | None = None
        names, by = None, "model"
        try:
            why_not = self._why_not_ask() if self._selector.available else None
            if why_not is not None:
                self._takes_over(why_not)
            elif self._selector.available:
                choosing = asyncio.create_task(self._select(query, tools, known, local))
                await asyncio.wait((choosing,), timeout=max(until - monotonic(), 0.0))
                if choosing.done():
                    names = choosing.result()
                else:
                    self._late = choosing
                    late = "it took too long; what it chooses comes with the next round"
                    self._parts.background.write("recall_selector_failed", error=late)
                if self._selector.failed:
                    self._takes_over(self._selector.failed)
            if names is None:
                async with asyncio.timeout(max(until - monotonic(), _GRACE_S)):
                    names, by = [candidate.path for candidate in (await asyncio.shield(local)).shown], "ranker"
        except asyncio.CancelledError:
            self._late = None
            local.cancel()
            if choosing is not None:
                choosing.cancel()
            raise
        return await self._read_and_check(names, max(until - monotonic(), _GRACE_S)), by

    async def _select(
        self, query: str, tools: Sequence[str], known: set[str], local: asyncio.Future[Ranking]
    ) -> list[str] | None:
        """The model's choice; if a list cannot hold all memories, among the ranker's best."""
        last_answer = self._last_answer()  # now: later it may be the answer to this message
        found = await asyncio.to_thread(scan, self._directory.root)
        entries = [entry for entry in found.entries if entry.name not in known]
        if found.total > NEWEST:
            ranked = (await asyncio.shield(local)).ranked[:NEWEST]
            entries = [self._entry(candidate) for candidate in ranked]
        return await self._selector.select(query, last_answer, entries, tools) if entries else []

    def _last_answer(self) -> str:
        said = (entry.message for entry in reversed(self._parts.log.view.entries))
        return next((message.text for message in said if message.role == "assistant" and message.text.strip()), "")

    def _entry(self, one: RankedMemory) -> ScanEntry:
        path = self._directory.root / one.path
        return ScanEntry(one.path, path, one.mtime, 0, one.name, one.description, MemoryType.read(one.type), None)

    def _rank(self, query: str, tools: Sequence[str], known: set[str]) -> Ranking:
        if self._ranker is None:
            places, root = self._parts.places, self._directory.root
            name = self._parts.settings.memory.encoder
            self._ranker = Ranker.open(root, places.search_index(root), models_dir=places.models, encoder=name)
        return self._ranker.rank(query, tools_in_use=tools, exclude=known, now=self._now(), limit=CANDIDATES)

    async def _read_and_check(self, names: Sequence[str], seconds: float) -> list[RecalledMemory]:
        """The texts, each with the names that the repository does not have, if there is time to look."""
        found = await asyncio.to_thread(self._read, names)
        try:
            async with asyncio.timeout(seconds):
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

    async def _known(self) -> set[str]:
        """Memories that the conversation shows already: recalled, opened by the agent, or written in this session and
        still in view. A compaction takes them out of view."""
        view, session = self._parts.log.view, self._parts.log.session_id
        in_view = {entry.uuid for entry in view.entries}
        calls = (call for entry in view.entries for call in entry.message.tool_uses if call.id not in view.cleared)
        known = {*view.surfaced, *filter(None, map(self._opened, calls))}

        def written() -> set[str]:
            recent = self._directory.log(limit=_RECENT_VERSIONS)
            ours = (one for one in recent if one.info.session == session and one.info.message in in_view)
            return {file.name for version in ours for file in version.files}

        with suppress(ReverieError):  # the history is damaged
            known |= await self._in_thread(written)
        return known

    def _opened(self, call: ToolUseBlock) -> str | None:
        """The memory that a call reads or writes."""
        given: Any = call.input
        path = cast(JsonObject, given).get("file_path") if isinstance(given, dict) else None
        if call.name not in ("Read", "Write", "Edit") or not isinstance(path, str):
            return None
        whole, root = Path(self._parts.places.cwd, path), self._directory.root
        return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else None

    def _tools_in_use(self) -> list[str]:
        used = dict[str, None]()
        for entry in reversed(self._parts.log.view.entries[-_RECENT_ENTRIES:]):
            for call in map(unwrap_call, entry.message.tool_uses):
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
        self.drop_late()
        if self._thread is not None:
            ranker = self._ranker
            if ranker is not None:
                self._thread.submit(ranker.close)
            self._thread.shutdown(wait=False)
        await self._selector.close()
