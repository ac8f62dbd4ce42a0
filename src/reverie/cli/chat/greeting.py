"""The first lines of a chat, and what was said last in a session that continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie import __version__
from reverie.cli.output import one_line, plural
from reverie.types import TextBlock

if TYPE_CHECKING:
    from reverie.cli.chat.output import ChatOutput
    from reverie.session.session import Session


def greet(session: Session, view: ChatOutput, *, in_words: bool = False) -> None:
    """Names the model and the folder. `in_words`: without symbols."""
    parts = session.parts
    branch = f" ({parts.branch})" if parts.branch else ""
    about = (f"{view.paint.bold('Reverie')} {__version__}", session.model_name, f"{parts.places.cwd}{branch}")
    view.say((", " if in_words else " · ").join(about))
    offline = "No key is set: the offline mind looks things up and remembers what you tell it. "
    view.say(view.paint.dim(f"{offline if session.model_name == 'embedded' else ''}/help lists the commands."))
    if parts.resumed:
        recap(session, view, in_words=in_words)
    view.say()


def recap(session: Session, view: ChatOutput, *, in_words: bool = False) -> None:
    """Shows the whole conversation if the view can do that, or else what was said last."""
    entries = session.view.entries
    view.say(view.paint.dim(f"Continuing {session.id[:8]}, {plural(len(entries), 'message')}."))
    if view.recall(session.view.history):
        return
    given = (block for entry in reversed(entries) for block in entry.message.content)
    asked = next((one.text for one in given if isinstance(one, TextBlock) and one.origin.is_users), "")
    answered = next((e.message.text for e in reversed(entries) if e.message.role == "assistant"), "")
    for mark, text in (("You:" if in_words else "›", asked), ("Answer:" if in_words else "·", answered)):
        if text.strip():
            view.say(view.paint.dim(f"  {mark} {one_line(text, view.columns - 5)}"))
