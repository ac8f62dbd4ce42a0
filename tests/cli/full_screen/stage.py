"""The full screen without a terminal: a scripted session, keys to press, and a wait for what it shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Static

from reverie.cli.event_loop import CommandSignals
from reverie.cli.full_screen.app import FullScreen
from reverie.cli.full_screen.blocks import Block
from reverie.cli.full_screen.run import make_app
from reverie.cli.output import Paint
from reverie.cli.session_opening import Opening


@dataclass(slots=True)
class Stage:
    """The running app and its keys."""

    app: FullScreen
    pilot: Pilot[None]

    @property
    def conversation(self) -> str:
        """All loaded lines of the conversation."""
        return "\n".join(line for block in self.app.conversation.blocks for line in lines_of(self.app, block))

    @property
    def bottom(self) -> str:
        """What runs, what waits, and the status line."""
        screen = self.app.screen_stack[0]
        return "\n".join(str(screen.query_one(name, Static).content) for name in ("#activity", "#status"))

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if char == " " else char for char in text))

    async def say(self, text: str) -> None:
        self.app.composer.insert(text)
        await self.pilot.press("enter")

    async def paste(self, text: str) -> None:
        self.app.composer.post_message(Paste(text))
        await self.pilot.pause()

    async def until(self, holds: Callable[[], object], seconds: float = 20.0) -> None:
        ends = asyncio.get_running_loop().time() + seconds
        while not holds():
            shown = f"{self.conversation}\n{self.bottom}"
            assert asyncio.get_running_loop().time() < ends, f"not within {seconds} s:\n{shown}"
            await self.pilot.pause(0.01)

    async def dialog(self, name: str) -> None:
        """Waits for a dialog that takes keys."""
        await self.until(lambda: type(self.app.screen).__name__ == name)
        if hasattr(self.app.screen, "opened_at"):
            await self.until(lambda: self.app.screen.opened_at < float("inf"))
            self.app.screen.opened_at = 0.0
        await self.pilot.pause()


def lines_of(app: FullScreen, block: Block) -> list[str]:
    room = app.conversation.scrollable_content_region.width - 2
    return ["".join(part.text for part in line) for line in block.lines(room)]


@asynccontextmanager
async def opened(
    folder: Path, script: str, *, size: tuple[int, int] = (80, 24), resume: str | None = None
) -> AsyncIterator[Stage]:
    (folder / "play.script").write_text(script)
    wanted = Opening(folder, f"scripted:{folder / 'play.script'}", resume=resume)
    app = make_app(await wanted.open(interactive=True), wanted, CommandSignals(), Paint(True))
    try:
        async with app.run_test(size=size) as pilot:
            stage = Stage(app, pilot)
            await stage.until(lambda: "Reverie" in stage.conversation)
            yield stage
    finally:
        await app.end()


def play(
    folder: Path,
    script: str,
    act: Callable[[Stage], Awaitable[None]],
    *,
    size: tuple[int, int] = (80, 24),
    resume: str | None = None,
) -> None:
    """Opens the full screen on a script, acts on it, closes it."""

    async def run() -> None:
        async with opened(folder, script, size=size, resume=resume) as stage:
            await act(stage)

    asyncio.run(run())
