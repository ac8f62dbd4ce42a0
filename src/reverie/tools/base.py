"""What a tool is, and what it is given: one protocol and one context.

A tool never decides whether it may run (the permission function does), never opens a path it was not mapped to, and
never raises for a model's mistake: it returns an error result with a sentence the model can act on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from reverie.permissions.rules import Decision, ToolCall
from reverie.prompts import render
from reverie.types import Block, Json, JsonObject, Origin, Purpose


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call. The main agent has no `agent_id`."""

    purpose: Purpose = Purpose.MAIN
    agent_id: str | None = None

    @property
    def is_main(self) -> bool:
        return self.purpose is Purpose.MAIN and self.agent_id is None


@dataclass(frozen=True, slots=True)
class SeenFile:
    """What a Read saw: enough to tell whether the file changed since, and to restore it after a compaction."""

    mtime_ns: int
    size: int
    digest: str
    partial: bool
    order: int


class ReadCache:
    """Files this conversation has read or written, newest last. A fork gets a copy."""

    def __init__(self, seen: dict[Path, SeenFile] | None = None) -> None:
        self._seen = dict(seen or {})

    def note(self, path: Path, seen: SeenFile) -> None:
        self._seen.pop(path, None)
        self._seen[path] = seen

    def forget(self, path: Path) -> None:
        self._seen.pop(path, None)

    def get(self, path: Path) -> SeenFile | None:
        return self._seen.get(path)

    def newest(self) -> list[Path]:
        return list(reversed(self._seen))

    def next_order(self) -> int:
        return 1 + max((seen.order for seen in self._seen.values()), default=0)

    def copy(self) -> ReadCache:
        return ReadCache(self._seen)


@dataclass(frozen=True, slots=True)
class AgentOrder:
    """One call of the Agent tool. What is None was left to whoever starts the agent."""

    description: str
    """What it is for, in a few words a person reads."""
    prompt: str
    kind: str | None = None
    """One of the kinds that are defined; None: whatever the session makes of an agent without a kind."""
    name: str | None = None
    background: bool | None = None
    isolated: bool = False
    """In a work tree of its own."""
    teammate: bool = False
    model: str | None = None


PermissionFunction: TypeAlias = Callable[[ToolCall], Awaitable[Decision]]
PathMapping: TypeAlias = Callable[[Path], Path]
Keeper: TypeAlias = Callable[[bytes, bytes | None], bool]
"""Puts new content in a file's place by rules of its own, given what stood there (None: nothing); False if the file is
gone now. Raises to refuse."""


def same_path(path: Path) -> Path:
    return path


def _no_keeper(_path: Path) -> Keeper | None:
    return None


@dataclass(slots=True)
class ToolContext:
    """All a tool may know of the world. `map_path` lets a layer redirect reads and writes to a copy."""

    cwd: Path
    caller: Caller
    permission: PermissionFunction
    read_cache: ReadCache
    keep_dir: Path
    map_path: PathMapping = same_path
    keeper: Callable[[Path], Keeper | None] = _no_keeper
    """Who else must write this file (given its unmapped path): the memory directory keeps its own."""
    progress: Callable[[str], None] = field(default=lambda _text: None)
    spawn: Callable[[AgentOrder], Awaitable[ToolOutput]] | None = None
    """Starts another agent for whoever this context is; None where there are none."""
    post: Callable[[Caller, str, str, str], Awaitable[str]] | None = None
    """Sends a letter (from whom, to whom, text, summary) and says what became of it; None where nobody can be written
    to. Raises a ReverieError that names who there is."""

    def resolve(self, given: str) -> Path:
        """The absolute path a model meant, before mapping; `~` and relative paths are understood."""
        path = Path(given).expanduser()
        return path if path.is_absolute() else self.cwd / path


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What came of a call. `structured` is kept in the transcript (`toolUseResult`) and not sent to the model."""

    content: str | tuple[Block, ...]
    is_error: bool = False
    structured: Json = None
    origin: Origin = Origin.TOOL
    ran: bool = True
    """False: the call was refused before the tool was started."""
    kept_bytes: int = 0
    """How large the whole is that was put on disk, where `content` only stands for it."""


class Tool(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> JsonObject:
        """`{"name", "description", "input_schema"}` as the API wants it; the same bytes every time."""
        ...

    def is_read_only(self, given: JsonObject) -> bool:
        """Whether this call changes nothing, so that it may run beside others."""
        ...

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput: ...


class BuiltIn:
    """What the built-in tools share: the name of the class, and a schema made of what each says of itself."""

    def __init_subclass__(
        cls, *, prompt: str, properties: JsonObject, required: Sequence[str], reads_only: bool = False
    ) -> None:
        """`prompt` is the file of its description; `reads_only`: no call of it changes anything."""
        cls._prompt, cls._reads_only = prompt, reads_only
        cls._input = {
            "type": "object",
            "properties": properties,
            "required": [*required],
            "additionalProperties": False,
        }

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def schema(self) -> JsonObject:
        described = render("reverie.tools", self._prompt)
        return {"name": self.name, "description": described, "input_schema": self._input}

    def is_read_only(self, given: JsonObject) -> bool:
        del given
        return self._reads_only
