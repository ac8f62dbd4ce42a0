"""A process to be killed: goes on with the newest session of a folder and tells what it has acknowledged.

python -m tests.crash_driver FOLDER MODEL DAYS TEXT
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path

from reverie.events import RoundFinished, ToolFinished, TurnEnded, TurnStarted
from reverie.session import Session
from reverie.storage.transcript.session_log import utc_now
from reverie.storage.transcript.sessions import list_sessions


def tell(*words: object) -> None:
    """One line in one write: a kill leaves all of it or nothing."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def main(folder: Path, model: str, days: int, text: str) -> None:
    from reverie.paths import Places
    from reverie.settings import load_settings

    project = Places.of(folder, load_settings(folder)).project
    session = await Session.open(
        cwd=folder,
        model=model,
        resume="last" if list_sessions(project) else None,
        overrides={"permissions.mode": "accept_all"},
        clock=lambda: utc_now() + timedelta(days=days),
    )
    rounds = 0
    tell("opened")
    async for event in session.send(text):
        match event:
            case TurnStarted():
                tell("person", event.uuid)
            case ToolFinished():
                tell("result", event.id)
            case RoundFinished():
                rounds += 1
                tell("round", rounds)
            case TurnEnded():
                tell("ended", event.reason, event.error or "")
            case _:
                pass
    await session.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
