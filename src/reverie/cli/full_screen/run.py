"""Runs the chat in the full screen, and says at its end what it cost and how to continue."""

from __future__ import annotations

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
    try:
        await app.run_async(mouse=mouse)
    finally:
        await app.end()
    say_all(closing_lines(app.chat.session))
    return app.chat.code
