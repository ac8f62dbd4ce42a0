"""What the spawner needs from the session: limits, kinds, contexts, permissions and notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

from reverie.agents.companion import AgentCompanion
from reverie.agents.definition import AgentDefinition, Definitions
from reverie.agents.fork import ForkPoint
from reverie.agents.messages.roster import AgentMode, Member
from reverie.agents.worktree import Worktree
from reverie.quick import dataclass
from reverie.runtime.tasks import TaskHandle
from reverie.storage.transcript.session_log import SessionLog
from reverie.tools.base import AgentOrder, PermissionFunction, ToolOutput
from reverie.types import TextBlock, ToolUseBlock


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The current limits; see the settings `agents`."""

    max_rounds: int = 200
    depth: int = 3
    at_once: int = 10
    lead_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ContextOrder:
    """The description of an agent that needs its own context."""

    id: str
    mode: AgentMode
    kind: AgentDefinition | None
    parent: AgentCompanion
    model: str
    cwd: Path


class SpawnerHost(Protocol):
    """What only the session can do."""

    def kinds(self) -> Definitions: ...

    def limits(self) -> AgentLimits: ...

    def is_on(self, flag: str) -> bool: ...

    def new_context(self, wanted: ContextOrder) -> ForkPoint:
        """Starts a separate conversation. Raises UserError, for instance for an unknown model."""
        ...

    async def close_context(self, point: ForkPoint) -> None: ...

    def permission(self, member: Member, kind: AgentDefinition | None, *, background: bool) -> PermissionFunction: ...

    async def keep(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput: ...

    async def make_worktree(self, name: str, cwd: Path) -> Worktree: ...

    async def run_teammate(
        self, member: Member, order: AgentOrder, kind: AgentDefinition, cwd: Path, handle: TaskHandle
    ) -> str:
        """Runs a teammate in its own session until it is asked to end. Returns its last answer."""
        ...

    async def agent_started(self, member: Member) -> Sequence[TextBlock]:
        """Called before an agent begins. Returns what it is told besides its task."""
        ...

    def may_end(self, member: Member) -> Callable[[str], Awaitable[str | None]]:
        """Returns the check before this agent ends: given its answer, it returns a reason to go on, or None."""
        ...

    def message_arrived(self, to: Member, sender: str) -> None: ...

    async def watch(self, member: Member, log: SessionLog, tell: Callable[[str], None]) -> None: ...
