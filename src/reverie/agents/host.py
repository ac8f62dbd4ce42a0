"""What the spawner needs of the session around it: limits, kinds, contexts, permissions, and somebody to tell.

A protocol and its data: agents stand below the session and never import it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reverie.agents.definition import AgentDefinition, Definitions
from reverie.agents.fork import ForkPoint
from reverie.agents.messages.roster import Member, AgentMode
from reverie.agents.companion import AgentCompanion
from reverie.agents.worktree import Worktree
from reverie.runtime.tasks import TaskHandle
from reverie.storage.transcript.session_log import SessionLog
from reverie.tools.base import AgentOrder, PermissionFunction, ToolOutput
from reverie.types import ToolUseBlock


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The limits as they hold now; see the settings `agents`."""

    max_rounds: int = 200
    depth: int = 3
    at_once: int = 10
    lead_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ContextOrder:
    """What an agent with a context of its own is made from."""

    id: str
    mode: AgentMode
    kind: AgentDefinition | None
    parent: AgentCompanion
    model: str
    cwd: Path


class SpawnerHost(Protocol):
    """What only the session can make or say."""

    def kinds(self) -> Definitions: ...

    def limits(self) -> AgentLimits: ...

    def is_on(self, flag: str) -> bool: ...

    def new_context(self, wanted: ContextOrder) -> ForkPoint:
        """The beginning of a conversation of its own. Raises UserError, for instance for an unknown model."""
        ...

    async def close_context(self, point: ForkPoint) -> None:
        """An agent made by `fresh` is over."""
        ...

    def permission(self, member: Member, kind: AgentDefinition | None, *, background: bool) -> PermissionFunction: ...

    async def keep(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        """Layer 1 for a result that comes later."""
        ...

    async def make_worktree(self, name: str, cwd: Path) -> Worktree: ...

    async def run_teammate(
        self, member: Member, order: AgentOrder, kind: AgentDefinition, cwd: Path, handle: TaskHandle
    ) -> str:
        """Runs a teammate in a session of its own until it is told to end; what it said last."""
        ...

    def may_end(self, member: Member) -> Callable[[str], Awaitable[str | None]]:
        """What is asked before this agent ends, given its answer; a reason means that it must go on."""
        ...

    def message_arrived(self, to: Member, sender: str) -> None:
        """A message was put into somebody's inbox by one who was started here."""
        ...

    async def watch(self, member: Member, log: SessionLog, tell: Callable[[str], None]) -> None:
        """Watches a running agent and says now and then what it is at; ends when it is cancelled."""
        ...
