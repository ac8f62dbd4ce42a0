"""Small stores and sessions to dream about, and what the database says afterwards."""

from __future__ import annotations

import gzip
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reverie.server.ids import new_id
from tests.integration.server.conftest import Served, client

CASES = Path(__file__).parents[4] / "evals" / "dream-own" / "tune"
ENDED = ("completed", "failed", "canceled")
StartWorker = Callable[..., subprocess.Popen[bytes]]


def call(served: Served, token: str, method: str, path: str, body: Any = None, raw: bytes | None = None) -> Any:
    """One request to a route that the SDK does not have."""
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{served.url}{path}", data, {"x-api-key": token}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def upload(served: Served, token: str, lines: list[dict[str, Any]] | Path, *, packed: bool = True) -> str:
    data = lines.read_bytes() if isinstance(lines, Path) else "\n".join(map(json.dumps, lines)).encode()
    sent = gzip.compress(data) if packed else data
    return call(served, token, "POST", "/v1/reverie/sessions", raw=sent)["id"]


def said(text: str) -> list[dict[str, Any]]:
    """A transcript of Claude Code in which the user says one thing."""
    at = {"sessionId": "s", "timestamp": "2026-11-02T09:00:00.000Z", "isSidechain": False, "cwd": "/work"}
    return [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": text}, **at},
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
            **at,
        },
    ]


def fill(served: Served, token: str, case: str = "kitchen-copies", scope: str = "user") -> tuple[str, list[str]]:
    """A store with the memories of a case, and its sessions."""
    wanted = {"name": case, "scope": scope, "purpose": new_id("test")}
    store = call(served, token, "POST", "/v1/reverie/memory_stores", wanted)["id"]
    before = CASES / case / "before"
    for path in sorted(before.rglob("*.md")):
        client(served, token).beta.memory_stores.memories.create(
            store, path=f"/{path.relative_to(before).as_posix()}", content=path.read_text()
        )
    sessions = [upload(served, token, path) for path in sorted((CASES / case / "transcripts").glob("*.jsonl"))]
    return store, sessions or [upload(served, token, said("The oven is serviced in March."))]


def inputs(store: str, sessions: list[str]) -> list[Any]:
    return [
        {"type": "memory_store", "memory_store_id": store},
        {"type": "sessions", "session_ids": sessions},
    ]


def update(store: str) -> dict[str, str]:
    return {"type": "update_existing", "memory_store_id": store}


def wait(served: Served, token: str, id: str, *, until: tuple[str, ...] = ENDED, seconds: float = 90) -> Any:
    """The dream as soon as it has one of these statuses."""
    end = time.monotonic() + seconds
    while True:
        dream = client(served, token).beta.dreams.retrieve(id)
        if dream.status in until:
            return dream
        assert time.monotonic() < end, f"the dream is still {dream.status}"
        time.sleep(0.1)


def contents(served: Served, token: str, store: str) -> dict[str, str]:
    memories = client(served, token).beta.memory_stores.memories
    return {one.path: one.content for one in memories.list(store, view="full") if one.type == "memory"}


def query(dsn: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(dsn, options="-c search_path=reverie,procrastinate", autocommit=True) as connection:
        done = connection.execute(sql.encode(), values)
        return done.fetchall() if done.description else []


def numbers(dsn: str, store: str) -> list[int]:
    """The numbers of all versions of a store."""
    return [row[0] for row in query(dsn, "select number from versions where store_id = %s order by number", store)]
