"""The agent that dreams: a fork of the conversation or a fresh one, its price, its prompts, and its tools on a copy.

The agent uses the real paths and never touches them: file tools go through the path mapping, a shell command sees the
copy in place of the memory, and each write passes the write gate before it is in the copy.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, TypeVar

from reverie.errors import ReverieError
from reverie.events import Event, RoundFinished, TextStreamed, ToolStarted
from reverie.layers.base import Fork, ForkResult
from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.sources import days_written, list_days
from reverie.memory.daily_log import list_logs
from reverie.memory.directory import MemoryDirectory
from reverie.memory.index import LINE_CHARACTERS, MAX_BYTES, MAX_LINES
from reverie.memory.listing import list_memories
from reverie.memory.scan import scan
from reverie.models.catalogue import ModelFacts
from reverie.moments import SKEW_S, parse_time, to_datetime
from reverie.permissions.rules import Decision, ToolCall
from reverie.permissions.shell_commands import all_commands
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.view import View
from reverie.text.folding import visible
from reverie.tools.base import Keeper, Tool, ToolContext, ToolOutput
from reverie.tools.registry import list_schemas
from reverie.types import JsonObject, Purpose

T = TypeVar("T")

TOOLS: Final = ("Read", "Grep", "Glob", "Bash", "Edit", "Write")
"""The tools of a fresh dreamer. A fork keeps its parent's tools; its permission denies the others."""
LAST_TURNS: Final = 30
MOST_LINES: Final = 50
"""Lines of transcripts that are shown at once."""
MOST_CHARACTERS: Final = 18_000
"""Characters of all these lines: one record of a transcript may hold a whole file."""
_TRANSCRIPT: Final = ".jsonl"
_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]+")


@dataclass(slots=True)
class DreamProgress:
    """The state of a dream, for whoever watches it."""

    phase: str = "starting"
    """`starting`, then `updating` from the first write on."""
    turns: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_TURNS))
    """What it said and called in the last thirty rounds."""
    tools: int = 0
    touched: dict[str, None] = field(default_factory=dict[str, None])

    def line(self) -> str:
        """Returns all of it on one line."""
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


class WrappedTool:
    """A tool of the session for a dream: looks the same to the model."""

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


class DreamBash(WrappedTool):
    """Bash that sees the copy in place of the memory. Where that is not possible, it does not see the memory."""

    def __init__(self, inner: Tool, copy: MemoryCopy, transcripts: Sequence[Path]) -> None:
        super().__init__(inner)
        self._copy = copy
        self._folders = tuple(dict.fromkeys(path.parent for path in transcripts))

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        layers = await asyncio.to_thread(lambda: context.sandboxes.layers)
        if not layers.namespaces and self._names_memory(str(given["command"]), context.cwd):
            return ToolOutput(
                f"A command cannot read {self._copy.root} here: use Read, Grep and Glob for it.", is_error=True
            )
        shown = (*self._folders, self._copy.root) if layers.namespaces else self._folders
        where = replace(context, shown=shown, replaced=((self._copy.folder, self._copy.root),))
        output = await self._inner.run(given, where)
        if not isinstance(output.content, str) or _TRANSCRIPT not in f"{given['command']}{output.content}":
            return output
        return replace(output, content=narrow(output.content, *search_patterns(str(given["command"]))))

    def _names_memory(self, command: str, cwd: Path) -> bool:
        """Whether a word is a path inside the memory, or of a folder around it."""
        root = self._copy.root
        for word in (word for part in all_commands(command) for word in part.words if word):
            path = Path(os.path.realpath(cwd / Path(word.partition("*")[0]).expanduser()))
            if path.is_relative_to(root) or root.is_relative_to(path):
                return True
        return cwd.is_relative_to(root)


def search_patterns(command: str) -> list[str]:
    """The patterns that the searches of a command look for: those of `-e`, or the first word that is not an option."""
    patterns = list[str]()
    for program, *words in (part.words for part in all_commands(command) if part.words):
        if program in ("grep", "egrep", "rg"):
            named = [word or "" for before, word in pairwise(words) if before in ("-e", "--regexp")]
            patterns += named or [word for word in words if word and not word.startswith("-")][:1]
    return patterns


