"""The `reverie` command: a table of sub-commands, and the one place that shows errors.

A sub-command is imported when it runs; `reverie --help` imports none. A mistake of the user becomes one line on
standard error and an exit code. Only a bug shows a traceback.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn, cast

import click

from reverie import __version__
from reverie.cli.below_agent import AgentsMay, guard_command
from reverie.cli.screen import drop_output, end_only_on, guard, output_error
from reverie.errors import ReverieError
from reverie.quick import dataclass

PIPE_CLOSED = 141
"""Exit code when the program that read our output has closed the pipe, as a shell reports it after SIGPIPE."""

_COMPLETING = "_REVERIE_COMPLETE"

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "it failed or was refused; the sentence on standard error says why",
    2: "wrong usage: an unknown command or option, a bad value, a mistake in a settings file, a missing package",
    3: "the session is open in another process; the message names it",
    4: "storage error: the disk is full, read-only or no longer available",
    5: "the model could not answer",
    6: "the window is full: compact the conversation, or start a new one",
    130: "cancelled with Ctrl-C (143: ended by SIGTERM)",
    PIPE_CLOSED: "the program that read the output has closed the pipe",
}


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """Where in `reverie.cli` a command is, and its line in the list of commands."""

    place: str
    help: str
    agents: AgentsMay
    ends_unread: bool = False
    """Whether the command ends when nobody reads its output any more. All others finish their work."""

    @property
    def target(self) -> str:
        return f"reverie.cli.{self.place}"


_ALL, _AS_MODEL, _NOTHING = AgentsMay.ALL, AgentsMay.AS_MODEL, AgentsMay.NOTHING

COMMANDS: Mapping[str, CommandEntry] = {
    "chat": CommandEntry("chat.command:command", "Talk to the agent in this folder.", _NOTHING, ends_unread=True),
    "run": CommandEntry("run:command", "Run one prompt and print the answer.", _AS_MODEL, ends_unread=True),
    "sessions": CommandEntry("sessions.command:command", "List, show and delete conversations.", _NOTHING),
    "remember": CommandEntry("memory.change:remember_command", "Remember something, in your own words.", _AS_MODEL),
    "recall": CommandEntry("memory.recall:command", "Show which memories would be added to a message.", _ALL),
    "forget": CommandEntry("memory.forget:forget_command", "Forget a memory. It can be restored.", _AS_MODEL),
    "memory": CommandEntry("memory.command:command", "List, change and restore memories.", _ALL),
    "dream": CommandEntry("dream.command:command", "Tidy up memory across sessions; review or undo it.", _NOTHING),
    "compact": CommandEntry(
        "sessions.actions:compact_command", "Summarise a conversation to make room, or undo that.", _ALL
    ),
    "notes": CommandEntry("sessions.notes:command", "Show or update the notes of a conversation.", _ALL),
    "rewind": CommandEntry(
        "sessions.actions:rewind_command", "Go back to an earlier message and continue from there.", _NOTHING
    ),
    "pin": CommandEntry("sessions.actions:pin_command", "Keep a text in every summary of a conversation.", _AS_MODEL),
    "extract": CommandEntry("memory.extract:command", "Write memories from recorded sessions.", _NOTHING),
    "connect": CommandEntry(
        "connect.command:connect_command", "Put Reverie into Claude Code, Codex or an editor.", _NOTHING
    ),
    "disconnect": CommandEntry(
        "connect.command:disconnect_command", "Take Reverie out of other agents and editors.", _NOTHING
    ),
    "mcp": CommandEntry("mcp:command", "Serve memory to any MCP client; use MCP servers of others.", _NOTHING),
    "acp": CommandEntry("acp:command", "Run as an agent inside an editor (Zed, JetBrains, Toad).", _NOTHING),
    "settings": CommandEntry("settings:command", "Show every setting and where its value comes from.", _ALL),
    "permissions": CommandEntry("permissions:command", "List the permission rules, and remove saved ones.", _NOTHING),
    "trust": CommandEntry("trust:command", "Trust the settings files of a folder.", _NOTHING),
    "cost": CommandEntry("sessions.cost:command", "Show what was spent, on what, and what the cache saved.", _ALL),
    "health": CommandEntry(
        "sessions.health:command", "Show how often each layer worked, declined or failed, and why.", _ALL
    ),
    "context": CommandEntry("sessions.context:command", "Show what fills the window of a conversation.", _ALL),
    "web": CommandEntry("web:command", "Show windows, costs, memories and dreams in a browser.", _NOTHING),
    "agents": CommandEntry("agents:command", "List agent definitions and running agents; share memories.", _NOTHING),
    "btw": CommandEntry("sessions.actions:btw_command", "Ask about a conversation without changing it.", _ALL),
    "team": CommandEntry("team.command:command", "Let several agents work on one task.", _ALL, ends_unread=True),
    "tasks": CommandEntry("sessions.tasks:command", "List and stop the background tasks of open sessions.", _ALL),
    "log": CommandEntry("sessions.log:command", "Show what happened in the background.", _ALL, ends_unread=True),
    "daemon": CommandEntry("daemon:command", "Show, stop or run the service behind the hooks of other agents.", _ALL),
    "doctor": CommandEntry("doctor.checks:command", "Check that Reverie has everything it needs.", _ALL),
    "demo": CommandEntry(
        "demo.command:command", "Show a demo: three days of work with an agent.", _ALL, ends_unread=True
    ),
    "simulate": CommandEntry(
        "simulate:command", "Run a simulator of Anthropic's Messages API.", _ALL, ends_unread=True
    ),
    "proxy": CommandEntry("proxy:command", "Make requests of any client cheaper.", _ALL, ends_unread=True),
    "serve": CommandEntry("serve.command:command", "Serve memory to people and machines.", _NOTHING, ends_unread=True),
    "worker": CommandEntry("serve.worker:command", "Run the dreams of the memory server.", _ALL, ends_unread=True),
    "models": CommandEntry(
        "memory.models:command", "Add, list and remove encoders for recall (not language models).", _NOTHING
    ),
    "lab": CommandEntry("lab:command", "Run benchmarks, most of them on recorded sessions.", _ALL, ends_unread=True),
    "completion": CommandEntry("completion:command", "Print a completion script for your shell.", _ALL),
}


class Commands(click.Group):
    """A group that knows the names and help lines of its commands and imports a command when it runs."""

    entries: Mapping[str, CommandEntry] = COMMANDS
    kind = "command"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        from importlib import import_module

        end_only_on((BrokenPipeError,) if entry.ends_unread else ())
        module, _, name = entry.target.partition(":")
        command = cast(click.Command, getattr(import_module(module), name))
        guard_command(command, entry.agents)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.entries and not name.startswith("-") and not ctx.resilient_parsing:
            within = self._find_within(ctx, name)
            said = f"There is no command {name!r}; did you mean `reverie {within} {name}`?" if within else ""
            raise click.UsageError(said or unknown_name(self.kind, name, self.entries), ctx)
        return super().resolve_command(ctx, args)

    def _find_within(self, ctx: click.Context, name: str) -> str:
        """The group that has a command of this name; empty if there is none."""
        groups = ((one, self.get_command(ctx, one)) for one in ("memory", "sessions", "serve", "dream"))
        return next((one for one, it in groups if isinstance(it, click.Group) and name in it.list_commands(ctx)), "")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=e.help) for name, e in self.entries.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def unknown_name(kind: str, name: str, known: Mapping[str, object]) -> str:
    """The error about an unknown name, with the nearest known names."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}."
    return f"There is no {kind} {name!r}; {hint}"


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="reverie %(version)s")
def commands() -> None:
    """A memory for LLM agents, and conversations that can be longer than the context window of the model.

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
        if getattr(sys, name) is None:  # the parent process closed it: what we write there is dropped
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
        code = code or _report(_describe_os_error(error), 4)
    if (lost := output_error()) is not None:
        message = f"The command has done its work, but its output could not be written ({lost.strerror or lost})."
        code = PIPE_CLOSED if isinstance(lost, BrokenPipeError) else code or _report(message, 4)
    gc.freeze()  # else Python looks at every object again when it ends
    drop_output()  # else Python flushes again at exit and reports the same error
    sys.exit(code)


def _run() -> int:
    try:
        code = _invoke()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # its message is the whole help
            click.echo(error.format_message(), err=True)
            return error.exit_code
        where = error.ctx.command_path if error.ctx is not None else "reverie"
        return _report(f"{_as_sentence(error.format_message())} (`{where} --help` shows how.)", 2)
    except (click.Abort, KeyboardInterrupt):
        return _report("Cancelled.", 130)
    except click.ClickException as error:
        return _report(_as_sentence(error.format_message()), error.exit_code)
    except ReverieError as error:
        return _report(_as_sentence(str(error)), error.exit_code)
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:
        return _report(_describe_os_error(error), 4)
    return code if isinstance(code, int) else 0


def _invoke() -> Any:
    if _COMPLETING in os.environ:  # a shell asks what can follow: click answers and ends the process
        return commands.main(prog_name="reverie", complete_var=_COMPLETING)
    # Not `main`: it has its own exit code for a closed pipe.
    with commands.make_context("reverie", sys.argv[1:]) as context:
        return commands.invoke(context)


def _as_sentence(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith((".", "?", "!", "…", ")")) else line + "."


def _report(sentence: str, code: int) -> int:
    with suppress(OSError):  # standard error may be closed
        print(f"reverie: {sentence}", file=sys.stderr, flush=True)
    return code


def _describe_os_error(error: OSError) -> str:
    from reverie.storage.atomic import cause_of

    where = str(error.filename) if error.filename else "The output, or a temporary file, could not be written"
    return f"{where}: {cause_of(error)}."
