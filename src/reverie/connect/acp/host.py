"""What the protocol side needs from the command line: sessions, slash commands, and how text is shown.

The command line is above this package, so it passes an object with these methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.types import Json, TextBlock


@dataclass(frozen=True, slots=True)
class OfferedCommand:
    """One slash command for the list of the editor. `hint` describes what can follow the name."""

    name: str
    about: str
    hint: str = ""


class Host(Protocol):
    """The command line."""

    async def open(
        self,
        cwd: Path,
        *,
        model: str | None = None,
        resume: str | None = None,
        session_id: str | None = None,
        mcp_servers: Mapping[str, object] | None = None,
    ) -> Session:
        """Opens a session whose permission questions are answered."""
        ...

    def title(self, tool: str, given: Json, cwd: Path) -> str:
        """Describes a tool call on one line."""
        ...

    def printable(self, text: str) -> str:
        """Returns the text with control characters made visible."""
        ...

    def commands(self, session: Session) -> list[OfferedCommand]:
        """Lists the slash commands that work in an editor, and the user's own."""
        ...

    async def run_command(self, session: Session, said: Sequence[TextBlock], say: Callable[[str], None]) -> bool:
        """Runs a message that is a slash command and says its result; False if the message is not one."""
        ...
