"""A simulated server for sessions: real HTTP, a clock that both sides share, and the bill."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reverie.models.script import Script
from reverie.models.script_syntax import Reply
from reverie.paths import Places
from reverie.settings import load_settings
from reverie.simulator import ScriptResponder, Simulator
from reverie.simulator.http import running
from reverie.simulator.ledger import Billing
from tests.waiting import until

ANTHROPIC = "anthropic:claude-sonnet-5-5"
OPENAI = "openai:gpt-5.5"
MINIMUM = 1_024
OTHER_LAYERS = ("MICROCOMPACT_TIME", "MICROCOMPACT_ECONOMIC", "SESSION_NOTES", "EXTRACTION", "DREAM", "RECALL")
"""What is shown here is the cache alone: nothing may be cleared because it pays, nothing may run beside it."""


class HeldResponder(ScriptResponder):
    """Plays a script, and holds back the replies for a purpose until the test lets them go."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.gates: dict[str, threading.Event] = {}
        self.asked: list[str] = []

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        self.asked.append(purpose)
        if purpose in self.gates:
            await until(self.gates[purpose].is_set)
        return await super().reply(body, purpose=purpose)


@dataclass(slots=True)
class Served:
    """What a test sees of the server."""

    simulator: Simulator
    responder: HeldResponder

    def hold(self, purpose: str) -> threading.Event:
        """Replies for this purpose wait until the event is set."""
        return self.responder.gates.setdefault(purpose, threading.Event())

    @property
    def rows(self) -> list[Billing]:
        return list(self.simulator.ledger.rows)

    def now(self) -> datetime:
        """The clock for sessions: time passes here when the server's clock is moved."""
        return datetime.fromtimestamp(self.simulator.clock.now(), UTC)

    def advance(self, seconds: float) -> None:
        self.simulator.clock.advance(seconds)


@contextmanager
def served(script: str, patch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Serves a script; both vendors' addresses point at it for as long as the block lasts."""
    responder = HeldResponder(Script.parse(script))
    simulator = Simulator(responder)
    with running(simulator) as url:
        patch.setenv("ANTHROPIC_BASE_URL", url)
        patch.setenv("ANTHROPIC_API_KEY", "simulated")
        patch.setenv("OPENAI_BASE_URL", url)
        patch.setenv("OPENAI_API_KEY", "simulated")
        for layer in OTHER_LAYERS:
            patch.setenv(f"REVERIE_FLAG_{layer}", "0")
        yield Served(simulator, responder)


def files(folder: Path, count: int = 30, size: int = 400) -> None:
    """Files f1.txt … to read."""
    for i in range(1, count + 1):
        (folder / f"f{i}.txt").write_text(f"This is file {i}.\n" + "All work and no play.\n" * (size // 22))


def past_session(cwd: Path, *, gap_s: float, requests: int = 30, name: str = "past") -> Path:
    """A transcript of an earlier session in `cwd`, whose requests came `gap_s` seconds apart."""
    path = Places.of(cwd, load_settings(cwd)).project / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    at, lines = datetime(2026, 3, 1, 9, tzinfo=UTC), list[str]()
    for i in range(requests):
        stamp = (at + timedelta(seconds=gap_s * i)).isoformat()
        usage = {"input_tokens": 0, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 20_000 + 500 * i}
        answer = {"role": "assistant", "id": f"msg_{i}", "model": "claude-sonnet-5-5", "content": [], "usage": usage}
        lines.append(json.dumps({"type": "user", "timestamp": stamp, "message": {"role": "user", "content": "go"}}))
        lines.append(json.dumps({"type": "assistant", "timestamp": stamp, "message": answer}))
    path.write_text("\n".join(lines) + "\n")
    return path
