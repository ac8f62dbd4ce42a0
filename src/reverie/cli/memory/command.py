"""`reverie memory`: look at what is remembered, change it, go back. Each sub-command is loaded when it is run."""

from __future__ import annotations

from collections.abc import Mapping

import click

from reverie.cli.app import CommandEntry, Commands
from reverie.cli.options import examples


class MemoryCommands(Commands):
    """The same for what stands behind `reverie memory`."""

    kind = "command `reverie memory`"
    entries: Mapping[str, CommandEntry] = {
        "list": CommandEntry("memory.listing:list_command", "List what is remembered."),
        "show": CommandEntry("memory.listing:show_command", "Show a memory, also as it was in an earlier version."),
        "search": CommandEntry("memory.listing:search_command", "Find words in memories."),
        "add": CommandEntry("memory.change:add_command", "Add a memory: a sentence, a file, or in your editor."),
        "edit": CommandEntry("memory.change:edit_command", "Edit a memory in your editor."),
        "forget": CommandEntry("memory.change:forget_command", "Forget a memory and its line, as one version."),
        "check": CommandEntry("memory.check:command", "Look the directory over, and put right what can be."),
        "log": CommandEntry("memory.history:log_command", "List versions: when, who, why."),
        "diff": CommandEntry("memory.history:diff_command", "Show what a version changed."),
        "undo": CommandEntry("memory.history:undo_command", "Reverse one version."),
        "restore": CommandEntry("memory.history:restore_command", "Bring a file back as it was."),
        "purge": CommandEntry("memory.purge:command", "Take a secret out of everything that was kept."),
        "inbox": CommandEntry("memory.inbox:command", "See what waits for your decision, accept or reject it."),
        "import": CommandEntry("memory.imports:import_command", "Take in memories and notes from elsewhere."),
        "sync": CommandEntry("memory.imports:sync_command", "Share the team's part of the memory now."),
        "path": CommandEntry("memory.listing:path_command", "Print where the memory directory is."),
    }


@click.group(
    "memory",
    cls=MemoryCommands,
    epilog=examples(
        "reverie memory list", "reverie memory show no_mocks", "reverie memory log", "reverie memory undo latest"
    ),
)
def command() -> None:
    """Look at what is remembered, change it, go back.

    FILE is a memory's file name, with or without `.md`, its title, or a part of its name that no other has. V is a
    version as `log` shows it, or `latest`. Every change is one version and can be undone. Where memory is switched off,
    looking and undoing stay possible.

    Exit codes: 0 done, 1 refused or nothing found, 2 usage or not stored by the write gate, 4 storage.
    """
