"""The agent that dreams: a fork of the conversation or a fresh one, whose every tool call is mapped to a copy.

It speaks of the real paths and never touches them: Read, Grep, Glob, Write and Edit go through the path mapping, a
shell command is rewritten before it runs and its output afterwards, and each write passes the write gate on its way
into the copy. It lands nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from reverie.errors import ReverieError
from reverie.events import Event, RoundFinished, TextStreamed, ToolStarted
from reverie.layers.base import Fork, ForkResult
from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.phases import system_prompt
from reverie.layers.l6_dreaming.shell_map import NotMapped, ShellMap
from reverie.permissions.rules import Decision, NotReadOnly, ToolCall
from reverie.tools.base import Keeper, Tool, ToolContext, ToolOutput
from reverie.tools.registry import list_schemas
from reverie.types import JsonObject, Purpose

T = TypeVar("T")

TOOLS: Final = ("Read", "Grep", "Glob", "Bash", "Edit", "Write")
"""What a fresh dreamer is given; a fork keeps its parent's tools, which are denied by permission."""
LAST_TURNS: Final = 30
MOST_LINES: Final = 50
"""Of transcripts, that are shown at once."""
MOST_CHARACTERS: Final = 18_000
"""Of all these lines: a record of a transcript may hold a whole file, and what is larger goes to disk unread."""
_TRANSCRIPT: Final = ".jsonl"


@dataclass(slots=True)
class DreamProgress:
    """A dream as it stands: what whoever watches is shown."""

    phase: str = "starting"
    """`starting`, then `updating` from the first write on."""
    turns: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_TURNS))
    """What it said and called, the last thirty rounds."""
    tools: int = 0
    touched: dict[str, None] = field(default_factory=dict[str, None])
    """Files it wrote, in order."""

    def line(self) -> str:
        """All of it on one line."""
        files = f"; {', '.join(self.touched)}" if self.touched else ""
        last = f"; {self.turns[-1]}" if self.turns else ""
        return f"{self.phase}: {self.tools} tool calls{files}{last}"

    def to_json(self) -> JsonObject:
        return {
            "phase": self.phase,
            "tools": self.tools,
            "turns": list(self.turns),
            "touched": list(self.touched),
        }


class Wrapped:
    """A tool of the session for a dream in it: the same to the model, and run with care."""

    def __init__(self, inner: Tool) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def schema(self) -> JsonObject:
        return self._inner.schema

    def is_read_only(self, given: JsonObject) -> bool:
        return self._inner.is_read_only(given)


class MappedBash(Wrapped):
    """Bash, run on the copy."""

    def __init__(self, inner: Tool, copy: MemoryCopy, home: Path) -> None:
        super().__init__(inner)
        self._copy = copy
        self._home = home

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        paths = ShellMap(self._copy.root, self._copy.folder, context.cwd, self._home)
        try:
            command = paths.command(str(given["command"]))
        except (NotMapped, NotReadOnly) as refusal:
            return ToolOutput(str(refusal), is_error=True)
        output = await self._inner.run({**given, "command": command}, context)
        if not isinstance(output.content, str):
            return output
        shown = self._copy.shown(output.content)
        return replace(output, content=narrow(shown) if _TRANSCRIPT in command else shown)


class NarrowGrep(Wrapped):
    """Grep: of matches in transcripts the last fifty, each within bounds."""

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        means_them = _TRANSCRIPT in f"{given.get('path')} {given.get('glob')}"
        # The last matches are wanted, and the tool would stop at the first ones.
        output = await self._inner.run({"head_limit": 0, **given} if means_them else given, context)
        if not isinstance(output.content, str) or not (means_them or f"{_TRANSCRIPT}:" in output.content):
            return output
        return replace(output, content=narrow(output.content))


def narrow(text: str) -> str:
    """What a look into transcripts may show: the last fifty lines, of long ones the beginning."""
    lines = text.splitlines()
    last = lines[-MOST_LINES:]
    room = MOST_CHARACTERS // max(1, len(last))
    shown = [line if len(line) <= room else f"{line[:room]}… ({len(line):,} characters)" for line in last]
    if shown == lines:
        return text
    left_out = f"(the last {MOST_LINES} of {len(lines):,} lines; search for something narrower)"
    return "\n".join([*([left_out] if len(last) < len(lines) else []), *shown])


def mapped_tools(tools: Mapping[str, Tool], copy: MemoryCopy, home: Path) -> dict[str, Tool]:
    """The tools of a session for a dream in it."""

    def mapped(name: str, tool: Tool) -> Tool:
        match name:
            case "Bash":
                return MappedBash(tool, copy, home)
            case "Grep":
                return NarrowGrep(tool)
            case _:
                return tool

    return {name: mapped(name, tool) for name, tool in tools.items()}


def fresh(fork: Fork, model: str = "") -> Fork:
    """A dreamer with a conversation of its own: its own system prompt, and only the tools that may be used."""
    return fork.afresh(system_prompt(), TOOLS, model=model)


def own_tokens(fork: Fork) -> int:
    """About how large the prefix of a fresh dreamer is, in tokens."""
    schemas = list_schemas([tool for name, tool in fork.tools.items() if name in TOOLS])
    return len(system_prompt().encode()) // 4 + len(json.dumps(schemas).encode()) // 2


async def run_dream(
    fork: Fork,
    directive: str,
    *,
    copy: MemoryCopy,
    home: Path,
    permission: Callable[[ToolCall], Awaitable[Decision]],
    keeper: Callable[[Path], Keeper | None],
    max_rounds: int,
    kind: str,
    progress: DreamProgress,
    on_progress: Callable[[], None],
) -> ForkResult:
    """Runs the dreamer to its end on the copy. Raises what a model raises; what it may not do it is told."""
    said: list[str] = []

    def heard(event: Event) -> None:
        match event:
            case TextStreamed():
                said.append(event.text)
            case RoundFinished():
                progress.turns.append(_turn("".join(said)))
                said.clear()
            case ToolStarted():
                progress.tools += 1
                progress.turns[-1] = _turn(f"{progress.turns[-1]} [{event.name}]")
                on_progress()
            case _:
                pass

    return await fork.run(
        directive,
        purpose=Purpose.DREAM,
        permission=permission,
        max_rounds=max_rounds,
        tools=mapped_tools(fork.tools, copy, home),
        map_path=copy.map_path,
        keeper=keeper,
        emit=heard,
        kind=kind,
    )


def _turn(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"


async def to_the_end(work: Callable[[], T]) -> T:
    """Runs the landing in a thread. A kill that comes while it runs is too late: it is waited for, and counts."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if running.cancelled():
            raise
        return running.result()


class DreamFailed(ReverieError):
    """A dream came to no result; the sentence says why."""
