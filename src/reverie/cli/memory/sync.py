"""`reverie memory sync`: bring the team's part of the memory and what it is shared through to the same state, now."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from reverie.cli.memory.opening import cwd_option, json_option, memory_in, say, say_json
from reverie.errors import UserError
from reverie.memory.taxonomy import TEAM


@click.command("sync")
@json_option
@cwd_option
def command(as_json: bool, cwd: Path) -> None:
    """Share the team's part of the memory now.

    A session does this by itself, at its start and after turns that changed something. How it is shared is the setting
    `team.sharing`: through a folder or a git remote. What both sides changed is merged or kept twice, never lost, and
    every arrival can be undone with `reverie memory undo`.

    \b
    Examples:
      reverie memory sync
      reverie memory sync --json
    """
    memory = memory_in(cwd)
    memory.require_on("nothing is shared")
    if memory.settings.team.sharing == "none":
        raise UserError(
            "The team's memory is shared through nothing: set `team.sharing`, and switch the flag `team_memory` on."
        )
    from reverie.memory.sharing.team import sync

    done = sync(memory.directory, memory.settings, memory.places.team_sync(memory.directory.root), memory.gate)
    if as_json:
        say_json(asdict(done))
        return
    say(f"{memory.directory.root / TEAM}: {done.told}.")
