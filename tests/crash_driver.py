"""A process to be killed: goes on with the newest session of a folder and tells what it has acknowledged.

python -m tests.crash_driver FOLDER MODEL DAYS TEXT
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from reverie.events import RoundFinished, ToolFinished, TurnEnded, TurnStarted
from reverie.session import Session
from reverie.storage.session_log import utc_now
from reverie.storage.sessions import list_sessions


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
    print("opened", flush=True)
    async for event in session.send(text):
        match event:
            case TurnStarted():
                print("person", event.uuid, flush=True)
            case ToolFinished():
                print("result", event.id, flush=True)
            case RoundFinished():
                rounds += 1
                print("round", rounds, flush=True)
            case TurnEnded():
                print("ended", event.reason, event.error or "", flush=True)
            case _:
                pass
    await session.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
