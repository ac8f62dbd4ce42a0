"""What the chat shows itself on: lines on a terminal (`view.py`), or a message in an editor (`in_editor.py`).

Text that comes from a model, a tool or a file is data: an implementation shows its control characters, and never
interprets it as markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from reverie.cli.output import Paint
from reverie.events import Event


class ChatOutput(Protocol):
    """The output of a chat. All text may contain the styles of `paint`, and no other escape sequences."""

    @property
    def paint(self) -> Paint: ...

    @property
    def columns(self) -> int:
        """How wide a line may be."""
        ...

    def say(self, text: str = "") -> None:
        """Shows a text of one or more lines."""
        ...

    def say_all(self, lines: Iterable[str]) -> None: ...

    def tell(self, text: str, level: str = "info") -> None:
        """Shows one wrapped sentence; `level` is info, warning or error."""
        ...

    def show_status(self, text: str) -> None:
        """Shows what is running now, until `pause` or other output."""
        ...

    def pause(self) -> None:
        """Ends what `show_status` shows, for example before a question."""
        ...

    def go_on(self) -> None:
        """Shows again what the turn does, after `pause` or other output."""
        ...

    def add_wait(self, duration: float) -> None:
        """Records how long the user took to answer a question: the tools did not need this time."""
        ...

    def user_message(self, text: str) -> None:
        """Shows a message of the user where its turn begins. Long pastes are marks in `text`."""
        ...

    def begin(self) -> None:
        """A turn begins."""
        ...

    def show(self, event: Event) -> None:
        """Shows one event of a turn, or between turns."""
        ...
