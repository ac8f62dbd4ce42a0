"""The slash commands of the chat inside an editor: the same commands, with their output as one message.

Nobody can be asked here by keys, so commands behave as they do with piped input. The editor itself opens and closes
sessions and shows outputs; commands for that are not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reverie.cli.chat.commands import COMMANDS
from reverie.cli.chat.input import ChatInput, Said
from reverie.cli.chat.loop import Chat
from reverie.cli.event_loop import CommandSignals
from reverie.cli.output import Paint, one_line
from reverie.cli.session_opening import Opening
from reverie.connect.acp.host import OfferedCommand
from reverie.connect.acp.markdown import code
from reverie.events import Event
from reverie.instructions.commands import list_shown
from reverie.session.session import Session
from reverie.types import TextBlock

_OF_THE_EDITOR = {
    "help": "type / to see the commands",
    "model": "choose the model in the options of this thread",
    "resume": "open the session from the list of your editor, or in `reverie chat`",
    "show": "your editor shows the output of every call",
    "copy": "your editor copies text",
    "exit": "close the thread",
}
"""Commands that the editor has a better way for."""
_PROSE = ("btw", "notes")
"""Commands whose lines are Markdown."""
_COLUMNS = 100


class MessageOutput:
    """Collects what a command shows: lines in code blocks, sentences as paragraphs."""

    def __init__(self) -> None:
        self.paint = Paint(False)
        self.is_prose = False
        self._parts = list[tuple[bool, list[str]]]()

    @property
    def columns(self) -> int:
        return _COLUMNS

    @property
    def message(self) -> str:
        """All of it, as Markdown."""
        texts = list[str]()
        for is_lines, lines in self._parts:
            text = "\n".join(lines)
            if text.strip():
                texts.append(code(text.strip("\n")) if is_lines and not self.is_prose else text)
        return "\n\n".join(texts)

    def say(self, text: str = "") -> None:
        if not self._parts or not self._parts[-1][0]:
            self._parts.append((True, []))
        self._parts[-1][1].append(text)

    def say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def tell(self, text: str, level: str = "info") -> None:
        self._parts.append((False, [f"{'Error: ' if level == 'error' else ''}{one_line(text)}"]))

    def show_status(self, text: str) -> None: ...

    def pause(self) -> None: ...

    def add_wait(self, duration: float) -> None: ...

    def user_message(self, text: str) -> None: ...

    def begin(self) -> None: ...

    def go_on(self) -> None: ...

    def show(self, event: Event) -> None: ...


class _NoInput(ChatInput):
    async def next(self) -> Said | None:
        return None


class EditorChat(Chat):
    """Runs one command for a session that the editor drives."""

    def __init__(self, session: Session) -> None:
        self.output = MessageOutput()
        super().__init__(session, Opening(session.places.cwd), self.output, CommandSignals())
        self._given = _NoInput()

    async def run_command(self, name: str, rest: str) -> None:
        if name in _OF_THE_EDITOR:
            self.output.tell(f"/{name} does not work in an editor: {_OF_THE_EDITOR[name]}.")
        else:
            self.output.is_prose = name in _PROSE
            await super().run_command(name, rest)


def list_commands(session: Session) -> list[OfferedCommand]:
    """The commands of the chat that work in an editor, and the user's own commands and skills."""
    offered = [
        OfferedCommand(name, command.help, command.usage.partition(" ")[2])
        for name, command in COMMANDS.items()
        if name not in _OF_THE_EDITOR
    ]
    own = list_shown(session.commands.load(), COMMANDS)
    return [*offered, *(OfferedCommand(one.name, one_line(one.description, 200), one.hint) for one in own)]


async def run_command(session: Session, said: Sequence[TextBlock], say: Callable[[str], None]) -> bool:
    """Runs a message that is a command; False if it is not."""
    if not said:
        return False
    chat = EditorChat(session)
    if not await chat.run_if_command(Said(tuple(said), "")):
        return False
    say(chat.output.message or "Done.")
    return True
