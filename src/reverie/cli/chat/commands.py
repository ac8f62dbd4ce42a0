"""The slash commands of the chat: name, help, completion and function.

To add one, write `async def _name(chat, rest)` and put it into `COMMANDS`.
"""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from reverie.cli.chat.palette import rank, session_rows
from reverie.cli.chat.slash.agents import ask_aside, complete_answers, show_agents
from reverie.cli.chat.slash.context import clear, compact, complete_pin, complete_rewind, notes, pin, rewind, undo
from reverie.cli.chat.slash.dream import complete_dream, dream
from reverie.cli.chat.slash.export import export
from reverie.cli.chat.slash.mcp import complete_servers, show_servers
from reverie.cli.chat.slash.memory import forget, memory_files, remember, show_memory
from reverie.cli.chat.slash.permissions import complete_permissions, show_permissions
from reverie.cli.chat.slash.tasks import show_tasks, task_ids
from reverie.cli.diff_preview import text_lines
from reverie.cli.output import Paint, columns, format_tokens, one_line, table
from reverie.errors import UserError
from reverie.instructions.commands import list_shown
from reverie.permissions.policy import PolicyMode
from reverie.quick import dataclass
from reverie.text.columns import width

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat

Handler = Callable[["Chat", str], Awaitable[None]]
Complete = Callable[["Chat"], Iterable[tuple[str, str]]]


