"""What can be known about the conversation behind a client. Claude Code tells the servers that it starts which session
it is: so its transcript shows what the user said, and the book of the hooks which memories the context has already.
Other clients tell nothing. It only reads, and notes what was shown."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from reverie.daemon.told import ToldBook
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import Evidence
from reverie.memory.evidence import gather_evidence
from reverie.paths import check_session_id, claude_home
from reverie.paths.places import hooks_folder
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.settings.loading import find_claude_session

_MOST_BYTES: Final = 8_000_000
"""Of a transcript: a larger one takes seconds to read, and then nothing in it counts."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The session of a client; `session` is empty if it is not known."""

    session: str
    home: Path

    @classmethod
    def find(cls, home: Path) -> Conversation:
        """The session that started this process."""
        try:
            return cls(check_session_id(find_claude_session()), home)
        except UserError:
            return cls("", home)

    def evidence(self, settings: Settings) -> tuple[Evidence, ...]:
        """What was said in it, with origins; nothing if that cannot be seen."""
        if not self.session:
            return ()
        from reverie.layers.l5_extraction.recordings import read_recording

        with suppress(ReverieError, OSError):
            for path in claude_home(settings).glob(f"projects/*/{self.session}.jsonl"):
                if path.stat().st_size <= _MOST_BYTES:
                    return gather_evidence(read_recording(path).entries)
        return ()

    @property
    def shown(self) -> list[str]:
        """The memories that the hooks gave to this session, and that its context still has."""
        return self._book.look(self.session).memories if self.session else []

    def note_shown(self, names: Iterable[str]) -> None:
        """Notes memories that a tool has shown, so that the hooks do not show them again."""
        if not self.session or not (hooks_folder(self.home) / "sessions" / f"{self.session}.json").is_file():
            return
        with suppress(ReverieError, OSError), self._book.changing(self.session) as (told, _):
            told.memories += [name for name in names if name not in told.memories]

    @property
    def _book(self) -> ToldBook:
        return ToldBook(hooks_folder(self.home))


NOBODY: Final = Conversation("", Path())
"""A conversation that cannot be seen."""
