"""Opens a project's memory for a command or a session: directory, write gate and inbox together. The gate is loaded at
the first write, so that reading stays quick. It makes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from reverie.errors import ReverieError
from reverie.memory.changes import Decision, ProposedWrite
from reverie.memory.directory import MemoryDirectory
from reverie.paths import MemoryPlace, MemorySwitch, Places, memory_place, memory_switch
from reverie.permissions.memory_paths import check_memory_root
from reverie.quick import dataclass
from reverie.settings import Settings

if TYPE_CHECKING:
    from reverie.memory.gate.forgotten import Forgotten
    from reverie.memory.gate.inbox import MemoryInbox
    from reverie.memory.gate.marks import Marks
    from reverie.memory.gate.write_gate import Refusal, WriteGate

Report = Callable[["Refusal"], None]


class MemoryOff(ReverieError):
    """Memory is switched off, and the request needs it."""


class ProjectGate:
    """The write gate of one project's memory: knows its instruction files and its inbox."""

    def __init__(self, directory: MemoryPlace, places: Places, settings: Settings, report: Report | None) -> None:
        self._root = directory.directory
        self._places = places
        self._settings = settings
        self._report = report

    def __call__(self, write: ProposedWrite) -> Decision:
        """Decides how a write ends, or raises `Refused`."""
        return self._gate(write)

    def warnings(self, write: ProposedWrite) -> list[str]:
        """What the user who writes should know although it is saved."""
        return self._gate.warnings(write)

    @property
    def refused(self) -> Mapping[str, int]:
        """How often each kind of refusal happened in this process."""
        return {kind: times for kind, times in self._gate.refused.items()}  # noqa: C416  widens the key's type

    @cached_property
    def marks(self) -> Marks:
        """How far each statement is trusted."""
        from reverie.memory.gate.marks import Marks

        return Marks(self._root)

    @cached_property
    def inbox(self) -> MemoryInbox:
        from reverie.memory.gate.inbox import MemoryInbox

        return MemoryInbox(self._root)

    @cached_property
    def _gate(self) -> WriteGate:
        from reverie.memory.gate.write_gate import WriteGate

        return WriteGate(
            self._root,
            instructions=self._instructions,
            inbox=self.inbox,
            report=self._report,
            forgotten=self._forgotten,
        )

    def _forgotten(self) -> list[Forgotten]:
        from reverie.memory.gate.forgotten import list_forgotten

        return list_forgotten(MemoryDirectory.open(self._root, gate=self))

    def _instructions(self) -> dict[str, str]:
        from reverie.instructions import load_instructions

        return {str(file.path): file.text for file in load_instructions(self._places, self._settings).files}


@dataclass(frozen=True, slots=True)
class OpenedMemory:
    """A project's memory, ready to be read and written."""

    switch: MemorySwitch
    place: MemoryPlace
    gate: ProjectGate
    directory: MemoryDirectory
    settings: Settings = field(repr=False)
    places: Places = field(repr=False)

    @property
    def inbox(self) -> MemoryInbox:
        return self.gate.inbox

    def require_on(self, what: str) -> None:
        """Raises `MemoryOff` with the rule if memory is switched off. `what` says what is not done."""
        if not self.switch.on:
            raise MemoryOff(
                f"Memory is off ({self.switch.rule}), so {what}; `reverie memory list` still shows what is there."
            )


def log_refusals(places: Places) -> Report:
    """A `report` for `open_memory`: the kind of each refusal goes to the background log, never the text."""

    def report(refusal: Refusal) -> None:
        from reverie.runtime.background_log import BackgroundLog

        BackgroundLog(places.background_log).write(
            "memory_refused", refused=refusal.kind, writer=refusal.writer.value, detail=refusal.detail
        )

    return report


def open_memory(settings: Settings, places: Places, *, report: Report | None = None) -> OpenedMemory:
    """The memory of `places.cwd`, on or off. `report` receives every write that the gate refuses."""
    place = memory_place(places, settings, check_memory_root)
    gate = ProjectGate(place, places, settings, report)
    return OpenedMemory(
        memory_switch(settings), place, gate, MemoryDirectory.open(place, gate=gate), settings=settings, places=places
    )
