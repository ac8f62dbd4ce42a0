"""Runs scripted sessions for tests: a script in, events out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from reverie.events import Event, TurnEnded
from reverie.session import Session

T = TypeVar("T")


def script(folder: Path, text: str, name: str = "play.script") -> str:
    """Writes a script and returns the name of the model that plays it."""
    path = folder / name
    path.write_text(text)
    return f"scripted:{path}"


def in_session(work: Callable[[Session], Awaitable[T]], **options: Any) -> T:
    """Opens a session, does the work in it, closes it."""

    async def run() -> T:
        async with await Session.open(**options) as session:
            return await work(session)

    return asyncio.run(run())


async def turn(session: Session, text: str) -> list[Event]:
    """All events of one turn; the last is TurnEnded."""
    events = [event async for event in session.send(text)]
    assert isinstance(events[-1], TurnEnded)
    return events


def ended(events: list[Event]) -> TurnEnded:
    last = events[-1]
    assert isinstance(last, TurnEnded)
    return last


def of_kind(events: list[Event], kind: type[T]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]