class NarrowGrep(WrappedTool):
    """Grep that shows only the last fifty matches in transcripts, each with the text around it."""

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        means_them = _TRANSCRIPT in f"{given.get('path')} {given.get('glob')}"
        # The last matches are wanted, but the tool would stop at the first ones.
        output = await self._inner.run({"head_limit": 0, **given} if means_them else given, context)
        if not isinstance(output.content, str) or not (means_them or f"{_TRANSCRIPT}:" in output.content):
            return output
        return replace(output, content=narrow(output.content, str(given.get("pattern", ""))))


def narrow(text: str, *patterns: str) -> str:
    """Returns the last fifty lines of a search in transcripts; of long ones the text around a match of a pattern."""
    lines = text.splitlines()
    last = lines[-MOST_LINES:]
    room = MOST_CHARACTERS // max(1, len(last))
    # The longest plain text of a pattern is enough to find the place; the shorter ones are for alternatives.
    plain = sorted((piece.lower() for one in patterns for piece in _PLAIN.findall(one)), key=len, reverse=True)
    shown = [line if len(line) <= room else _around(line, plain, room) for line in last]
    if shown == lines:
        return text
    left_out = f"(the last {MOST_LINES} of {len(lines):,} lines; search for something narrower)"
    return "\n".join([*([left_out] if len(last) < len(lines) else []), *shown])


def _around(line: str, plain: Sequence[str], room: int) -> str:
    """Returns the part of a line around the first of these texts that it has, after the name of its file."""
    lower = line.lower()
    at = next((lower.find(one) for one in plain if one in lower), 0)
    if at <= room // 2:
        return f"{line[:room]}… ({len(line):,} characters)"
    name = line.find(_TRANSCRIPT, 0, 400)
    where = f"{line[: name + len(_TRANSCRIPT)]}: …" if name >= 0 else "…"
    start = at - room // 4
    return f"{where}{line[start : start + max(100, room - len(where))]}… ({len(line):,} characters)"


def map_tools(tools: Mapping[str, Tool], copy: MemoryCopy, transcripts: Sequence[Path]) -> dict[str, Tool]:
    """Returns the tools of a session for a dream."""
    found = dict(tools)
    if "Bash" in found:
        found["Bash"] = DreamBash(found["Bash"], copy, transcripts)
    if "Grep" in found:
        found["Grep"] = NarrowGrep(found["Grep"])
    return found


def fresh_dreamer(fork: Fork, model: str = "") -> Fork:
    """Returns a dreamer with its own conversation: its own system prompt, and only the tools that it may use."""
    return fork.afresh(system_prompt(), TOOLS, model=model)


def own_tokens(fork: Fork) -> int:
    """Returns about how many tokens the prefix of a fresh dreamer has."""
    schemas = list_schemas([tool for name, tool in fork.tools.items() if name in TOOLS])
    return len(system_prompt().encode()) // 4 + len(json.dumps(schemas).encode()) // 2


async def run_dream(
    fork: Fork,
    directive: str,
    *,
    copy: MemoryCopy,
    transcripts: Sequence[Path],
    permission: Callable[[ToolCall], Awaitable[Decision]],
    keeper: Callable[[Path], Keeper | None],
    max_rounds: int,
    kind: str,
    progress: DreamProgress,
    on_progress: Callable[[], None],
) -> ForkResult:
    """Runs the dreamer to its end on the copy. Raises what the model raises; refusals are tool results."""
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
        tools=map_tools(fork.tools, copy, transcripts),
        map_path=copy.map_path,
        keeper=keeper,
        emit=heard,
        kind=kind,
    )


