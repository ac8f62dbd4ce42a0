"""The memory of a running session: it records the agent's own writes, and marks old files as old.

One per session; none where memory is off. Errors are logged, and the turn continues without memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from reverie.errors import UserError
from reverie.events import Event, Notice
from reverie.layers.base import Companion
from reverie.memory.age import age_note
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.daily_log import reason_against_write as not_in_a_log
from reverie.memory.evidence import gather_evidence
from reverie.memory.opening import open_memory
from reverie.memory.taxonomy import is_index
from reverie.memory.tool_writes import write_by_tool
from reverie.paths import memory_switch
from reverie.permissions.memory_paths import PermissionRefused, check_memory_write, is_inside
from reverie.permissions.rules import ToolCall
from reverie.session.parts import SessionParts
from reverie.storage.transcript.session_log import Clock
from reverie.tools.base import Keeper, Kept, ToolOutput
from reverie.types import Block, JsonObject, Origin, TextBlock, ToolUseBlock

if TYPE_CHECKING:
    from reverie.memory.gate.write_gate import Refusal

T = TypeVar("T")


class MemoryCompanion(Companion):
    """The memory of one session."""

    def __init__(self, parts: SessionParts, emit: Callable[[Event], None], clock: Clock) -> None:
        self._parts = parts
        self._emit = emit
        self._clock = clock
        self.opened = open_memory(parts.settings, parts.places, report=self._refused)
        self.directory = self.opened.directory
        self._waiting: list[Refusal] = []

    @classmethod
    def open(cls, parts: SessionParts, emit: Callable[[Event], None], clock: Clock) -> MemoryCompanion | None:
        return cls(parts, emit, clock) if memory_switch(parts.settings).on else None

    def may_write(self, call: ToolCall) -> bool:
        """Whether this call only writes a memory. Nobody has to be asked, because it can be undone."""
        return writes_memory(call, self.directory.root)

    def keeper(self, path: Path) -> Keeper | None:
        """Returns the writer for a file of the memory directory: the directory, through its gate, as one version."""
        if not is_inside(str(path), self.directory.root):
            return None

        def keep(data: bytes, before: bytes | None) -> Kept:
            text = data.decode("utf-8", "surrogateescape")
            header = self._parts.log.view.header
            if header is not None and header.flags.get("daily_log"):
                self._refuse_outside_log(path, before, text)
            info = WriteInfo(
                Writer.AGENT,
                "Saved while working.",
                session=self._parts.log.session_id,
                message=self._parts.log.head or "",
                evidence=gather_evidence(self._parts.log.view.history),
            )
            return write_by_tool(self.directory, path, data, before, info)[0]

        return keep

    def _refuse_outside_log(self, path: Path, before: bytes | None, after: str) -> None:
        name = check_memory_write(str(path), self.directory.root).relative_to(self.directory.root).as_posix()
        text = None if before is None else before.decode("utf-8", "surrogateescape")
        reason = not_in_a_log(name, text, after, self._clock().astimezone().date())
        if reason is not None:
            raise UserError(f"{name}: {reason}.")

    def _refused(self, refusal: Refusal) -> None:
        """Logs a write that the gate refused: its kind, never its text. May run in a thread."""
        self._parts.background.write(
            "memory_refused", refused=refusal.kind, writer=refusal.writer.value, detail=refusal.detail
        )
        self._waiting.append(refusal)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """Returns what the model sees next to the result of a file tool: the age of a memory, or that it is gone."""
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
                    note = age_note(path.stat().st_mtime, self._clock().timestamp())
                except OSError:
                    return ()
            case "Write" | "Edit":
                note = self._written(path)
            case _:
                return ()
        return (TextBlock(f"<system-reminder>\n{note}\n</system-reminder>", Origin.CODE),) if note else ()

    def _written(self, path: Path) -> str:
        name = Path(path).resolve().relative_to(self.directory.root).as_posix()
        if not path.exists():
            self._emit(Notice(f"forgot {name}; `reverie memory undo` brings it back", source="memory"))
            return f"{name} was written empty, so this memory is forgotten: its file and its index line are gone."
        if not is_index(name):
            self._emit(Notice(f"saved {name}", source="memory"))
        return ""


def writes_memory(call: ToolCall, root: Path) -> bool:
    """Whether a call only writes a file inside the memory directory `root`."""
    path = call.input.get("file_path")
    if call.tool not in ("Write", "Edit") or not isinstance(path, str):
        return False
    try:
        check_memory_write(path, root)
    except PermissionRefused:
        return False
    return True


def _input(call: ToolUseBlock) -> JsonObject:
    given: Any = call.input
    return cast(JsonObject, given) if isinstance(given, dict) else {}
