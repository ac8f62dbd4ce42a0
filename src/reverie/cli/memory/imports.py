"""`reverie memory import|sync`: imports memories, and shares the team's part of the memory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.memory.opening import undo_hint, version_json, with_memory, with_memory_here
from reverie.cli.options import examples
from reverie.cli.output import answer, can_ask, columns, get_paint, one_line, plural, say, say_all, say_dim, warn
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.opening import OpenedMemory
from reverie.memory.sharing.rounds import SyncReport, in_folder
from reverie.memory.sharing.team import sync
from reverie.memory.taxonomy import TEAM
from reverie.memory.upkeep.importing import PlannedImport, carry_out, plan_import
from reverie.text.columns import cut


@examples(
    "reverie memory import ~/.claude/projects/-home-me-app/memory --dry-run",
    "reverie memory import ../old-app/.claude/memory ~/notes/app.md",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: given["dry_run"])
@click.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_memory
def import_command(paths: tuple[Path, ...], dry_run: bool, yes: bool, as_json: bool, memory: OpenedMemory) -> int:
    """Import memories and notes.

    PATH is a memory directory of Claude Code (or the project folder that contains it), a folder of Markdown files, or a
    file of notes such as AGENTS.md, which is split at its headings. Memories that are already known are left out,
    secrets are refused, nothing is overwritten, and the sources do not change. The import is one version. A file that
    cannot be read is reported, and the others are imported.

    Exit codes: 0: done; 1: you said no, everything was refused, or a file could not be read; 2: wrong usage; 4: storage
    error.
    """
    if not dry_run:
        memory.require_on("nothing is imported")
    planned, unread = plan_import(memory, paths)
    new = [one for one in planned if one.action == "add"]
    refused = [one for one in planned if one.action == "refused"]
    if not as_json:
        _show(planned)
    asks = bool(new) and not dry_run and not yes and not as_json and can_ask()
    if asks and not click.confirm(f"Import {plural(len(new), 'memory', 'memories')}?", default=True):
        raise ReverieError("Nothing was imported.")
    info = WriteInfo(Writer.IMPORT, f"Imported from {', '.join(map(str, paths))}.")
    version = None if dry_run else carry_out(memory, planned, info)
    if as_json:
        listed = [
            {"action": one.action, "file": one.name, "source": one.piece.source, "reason": one.reason or None}
            for one in planned
        ]
        left = [{"source": one.source, "reason": one.reason} for one in unread]
        answer(True, {"dry_run": dry_run, "pieces": listed, "unread": left, "version": version_json(version)})
    elif version is not None:
        say_all([f"Imported {plural(len(new), 'memory', 'memories')}.", *undo_hint(version)])
    elif new:
        say(get_paint().dim("A dry run: nothing was imported."))
    else:
        say("There is nothing new to import.")
    for one in unread if not as_json else ():
        warn(f"Not read: {one.source}: {one.reason}.")
    return 1 if unread or (refused and not new) else 0


def _show(planned: list[PlannedImport]) -> None:
    paint, wide = get_paint(), columns()
    marks = {"add": paint.good("+"), "known": paint.dim("="), "refused": paint.bad("✗")}
    for one in planned:
        say(f"{marks[one.action]} {paint.accent(cut(one_line(one.name), wide - 2))}")
        if one.action == "add":
            say(f"  {cut(one_line(one.piece.topic.description), wide - 2)}")
        else:
            say_dim(f"{one.reason} (from {one.piece.source})", 2)
    if planned:
        say()


@examples("reverie memory sync", "reverie memory sync --dry-run", "reverie memory sync --json")
@click.command("sync")
@click.option("--dry-run", is_flag=True, help="Only show what would be sent and received (memory server only).")
@with_memory_here
def sync_command(dry_run: bool, as_json: bool, memory: OpenedMemory) -> None:
    """Exchange memories with your other machines and your colleagues now.

    With a memory server (`memory.store`), your own memories go to a store that only you see, and those in the folder
    team/ to the project's store. With `team.sharing`, the folder team/ is shared through a folder or a git remote. A
    session does this by itself, at its start and after turns that changed memory. If both sides changed a memory, both
    texts are kept, in two files, and a question waits in `reverie memory inbox`. You can undo each incoming change with
    `reverie memory undo`.

    Exit codes: 0: done; 1: the server refused; 2: nothing is set up; 4: the server does not answer, or storage error.
    """
    memory.require_on("nothing is shared")
    given = memory.settings
    if given.team.sharing == "none" and not given.memory.store:
        raise UserError(
            "Nothing is set up: `reverie memory login URL` uses a memory server; `team.sharing` (with the flag "
            "`team_memory`) a folder or a git remote."
        )
    done = SyncReport()
    if given.team.sharing != "none" and not dry_run:
        team = sync(memory.directory, given, memory.places.team_sync(memory.directory.root), memory.gate)
        done += in_folder(team, f"{TEAM}/") if given.memory.store else team
    if given.memory.store:
        from reverie.memory.sharing.store.sync import sync_store

        done += sync_store(memory, dry_run=dry_run)
    where = memory.directory.root if given.memory.store else memory.directory.root / TEAM
    lines = [f"{where}: {done.summary}.", *([get_paint().dim("A dry run: nothing was changed.")] if dry_run else [])]
    if done.kept_both and not dry_run:
        lines.append(f"{plural(len(done.kept_both), 'question waits', 'questions wait')}: reverie memory inbox")
    answer(as_json, {**asdict(done), "dry_run": dry_run}, *lines)
