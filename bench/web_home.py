"""A large home for measurements of the web view: many memories, many sessions and one very long one.

Files are written as such, not through a session or the write gate: 100,000 memories take seconds instead of hours.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reverie.paths import slug
from reverie.storage.transcript.records import CacheBreak, Clears, CompactBoundary, Payload, SessionHeader, to_data
from reverie.storage.transcript.session_log import timestamp
from reverie.types import JsonObject

LONG = str(uuid.UUID(int=5_000))
"""The id of the long session."""
_MODEL = "claude-sonnet-4-5"
_BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_ROUNDS_PER_WINDOW = 160
_SYSTEM = 9_000
_KINDS = ("user", "feedback", "project", "reference")
_CALLS = (("Read", "file_path"), ("Bash", "command"), ("Grep", "pattern"), ("Read", "file_path"))
_TOOLS: tuple[JsonObject, ...] = tuple(
    {"name": name, "description": "A tool. " * 60, "input_schema": {"type": "object"}}
    for name in ("Read", "Bash", "Grep", "Edit")
)
_QUESTIONS = (
    "Find out why the harbour lamp goes dark at night.",
    "What do the logs of the crane say?",
    "Compare the tide tables of both piers.",
    "Which ropes were changed last winter?",
)
_WORDS = ("harbour", "ledger", "tide", "engine", "pier", "lamp", "cargo", "signal", "winter", "crane", "rope", "chart")


def write_memories(folder: Path, count: int) -> None:
    """Writes topic files as memories are kept, and an index of the first ones."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = list[str]()
    for number in range(count):
        first, second = _WORDS[number % 12], _WORDS[number // 12 % 12]
        name = f"{first}_{second}_{number}.md"
        about = f"How the {first} works with the {second}, case {number}"
        text = f"---\nname: {first} {second} {number}\ndescription: {about}\ntype: {_KINDS[number % 4]}\n---\n\n"
        (folder / name).write_text(
            f"{text}The {first} of the {second} has the number {number}.\n\n**Why:** it is so.\n"
        )
        if number < 100:
            lines.append(f"- [{first} {second} {number}]({name}): {about}")
    (folder / "MEMORY.md").write_text("# Memory\n\n" + "\n".join(lines) + "\n")


def write_sessions(folder: Path, cwd: Path, count: int, *, first: int = 0) -> None:
    """Writes short sessions of three rounds, the last one the newest. `first`: the number of the first one."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in range(first, first + count):
        id = str(uuid.UUID(int=1_000_000 + number))
        records = _Session(id, cwd, _BEGAN + timedelta(minutes=7 * number)).rounds(3)
        (folder / f"{id}.jsonl").write_bytes(b"".join(records))


def write_long_session(folder: Path, cwd: Path, rounds: int) -> str:
    """Writes one session with many rounds; a full window is compacted, and in the middle results are cleared."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / f"{LONG}.jsonl").open("wb") as file:
        file.writelines(_Session(LONG, cwd, _BEGAN).rounds(rounds))
    return LONG


def write_home(home: Path, cwd: Path, *, memories: int, sessions: int, rounds: int) -> str:
    """Writes all of it for one working folder; returns the id of the long session."""
    project = home / "projects" / slug(cwd)
    write_memories(project / "memory", memories)
    write_sessions(project, cwd, sessions)
    return write_long_session(project, cwd, rounds)


class _Session:
    """Writes the lines of one session, with usage as a server with a prompt cache reports it."""

    def __init__(self, id: str, cwd: Path, began: datetime) -> None:
        self._id, self._cwd, self._at = id, str(cwd), began
        self._head: str | None = None
        self._count = 0
        self._calls = list[str]()

    def rounds(self, count: int) -> Iterator[bytes]:
        prompt = cached = 0
        for number in range(count):
            place = number % _ROUNDS_PER_WINDOW
            if number and place == 0:
                yield from self._compact(prompt)
            if place == 0:
                prompt, cached, self._calls = _SYSTEM, 0, []
                header = SessionHeader(
                    _MODEL, ("You work on a harbour. " * 800,), _TOOLS, "Notes of the keeper. " * 100
                )
                yield self._decide(header)
            if place == _ROUNDS_PER_WINDOW // 2:
                cleared = self._calls[: len(self._calls) // 2]
                saved, why = 400 * len(cleared), "old results were cleared to save room"
                yield self._decide(Clears("economic", dict.fromkeys(cleared, "[Cleared to save room]"), saved))
                prompt -= saved
                lost = prompt - _SYSTEM
                yield self._decide(
                    CacheBreak("messages", why, lost, prompt, _SYSTEM, cost=lost * 3.45e-6, announcement=why)
                )
                cached = _SYSTEM
            if number % 8 == 0:
                text = _QUESTIONS[number // 8 % len(_QUESTIONS)]
                yield self._say("user", [{"type": "text", "text": text}], ["typed"])
                prompt += 30
            call = f"toolu_{self._id[:8]}_{number}"
            self._calls.append(call)
            yield self._answer(call, number, prompt, cached)
            pieces = 20 + number * 37 % 150
            cached, text = prompt, f"{number} line of the log: " + "tide and lamp, rope and crane; " * pieces
            result: JsonObject = {"type": "tool_result", "tool_use_id": call, "content": text}
            yield self._say("user", [result], ["tool"])
            prompt += 150 + 8 * pieces

    def _answer(self, call: str, number: int, prompt: int, cached: int) -> bytes:
        name, key = _CALLS[number * number % 7 % len(_CALLS)]
        usage = {
            "input_tokens": 4,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": max(0, prompt - cached),
            "output_tokens": 80 + number % 50,
        }
        content = [
            {"type": "text", "text": f"I look at part {number}. The crane is next."},
            {"type": "tool_use", "id": call, "name": name, "input": {key: f"logs/part{number}.log"}},
        ]
        fields = {"id": f"msg_{self._id[-8:]}_{number}", "type": "message", "model": _MODEL, "usage": usage}
        return self._line("assistant", {"message": {"role": "assistant", "content": content, **fields}})

    def _compact(self, before: int) -> Iterator[bytes]:
        boundary = CompactBoundary("auto", before, self._head, writer="notes")
        yield self._decide(boundary, parentUuid=None, logicalParentUuid=self._head)
        summary = "The harbour has a crane, a lamp and a ledger. " * 60
        yield self._say("user", [{"type": "text", "text": summary}], ["summary"], isCompactSummary=True)

    def _decide(self, payload: Payload, **more: object) -> bytes:
        heads = isinstance(payload, CompactBoundary | SessionHeader)
        return self._line("system", {"subtype": payload.subtype, "reverie": to_data(payload), **more}, heads=heads)

    def _say(self, role: str, content: list[JsonObject], origins: list[str], **more: object) -> bytes:
        return self._line(role, {"message": {"role": role, "content": content}, "origins": origins, **more})

    def _line(self, kind: str, more: JsonObject, *, heads: bool = True) -> bytes:
        self._count += 1
        self._at += timedelta(seconds=4)
        id = f"{self._id[:24]}{self._count:012x}"
        common = {"parentUuid": self._head, "sessionId": self._id, "cwd": self._cwd, "isSidechain": False, "uuid": id}
        line = {**common, "type": kind, "timestamp": timestamp(self._at), "schemaVersion": 1, **more}
        self._head = id if heads else self._head
        return json.dumps(line, separators=(",", ":")).encode() + b"\n"
