"""Lays scenarios and small directories out, and has the embedded model dream about them in a real session."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.dream.score import CheckResult, score
from reverie.layers.l6_dreaming.reporter import DreamOutcome
from reverie.session import Session

NOW = datetime(2026, 3, 2, 3, tzinfo=UTC)


@dataclass(slots=True)
class Place:
    """A memory directory with its transcripts, and the time it is."""

    root: Path
    now: datetime = NOW
    check: dict[str, object] = field(default_factory=dict[str, object])

    @property
    def memory(self) -> Path:
        return self.root / "memory"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def files(self) -> dict[str, bytes]:
        found = ((path.relative_to(self.memory), path) for path in sorted(self.memory.rglob("*.md")))
        return {
            name.as_posix(): path.read_bytes()
            for name, path in found
            if not any(part.startswith(".") for part in name.parts)
        }

    def text(self, name: str) -> str:
        return self.files[name].decode()

    def dream(self) -> DreamOutcome:
        """One dream by the embedded model over everything there is, whatever was dreamt before."""

        async def run() -> DreamOutcome:
            (self.memory / ".consolidate-lock").unlink(missing_ok=True)
            session = await Session.open(cwd=self.work, model="embedded", clock=lambda: self.now, interactive=False)
            async with session:
                assert session.dreaming is not None
                task = session.dreaming.start()
                info = await task.wait()
                assert task.result is not None, info.error
                return task.result

        return asyncio.run(run())

    def scored(self, before: Mapping[str, bytes]) -> list[CheckResult]:
        return score(self.check, before, self.files)


def place(folder: Path, monkeypatch: pytest.MonkeyPatch, now: datetime = NOW) -> Place:
    """An empty one, with a home of its own."""
    made = Place(folder, now)
    made.work.mkdir(parents=True)
    made.memory.mkdir()
    monkeypatch.setenv("REVERIE_HOME", str(folder / "home"))
    monkeypatch.setenv("REVERIE_MEMORY_PATH", str(made.memory))
    return made


def with_files(made: Place, files: Mapping[str, str], written: Mapping[str, str] | None = None) -> Place:
    """Puts files there; `written` says on which days, else the day before."""
    for name, text in files.items():
        path = made.memory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        day = (written or {}).get(name)
        moment = datetime.fromisoformat(f"{day}T12:00:00+00:00") if day else made.now
        os.utime(path, (moment.timestamp() - 86_400 * (day is None), moment.timestamp() - 86_400 * (day is None)))
    return made


def with_talk(made: Place, said: Sequence[tuple[str, str]], day: str = "2026-03-01") -> Place:
    """A transcript: who said what; a `tool` is what a tool brought."""
    lines: list[str] = []
    for number, (who, text) in enumerate(said):
        role = "assistant" if who == "assistant" else "user"
        content: object = text
        if who == "tool":
            content = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": text}]
        record = {
            "type": role,
            "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "timestamp": f"{day}T09:{number:02d}:00Z",
            "message": {"role": role, "content": content},
        }
        lines.append(json.dumps(record))
    path = _transcripts(made) / "talk.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return made


def laid_out(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A scenario folder, copied, with its times."""
    made = place(folder, monkeypatch, datetime.fromisoformat((source / "now.txt").read_text().strip()))
    shutil.copytree(source / "before", made.memory, dirs_exist_ok=True)
    for path in sorted((source / "transcripts").glob("*.jsonl")):
        shutil.copyfile(path, _transcripts(made) / path.name)
    for name, told in json.loads((source / "mtimes.json").read_text()).items():
        when = datetime.fromisoformat(told).timestamp()
        os.utime(made.memory / name, (when, when))
    made.check = json.loads((source / "check.json").read_text())
    return made


def _transcripts(made: Place) -> Path:
    from reverie.paths import Places
    from reverie.settings import load_settings

    folder = Places.of(made.work, load_settings(made.work)).project
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def topic(name: str, body: str, kind: str = "project", description: str = "", **more: str) -> str:
    """A topic file."""
    head = {"name": name, "description": description or f"About {name}", "type": kind, **more}
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in head.items()) + f"---\n\n{body}"
