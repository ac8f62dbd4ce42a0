"""A service whose handlers do what the payload says.

`python stand_in.py HOME SOCKET IDLE_SECONDS WORKER JOB_SECONDS`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from reverie.daemon.hook import SECONDS
from reverie.daemon.jobs import Job, Jobs
from reverie.daemon.server import Service
from reverie.runtime.background_log import BackgroundLog
from reverie.types import JsonObject


class Echo:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._seen = 0

    async def handle(self, agent: str, event: str, payload: JsonObject, environment: Mapping[str, str]) -> JsonObject:
        self._seen += 1
        await asyncio.sleep(float(payload.get("sleep", 0)))
        if "raise" in payload:
            raise ValueError(payload["raise"])
        if event == "Stop":
            self._jobs.ask(Job(agent, payload["session_id"], payload.get("transcript_path", ""), "/", False))
        if "say" not in payload:
            return {}
        if event == "PreCompact":
            return {"text": payload["say"]}
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": payload["say"]}}

    async def close(self) -> None: ...

    def status(self) -> JsonObject:
        return {"seen": self._seen}


def main(home: Path, socket: Path, idle_s: float, worker: str, job_limit_s: float) -> None:
    """A handler has as long as it likes, but for `SessionEnd`: tests of a late one use that."""
    SECONDS.update(dict.fromkeys([*SECONDS, "Stop"], 1_000.0))
    log = BackgroundLog(home / "logs" / "background.jsonl")

    async def serve() -> bool:
        return await Service(
            home, socket, log, Jobs(home, log, worker=worker, limit_s=job_limit_s), Echo, idle_s=idle_s
        ).serve()

    sys.exit(0 if asyncio.run(serve()) else 7)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