KEYS = (
    ("Enter", "sends; during a turn, the message waits until the turn ends"),
    ("Alt-Enter, or \\ at the end", "a new line"),
    ("Up", "takes back the last waiting message, or goes through the history"),
    ("Esc, Ctrl-C", "stops the turn"),
    ("Ctrl-C twice, Ctrl-D", "leaves"),
    ("/ or Ctrl-K", "all commands, by any of their letters"),
    ("@", "files of the project, by any of their letters; a picture goes along"),
    ("!COMMAND", "runs a command of yours at once; the next message tells the model"),
    ("Esc twice", "goes back to an earlier message"),
    ("Shift-Tab", "permissions: ask, accept edits, read only"),
    ("Ctrl-R", "searches your messages"),
    ("Ctrl-G", "edits the message in $VISUAL or $EDITOR (also Ctrl-X Ctrl-E)"),
    ("Ctrl-O", "the whole output of the last tool call"),
    ("Ctrl-T", "background tasks"),
)
"""The keys of the chat, for /help and the documentation."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """`run` gets the text after the name; `complete` gives possible words with their descriptions."""

    usage: str
    help: str
    run: Handler
    complete: Complete = lambda _chat: ()
    any_time: bool = False
    """Whether it can run during a turn."""
    alone_any_time: bool = False
    """Whether it can run during a turn if nothing is written after its name: then it only shows something."""

    def runs_during_turns(self, rest: str) -> bool:
        return self.any_time or (self.alone_any_time and not rest)


async def _help(chat: Chat, _rest: str) -> None:
    own = list_shown(chat.session.commands.load(), COMMANDS)
    rows = [(command.usage, command.help) for command in COMMANDS.values()]
    rows += [(one_line(one.usage, 60), one_line(one.description, 80)) for one in own]
    view = chat.view
    view.say_all([*_explain(rows, view.paint, view.columns), "", *_explain(KEYS, view.paint, view.columns)])


def _explain(rows: Iterable[tuple[str, str]], paint: Paint, columns: int) -> Iterator[str]:
    """Names beside their explanations; a long name, or every name in a narrow terminal, has a line of its own."""
    wide = min(columns, 100)
    left = 30 if wide >= 70 else 4
    for name, about in rows:
        first, *rest = textwrap.wrap(about, wide - left - 3) or [""]
        fits = width(name) <= left - 2
        yield f"  {paint.accent(name)}" + (" " * (left - width(name)) + first if fits else "")
        yield from (" " * (left + 2) + line for line in (rest if fits else (first, *rest)))


async def _model(chat: Chat, rest: str) -> None:
    if not rest:
        chat.view.tell(f"The model is {chat.session.model_name}. /model NAME changes it from the next message on.")
        return
    await chat.change_model(rest)
    chat.view.tell(f"The model is now {chat.session.model_name}.")


def _model_names(_chat: Chat) -> Iterable[tuple[str, str]]:
    from reverie.models.catalogue import Catalogue

    catalogue = Catalogue.load()
    for name in catalogue.names:
        facts = catalogue.facts(name)
        if facts.provider in ("anthropic", "openai"):
            yield f"{facts.provider}:{name}", f"window {format_tokens(facts.window)}"
    yield "embedded", "no key, no network"


async def _context(chat: Chat, _rest: str) -> None:
    from reverie.cli.sessions.context import context_text

    chat.view.say(context_text(chat.session, paint=chat.view.paint, wide=columns()))


async def _cost(chat: Chat, _rest: str) -> None:
    from reverie.cli.sessions.cost import cost_text

    chat.view.say(cost_text(chat.session, paint=chat.view.paint, wide=columns()))


async def _resume(chat: Chat, rest: str) -> None:
    from reverie.storage.transcript.sessions import find_session

    places = chat.session.places
    if rest:
        await chat.resume(find_session(places.project, rest).id)
        return
    rows = await asyncio.to_thread(session_rows, places.project, chat.session.id)
    if not rows:
        raise UserError("There is no other session of this folder.")
    if not chat.can_ask:
        chat.view.say_all(table([(row.value[:8], row.note, row.text) for row in rows]))
    elif (chosen := await chat.pick("Continue which session?", rows)) is not None:
        await chat.resume(chosen)


def _session_ids(chat: Chat) -> Iterable[tuple[str, str]]:
    rows = session_rows(chat.session.places.project, chat.session.id)
    return ((row.value[:8], f"{row.text} · {row.note}") for row in rows[:20])


async def _show(chat: Chat, rest: str) -> None:
    known = chat.outputs.numbers
    if not known:
        raise UserError("There is no output to show yet.")
    if rest and rest not in known:
        raise UserError(f"There is no output {rest!r}; there are {known[0]} to {known[-1]}.")
    number = rest or known[-1]
    title, text = chat.outputs.get(number)
    chat.view.say(chat.view.paint.dim(f"  {number}: {one_line(title, chat.view.columns - 10)}"))
    chat.view.say_all(text_lines(text, chat.view.columns - 1))


def _output_numbers(chat: Chat) -> Iterable[tuple[str, str]]:
    return ((number, one_line(chat.outputs.get(number)[0], 60)) for number in reversed(chat.outputs.numbers))


async def _copy(chat: Chat, _rest: str) -> None:
    if not chat.last_answer:
        raise UserError("There is no answer to copy yet.")
    if not chat.copy(chat.last_answer):
        raise UserError("The answer cannot be copied: it is too long, or this terminal has no clipboard.")
    chat.view.tell(f"Sent {len(chat.last_answer):,} characters to the clipboard of your terminal, if it allows that.")


async def _mode(chat: Chat, rest: str) -> None:
    gate = chat.session.gate
    if rest and rest not in _MODES:
        raise UserError(f"There is no permission mode {rest!r}; there are {', '.join(_MODES)}.")
    if rest == PolicyMode.ACCEPT_ALL and gate.mode is not PolicyMode.ACCEPT_ALL:
        if not chat.can_ask:
            raise UserError("Nobody can be asked here; use `--permission-mode accept_all`.")
        if not await chat.confirm("From now on every command runs without a question. Continue?"):
            return
    if rest:
        gate.mode = PolicyMode(rest)
    chat.view.tell(f"mode: {gate.mode.value}. {_MODES[gate.mode.value].capitalize()}.")


async def _vi(chat: Chat, _rest: str) -> None:
    on = chat.input.switch_vi_keys()
    if on is None:
        raise UserError("This input has no keys of vi; Ctrl-G opens the message in your editor.")
    chat.view.tell(f"The keys of vi are {'on' if on else 'off'}; the setting chat.vi_keys keeps it.")


async def _exit(chat: Chat, _rest: str) -> None:
    chat.leaving = True
    chat.stop()


_MODES = {
    "ask": "changes ask first",
    "accept_edits": "files of the folder change without a question",
    "read_only": "nothing is changed",
    "accept_all": "every call runs without a question",
}
_COMPACT_OPTIONS = (("--preview", "show it first"), ("--from", "only later messages"), ("--up-to", "only earlier ones"))
COMMANDS: dict[str, SlashCommand] = {
    "help": SlashCommand("/help", "this list", _help, any_time=True),
    "context": SlashCommand("/context", "how full the window is", _context, any_time=True),
    "cost": SlashCommand("/cost", "what this conversation has cost", _cost, any_time=True),
    "model": SlashCommand("/model [NAME]", "show or change the model", _model, _model_names, alone_any_time=True),
    "resume": SlashCommand("/resume [SESSION]", "continue another session", _resume, _session_ids),
    "show": SlashCommand(
        "/show [N]", "the whole output of a tool, or thinking (Ctrl-O)", _show, _output_numbers, any_time=True
    ),
    "copy": SlashCommand("/copy", "copy the last answer to the clipboard", _copy, any_time=True),
    "tasks": SlashCommand("/tasks [end | kill ID]", "what runs in the background", show_tasks, task_ids, any_time=True),
    "agents": SlashCommand(
        "/agents [allow|deny ID]", "running agents and their questions", show_agents, complete_answers, any_time=True
    ),
    "permissions": SlashCommand(
        "/permissions [remove RULE]",
        "all permission rules, and where they come from",
        show_permissions,
        complete_permissions,
        any_time=True,
    ),
    "mcp": SlashCommand(
        "/mcp [NAME | reconnect NAME]", "MCP servers and their tools", show_servers, complete_servers, any_time=True
    ),
    "mode": SlashCommand(
        "/mode [NAME]",
        "what happens to calls without a rule (Shift-Tab)",
        _mode,
        lambda _chat: _MODES.items(),
        any_time=True,
    ),
    "btw": SlashCommand("/btw QUESTION", "ask without changing the conversation", ask_aside),
    "compact": SlashCommand(
        "/compact [TEXT | --preview | --from MSG | --up-to MSG]",
        "summarise to make room; TEXT says what matters",
        compact,
        lambda _chat: _COMPACT_OPTIONS,
    ),
    "notes": SlashCommand(
        "/notes [update]",
        "the notes of this conversation",
        notes,
        lambda _chat: [("update", "update them now")],
        alone_any_time=True,
    ),
    "undo": SlashCommand("/undo [--fit | files]", "undo the last compaction, rewind or clear, or file changes", undo),
    "rewind": SlashCommand("/rewind [MSG]", "continue from an earlier message", rewind, complete_rewind),
    "memory": SlashCommand(
        "/memory [[edit|share|unshare] FILE | inbox | inferred]",
        "all memories, one of them, or what waits",
        show_memory,
        memory_files,
        alone_any_time=True,
    ),
    "remember": SlashCommand("/remember TEXT", "remember something, in your own words", remember),
    "forget": SlashCommand("/forget TEXT", "forget a memory; it can be restored", forget, memory_files),
    "dream": SlashCommand("/dream [status|review|…]", "tidy up memory in the background", dream, complete_dream),
    "pin": SlashCommand(
        "/pin [TEXT | remove ID]", "keep a text through every compaction", pin, complete_pin, alone_any_time=True
    ),
    "clear": SlashCommand("/clear", "start a new conversation; /undo restores the old one", clear),
    "export": SlashCommand("/export [FILE]", "write the conversation to a Markdown file", export, any_time=True),
    "vi": SlashCommand("/vi", "the keys of vi at the input, on or off", _vi, any_time=True),
    "exit": SlashCommand("/exit", "leave (also /quit, Ctrl-D)", _exit, any_time=True),
}
ALIASES = {"vim": "vi", "quit": "exit", "q": "exit", "?": "help", "new": "clear"}


def command_in(text: str) -> tuple[str, str] | None:
    """The name and the rest of a line that is a command; None for other lines, even if they start with a path."""
    if text.strip() in ("exit", "quit"):
        return "exit", ""
    name, _, rest = text.strip().partition(" ")
    if not name.startswith("/") or "/" in name[1:] or "\n" in name or not name[1:2]:
        return None
    return ALIASES.get(name[1:], name[1:]), rest.strip()


def completions(chat: Chat, text: str) -> Iterator[tuple[str, int, str]]:
    """Completes a line that begins with a slash."""
    name, space, rest = text[1:].partition(" ")
    if not space:
        own = [
            (one.name, f"{one.hint} {one.description}".strip())
            for one in list_shown(chat.session.commands.load(), COMMANDS)
        ]
        offered = [*((known, command.help) for known, command in COMMANDS.items()), *own]
        for known, about in rank(name, offered, lambda each: each[0]):
            yield f"/{known}", len(text), one_line(about, 80)
    elif command := COMMANDS.get(name):
        for word, about in command.complete(chat):
            if rest.lower() in word.lower():
                yield word, len(rest), about
