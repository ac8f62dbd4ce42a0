"""Session files as Claude Code writes them, and a home that they are followed into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reverie.memory.upkeep.followed_sessions import open_follower
from reverie.settings import load_settings
from reverie.storage.following import Followed

ID = "5e550000-0000-4000-8000-000000000001"


def said(number: int, text: str, *, cwd: str, session: str = ID) -> str:
    """One message of the user and its answer, as two lines."""
    lines, parent = list[str](), f"{session}-{number - 1}-assistant" if number else None
    for role in ("user", "assistant"):
        uuid = f"{session}-{number}-{role}"
        record: dict[str, Any] = {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": session, "cwd": cwd}
        record |= {"timestamp": f"2026-03-02T09:{number:02}:00.000Z", "version": "2.1.325"}
        content = text if role == "user" else [{"type": "text", "text": f"Yes, {number}."}]
        lines.append(json.dumps({**record, "message": {"role": role, "content": content}}))
        parent = uuid
    return "\n".join(lines) + "\n"


def session_file(folder: Path, *texts: str, cwd: str = "/harbour/pilot", session: str = ID) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{session}.jsonl"
    file.write_text("".join(said(number, text, cwd=cwd, session=session) for number, text in enumerate(texts)))
    return file


def follow(path: Path) -> list[Followed]:
    """One pass over a file or a folder, by a new follower, as a new process makes it."""
    return list(open_follower(load_settings(Path("/"))).follow(path))


def outcomes(path: Path) -> list[str]:
    return [one.outcome.value for one in follow(path)]


def snapshot(home: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of the home with its content and its time."""
    files = [path for path in home.rglob("*") if path.is_file()]
    return {str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
