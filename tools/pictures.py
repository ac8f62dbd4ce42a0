"""Draws the pictures of the full screen for the docs, from a real chat with a scripted model.

`make pictures` runs it with a home of its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from reverie.cli.full_screen.app import FullScreen
from reverie.cli.full_screen.blocks import Call
from reverie.cli.full_screen.run import make_app
from textual.pilot import Pilot

from reverie.cli.event_loop import CommandSignals
from reverie.cli.output import Paint
from reverie.cli.session_opening import Opening

_FOLDER = Path(tempfile.gettempdir()) / "reverie-demo"  # is in the pictures, so it has a fixed name
_SERVER = '''"""The server."""

PORT = 8080
WORKERS = 4


def main() -> None:
    serve(port=PORT, workers=WORKERS)
'''
_SCRIPT = """
think The port must be in the server. I read it first.
say I look at the server first.
call Grep {"pattern": "PORT", "output_mode": "content"}
call Read {"file_path": "server.py"}
---
call Edit {"file_path": "server.py", "old_string": "PORT = 8080", "new_string": "PORT = 9090"}
---
say The server listens on **9090** now.
|
| | setting | before | now |
| |---|---|---|
| | `PORT` | 8080 | 9090 |
| | `WORKERS` | 4 | 4 |
|
| To start it:
|
| ```python
| from server import main
|
| main()  # listens on 9090
| ```
"""


async def _draw(folder: Path) -> None:
    work = _FOLDER / "app"
    work.mkdir(parents=True)
    try:
        os.chdir(work)
        (work / "server.py").write_text(_SERVER)
        (work.parent / "demo").write_text(_SCRIPT)
        wanted = Opening(work, "scripted:../demo")
        app = make_app(await wanted.open(interactive=True), wanted, CommandSignals(), Paint(True))
        async with app.run_test(size=(90, 42)) as pilot:
            await _talk(app, pilot, folder)
        await app.end()
    finally:
        shutil.rmtree(_FOLDER)


async def _talk(app: FullScreen, pilot: Pilot[None], folder: Path) -> None:
    async def save(name: str) -> None:
        for block in app.conversation.blocks:
            if isinstance(block, Call) and block.seconds is not None:
                block.seconds = 0.1  # the same in every run
                block.changed()
        app.conversation.redraw(now=True)
        await pilot.pause(0.3)
        (folder / f"{name}.svg").write_text(app.export_screenshot(title="reverie chat --full-screen"))

    async def until(name: str) -> None:
        while type(app.screen).__name__ != name:
            await pilot.pause(0.05)
        await pilot.pause(0.6)

    app.composer.insert("Let the server listen on port 9090.")
    await pilot.press("enter")
    await until("Permission")
    await save("full-screen-permission")
    await pilot.press("y")
    await pilot.pause(1.0)
    await pilot.press("tab", "enter")
    await pilot.pause(0.3)
    await save("full-screen")
    await pilot.press("escape", "ctrl+p")
    await until("Picker")
    await save("full-screen-palette")
    await pilot.press("escape")


if __name__ == "__main__":
    asyncio.run(_draw(Path(sys.argv[1]).resolve()))