def _turn(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"


async def to_the_end(work: Callable[[], T]) -> T:
    """Runs the landing in a thread. A kill during it is too late: the landing is finished and counts."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if running.cancelled():
            raise
        return running.result()


class DreamFailed(ReverieError):
    """A dream had no result; the sentence says why."""


_PACKAGE: Final = "reverie.layers.l6_dreaming"
_MOST_TRANSCRIPTS: Final = 40
_MOST_LOGS: Final = 60


def system_prompt() -> str:
    """Returns the system prompt of a dream that is not a fork."""
    return render(_PACKAGE, "system.md")


def directive(
    directory: MemoryDirectory,
    *,
    today: date,
    transcripts: Sequence[Path],
    said: str,
    undistilled: Sequence[Path] = (),
    here: bool = False,
    guidance: str = "",
) -> str:
    """Returns the directive. `said`: what the user typed in other sessions; `undistilled`: logs that are its main
    source; `here`: it also sees a conversation; `guidance`: what whoever asked for the dream cares about."""
    memory = directory.root
    found = scan(memory, newest=None)
    days = days_written(directory, (entry.name for entry in found.entries))
    files = [line for entry in found.entries for line in (list_memories([entry]), *list_days(days.get(entry.name, {})))]
    around = [said, _transcripts(transcripts)]
    if undistilled:
        around.insert(0, render(_PACKAGE, "distil.md", {"logs": _list_paths(undistilled, _MOST_LOGS)}))
    elif all_logs := list_logs(memory):
        newest = all_logs[-_MOST_LOGS:]
        around.insert(0, f"Daily logs, oldest first:\n{_list_paths(newest, _MOST_LOGS)}")
    if guidance.strip():
        around.append(
            render(_PACKAGE, "guidance.md", {"guidance": visible(guidance).replace("</guidance>", "< /guidance>")})
        )
    if here:
        around.append("The conversation above is the current session: it is not what this is about.")
    return render(
        _PACKAGE,
        "dream.md",
        {
            "memory": str(memory),
            "today": f"{today:%A, %Y-%m-%d}",
            "files": "\n".join(files) or "(none yet)",
            "around": "\n\n".join(filter(None, around)),
            "line": str(LINE_CHARACTERS),
            "lines": f"{MAX_LINES:,}",
            "bytes": f"{MAX_BYTES:,}",
        },
    )


def _transcripts(paths: Sequence[Path]) -> str:
    if not paths:
        return ""
    lines = [f"- {path} ({_format_time(path)})" for path in paths[:_MOST_TRANSCRIPTS]]
    more = [f"- and {len(paths) - _MOST_TRANSCRIPTS} older ones"] if len(paths) > _MOST_TRANSCRIPTS else []
    head = "The transcripts of these sessions, newest first, if you need what was said around a message:"
    return "\n".join([head, *lines, *more])


def _list_paths(paths: Sequence[Path], most: int) -> str:
    return "\n".join(f"- {path}" for path in paths[:most])


def _format_time(path: Path) -> str:
    try:
        return f"{to_datetime(path.stat().st_mtime).astimezone():%A, %Y-%m-%d}"
    except OSError:
        return "gone"


Way = Literal["fork", "fresh"]

USUAL_ROUNDS = 12
"""Rounds of a dream if there was none yet."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the prefix of a dream costs in all its rounds, both ways, as tokens of fresh input."""

    fork: float
    fresh: float
    rounds: int

    @property
    def way(self) -> Way:
        return "fork" if self.fork <= self.fresh else "fresh"

    def told(self) -> str:
        return f"about {self.fork:,.0f} tokens as a fork, {self.fresh:,.0f} fresh, over {self.rounds} rounds"


def estimate(
    facts: ModelFacts,
    *,
    conversation: int,
    own: int,
    cached: bool,
    markers: bool | None = None,
    rounds: int = USUAL_ROUNDS,
) -> Estimate:
    """Estimates both ways. `conversation`: tokens of a fork's prefix, `own`: of a fresh one; `cached`: the fork's is
    cached now; `markers`: whether the endpoint takes cache markers, if it differs from the catalogue."""
    marked = facts.cache_markers if markers is None else markers

    def prefix(tokens: int, *, is_cached: bool) -> float:
        if not (marked or facts.automatic_cache) or tokens < facts.cache_minimum:
            return float(tokens * rounds)
        first = facts.cache_read if is_cached else facts.cache_write_5m if marked else 1.0
        return tokens * (first + (rounds - 1) * facts.cache_read)

    return Estimate(prefix(conversation, is_cached=cached), prefix(own, is_cached=False), rounds)


def expected_rounds(last: int) -> int:
    """Returns the expected rounds after a dream of `last` rounds (0: none yet)."""
    return max(USUAL_ROUNDS // 2, last) if last else USUAL_ROUNDS


def is_cached(view: View, now: datetime) -> bool:
    """Returns whether the server still has the prefix of this conversation."""
    last = next((entry for entry in reversed(view.entries) if entry.message.role == "assistant"), None)
    answered = parse_time(last.timestamp) if last is not None else None
    if view.header is None or answered is None:
        return False
    passed = (now - answered).total_seconds()
    return -SKEW_S <= passed < (3_600 if view.header.ttl == "1h" else 300)
