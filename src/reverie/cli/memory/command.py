"""`reverie memory`: lists, changes and restores memories. Each sub-command is imported when it runs."""

from __future__ import annotations

from collections.abc import Mapping

import click

from reverie.cli.app import CommandEntry, Commands
from reverie.cli.below_agent import AgentsMay
from reverie.cli.options import examples

_ALL, _AS_MODEL, _NOTHING = AgentsMay.ALL, AgentsMay.AS_MODEL, AgentsMay.NOTHING


class MemoryCommands(Commands):
    """The sub-commands of `reverie memory`."""

    kind = "command `reverie memory`"
    entries: Mapping[str, CommandEntry] = {
        "list": CommandEntry("memory.listing:list_command", "List memories.", _ALL),
        "show": CommandEntry(
            "memory.listing:show_command", "Show a memory, or an earlier version of it.", AgentsMay.ALL
        ),
        "search": CommandEntry("memory.listing:search_command", "Find words in memories.", _ALL),
        "add": CommandEntry(
            "memory.change:add_command", "Add a memory: a sentence, a file, or in your editor.", AgentsMay.AS_MODEL
        ),
        "edit": CommandEntry("memory.change:edit_command", "Edit a memory in your editor.", _NOTHING),
        "forget": CommandEntry(
            "memory.forget:forget_command", "Forget a memory. It can be restored.", AgentsMay.AS_MODEL
        ),
        "check": CommandEntry("memory.check:command", "Find problems and repair them.", _ALL),
        "log": CommandEntry("memory.history:log_command", "List versions: when, who, why.", _ALL),
        "diff": CommandEntry("memory.history:diff_command", "Show what a version changed.", _ALL),
        "undo": CommandEntry("memory.history:undo_command", "Undo one version.", _AS_MODEL),
        "restore": CommandEntry(
            "memory.history:restore_command", "Restore a file from an earlier version.", AgentsMay.NOTHING
        ),
        "purge": CommandEntry("memory.purge:command", "Remove a secret from all files of Reverie.", _NOTHING),
        "inbox": CommandEntry(
            "memory.inbox:command", "Accept or reject memories that wait for your decision.", AgentsMay.NOTHING
        ),
        "inferred": CommandEntry(
            "memory.inbox:inferred_command", "Confirm or reject inferred statements.", AgentsMay.NOTHING
        ),
        "import": CommandEntry("memory.imports:import_command", "Import memories and notes.", _NOTHING),
        "sync": CommandEntry(
            "memory.imports:sync_command", "Exchange memories with others and your other machines now.", AgentsMay.ALL
        ),
        "share": CommandEntry(
            "memory.store:share_command", "Share a memory with your project, team or organisation.", AgentsMay.NOTHING
        ),
        "unshare": CommandEntry(
            "memory.store:unshare_command", "Make a shared memory private again.", AgentsMay.NOTHING
        ),
        "store": CommandEntry("memory.store:store_command", "Show the memory server and the last sync.", _ALL),
        "login": CommandEntry(
            "memory.store:login_command", "Use a memory server: give its token once.", AgentsMay.NOTHING
        ),
        "logout": CommandEntry(
            "memory.store:logout_command", "Remove the token of a memory server.", AgentsMay.NOTHING
        ),
        "path": CommandEntry("memory.listing:path_command", "Print where the memory directory is.", _ALL),
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
