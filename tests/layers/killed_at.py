"""A process that is killed right before its Nth write to a transcript, whatever was written elsewhere by then.

python -m tests.layers.killed_at FOLDER MODEL N HOURS TEXT
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from reverie.session import Session
from reverie.storage.transcript.session_log import utc_now
from reverie.storage.transcript.sessions import list_sessions


def kill_before(write_number: int) -> None:
    """Counts the writes of this process that go to a transcript; 0 never kills."""
    write, done = os.write, 0

    def counting(fd: int, data: bytes) -> int:
        nonlocal done
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.suffix == ".jsonl" and "projects" in path.parts:
            done += 1
            if done == write_number:
                os.kill(os.getpid(), signal.SIGKILL)
        return write(fd, data)

    os.write = counting  # the system's own door: nothing of ours is replaced


async def main(folder: Path, model: str, hours: float, text: str) -> None:
    from reverie.paths import Places
    from reverie.settings import load_settings

    project = Places.of(folder, load_settings(folder)).project
    session = await Session.open(
        cwd=folder,
        model=model,
        resume="last" if list_sessions(project) else None,
        overrides={"permissions.mode": "accept_all"},
        clock=lambda: utc_now() + timedelta(hours=hours),
    )
    async with session:
        async for _ in session.send(text):
            pass


if __name__ == "__main__":
    kill_before(int(sys.argv[3]))
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[4]), sys.argv[5]))
