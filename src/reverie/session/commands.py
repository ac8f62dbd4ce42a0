"""Commands and skills in a session: the user's `/name` becomes a request, and the model learns which skills there are.

Commands and files that a text includes pass the same tools, permissions and hooks as calls of the model. Only the line
that the user wrote counts as the user's words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import field
from itertools import count
from pathlib import Path

from reverie.events import Event, Notice, ToolFinished, ToolStarted
from reverie.instructions.commands import (
    LISTED_CHARACTERS,
    RUNS,
    Commands,
    PromptCommand,
    list_skills,
    load_commands,
    render_command,
)
from reverie.instructions.draft import draft, extend, find_target, render_request
from reverie.loop import Thread, text_of
from reverie.models.registry import EMBEDDED
from reverie.models.window import scaled
from reverie.origins import escape_tags, fence
from reverie.permissions.policy import Rules
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.session.gate import PermissionGate
from reverie.session.hook_points import HookPoints
from reverie.session.parts import SessionParts
from reverie.settings.claude_rules import RuleReader
from reverie.storage.transcript.view import View
from reverie.text.patterns import late
from reverie.tools.base import ToolOutput
from reverie.tools.run import run_calls
from reverie.types import Block, JsonObject, Origin, TextBlock, ToolUseBlock

_MOST_FILES = 10
_ARGUMENT = late(r"\$ARGUMENTS\[(\d{1,3})\]|\$(\d{1,3})\b|\$ARGUMENTS\b")
_FILE = late(r"(?<![\w`@/])@((?:~/|\./|/)?[\w][^\s`'\",;:)]*)")
_SLASH = late(r"\s*/([A-Za-z0-9][\w.:-]*)(?:\s+(.*))?\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ExpandedMessage:
    """What follows the user's own blocks in a message, and what hooks add. `refusal`: why it is not sent."""

    more: tuple[TextBlock, ...] = ()
    added: tuple[TextBlock, ...] = ()
    refusal: str | None = None


