"""Memory in a running session: recall with every message, the agent's own writes kept safe, old files marked as old.

One a session, none where memory is off. What fails here is logged and leaves the turn as if there were no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.memory.age import age_note
from reverie.memory.changes import Evidence, Gate, WriteInfo, Writer
from reverie.memory.changes import Origin as EvidenceOrigin
from reverie.memory.directory import MemoryDirectory
from reverie.memory.ranker import Ranker
from reverie.memory.recall import MAX_FILES, Shown, injection, why_not
from reverie.memory.scan import ScanEntry, scan
from reverie.memory.verify import RepoNames
from reverie.paths import memory_place, memory_switch
from reverie.permissions.inside import PermissionRefused, check_memory_root, inside_for_write, is_inside
from reverie.permissions.rules import ToolCall
from reverie.selecting import Selector
from reverie.session_parts import Parts
from reverie.storage.records import Surfaced
from reverie.storage.session_log import Clock
from reverie.tools.base import Keeper, ReadCache, ToolOutput
from reverie.tools.ripgrep import find_ripgrep
from reverie.types import Block, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock

_RECENT_CALLS = 12
_RECENT_ENTRIES = 60
_ORIGINS: dict[Origin, EvidenceOrigin] = {
    Origin.PERSON: "person",
    Origin.MODEL: "assistant",
    Origin.TOOL: "tool_result",
    Origin.WEB: "web",
    Origin.RECALLED: "memory",
    Origin.SUMMARY: "assistant",
    Origin.AGENT: "tool_result",
    Origin.HOOK: "instructions",
    Origin.INJECTED: "instructions",
}


class Remembering:
    """The memory of one session."""

    def __init__(
        self, parts: Parts, directory: MemoryDirectory, selector: Selector, emit: Callable[[Event], None], clock: Clock
    ) -> None:
        self.directory = directory
        self._parts = parts
        self._selector = selector
        self._emit = emit
        self._clock = clock
        self._ranker: Ranker | None = None
        self._repo = RepoNames(parts.places.checkout, find_ripgrep)
        self._lock = asyncio.Lock()

    @classmethod
    def open(cls, parts: Parts, emit: Callable[[Event], None], clock: Clock) -> Remembering | None:
        """The session's memory; None where it is switched off."""
        if not memory_switch(parts.settings).on:
            return None
        place = memory_place(parts.places, parts.settings, check_memory_root)
        directory = MemoryDirectory.open(place, gate=open_gate(parts, place.directory))
        return cls(parts, directory, Selector(parts), emit, clock)

    # -- recall ---------------------------------------------------------------------------------------------------

    async def recall(self, query: str, read: ReadCache) -> None:
        """Finds what fits a person's message and records it beside the message. Never raises but when cancelled."""
        parts = self._parts
        if not parts.flags.on("recall"):
            return
        shown_bytes = sum(parts.log.view.surfaced.values())
        limit = parts.settings.memory.recall_session_bytes
        reason = why_not(query, shown_bytes, limit=limit)
        if reason is not None:
            return
        try:
            async with asyncio.timeout(parts.settings.memory.recall_ceiling_s * 4):
                memories, by = await self._find(query, self._known(read))
        except (ReverieError, TimeoutError) as error:
            parts.background.write("recall_failed", error=str(error) or "it took too long")
            return
        text = injection(memories, self._now()) if memories else ""
        names = tuple(memory.name for memory in memories)
        parts.log.append(Surfaced(names, len(text.encode("utf-8", "replace")), by=by))
        if memories:
            parts.log.append_message(Message("user", (TextBlock(text, Origin.RECALLED),)), isMeta=True)
            gone = sum(len(memory.gone) for memory in memories)
            stale = f"; {gone} things they name are gone" if gone else ""
            self._emit(Notice(f"recalled {', '.join(names)}{stale}", source="memory"))

    async def _find(self, query: str, known: set[str]) -> tuple[list[Shown], str]:
        """The memories to show and who chose them. The local ranker stands in for a model that is slow or fails."""
        tools = self._tools_in_use()
        local = asyncio.create_task(self._rank(query, tools, known))
        names: Sequence[str] | None = None
        by = "ranker"
        try:
            if self._selector.available:
                entries = await asyncio.to_thread(self._candidates, known)
                ceiling = self._parts.settings.memory.recall_ceiling_s
                names = await self._selector.select(query, entries, tools, ceiling) if entries else []
                by = "model" if names is not None else by
            if names is None:
                names = await local
        finally:
            local.cancel()
        return await asyncio.to_thread(self._read, names), by

    async def _rank(self, query: str, tools: Sequence[str], known: set[str]) -> list[str]:
        async with self._lock:
            return await asyncio.to_thread(self._rank_now, query, tools, known)

    def _rank_now(self, query: str, tools: Sequence[str], known: set[str]) -> list[str]:
        if self._ranker is None:
            places = self._parts.places
            self._ranker = Ranker.open(
                self.directory.root, places.search_index(self.directory.root), models_dir=places.models
            )
        ranking = self._ranker.rank(query, tools_in_use=tools, exclude=known, now=self._now(), limit=MAX_FILES)
        return [candidate.path for candidate in ranking.shown]

    def _candidates(self, known: set[str]) -> list[ScanEntry]:
        return [entry for entry in scan(self.directory.root).entries if entry.name not in known]

    def _read(self, names: Sequence[str]) -> list[Shown]:
        found = list[Shown]()
        for name in names:
            document = self.directory.read(name)
            gone = self._repo.gone(document.text)
            found.append(Shown(name, self.directory.root / name, document.text, document.modified, gone))
        return found

    def _known(self, read: ReadCache) -> set[str]:
        """What was shown already, or read by the agent itself."""
        root = self.directory.root
        opened = {str(path.relative_to(root)) for path in read.newest() if path.is_relative_to(root)}
        return set(self._parts.log.view.surfaced) | opened

    def _tools_in_use(self) -> list[str]:
        used = dict[str, None]()
        for entry in reversed(self._parts.log.view.entries[-_RECENT_ENTRIES:]):
            for call in entry.message.tool_uses:
                if call.name == "Bash" and isinstance(call.input, dict):
                    used[f"Bash({str(call.input.get('command', ''))[:200]})"] = None  # pyright: ignore
                else:
                    used[call.name] = None
        return list(used)[:_RECENT_CALLS]

    def _now(self) -> float:
        return self._clock().timestamp()

    # -- the agent's own reading and writing ----------------------------------------------------------------------

    def may_write(self, call: ToolCall) -> bool:
        """Whether this call only writes a memory: then nobody needs to be asked, since it can be undone."""
        path = call.input.get("file_path")
        if call.tool not in ("Write", "Edit") or not isinstance(path, str):
            return False
        try:
            inside_for_write(path, self.directory.root)
        except PermissionRefused:
            return False
        return True

    def keeper(self, path: Path) -> Keeper | None:
        """Who writes a file of the memory directory: the directory, through its gate, as one version."""
        if not is_inside(str(path), self.directory.root):
            return None

        def keep(data: bytes) -> bool:
            text = data.decode("utf-8", "surrogateescape")
            info = WriteInfo(
                Writer.AGENT,
                "saved while working",
                session=self._parts.log.session_id,
                message=self._parts.log.head or "",
                evidence=self._evidence(),
            )
            self.directory.apply_tool_write(str(path), text, info)
            return path.exists()

        return keep

    def _evidence(self) -> tuple[Evidence, ...]:
        found = list[Evidence]()
        for entry in self._parts.log.view.entries[-_RECENT_ENTRIES:]:
            for block in entry.message.content:
                text = block.text if isinstance(block, TextBlock | ToolResultBlock) else ""
                if text:
                    found.append(Evidence(_ORIGINS[block.origin], text, entry.uuid or ""))
        return tuple(found)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """The note on a memory's age when the agent opens it with Read."""
        if call.name != "Read" or output.is_error or not isinstance(call.input, dict):
            return ()
        path = Path(str(call.input.get("file_path", "")))  # pyright: ignore
        if not path.is_absolute() or not is_inside(str(path), self.directory.root):
            return ()
        try:
            note = age_note(path.stat().st_mtime, self._now())
        except OSError:
            return ()
        return (TextBlock(f"<system-reminder>\n{note}\n</system-reminder>", Origin.INJECTED),) if note else ()

    async def close(self) -> None:
        if self._ranker is not None:
            self._ranker.close()
        await self._selector.close()


def open_gate(_parts: Parts, _root: Path) -> Gate:
    """The write gate of this project's memory."""
    return lambda _write: None
