"""`reverie memory`: look at what is remembered, change it, go back. Each sub-command is loaded when it is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import click

_IN: Mapping[str, tuple[str, str]] = {
    "list": ("reverie.cli.memory.look:list_command", "List what is remembered."),
    "show": ("reverie.cli.memory.look:show_command", "Show a memory, also as it was in an earlier version."),
    "search": ("reverie.cli.memory.look:search_command", "Find words in memories."),
    "add": ("reverie.cli.memory.change:add_command", "Add a memory: a sentence, a file, or in your editor."),
    "edit": ("reverie.cli.memory.change:edit_command", "Edit a memory in your editor."),
    "forget": ("reverie.cli.memory.change:forget_command", "Forget a memory: file and index line, as one version."),
    "check": ("reverie.cli.memory.check:command", "Look the directory over, and put right what can be."),
    "log": ("reverie.cli.memory.history:log_command", "List versions: when, who, why."),
    "diff": ("reverie.cli.memory.history:diff_command", "Show what a version changed."),
    "undo": ("reverie.cli.memory.history:undo_command", "Reverse one version."),
    "restore": ("reverie.cli.memory.history:restore_command", "Bring a file back as it was."),
    "purge": ("reverie.cli.memory.purge:command", "Take a secret out of everything that was kept."),
    "inbox": ("reverie.cli.memory.inbox:command", "See what waits for your decision, accept or reject it."),
    "import": ("reverie.cli.memory.importing:import_command", "Take in memories and notes from elsewhere."),
    "sync": ("reverie.cli.memory.importing:sync_command", "Share the team's part of the memory now."),
    "path": ("reverie.cli.memory.look:path_command", "Print where the memory directory is."),
}


class MemoryCommands(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_IN)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _IN:
            return None
        from importlib import import_module

        module, _, name = _IN[cmd_name][0].partition(":")
        return cast(click.Command, getattr(import_module(module), name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _IN and not args[0].startswith("-") and not ctx.resilient_parsing:
            from reverie.cli.app import unknown_name

            raise click.UsageError(unknown_name("command `reverie memory`", args[0], _IN), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in _IN.items()])


@click.group("memory", cls=MemoryCommands)
def command() -> None:
    """Look at what is remembered, change it, go back.

    FILE is a memory's file name, with or without `.md`, its title, or a part of its name that no other has. V is a
    version as `log` shows it, or `latest`. Every change is one version and can be undone. Where memory is switched off,
    looking and undoing stay possible.

    \b
    Examples:
      reverie memory list
      reverie memory show no_mocks
      reverie memory log
      reverie memory undo latest

    Exit codes: 0 done, 1 refused or nothing found, 2 usage or not stored by the write gate, 4 storage.
    """
