"""The memories of a session's agents: opened by kind, and written through the gate with the user's words as evidence.

There are none where memory or the flag `agent_memory` is off. An error is reported and leaves the agent without memory.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.agents.definition import AgentDefinition
from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.memory.changes import Evidence, Gate, WriteInfo, Writer
from reverie.memory.evidence import gather_evidence
from reverie.memory.opening import ProjectGate
from reverie.memory.sharing.agent_memory import AgentMemory, AgentMemoryPlace
from reverie.memory.tool_writes import write_by_tool
from reverie.paths import MemoryPlace, memory_switch
from reverie.permissions.memory_paths import is_inside
from reverie.permissions.rules import ToolCall
from reverie.session.memory_companion import writes_memory
from reverie.session.parts import SessionParts
from reverie.tools.base import Keeper, Kept

if TYPE_CHECKING:
    from reverie.memory.gate.write_gate import Refusal


class KindMemory:
    """The memory of one kind of agent, as an agent of a session uses it."""

    def __init__(self, memory: AgentMemory, session: str, said: Callable[[], Sequence[Evidence]]) -> None:
        self.memory = memory
        self._session = session
        self._said = said

    def section(self) -> str:
        return self.memory.section()

    def may_write(self, call: ToolCall) -> bool:
        """Whether this call only writes a memory of this kind, so that nobody has to be asked."""
        return writes_memory(call, self.memory.root)

    def keeper(self, path: Path, heard: Callable[[], Sequence[Evidence]]) -> Keeper | None:
        """Returns the writer for a file of this memory. `heard` returns what the agent itself has heard."""
        if not is_inside(str(path), self.memory.root):
            return None

        def keep(data: bytes, before: bytes | None) -> Kept:
            why = f"Saved by the agent {self.memory.place.kind}."
            info = WriteInfo(Writer.AGENT, why, session=self._session, evidence=(*self._said(), *heard()))
            return write_by_tool(self.memory.directory, path, data, before, info)[0]

        return keep


class AgentMemories:
    """The memories of all kinds that a session has started, opened when they are needed."""

    def __init__(self, parts: SessionParts, emit: Callable[[Event], None]) -> None:
        self._parts = parts
        self._emit = emit
        self._opened: dict[str, KindMemory | None] = {}
        self._reported = set[str]()

    def of(self, kind: AgentDefinition | None) -> KindMemory | None:
        """Returns the memory of a kind; None if it has none, or memory is off."""
        if kind is None or kind.memory is None or not self._is_on():
            return None
        key = f"{kind.memory.value}:{kind.name}"
        if key not in self._opened:
            self._opened[key] = self._open(kind)
        return self._opened[key]

    def _is_on(self) -> bool:
        return memory_switch(self._parts.settings).on and self._parts.flags.on("agent_memory")

    def _open(self, kind: AgentDefinition) -> KindMemory | None:
        assert kind.memory is not None
        try:
            place = AgentMemoryPlace.of(self._parts.places, kind.name, kind.memory)
            memory = AgentMemory(place, self._gate)
            self._begin(memory)
        except ReverieError as error:
            self._emit(Notice(f"the agent {kind.name} has no memory: {error}", "warning", "agents"))
            return None
        return KindMemory(memory, self._parts.log.session_id, lambda: gather_evidence(self._parts.log.view.history))

    def _begin(self, memory: AgentMemory) -> None:
        """Copies a snapshot into an empty memory. If the memory is not empty, a newer snapshot is only announced."""
        made = memory.newer_snapshot()
        if made is None:
            return
        kind = memory.place.kind
        if memory.is_empty:
            memory.prepare()
            count = memory.take_snapshot("Begun from the project's snapshot.")
            self._tell(f"the memory of the agent {kind} begins with the project's snapshot ({count} files)")
        else:
            self._tell(
                f"there is a newer snapshot ({made:%Y-%m-%d}) for the memory of the agent {kind}: "
                f"`reverie agents snapshot {kind} --take` adds it, `--keep` passes it over; nothing was changed"
            )

    def _tell(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self._emit(Notice(text, source="agents"))

    def _gate(self, root: Path) -> Gate:
        loop = asyncio.get_running_loop()  # a write may come from a thread

        def report(refusal: Refusal) -> None:
            self._parts.background.write("memory_refused", refused=refusal.kind, writer=refusal.writer.value)
            if refusal.item:
                where = f"REVERIE_MEMORY_PATH={shlex.quote(str(root))} reverie memory inbox"
                loop.call_soon_threadsafe(
                    self._tell, f"{refusal.name} waits for your decision ({refusal.item}): {where}"
                )

        return ProjectGate(MemoryPlace(root, "agent memory"), self._parts.places, self._parts.settings, report)
