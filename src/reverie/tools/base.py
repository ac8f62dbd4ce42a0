"""The protocol of a tool, and the context that a tool gets.

The permission function decides whether a tool may run. A tool opens only mapped paths, and never raises because of a
mistake of the model: it returns an error result that says what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol, TypeAlias, cast, runtime_checkable

from reverie.errors import ReverieError
from reverie.parsing import load_json
from reverie.permissions.rules import Decision, Profile, ToolCall, Widening
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.types import Block, Json, JsonObject, Origin, Purpose, ToolUseBlock

CALL_TOOL = "CallTool"
"""The tool with which a model calls tools that are not in its request."""
BEHIND = "mcp__"
"""The names of such tools begin with this."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent that makes a call. The main agent has no `agent_id`."""

    purpose: Purpose = Purpose.MAIN
    agent_id: str | None = None

    @property
    def is_main(self) -> bool:
        return self.purpose is Purpose.MAIN and self.agent_id is None


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as a Read saw it: enough to notice a later change, and to restore it after a compaction."""

    mtime_ns: int
    size: int
    digest: str
    partial: bool
    order: int


class ReadCache:
    """The files that this conversation has read or written, newest last. A fork gets a copy."""

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
    """One call of the Agent tool. The session chooses what is None."""

    description: str
    """Its purpose, in a few words for the user."""
    prompt: str
    kind: str | None = None
    """The name of a defined kind of agent."""
    name: str | None = None
    background: bool | None = None
    isolated: bool = False
    """Whether it works in its own git worktree."""
    teammate: bool = False
    model: str | None = None


PermissionFunction: TypeAlias = Callable[[ToolCall], Awaitable[Decision]]
PathMapping: TypeAlias = Callable[[Path], Path]


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a file that has its own rules."""

    data: bytes | None
    """What the file holds now; None: there is no file."""
    note: str = ""
    """What the model should know, if it is not what was asked for."""


Keeper: TypeAlias = Callable[[bytes, bytes | None], Kept]
"""Writes a file by its own rules: takes the new content and the old one (None: no file). Raises to refuse."""


class EditorFiles(Protocol):
    """The files that the user has open in an editor, which may have changes that are not saved."""

    async def text_of(self, path: Path) -> str | None:
        """Returns the text that the editor shows; None if it has none or does not answer."""
        ...

    async def write(self, path: Path, text: str) -> None:
        """Puts a text into the editor, which saves it. Raises UserError if it does not."""
        ...


@dataclass(slots=True)
class ToolContext:
    """Everything that a tool may use. `map_path` lets a layer redirect reads and writes to a copy."""

    cwd: Path
    caller: Caller
    permission: PermissionFunction
    read_cache: ReadCache
    keep_dir: Path
    map_path: PathMapping = field(default=lambda path: path)
    keeper: Callable[[Path], Keeper | None] = field(default=lambda _path: None)
    """Returns who must write this file (by its unmapped path), if not the tool: memories have their own rules."""
    progress: Callable[[str], None] = field(default=lambda _text: None)
    spawn: Callable[[AgentOrder], Awaitable[ToolOutput]] | None = None
    """Starts another agent; None where agents cannot be started."""
    post: Callable[[Caller, str, str, str], Awaitable[str]] | None = None
    """Sends a message (sender, recipient, text, summary) and reports the outcome; None where there are no other agents.
    For an unknown recipient it raises a ReverieError that lists the known ones."""
    profile: Profile | None = None
    """The rights with which a command runs in the sandbox; None: with all that the user has."""
    sandboxes: Sandboxes = field(default_factory=Sandboxes)
    shown: tuple[Path, ...] = ()
    """Folders of Reverie that commands in the sandbox see: the memory."""
    replaced: tuple[tuple[Path, Path], ...] = ()
    """Folders that such commands see instead of others: (shown, in this place). Without namespaces they see neither."""
    editor: EditorFiles | None = None
    """What the user has open, for the tools that read and change one file. Memories never go this way."""

    def resolve(self, given: str) -> Path:
        """Returns the absolute path that a model means, before mapping. Accepts `~` and relative paths."""
        path = Path(given).expanduser()
        return path if path.is_absolute() else self.cwd / path


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a call. `structured` goes to the transcript (`toolUseResult`), but not to the model."""

    content: str | tuple[Block, ...]
    is_error: bool = False
    structured: Json = None
    origin: Origin = Origin.TOOL
    ran: bool = True
    """False: the call was refused before the tool started."""
    kept_bytes: int = 0
    """The size of the whole result, if it is kept on disk and `content` is only a preview."""
    kept_in: Path | None = None
    """The file that the tool itself put the whole result in."""
    widening: Widening | None = None
    """What the sandbox refused, so that the result may be incomplete."""
    how: str = ""
    """How it may run, in a word for the user: sandbox, asked."""
    seconds: float = 0.0
    """How long the tool ran, without the time for permission."""


class Tool(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> JsonObject:
        """`{"name", "description", "input_schema"}` in the form of the API; always the same bytes."""
        ...

    def is_read_only(self, given: JsonObject) -> bool:
        """Whether this call changes nothing, so that it may run in parallel with others."""
        ...

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput: ...


@runtime_checkable
class ToolsBehind(Protocol):
    """A tool that stands for others, which are not in the request."""

    def find(self, name: str) -> Tool | None: ...


def unwrap_call(call: ToolUseBlock) -> ToolUseBlock:
    """Returns a call of CallTool as the call that it means; any other call unchanged."""
    whole: Json = call.input
    if call.name != CALL_TOOL or not isinstance(whole, dict):
        return call
    given = cast("JsonObject", whole)
    tool: Json = given.get("tool")
    inner: Json = given.get("input")
    if isinstance(inner, str):  # some models send it as text
        try:
            inner = load_json(inner) if inner.strip() else {}
        except ValueError:
            return call
    is_one = isinstance(tool, str) and tool.startswith(BEHIND)
    return replace(call, name=tool, input={} if inner is None else inner) if is_one else call


class BuiltIn:
    """The common part of the built-in tools: name, schema, and error results for refusals."""

    def __init_subclass__(
        cls, *, prompt: str, properties: JsonObject, required: Sequence[str], reads_only: bool = False
    ) -> None:
        """`prompt` is the file with the description; `reads_only`: its calls never change anything."""
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

    def must_fail(self, given: JsonObject, context: ToolContext) -> str | None:
        """Returns the error that this call would certainly end with, without running it; None if that is not known."""
        try:
            self._foresee(given, context)
        except ReverieError as error:
            return str(error)
        return None

    def _foresee(self, given: JsonObject, context: ToolContext) -> None:
        """Raises the error that the call would end with, if it can be seen before; changes nothing."""

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            return await self._run(given, context)
        except ReverieError as error:
            return ToolOutput(str(error), is_error=True)

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        raise NotImplementedError
