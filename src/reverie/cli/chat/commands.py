"""The slash commands of the chat: name, help, completion and function.

To add one, write `async def _name(chat, rest)` and put it into `COMMANDS`.
"""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reverie.cli.chat.input import PickRow
from reverie.cli.chat.palette import rank, session_rows
from reverie.cli.chat.slash.agents import ask_aside, complete_answers, show_agents
from reverie.cli.chat.slash.context import clear, compact, complete_pin, complete_rewind, notes, pin, rewind, undo
from reverie.cli.chat.slash.dream import complete_dream, dream
from reverie.cli.chat.slash.mcp import complete_servers, show_servers
from reverie.cli.chat.slash.memory import forget, memory_files, remember, show_memory
from reverie.cli.chat.slash.permissions import complete_permissions, show_permissions
from reverie.cli.diff_preview import text_lines
from reverie.cli.output import columns, format_seconds, format_tokens, one_line, table
from reverie.errors import UserError
from reverie.instructions.commands import list_shown
from reverie.text.columns import width

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.cli.chat.output import ChatOutput

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


async def _help(chat: Chat, _rest: str) -> None:
    own = list_shown(chat.session.commands.load(), COMMANDS)
    rows = [(command.usage, command.help) for command in COMMANDS.values()]
    rows += [(one_line(one.usage, 60), one_line(one.description, 80)) for one in own]
    chat.view.say_all([*_explain(rows, chat.view), "", *_explain(KEYS, chat.view)])


def _explain(rows: Iterable[tuple[str, str]], view: ChatOutput) -> Iterator[str]:
    """Names beside their explanations; a long name, or every name in a narrow terminal, has a line of its own."""
    wide = min(view.columns, 100)
    left = 30 if wide >= 70 else 4
    for name, about in rows:
        first, *rest = textwrap.wrap(about, wide - left - 3) or [""]
        fits = width(name) <= left - 2
        yield f"  {view.paint.accent(name)}" + (" " * (left - width(name)) + first if fits else "")
        yield from (" " * (left + 2) + line for line in (rest if fits else (first, *rest)))


async def _tasks(chat: Chat, rest: str) -> None:
    from reverie.cli.team.status import running_lines

    what, _, id = rest.partition(" ")
    tasks = chat.session.tasks
    if what == "kill":
        info = await tasks.kill(id.strip())
        chat.view.tell(f"{info.id}: {info.state.value}")
        return
    if rest == "end":
        await _end_task(chat)
        return
    if rest:
        raise UserError("Write /tasks, /tasks end to choose one, or /tasks kill ID.")
    listed, teams = tasks.list(), await asyncio.to_thread(running_lines, chat.session.places)
    if not listed and not teams:
        chat.view.tell("No background tasks.")
    rows = list[tuple[str, ...]]()
    for info in listed:
        note = info.error or (info.progress[-1] if info.progress else "")
        took = format_seconds(info.seconds)
        rows.append((info.id, info.state.value, took, info.title, chat.view.paint.dim(one_line(note, 60))))
    chat.view.say_all(f"  {line}" for line in (*table(rows, right=(2,)), *(one_line(team, 120) for team in teams)))


async def _end_task(chat: Chat) -> None:
    """Lists the running tasks with their progress, and ends the one that is chosen."""
    running = chat.session.tasks.running
    if not running:
        chat.view.tell("No background tasks are running.")
        return
    rows = [
        PickRow(
            info.id,
            f"{info.title}: {info.progress[-1]}" if info.progress else info.title,
            f"{info.purpose} · {format_seconds(info.seconds)}",
        )
        for info in running
    ]
    chosen = await chat.pick("Background tasks. Enter ends one.", rows)
    if chosen is not None and await chat.confirm("End this task?"):
        ended = await chat.session.tasks.kill(chosen)
        chat.view.tell(f"{ended.id}: {ended.state.value}")


def _task_ids(chat: Chat) -> Iterable[tuple[str, str]]:
    return ((f"kill {info.id}", info.title) for info in chat.session.tasks.running)


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


async def _exit(chat: Chat, _rest: str) -> None:
    chat.leaving = True
    chat.stop()


_COMPACT_OPTIONS = (("--preview", "show it first"), ("--from", "only later messages"), ("--up-to", "only earlier ones"))
COMMANDS: dict[str, SlashCommand] = {
    "help": SlashCommand("/help", "this list", _help, any_time=True),
    "context": SlashCommand("/context", "how full the window is", _context, any_time=True),
    "cost": SlashCommand("/cost", "what this conversation has cost", _cost, any_time=True),
    "model": SlashCommand("/model [NAME]", "show or change the model", _model, _model_names),
    "resume": SlashCommand("/resume [SESSION]", "continue another session", _resume, _session_ids),
    "show": SlashCommand(
        "/show [N]", "the whole output of a tool, or thinking (Ctrl-O)", _show, _output_numbers, any_time=True
    ),
    "copy": SlashCommand("/copy", "copy the last answer to the clipboard", _copy, any_time=True),
    "tasks": SlashCommand("/tasks [end | kill ID]", "what runs in the background", _tasks, _task_ids, any_time=True),
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
    "btw": SlashCommand("/btw QUESTION", "ask without changing the conversation", ask_aside),
    "compact": SlashCommand(
        "/compact [TEXT | --preview | --from MSG | --up-to MSG]",
        "summarise to make room; TEXT says what matters",
        compact,
        lambda _chat: _COMPACT_OPTIONS,
    ),
    "notes": SlashCommand(
        "/notes [update]", "the notes of this conversation", notes, lambda _chat: [("update", "update them now")]
    ),
    "undo": SlashCommand("/undo [--fit]", "undo the last compaction, rewind or clear", undo),
    "rewind": SlashCommand("/rewind [MSG]", "continue from an earlier message", rewind, complete_rewind),
    "memory": SlashCommand(
        "/memory [[edit] FILE | inbox | inferred]",
        "all memories, one of them, or what waits",
        show_memory,
        memory_files,
    ),
    "remember": SlashCommand("/remember TEXT", "remember something, in your own words", remember),
    "forget": SlashCommand("/forget TEXT", "forget a memory; it can be restored", forget, memory_files),
    "dream": SlashCommand("/dream [status|review|…]", "tidy up memory in the background", dream, complete_dream),
    "pin": SlashCommand("/pin [TEXT | remove ID]", "keep a text through every compaction", pin, complete_pin),
    "clear": SlashCommand("/clear", "start a new conversation; /undo restores the old one", clear),
    "exit": SlashCommand("/exit", "leave (also /quit, Ctrl-D)", _exit, any_time=True),
}
ALIASES = {"quit": "exit", "q": "exit", "?": "help", "new": "clear"}


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
