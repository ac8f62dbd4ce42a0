"""The memory of a running session: it records the agent's own writes, tells the user how they ended, and marks old
files as old. It also gives reasons to ask for calls whose address only an inferred memory has.

One per session; none where memory is off. Errors are logged, and the turn continues without memory.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from reverie.errors import UserError
from reverie.events import Event, Notice
from reverie.instructions import load_instructions
from reverie.layers.base import Companion
from reverie.memory.age import age_note
from reverie.memory.changes import Outcome, WriteInfo, Writer
from reverie.memory.daily_log import reason_against_write as not_in_a_log
from reverie.memory.evidence import gather_evidence
from reverie.memory.gate.addresses import InferredAddresses
from reverie.memory.lookup import absorb
from reverie.memory.opening import open_memory
from reverie.memory.taxonomy import Trust, is_index
from reverie.memory.tool_writes import write_by_tool
from reverie.memory.topic_file import decode
from reverie.paths import memory_switch
from reverie.permissions.memory_paths import PermissionRefused, check_memory_write, is_inside
from reverie.permissions.rules import ToolCall
from reverie.session.parts import SessionParts
from reverie.storage.history.versions import FileChange
from reverie.storage.transcript.session_log import Clock
from reverie.tools.base import Keeper, Kept, ToolOutput
from reverie.types import Block, JsonObject, Origin, TextBlock, ToolUseBlock

if TYPE_CHECKING:
    from reverie.memory.gate.write_gate import Refusal

T = TypeVar("T")

_WITHOUT_ADDRESS = frozenset({"Read", "Write", "Edit", "Glob", "Grep", "Agent", "Task", "SendMessage"})
"""Tools that reach nothing outside, and write memories only through the directory. The text of a file is not an address
that is used."""


class MemoryCompanion(Companion):
    """The memory of one session."""

    def __init__(self, parts: SessionParts, emit: Callable[[Event], None], clock: Clock) -> None:
        self._parts = parts
        self._emit = emit
        self._clock = clock
        self.opened = open_memory(parts.settings, parts.places, report=self._refused)
        self.directory = self.opened.directory
        self._outcomes: dict[str, Outcome] = {}
        self._addresses = InferredAddresses(self.directory.root)

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
            if self._keeps_log:
                self._refuse_outside_log(path, before, text)
            info = WriteInfo(
                Writer.AGENT,
                "Saved while working.",
                session=self._parts.log.session_id,
                message=self._parts.log.head or "",
                evidence=gather_evidence(self._parts.log.view.history),
            )
            kept, outcome = write_by_tool(self.directory, path, data, before, info)
            self._outcomes[self._name_of(path)] = outcome
            return kept

        return keep

    @property
    def _keeps_log(self) -> bool:
        header = self._parts.log.view.header
        return header is not None and bool(header.flags.get("daily_log"))

    async def after_response(self) -> None:
        """In daily-log mode: records what others have changed until now, so that it is not taken for a command's."""
        if self._keeps_log:
            await asyncio.to_thread(absorb, self.directory)

    def _put_back(self) -> str:
        """Undoes what a command has done to memory in daily-log mode, unless it only added to the log of the day."""
        info = WriteInfo(Writer.AGENT, "Changed by a command.", session=self._parts.log.session_id)
        version = self.directory.absorb(info) if self.directory.history.head() is not None else None
        today, read = self._clock().astimezone().date(), self.directory.history.read

        def why(change: FileChange) -> str | None:
            before, after = (None if one is None else decode(read(one)) for one in (change.before, change.after))
            return not_in_a_log(change.name, before, after, today)

        reason = next(filter(None, map(why, version.files)), None) if version is not None else None
        if version is None or reason is None:
            return ""
        made = self.directory.undo(version.id, replace(info, why="In daily-log mode nothing else is changed."))
        names = ", ".join(change.name for change in version.files)
        if made is not None:
            self._emit(Notice(f"put back {names}; `reverie memory undo` brings the change again", source="memory"))
        return f"The command changed {names}, and this was undone: {reason}."

    def _name_of(self, path: Path) -> str:
        return path.resolve().relative_to(self.directory.root).as_posix()

    def _refuse_outside_log(self, path: Path, before: bytes | None, after: str) -> None:
        name = check_memory_write(str(path), self.directory.root).relative_to(self.directory.root).as_posix()
        text = None if before is None else before.decode("utf-8", "surrogateescape")
        reason = not_in_a_log(name, text, after, self._clock().astimezone().date())
        if reason is not None:
            raise UserError(f"{name}: {reason}.")

    def _refused(self, refusal: Refusal) -> None:
        """Logs a write that the gate refused or held: its kind, never its text. May run in a thread."""
        self._parts.background.write(
            "memory_refused", refused=refusal.kind, writer=refusal.writer.value, detail=refusal.detail
        )

    def why_ask(self, call: ToolCall) -> str | None:
        """Returns why to ask for a call that would be allowed: its address or command is in an inferred memory, and
        neither in what the user said in this conversation nor in the instruction files or permission rules."""
        if call.tool in _WITHOUT_ADDRESS:
            return None
        used = str(call.input.get("command", "")) if call.tool == "Bash" else json.dumps(call.input, ensure_ascii=False)
        found = self._addresses.find(used, self._known_texts, commands=call.tool == "Bash" and not call.read_only)
        if found is None:
            return None
        return f"{call.tool} would use {found[0]}, which is only in the inferred memory {found[1]}, not in your words."

    def _known_texts(self) -> Iterator[str]:
        given = self._parts.settings.permissions
        yield from (*given.allow, *given.ask)
        yield from (file.text for file in load_instructions(self._parts.places, self._parts.settings).files)
        for entry in self._parts.log.view.history:
            for block in entry.message.content:
                if isinstance(block, TextBlock) and block.origin.is_users:
                    yield block.text

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """Returns what the model sees next to the result of a file tool: the age of a memory, or that it is gone."""
        if self._keeps_log and call.name not in _WITHOUT_ADDRESS:
            note = await asyncio.to_thread(self._put_back)
            return (_reminder(note),) if note else ()
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
        return (_reminder(note),) if note else ()

    def _written(self, path: Path) -> str:
        """Tells the user how a write ended; returns what the model should know besides."""
        name = self._name_of(path)
        outcome = self._outcomes.pop(name, None)
        if outcome is None or is_index(name):
            return ""
        stored = outcome.name_of(name)
        is_there = self.directory.exists(stored)
        said, note = list[str](), ""
        if outcome.version is not None and not is_there:
            said.append(f"forgot {name}; `reverie memory undo` brings it back")
            note = f"{name} was written empty, so this memory is forgotten: its file and its index line are gone."
        elif outcome.version is not None:
            trust = self.opened.gate.marks.lead_trust(self.directory.read(stored).text)
            said.append(f"saved {stored}" + (" (inferred from what you said)" if trust is Trust.INFERRED else ""))
        held = len(outcome.held) or sum(bool(one.item) for one in outcome.decisions.values())
        if held:
            said.append(f"{held} line{'s wait' if held > 1 else ' waits'}: /memory inbox")
        if said:
            self._emit(Notice("; ".join(said), source="memory"))
        return note


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


def _reminder(text: str) -> TextBlock:
    return TextBlock(f"<system-reminder>\n{text}\n</system-reminder>", Origin.CODE)


def _input(call: ToolUseBlock) -> JsonObject:
    given: Any = call.input
    return cast(JsonObject, given) if isinstance(given, dict) else {}
