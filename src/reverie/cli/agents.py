"""`reverie agents`: the kinds of agents of a folder, who is at work in live sessions, and snapshots of their memories.

Looking loads no model, no flags and no event loop.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from reverie.cli.options import examples, here
from reverie.cli.output import answer, one_line, plural, table

if TYPE_CHECKING:
    from reverie.agents.definition import AgentDefinition
    from reverie.memory.sharing.agent_memory import AgentMemory
    from reverie.types import JsonObject


@click.group(
    "agents",
    invoke_without_command=True,
    epilog=examples("reverie agents", "reverie agents list --json", "reverie agents snapshot reviewer --make"),
)
@here
@click.pass_context
def command(context: click.Context, cwd: Path, as_json: bool) -> None:
    """List kinds of agents and those at work; share their memories.

    A kind is a Markdown file in .reverie/agents or .claude/agents of the project, or in agents/ of Reverie's home:
    name, description, tools, model and memory (user, project or local) between two lines ---, then what it is told.
    Without a sub-command, lists them.
    """
    if context.invoked_subcommand is None:
        _list(cwd, as_json)


@command.command("list", epilog=examples("reverie agents list --json"))
@here
def list_command(cwd: Path, as_json: bool) -> None:
    """Show the kinds there are, what is wrong with files that are none, and agents of live sessions."""
    _list(cwd, as_json)


@command.command("snapshot", epilog=examples("reverie agents snapshot reviewer --take"))
@click.argument("kind")
@here
@click.option(
    "--make", "what", flag_value="make", help="Write this memory into the project, for colleagues to begin with."
)
@click.option("--take", "what", flag_value="take", help="Add the project's snapshot to this memory; it can be undone.")
@click.option(
    "--keep", "what", flag_value="keep", help="Keep this memory as it is; the snapshot is not spoken of again."
)
def snapshot_command(kind: str, cwd: Path, as_json: bool, what: str | None) -> None:
    """Make a snapshot of a kind's memory, take one in, or pass it over. Without an option, says how things are.

    Exit codes: 0 done, 2 usage, also where there is no memory or no snapshot to do it with, 4 storage.
    """
    from datetime import UTC, datetime

    from reverie.storage.atomic import storage_error

    memory = _memory(kind, cwd.resolve())
    place = memory.place
    newer = None
    try:
        match what:
            case "make":
                count = memory.make_snapshot(datetime.now(UTC))
                said = f"Wrote {plural(count, 'file')} to {place.snapshot}; commit them to share them."
            case "take":
                count = memory.take_snapshot("Taken from the project's snapshot.")
                known = f"{memory.root} already holds everything of the snapshot; nothing was changed."
                said = f"Took {plural(count, 'changed file')} into {memory.root}." if count else known
            case "keep":
                memory.pass_over()
                count, said = 0, f"{memory.root} stays as it is."
            case _:
                newer = memory.newer_snapshot()
                count = len(memory.directory.names())
                waits = (
                    f"a newer snapshot of {newer:%Y-%m-%d} waits: --take or --keep" if newer else "no newer snapshot"
                )
                said = f"{memory.root}: {plural(count, 'memory', 'memories')}; {waits}."
    except OSError as error:
        raise storage_error(error, place.snapshot, "write the snapshot") from error
    shown = {"kind": kind, "did": what, "files": count, "memory": str(memory.root), "snapshot": str(place.snapshot)}
    answer(as_json, {**shown, "newer_snapshot": newer.isoformat() if newer is not None else None}, said)


def _list(cwd: Path, as_json: bool) -> None:
    from reverie.agents.definition import load_definitions
    from reverie.cli.sessions.tasks import ask_all
    from reverie.paths import Places
    from reverie.settings import load_settings

    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    found = load_definitions(places, bare=settings.session.bare)
    asked = list(ask_all(places, {"do": "agents"}))
    at_work: list[JsonObject] = [
        {**one, "session": live.id}
        for live, told in asked
        for one in cast("list[JsonObject]", told.get("agents") or [])
    ]
    kinds = [_kind_json(kind) for kind in found.kinds.values()]
    rows = [(kind.name, one_line(kind.description + _where(kind))) for kind in found.kinds.values()]
    lines = list(table(rows))
    for one in at_work:
        who = f"at work: {one['name']} ({one['mode']}, {one['seconds']} s, session {one['session'][:8]})"
        lines.append(one_line(f"{who}: {one.get('doing') or one.get('title')}"))
    answer(as_json, {"kinds": kinds, "problems": list(found.problems), "agents": at_work}, *lines)
    for problem in () if as_json else found.problems:
        click.echo(one_line(problem), err=True)


def _where(kind: AgentDefinition) -> str:
    memory = f"; memory: {kind.memory.value}" if kind.memory is not None else ""
    return f" ({kind.source}{memory})" if kind.source is not None else ""


def _kind_json(kind: AgentDefinition) -> JsonObject:
    return {
        "name": kind.name,
        "description": kind.description,
        "tools": None if kind.tools is None else list(kind.tools),
        "model": kind.model,
        "memory": kind.memory.value if kind.memory is not None else None,
        "source": str(kind.source) if kind.source is not None else None,
    }


def _memory(kind: str, cwd: Path) -> AgentMemory:
    from reverie.agents.definition import load_definitions
    from reverie.errors import UserError
    from reverie.memory.opening import MemoryOff, ProjectGate
    from reverie.memory.sharing.agent_memory import AgentMemory, AgentMemoryPlace
    from reverie.paths import MemoryPlace, Places, memory_switch
    from reverie.settings import load_settings

    settings = load_settings(cwd)
    switch = memory_switch(settings)
    if not switch.on:
        raise MemoryOff(f"Memory is off ({switch.rule}), and so are the memories of agents.")
    places = Places.of(cwd, settings)
    found = load_definitions(places).kinds.get(kind)
    if found is None or found.memory is None:
        why = "has no memory (`memory:` in its file gives it one)" if found is not None else "is not defined here"
        raise UserError(f"The kind of agent {kind!r} {why}; `reverie agents` lists them.")
    place = AgentMemoryPlace.of(places, found.name, found.memory)
    return AgentMemory(place, lambda root: ProjectGate(MemoryPlace(root, "agent memory"), places, settings, None))