@dataclass(eq=False)
class SessionCommands:
    """The commands and skills of one session. `attach` sets the thread whose tools they use."""

    parts: SessionParts
    gate: PermissionGate
    points: HookPoints
    emit: Callable[[Event], None]
    _thread: Thread | None = field(default=None, init=False)
    _reported: set[str] = field(default_factory=set[str], init=False)
    _numbers: count[int] = field(default_factory=lambda: count(1), init=False)

    def attach(self, thread: Thread) -> None:
        self._thread = thread

    def load(self) -> Commands:
        """Returns the commands as they are on disk now. A problem with a file is reported once."""
        found = load_commands(self.parts.places, self.parts.settings)
        for problem in found.problems:
            self._tell(problem)
        return found

    def find(self, text: str) -> tuple[PromptCommand, str] | None:
        """Returns the command that a line names, and the rest of the line."""
        match = _SLASH.match(text)
        command = self.load().named.get(match[1]) if match else None
        return (command, (match[2] or "").strip()) if match and command is not None and command.for_user else None

    # -- for the model --------------------------------------------------------------------------------------------

    def new_reminders(self, view: View) -> list[TextBlock]:
        """Returns the skills that the model does not know yet. They join the next message."""
        known = "\n".join(
            block.text
            for entry in view.entries
            for block in entry.message.content
            if isinstance(block, TextBlock) and block.origin is Origin.CODE
        )
        return self._list_skills(known)

    def attachments(self) -> Sequence[Block]:
        """Returns the list of skills, for the context after a compaction."""
        return self._list_skills("")

    def _list_skills(self, known: str) -> list[TextBlock]:
        most = scaled(LISTED_CHARACTERS, self.parts.limits.window)
        text = list_skills(self.load(), known=known, most=most)
        return [TextBlock(text, Origin.CODE)] if text else []

    # -- for the user ---------------------------------------------------------------------------------------------

    def turn_over(self) -> None:
        """Ends what the command of this turn allowed."""
        self.gate.for_turn = Rules()

    async def expand(self, said: Sequence[TextBlock]) -> ExpandedMessage:
        """Returns what a message of the user means: itself, or the text of the command that it names."""
        found = self.find(said[0].text) if said and said[0].origin.is_users else None
        if found is None:
            return ExpandedMessage()
        command, args = found
        line = said[0].text.strip()
        refusal, added = await self.points.check_expansion(command.name, args, command.source, line)
        if refusal is not None:
            return ExpandedMessage(refusal=refusal)
        if command.path is None:
            return ExpandedMessage((self._init_request(args),), tuple(added))
        self._allow(command)
        if command.ignored:
            self._tell(
                f"{command.path}: its commands do not run: {command.ignored}; `reverie trust` shows them and asks."
            )
        if command.model and command.model not in ("inherit", "default"):
            self._tell(
                f"{command.path}: `model: {command.model}` is not used; /model changes the model for all messages."
            )
        text = fill_arguments(command.body, args)
        text = text.replace("${CLAUDE_SKILL_DIR}", str(command.path.parent))
        text = text.replace("${CLAUDE_SESSION_ID}", self.parts.log.session_id)
        request = render_command(command, await self._run_lines(text, command), self.parts.places.cwd)
        files = [block async for block in self._read_files(text)]
        return ExpandedMessage((TextBlock(request, Origin.CODE), *files), tuple(added))

    def _allow(self, command: PromptCommand) -> None:
        """Allows for this turn what a trusted command allows. Rules that ask or deny still win."""
        reader = RuleReader(self.parts.places.checkout)
        for rule in command.allowed_tools:
            reader.read("allow", rule)
        for problem in reader.problems():
            self._tell(f"{command.path}: {problem}.")
        self.gate.for_turn = Rules.parse(reader.rules["allow"])

    async def _run_lines(self, text: str, command: PromptCommand) -> str:
        """Returns the text with the output of its commands in their place."""
        pieces, at = list[str](), 0
        for found in RUNS.finditer(text):
            pieces.append(escape_tags(text[at : found.start()]))
            at = found.end()
            if command.ignored:
                pieces.append(f"[`{escape_tags(found[1])}` was not run: {command.ignored}]")
                continue
            output = await self._call("Bash", {"command": found[1]})
            pieces.append(
                fence(Origin.TOOL, text_of(output)).text if output.ran else f"[{escape_tags(text_of(output))}]"
            )
        return "".join((*pieces, escape_tags(text[at:])))

    async def _read_files(self, text: str) -> AsyncIterator[TextBlock]:
        """Yields the files that the text names with `@`."""
        names = dict.fromkeys(match.rstrip(".") for match in _FILE.findall(RUNS.sub("", text)))
        cwd = self.parts.places.cwd
        existing = [name for name in names if (cwd / Path(name).expanduser()).is_file()]
        for name in existing[:_MOST_FILES]:
            output = await self._call("Read", {"file_path": str(cwd / Path(name).expanduser())})
            yield fence(Origin.TOOL, f"{name}:\n{text_of(output)}")

    async def _call(self, tool: str, given: JsonObject) -> ToolOutput:
        """Runs a tool as if the model had called it: with permissions, hooks and layer 1."""
        thread = self._thread
        assert thread is not None, "a session attaches its thread"
        call = ToolUseBlock(f"command-{next(self._numbers)}-{self.parts.log.session_id[:8]}", tool, given)
        output = ToolOutput("It did not run.", is_error=True, ran=False)
        self.emit(ToolStarted(call.id, tool, given))
        async for _, raw in run_calls([call], thread.tools, thread.context):
            output = await thread.surroundings.keep(call, raw)
        self.emit(ToolFinished(call.id, tool, text_of(output), output.is_error, output.seconds, output.how))
        return output

    # -- /init ----------------------------------------------------------------------------------------------------

    def _init_request(self, args: str) -> TextBlock:
        folder = self.parts.places.checkout
        target = find_target(folder)
        if target.exists():
            self._ask_before_writing(target)
        return TextBlock(render_request(folder, args), Origin.CODE)

    def _ask_before_writing(self, target: Path) -> None:
        """Asks before this file changes, in every permission mode: the question shows the difference."""
        reader = RuleReader(target.parent)
        reader.read("ask", f"Edit(/{target.name})")
        self.gate.for_turn = Rules.parse(ask=reader.rules["ask"])

    async def answer(self, said: Sequence[TextBlock]) -> str | None:
        """Carries out /init by code if no model can; None for everything else."""
        found = self.find(said[0].text) if said and said[0].origin.is_users else None
        if found is None or found[0].name != "init" or self.parts.model.name != EMBEDDED:
            return None
        folder = self.parts.places.checkout
        target = find_target(folder)
        if not target.exists():
            output = await self._call("Write", {"file_path": str(target), "content": draft(folder)})
            return _report(output, f"Wrote {target.name} from what is in the project. Read it, and correct it.")
        self._ask_before_writing(target)
        before = await self._call("Read", {"file_path": str(target)})
        if before.is_error:
            return text_of(before)
        try:
            now = read_regular_text(target)
        except (OSError, ValueError) as error:
            return f"Nothing was written: {target} cannot be read as text ({error})."
        text = extend(folder, now)
        if text == now:
            return f"{target.name} is up to date: code finds nothing to add."
        output = await self._call("Write", {"file_path": str(target), "content": text})
        return _report(output, f"Added to {target.name} what was missing.")

    def _tell(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self.emit(Notice(text, "warning", "commands"))


def _report(output: ToolOutput, done: str) -> str:
    return f"Nothing was written. {text_of(output)}" if output.is_error else done


def fill_arguments(body: str, args: str) -> str:
    """Fills in `$ARGUMENTS`, `$ARGUMENTS[0]` and `$0`, `$1`, … (the first is 0). Without any of them, adds `args`."""
    try:
        words = shlex.split(args)
    except ValueError:
        words = args.split()
    is_used = False

    def value(found: re.Match[str]) -> str:
        nonlocal is_used
        is_used = True
        number = found[1] or found[2]
        if number is None:
            return args
        return words[int(number)] if int(number) < len(words) else ""

    text = _ARGUMENT.sub(value, body)
    return text if is_used or not args else f"{text}\n\nARGUMENTS: {args}"
