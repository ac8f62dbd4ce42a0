"""The first lines of a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie import __version__
from reverie.cli.chat.recap import recap

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat


def greet(chat: Chat) -> None:
    """Names the model and the folder, and shows where a session continues."""
    session, view = chat.session, chat.view
    parts = session.parts
    branch = f" ({parts.branch})" if parts.branch else ""
    about = (f"{view.paint.bold('Reverie')} {__version__}", session.model_name, f"{parts.places.cwd}{branch}")
    view.say((", " if chat.input.in_words else " · ").join(about))
    offline = "No key is set: the offline mind looks things up and remembers what you tell it. "
    view.say(view.paint.dim(f"{offline if session.model_name == 'embedded' else ''}/help lists the commands."))
    if parts.resumed:
        recap(chat)
    view.say()
