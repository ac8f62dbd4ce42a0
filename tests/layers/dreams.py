"""Memory directories to dream about, and sessions that do."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reverie.events import Event
from reverie.layers.l6_dreaming.reporter import DreamOutcome
from reverie.runtime.tasks import Task, TaskInfo, TaskState
from reverie.session import Session
from reverie.storage.transcript.session_log import utc_now
from tests.waiting import LIMIT_S

BAKERY: Mapping[str, str] = {
    "MEMORY.md": (
        "- [Oven](project_oven.md) — the new oven\n"
        "- [Oven again](project_oven_copy.md) — a copy\n"
        "- [Flour](reference_flour.md) — where it is ordered\n"
        "- [Mara](user_mara.md) — runs the bakery\n"
    ),
    "project_oven.md": (
        "---\nname: Oven\ndescription: The new oven comes in March\ntype: project\n---\n\n"
        "The new deck oven arrives on 2026-03-12.\nElectrician Petra connects it the day after.\n"
    ),
    "project_oven_copy.md": (
        "---\nname: Oven again\ndescription: The oven\ntype: project\n---\n\n"
        "The new deck oven arrives on 2026-03-12.\nIt needs a 63 A fuse.\n"
    ),
    "reference_flour.md": (
        "---\nname: Flour\ndescription: Order flour at Muehle Lindt\ntype: reference\n---\n\n"
        "Flour is ordered at Muehle Lindt by fax.\nRye flour takes four days.\nSpelt is out until autumn.\n"
    ),
    "user_mara.md": (
        "---\nname: Mara\ndescription: Mara runs the bakery\ntype: user\n---\n\n"
        "Mara runs the bakery alone.\nShe reads messages at four in the morning.\n"
    ),
}

JOINED = (
    "---\nname: Oven\ndescription: The new oven comes in March\ntype: project\n---\n\n"
    "The new deck oven arrives on 2026-03-12.\nElectrician Petra connects it the day after.\nIt needs a 63 A fuse.\n"
)

GOOD_ANSWER = "- project_oven.md: joined with its copy\n- project_oven_copy.md: joined into project_oven.md"


@dataclass(frozen=True, slots=True)
class House:
    """A folder to work in, and the memory directory of its sessions."""

    work: Path
    memory: Path

    @property
    def files(self) -> dict[str, str]:
        found = ((path.relative_to(self.memory), path) for path in sorted(self.memory.rglob("*.md")))
        return {
            name.as_posix(): path.read_text()
            for name, path in found
            if not any(part.startswith(".") for part in name.parts)
        }

    def script(self, text: str) -> str:
        """Writes a script of `[dream]` replies, `MEM` standing for the memory directory; the model that plays it."""
        path = self.work.parent / "mind.script"
        path.write_text("say Good morning.\n[dream]\n" + re.sub(r"\bMEM\b", str(self.memory), text))
        return f"scripted:{path}"


def house(folder: Path, files: Mapping[str, str] = BAKERY) -> House:
    """Lays a memory directory out; `REVERIE_MEMORY_PATH` must point to `<folder>/memory`."""
    work, memory = folder / "work", folder / "memory"
    work.mkdir(exist_ok=True)
    memory.mkdir(mode=0o700, exist_ok=True)
    for name, text in files.items():
        (memory / name).parent.mkdir(parents=True, exist_ok=True)
        (memory / name).write_text(text)
    return House(work, memory)


def writes(changes: Mapping[str, str], answer: str, *, read: Iterable[str] | None = None) -> str:
    """The replies of a mind that reads files, writes these and answers."""
    known = list(changes) if read is None else list(read)
    lines = [f"call Read {json.dumps({'file_path': f'MEM/{name}'})}" for name in known]
    lines += ["---"] if known else []
    lines += [f"call Write {json.dumps({'file_path': f'MEM/{n}', 'content': text})}" for n, text in changes.items()]
    first, *rest = answer.split("\n")
    return "\n".join([*lines, *(["---"] if changes else []), f"say {first}", *(f"| {line}" for line in rest)]) + "\n"


GOOD = writes(
    {"project_oven.md": JOINED, "project_oven_copy.md": ""},
    GOOD_ANSWER,
    read=["project_oven.md", "project_oven_copy.md", "MEMORY.md"],
)


@dataclass(frozen=True, slots=True)
class Night:
    """One dream, seen from outside."""

    info: TaskInfo
    dreamt: DreamOutcome | None
    events: list[Event]

    @property
    def failed(self) -> str:
        assert self.info.state is TaskState.FAILED, self.info
        return self.info.error or ""


def dream(
    place: House,
    mind: str,
    *,
    days: float = 0,
    before: Callable[[Session], Any] | None = None,
    start: Mapping[str, Any] | None = None,
    **more: Any,
) -> Night:
    """A session in which one dream is begun by hand and waited for."""

    async def run() -> Night:
        events: list[Event] = []
        clock = lambda: utc_now() + timedelta(days=days)  # noqa: E731
        async with await Session.open(cwd=place.work, model=place.script(mind), clock=clock, **more) as session:
            session.listen(events.append)
            if before is not None:
                before(session)
            task: Task[DreamOutcome] = begun(session).start(**(start or {}))
            info = await task.wait(LIMIT_S)
        return Night(info, task.result, events)

    return asyncio.run(run())


def begun(session: Session) -> Any:
    assert session.dreaming is not None
    return session.dreaming


def transcript(folder: Path, name: str, lines: Iterable[tuple[str, Any]], *, age_s: float = 60) -> Path:
    """A transcript of these (role, content) messages."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    stamp = datetime.now(UTC).isoformat()
    records = [
        {"type": role, "uuid": f"{name}-{number}", "timestamp": stamp, "message": {"role": role, "content": content}}
        for number, (role, content) in enumerate(lines)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    moment = datetime.now(UTC).timestamp() - age_s
    os.utime(path, (moment, moment))
    return path
