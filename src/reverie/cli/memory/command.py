"""`reverie memory`: lists, changes and restores memories. Each sub-command is imported when it runs."""

from __future__ import annotations

from collections.abc import Mapping

import click

from reverie.cli.app import CommandEntry, Commands
from reverie.cli.options import examples


class MemoryCommands(Commands):
    """The sub-commands of `reverie memory`."""

    kind = "command `reverie memory`"
    entries: Mapping[str, CommandEntry] = {
        "list": CommandEntry("memory.listing:list_command", "List memories."),
        "show": CommandEntry("memory.listing:show_command", "Show a memory, or an earlier version of it."),
        "search": CommandEntry("memory.listing:search_command", "Find words in memories."),
        "add": CommandEntry("memory.change:add_command", "Add a memory: a sentence, a file, or in your editor."),
        "edit": CommandEntry("memory.change:edit_command", "Edit a memory in your editor."),
        "forget": CommandEntry("memory.forget:forget_command", "Forget a memory. It can be restored."),
        "check": CommandEntry("memory.check:command", "Find problems and repair them."),
        "log": CommandEntry("memory.history:log_command", "List versions: when, who, why."),
        "diff": CommandEntry("memory.history:diff_command", "Show what a version changed."),
        "undo": CommandEntry("memory.history:undo_command", "Undo one version."),
        "restore": CommandEntry("memory.history:restore_command", "Restore a file from an earlier version."),
        "purge": CommandEntry("memory.purge:command", "Remove a secret from all files of Reverie."),
        "inbox": CommandEntry("memory.inbox:command", "Accept or reject memories that wait for your decision."),
        "inferred": CommandEntry("memory.inbox:inferred_command", "Confirm or reject inferred statements."),
        "import": CommandEntry("memory.imports:import_command", "Import memories and notes."),
        "sync": CommandEntry(
            "memory.imports:sync_command", "Exchange memories with others and your other machines now."
        ),
        "share": CommandEntry("memory.store:share_command", "Share a memory with your project, team or organisation."),
        "unshare": CommandEntry("memory.store:unshare_command", "Make a shared memory private again."),
        "store": CommandEntry("memory.store:store_command", "Show the memory server and the last sync."),
        "login": CommandEntry("memory.store:login_command", "Use a memory server: give its token once."),
        "logout": CommandEntry("memory.store:logout_command", "Remove the token of a memory server."),
        "path": CommandEntry("memory.listing:path_command", "Print where the memory directory is."),
    }


@examples("reverie memory list", "reverie memory show no_mocks", "reverie memory log", "reverie memory undo latest")
@click.group("memory", cls=MemoryCommands)
def command() -> None:
    """List, change and restore memories.

    FILE is the file name of a memory, with or without `.md`, its title, or a part of its name that is unique. A version
    is a saved state of all memories: each change makes one version and can be undone. V is a version from `log`, or
    `latest`. While memory is switched off, you can still read memories and undo changes.

    Exit codes: 0: done; 1: refused or nothing found; 2: wrong usage, or a check refused the text (e.g. it has a
    secret); 4: storage error.
    """
