"""Runs the chat in the full screen, and says at its end what it cost and how to continue."""

from __future__ import annotations

import os
import re
import sys
import termios
from typing import TYPE_CHECKING

from reverie.cli.chat.figures import closing_lines
from reverie.cli.chat.loop import Chat
from reverie.cli.full_screen.app import FullScreen
from reverie.cli.full_screen.view import FullScreenView
from reverie.cli.output import Paint, get_theme, say_all

if TYPE_CHECKING:
    from reverie.cli.event_loop import CommandSignals
    from reverie.cli.session_opening import Opening
    from reverie.session.session import Session


def make_app(session: Session, wanted: Opening, signals: CommandSignals, paint: Paint) -> FullScreen:
    """The app with its chat, not running yet."""
    app = FullScreen(paint)
    view = FullScreenView(app.conversation, session.places.cwd, paint, app.show_state)
    app.attach(Chat(session, wanted, view, signals), view)
    return app


async def run_full_screen(signals: CommandSignals, wanted: Opening, *, mouse: bool, theme: str | None) -> int:
    """Returns the exit code."""
    session = await wanted.open(interactive=True)
    app = make_app(session, wanted, signals, get_theme(session.parts.settings, theme))
    app.typed_ahead = _read_typed_ahead()
    try:
        await app.run_async(mouse=mouse)
    finally:
        await app.end()
    say_all(closing_lines(app.chat.session))
    return app.chat.code


def _read_typed_ahead() -> str:
    """What the user typed while the app was loaded. Enter does not send it: nobody saw it on the screen."""
    try:
        before = termios.tcgetattr(sys.stdin)
        timing = [*before[6]]
        timing[termios.VMIN] = timing[termios.VTIME] = 0
        by_key = before[3] & ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(sys.stdin, termios.TCSANOW, [*before[:3], by_key, *before[4:6], timing])
        try:
            typed = os.read(sys.stdin.fileno(), 65_536).decode("utf-8", "replace")
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
    except (termios.error, OSError, ValueError):
        return ""
    keys = re.sub("\N{ESCAPE}(?:[\\[O][0-9;]*[A-Za-z~]|.)?", "", typed.replace("\r", "\n"))
    return "".join(char for char in keys if char.isprintable() or char == "\n").strip("\n")
