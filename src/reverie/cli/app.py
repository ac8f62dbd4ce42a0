"""The `reverie` command: a table of sub-commands, loaded when they are run, and the one place that shows errors.

`reverie --help` imports none of them. A mistake of the user's is one line on standard error and an exit code; a
traceback is shown for nothing but a bug.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import click

from reverie import __version__
from reverie.cli.screen import abandon, finish_unread, guard, lost_output
from reverie.errors import ReverieError

PIPE_CLOSED = 141
"""Exit code when whoever read our output has gone: what a shell reports for a program ended by SIGPIPE."""

_COMPLETING = "_REVERIE_COMPLETE"

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "it went wrong (the sentence on standard error says how), or was refused",
    2: "usage: an unknown command or option, a bad value, a settings file with a mistake, a missing extra",
    3: "the session is open in another process, which is named",
    4: "storage: the disk is full, read-only or gone",
    5: "the model could not answer",
    6: "the window is full: compact, or start again with an empty conversation",
    130: "cancelled (Ctrl-C); 143 when ended by SIGTERM",
    PIPE_CLOSED: "the reader of our output has gone",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where in `reverie.cli` a command lives, and what the list of commands says about it."""

    place: str
    help: str
    ends_unread: bool = False
    """It works for whoever reads its output, and ends when they leave. Any other command finishes what it began."""

    @property
    def target(self) -> str:
        return f"reverie.cli.{self.place}"


COMMANDS: Mapping[str, Entry] = {
    "chat": Entry("chat.command:command", "Talk to the agent in this folder.", ends_unread=True),
    "run": Entry("run:command", "Run one prompt and print the answer.", ends_unread=True),
    "sessions": Entry("sessions.command:command", "List, show and delete conversations."),
    "remember": Entry("memory.change:remember_command", "Remember something, in your own words."),
    "recall": Entry("memory.recall:command", "Show which memories a message would bring back."),
    "forget": Entry("memory.change:forget_command", "Forget a memory; it can be brought back."),
    "memory": Entry("memory.command:command", "Look at what is remembered, change it, go back."),
    "dream": Entry("dream.command:command", "Put memory in order across sessions; review and undo that."),
    "compact": Entry("sessions.action:compact_command", "Summarise a conversation to make room, or take that back."),
    "notes": Entry("sessions.notes:command", "Show the notes kept of a conversation, or bring them up to date."),
    "rewind": Entry("sessions.action:rewind_command", "Go on from an earlier message of a conversation."),
    "pin": Entry("sessions.action:pin_command", "Keep a text through every compaction."),
    "extract": Entry("memory.extract:command", "Learn from recorded sessions."),
    "settings": Entry("settings:command", "Show every setting and where its value came from."),
    "trust": Entry("trust:command", "Trust the settings that a folder brings along."),
    "cost": Entry("sessions.cost:command", "Show what was spent, on what, and what the cache saved."),
    "context": Entry("sessions.context:command", "Show what fills the window of a conversation."),
    "agents": Entry("agents:command", "List kinds of agents and those at work; share their memories."),
    "btw": Entry("sessions.action:btw_command", "Ask something about a conversation without it noticing."),
    "team": Entry(
        "team.command:command", "Let several agents work on one task, each in its own process.", ends_unread=True
    ),
    "tasks": Entry("sessions.tasks:command", "List and kill the background tasks of live sessions."),
    "log": Entry("sessions.log:command", "Read the background log.", ends_unread=True),
    "doctor": Entry("doctor.command:command", "Check that everything Reverie needs is there."),
    "demo": Entry(
        "demo.command:command", "Play three days with an agent, without a key or a network.", ends_unread=True
    ),
    "simulate": Entry(
        "simulate:command", "Serve the Messages API on loopback, billed as documented.", ends_unread=True
    ),
    "models": Entry("memory.models:command", "Add, list and remove sentence encoders for memory recall."),
    "lab": Entry("lab.command:command", "Measure Reverie on recorded work.", ends_unread=True),
    "completion": Entry("completion:command", "Print a completion script for your shell."),
}


class Commands(click.Group):
    """A group that knows the names and one line of help of its commands, and imports one when it is asked for."""

    entries: Mapping[str, Entry] = COMMANDS
    kind = "command"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        from importlib import import_module

        finish_unread((BrokenPipeError,) if entry.ends_unread else ())
        module, _, name = entry.target.partition(":")
        return cast(click.Command, getattr(import_module(module), name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.entries and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(unknown_name(self.kind, name, self.entries), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=e.help) for name, e in self.entries.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def unknown_name(kind: str, name: str, known: Mapping[str, object]) -> str:
    """The sentence about a name that is none, with the nearest ones that are."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}."
    return f"There is no {kind} {name!r}; {hint}"


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="reverie %(version)s")
def commands() -> None:
    """A memory for LLM agents: conversations that outlive their window.

    \b
    Examples:
      reverie chat
      reverie run "What does this project do?"
      git diff | reverie run "Review this" --json
      reverie sessions list
    """


def app() -> NoReturn:
    """Runs the command line and ends the process with the exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us: what is written there goes nowhere
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):  # a terminal in another encoding, or half an emoji, must not end a command
        if hasattr(stream, "reconfigure"):
            cast(Any, stream).reconfigure(errors="backslashreplace")
    guard()
    code = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED
    except OSError as error:
        code = code or _tell(_refused(error), 4)
    if (lost := lost_output()) is not None:
        told = f"The command has done its work; only its output could not be written ({lost.strerror or lost})."
        code = PIPE_CLOSED if isinstance(lost, BrokenPipeError) else code or _tell(told, 4)
    # What Python would flush once more on its way out has been told about already.
    abandon()
    sys.exit(code)


def _run() -> int:
    try:
        code = _invoke()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "reverie"
        return _tell(f"{_sentence(error.format_message())} (`{where} --help` shows how.)", 2)
    except click.Abort:
        return _tell("Cancelled.", 130)
    except click.ClickException as error:
        return _tell(_sentence(error.format_message()), error.exit_code)
    except ReverieError as error:
        return _tell(_sentence(str(error)), error.exit_code)
    except KeyboardInterrupt:
        return _tell("Cancelled.", 130)
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:
        return _tell(_refused(error), 4)
    return code if isinstance(code, int) else 0


def _invoke() -> Any:
    if _COMPLETING in os.environ:  # a shell asks what can follow: click answers and ends the process
        return commands.main(prog_name="reverie", complete_var=_COMPLETING)
    # Not `main`, which has an exit code of its own for a closed pipe.
    with commands.make_context("reverie", sys.argv[1:]) as context:
        return commands.invoke(context)


def _sentence(text: str) -> str:
    """One line that ends like a sentence."""
    line = " ".join(text.split())
    return line if line.endswith((".", "?", "!", "…", ")")) else line + "."


def _tell(sentence: str, code: int) -> int:
    with suppress(OSError):  # nobody may be left to tell
        print(f"reverie: {sentence}", file=sys.stderr, flush=True)
    return code


def _refused(error: OSError) -> str:
    """What the system said, with the file if it names one; a stream such as standard output has no name."""
    from reverie.storage.atomic import cause_of

    where = str(error.filename) if error.filename else "The output, or a temporary file, could not be written"
    return f"{where}: {cause_of(error)}."
