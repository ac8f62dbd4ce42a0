"""Writes of agents to memory files, by their file tools: through the directory and its gate, as one version, with an
answer that says what became of it. Used by the main agent, agents with a memory of their own, and extraction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reverie.memory.changes import ABSENT, Outcome, WriteInfo
from reverie.memory.directory import MemoryDirectory
from reverie.memory.evidence import select_near
from reverie.memory.topic_file import decode
from reverie.regular_files import read_regular
from reverie.storage.history.objects import blob_id
from reverie.tools.base import Kept


def write_by_tool(
    directory: MemoryDirectory, path: Path, data: bytes, before: bytes | None, info: WriteInfo
) -> tuple[Kept, Outcome]:
    """Carries out a Write or Edit of a memory file. `before` is what the agent saw; None: no file."""
    base = ABSENT if before is None else blob_id(before)
    near = select_near(info.evidence, f"{decode(data)}\n{decode(before or b'')}")
    outcome = directory.apply_tool_write(str(path), decode(data), replace(info, evidence=near), base=base)
    name = path.resolve().relative_to(directory.root).as_posix()
    stored = directory.root / outcome.name_of(name)
    note = outcome.note
    if not stored.exists():
        gone = f"Forgotten: {name} and its line in the index are gone. `reverie memory undo` brings them back."
        return Kept(None, note or gone), outcome
    if stored != directory.root / name:
        return Kept(None, f"Stored as {stored}. {note}".strip()), outcome
    now = read_regular(stored)
    if now != data and not note:
        note = f"Stored {path}; its head was completed, so read it again before you change it."
    return Kept(now, note), outcome
