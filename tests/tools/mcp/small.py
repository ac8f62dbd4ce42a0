"""Entries of the small server, and what tests look at."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reverie.events import Event, Notice
from reverie.session import Session
from reverie.types import JsonObject, TextBlock
from tests.waiting import wait_until

SERVER = Path(__file__).with_name("server.py")


def entry(folder: Path, mode: str = "plain") -> JsonObject:
    """The entry of a server that keeps its files in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return {"command": sys.executable, "args": [str(SERVER), mode, str(folder)]}


def user_servers(home: Path, **entries: JsonObject) -> None:
    """Writes the user's servers; `home` is the home folder of a test."""
    (home / ".reverie").mkdir(exist_ok=True)
    (home / ".reverie" / "mcp.json").write_text(json.dumps({"mcpServers": entries}))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_until_gone(folder: Path) -> None:
    """Waits for the end of all processes of a server."""
    pids = [int(path.read_text()) for path in folder.glob("*.pid")]
    assert pids
    wait_until(lambda: not any(map(is_running, pids)))


def shown(session: Session) -> list[str]:
    """The blocks about MCP servers that the model sees."""
    blocks = [b for m in session.view.messages() for b in m.content if isinstance(b, TextBlock)]
    return [block.text for block in blocks if 'note="from MCP servers' in block.text]


def results(session: Session) -> list[Any]:
    return [block for message in session.view.messages() for block in message.tool_results]


def notices(events: Iterable[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice) and event.source == "mcp"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}
