"""A service's events without a service: a home, a project with memories, and calls as the two programs make them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reverie.daemon.events import HookEvents
from reverie.daemon.jobs import Job
from reverie.library.memory import Memory


@dataclass
class Asked:
    """Takes jobs and does nothing."""

    jobs: list[Job] = field(default_factory=list[Job])

    def ask(self, job: Job) -> None:
        self.jobs.append(job)


@dataclass
class Agent:
    """One agent in one folder."""

    home: Path
    cwd: Path
    agent: str = "claude-code"
    session: str = "11111111-2222-3333-4444-555555555555"
    asked: Asked = field(default_factory=Asked)
    events: HookEvents = field(init=False)

    def __post_init__(self) -> None:
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.restart()

    def restart(self) -> None:
        """A new service, as after a kill."""
        self.events = HookEvents(self.home, self.asked)  # type: ignore[arg-type]

    @property
    def transcript(self) -> Path:
        """Where the agent would write it."""
        if self.agent == "codex":
            day = self.home.parent / ".codex" / "sessions" / "2026" / "05" / "20"
            day.mkdir(parents=True, exist_ok=True)
            return day / f"rollout-2026-05-20T10-00-00-{self.session}.jsonl"
        name = "".join(char if char.isalnum() else "-" for char in str(self.cwd))
        folder = self.home.parent / ".claude" / "projects" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.session}.jsonl"

    def call(self, event: str, environment: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
        """The whole answer."""
        payload = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.cwd),
            "hook_event_name": event,
            **more,
        }
        return asyncio.run(self.events.handle(self.agent, event, payload, environment or {}))

    def context(self, event: str, environment: Mapping[str, str] | None = None, **more: Any) -> str:
        """The text that the answer adds."""
        answer = self.call(event, environment, **more)
        json.dumps(answer)
        return answer.get("hookSpecificOutput", {}).get("additionalContext", "")

    def prompt(self, text: str) -> str:
        return self.context("UserPromptSubmit", prompt=text)

    def remember(self, *texts: str) -> Path:
        """Saves memories of the project, in the user's words."""

        async def save() -> Path:
            async with Memory.open(cwd=self.cwd, home=self.home) as memory:
                for text in texts:
                    await memory.remember(text, origin="typed")
                return memory.path

        return asyncio.run(save())

    def record(self, *said: tuple[str, Any]) -> None:
        """Appends messages to the transcript of Claude Code: `("user", text or blocks)`."""
        path = self.transcript
        lines = path.read_text().splitlines() if path.exists() else []
        last = json.loads(lines[-1])["uuid"] if lines else None
        with path.open("a") as file:
            for number, (role, content) in enumerate(said, len(lines)):
                uuid = f"00000000-0000-0000-0000-{number:012d}"
                record = {
                    "type": role,
                    "uuid": uuid,
                    "parentUuid": last,
                    "sessionId": self.session,
                    "cwd": str(self.cwd),
                    "isSidechain": False,
                    "timestamp": f"2026-11-16T10:{number // 60:02d}:{number % 60:02d}.000Z",
                    "message": {"role": role, "content": content}
                    | ({"id": f"msg_{number}", "model": "claude-opus-5-5"} if role == "assistant" else {}),
                }
                file.write(json.dumps(record) + "\n")
                last = uuid


def bash(number: int, command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}


def result(number: int, text: str, *, failed: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text, "is_error": failed}
