"""Memory in a running session: recall with every message, the agent's own writes kept safe, old files marked as old.

One a session, none where memory is off. What fails here is logged and leaves the turn as if there were no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice
from reverie.memory.age import age_note
from reverie.memory.changes import ABSENT, Evidence, WriteInfo, Writer
from reverie.memory.daily_log import refusal as not_in_a_log
from reverie.memory.opening import open_memory
from reverie.memory.recall.ranker import Candidate, Ranker, Ranking
from reverie.memory.recall.showing import MAX_FILES, Shown, injection, why_not
from reverie.memory.recall.verify import RepoNames
from reverie.memory.scan import NEWEST, ScanEntry, scan
from reverie.memory.taxonomy import MemoryType, is_index
from reverie.paths import memory_switch
from reverie.permissions.inside import PermissionRefused, inside_for_write, is_inside
from reverie.permissions.rules import ToolCall
from reverie.session.parts import Parts
from reverie.session.selecting import Selector
from reverie.storage.history.objects import blob_id
from reverie.storage.transcript.records import Surfaced
from reverie.storage.transcript.session_log import Clock
from reverie.storage.transcript.view import View
from reverie.tools.base import Keeper, ReadCache, ToolOutput
from reverie.tools.ripgrep import find_ripgrep
from reverie.types import Block, JsonObject, Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock

if TYPE_CHECKING:
    from reverie.memory.gate.write_gate import Refusal
    from reverie.session.stand_in import StandIn

T = TypeVar("T")

_RECENT_CALLS = 12
_RECENT_ENTRIES = 60
_EVIDENCE_BYTES = 1_000_000
_GRACE_S = 0.25
"""What the local ranker and the look at the repository get when the selecting model has used up the time."""


class Remembering:
    """The memory of one session."""

    def __init__(self, parts: Parts, emit: Callable[[Event], None], clock: Clock) -> None:
        self._parts = parts
        self._emit = emit
        self._clock = clock
        self.opened = open_memory(parts.settings, parts.places, report=self._refused)
        self.directory = self.opened.directory
        self._selector = Selector(parts)
        self.stand_in: StandIn | None = None
        """Who says so when the ranker stands in for the model that selects; the session sets it."""
        self._ranker: Ranker | None = None
        self._repo = RepoNames(parts.places.checkout, find_ripgrep)
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: list[Refusal] = []

    @classmethod
    def open(cls, parts: Parts, emit: Callable[[Event], None], clock: Clock) -> Remembering | None:
        """The session's memory; None where it is switched off."""
        return cls(parts, emit, clock) if memory_switch(parts.settings).on else None

    # -- recall ---------------------------------------------------------------------------------------------------

    async def recall(self, query: str, read: ReadCache) -> None:
        """Finds what fits a person's message and records it beside the message. Never raises but when cancelled.

        A run that chose nothing is recorded as such; one that never ran leaves no record.
        """
        parts = self._parts
        if not parts.flags.on("recall"):
            return
        shown_bytes = sum(parts.log.view.surfaced.values())
        if why_not(query, shown_bytes, limit=parts.settings.memory.recall_session_bytes) is not None:
            return
        try:
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
            stale = f"; {gone} of the things they name are gone" if gone else ""
            self._emit(Notice(f"recalled {', '.join(names)}{stale}", source="memory"))

    async def _find(self, query: str, known: set[str]) -> tuple[list[Shown], str]:
        """The memories to show and who chose them. The local ranker stands in for a model that is slow or fails."""
        tools = self._tools_in_use()
        until = monotonic() + self._parts.settings.memory.recall_ceiling_s
        local = asyncio.ensure_future(self._in_thread(lambda: self._rank(query, tools, known)))
        try:
            names, by = None, "model"
            if self._selector.available and not self._is_kept_from_model():
                names = await self._select(query, tools, known, local, until)
                if (why := self._selector.failed) and self.stand_in is not None and self.stand_in.is_on:
                    self.stand_in.tell(Purpose.RECALL, why)
            if names is None:
                async with asyncio.timeout(max(until - monotonic(), _GRACE_S)):
                    names, by = [candidate.path for candidate in (await local).shown], "ranker"
        finally:
            local.cancel()
        return await self._looked_up(names, until), by

    def _is_kept_from_model(self) -> bool:
        """Whether the model must not be asked now; the ranker stands in, and that is told once."""
        why = self.stand_in.unwanted(Purpose.RECALL) if self.stand_in is not None else None
        if why is not None and self.stand_in is not None and self.stand_in.is_on:
            self.stand_in.tell(Purpose.RECALL, why)
        return why is not None

    async def _select(
        self, query: str, tools: Sequence[str], known: set[str], local: asyncio.Future[Ranking], until: float
    ) -> list[str] | None:
        """What the model chooses; beyond what a list can hold, among those that the ranker puts first."""
        try:
            async with asyncio.timeout(max(until - monotonic(), 0.0)):
                found = await asyncio.to_thread(scan, self.directory.root)
                entries = [entry for entry in found.entries if entry.name not in known]
                if found.total > NEWEST:
                    ranked = (await asyncio.shield(local)).ranked[:NEWEST]
                    entries = [self._entry(candidate) for candidate in ranked]
        except TimeoutError:
            return None
        if not entries:
            return []
        return await self._selector.select(query, entries, tools, max(until - monotonic(), 0.0))

    def _entry(self, one: Candidate) -> ScanEntry:
        path = self.directory.root / one.path
        return ScanEntry(one.path, path, one.mtime, 0, one.name, one.description, MemoryType.read(one.type), None)

    def _rank(self, query: str, tools: Sequence[str], known: set[str]) -> Ranking:
        if self._ranker is None:
            places, root = self._parts.places, self.directory.root
            self._ranker = Ranker.open(root, places.search_index(root), models_dir=places.models)
        return self._ranker.rank(query, tools_in_use=tools, exclude=known, now=self._now(), limit=MAX_FILES)

    async def _looked_up(self, names: Sequence[str], until: float) -> list[Shown]:
        """The texts, each with what it names in vain; a repository too large to look through is not looked through."""
        found = await asyncio.to_thread(self._read, names)
        try:
            async with asyncio.timeout(max(until - monotonic(), _GRACE_S)):
                gone = await self._in_thread(lambda: [self._repo.gone(one.text) for one in found])
        except TimeoutError:
            return found
        return [
            Shown(one.name, one.path, one.text, one.modified, missing) for one, missing in zip(found, gone, strict=True)
        ]

    def _read(self, names: Sequence[str]) -> list[Shown]:
        found = list[Shown]()
        for name in names:
            with suppress(UserError):  # removed since it was chosen
                document = self.directory.read(name)
                found.append(Shown(name, self.directory.root / name, document.text, document.modified))
        return found

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """In a thread of our own, one piece at a time: one that is not waited for any longer still ends in peace."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="reverie-recall")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _known(self, read: ReadCache) -> set[str]:
        """What was shown already, or read by the agent itself."""
        root = self.directory.root
        opened = {path.relative_to(root).as_posix() for path in read.newest() if path.is_relative_to(root)}
        return set(self._parts.log.view.surfaced) | opened

    def _tools_in_use(self) -> list[str]:
        used = dict[str, None]()
        for entry in reversed(self._parts.log.view.entries[-_RECENT_ENTRIES:]):
            for call in entry.message.tool_uses:
                if call.name == "Bash":
                    used[f"Bash({str(_input(call).get('command', ''))[:200]})"] = None
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

        def keep(data: bytes, before: bytes | None) -> bool:
            text = data.decode("utf-8", "surrogateescape")
            header = self._parts.log.view.header
            if header is not None and header.flags.get("daily_log"):
                self._refuse_outside_log(path, before, text)
            info = WriteInfo(
                Writer.AGENT,
                "Saved while working.",
                session=self._parts.log.session_id,
                message=self._parts.log.head or "",
                evidence=evidence_of(self._parts.log.view),
            )
            self.directory.apply_tool_write(str(path), text, info, base=ABSENT if before is None else blob_id(before))
            return path.exists()

        return keep

    def _refuse_outside_log(self, path: Path, before: bytes | None, after: str) -> None:
        name = inside_for_write(str(path), self.directory.root).relative_to(self.directory.root).as_posix()
        standing = None if before is None else before.decode("utf-8", "surrogateescape")
        reason = not_in_a_log(name, standing, after, self._clock().astimezone().date())
        if reason is not None:
            raise UserError(f"{name}: {reason}.")

    def _refused(self, refusal: Refusal) -> None:
        """A write the gate did not let through: the log learns the kind, never the text. May come from a thread."""
        self._parts.background.write(
            "memory_refused", refused=refusal.kind, writer=refusal.writer.value, detail=refusal.detail
        )
        self._waiting.append(refusal)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """What the model is told beside a result of a file tool: how old the memory is, or that it is gone now."""
        while self._waiting:
            refusal = self._waiting.pop(0)
            if refusal.item:
                self._emit(
                    Notice(f"{refusal.name} waits in the inbox ({refusal.item}): reverie memory inbox", source="memory")
                )
        path = Path(str(_input(call).get("file_path", "")))
        root = self.directory.root
        if output.is_error or not path.is_absolute() or not is_inside(str(path), root):
            return ()
        match call.name:
            case "Read":
                try:
                    note = age_note(path.stat().st_mtime, self._now())
                except OSError:
                    return ()
            case "Write" | "Edit":
                note = self._written(path)
            case _:
                return ()
        return (TextBlock(f"<system-reminder>\n{note}\n</system-reminder>", Origin.CODE),) if note else ()

    def _written(self, path: Path) -> str:
        """Tells the person of a save; what the model should know of it."""
        name = Path(path).resolve().relative_to(self.directory.root).as_posix()
        if not path.exists():
            self._emit(Notice(f"forgot {name}; `reverie memory undo` brings it back", source="memory"))
            return f"{name} was written empty, so this memory is forgotten: its file and its index line are gone."
        if not is_index(name):
            self._emit(Notice(f"saved {name}", source="memory"))
        return ""

    async def close(self) -> None:
        if self._thread is not None:
            ranker = self._ranker
            if ranker is not None:
                self._thread.submit(ranker.close)
            self._thread.shutdown(wait=False)
        await self._selector.close()


def evidence_of(view: View) -> tuple[Evidence, ...]:
    """What was said in a conversation and by whom, oldest first; of a very long one, its end."""
    found, size = list[Evidence](), 0
    for entry in reversed(view.history):
        for block in reversed(entry.message.content):
            text = block.text if isinstance(block, TextBlock | ToolResultBlock) else ""
            size += len(text)
            if text and size <= _EVIDENCE_BYTES:
                found.append(Evidence(block.origin, text, entry.uuid or ""))
    return tuple(reversed(found))


def _input(call: ToolUseBlock) -> JsonObject:
    given: Any = call.input
    return cast(JsonObject, given) if isinstance(given, dict) else {}
