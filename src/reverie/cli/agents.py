"""`reverie agents`: agent definitions of a folder, running agents, and snapshots of their memories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer, one_line, plural, table

if TYPE_CHECKING:
    from reverie.agents.definition import AgentDefinition
    from reverie.memory.sharing.agent_memory import AgentMemory
    from reverie.types import JsonObject


@examples("reverie agents", "reverie agents list --json", "reverie agents snapshot reviewer --make")
@agents_may(AgentsMay.ALL)
@click.group("agents", invoke_without_command=True)
@folder_options
@click.pass_context
def command(context: click.Context, cwd: Path, as_json: bool) -> None:
    """List agent definitions and running agents; share memories.

    A definition is a Markdown file in .reverie/agents or .claude/agents of the project, or in ~/.reverie/agents. It
    starts with frontmatter between two lines `---`: name, description, tools, model and memory. After that come the
    instructions of the agent. `memory` says who shares the memory of the agent: user (all your projects), project
    (colleagues get it with the repository) or local (this project on this machine). Without a sub-command, the command
    lists definitions and running agents.
    """
    if context.invoked_subcommand is None:
        _show_list(cwd, as_json)


@examples("reverie agents list --json")
@agents_may(AgentsMay.ALL)
@command.command("list")
@folder_options
def list_command(cwd: Path, as_json: bool) -> None:
    """Show agent definitions, errors in their files, and the agents of live sessions.

    A live session is a session that is open in another process.
    """
    _show_list(cwd, as_json)


@examples("reverie agents snapshot reviewer --take")
@command.command("snapshot")
@click.argument("kind", metavar="NAME")
@folder_options
@click.option("--make", "what", flag_value="make", help="Write it into the project; colleagues can start with it.")
@click.option("--take", "what", flag_value="take", help="Add the project's snapshot to your memory. It can be undone.")
@click.option("--keep", "what", flag_value="keep", help="Keep your memory unchanged and ignore this snapshot.")
def snapshot_command(kind: str, cwd: Path, as_json: bool, what: str | None) -> None:
    """Share the memory of an agent through the project.

    NAME is the name of an agent definition. A snapshot is a copy of the agent's memory in the project. Without an
    option, the command shows the state of the memory.

    Exit codes: 0: done; 2: wrong usage, or there is no memory or no snapshot; 4: storage error.
    """
    from datetime import UTC, datetime

    from reverie.storage.atomic import storage_error

    memory = _open_memory(kind, cwd.resolve())
    place = memory.place
    newer = None
    try:
        match what:
            case "make":
                count = memory.make_snapshot(datetime.now(UTC))
                text = f"Wrote {plural(count, 'file')} to {place.snapshot}; commit them to share them."
            case "take":
                count = memory.take_snapshot("Taken from the project's snapshot.")
                known = f"{memory.root} already contains the whole snapshot; nothing was changed."
                text = f"Added {plural(count, 'changed file')} to {memory.root}." if count else known
            case "keep":
                memory.pass_over()
                count, text = 0, f"{memory.root} stays unchanged."
            case _:
                newer = memory.newer_snapshot()
                count = len(memory.directory.names())
                waits = f"a newer snapshot ({newer:%Y-%m-%d}) waits: --take or --keep" if newer else "no newer snapshot"
                text = f"{memory.root}: {plural(count, 'memory', 'memories')}; {waits}."
    except OSError as error:
        raise storage_error(error, place.snapshot, "write the snapshot") from error
    shown = {"kind": kind, "did": what, "files": count, "memory": str(memory.root), "snapshot": str(place.snapshot)}
    answer(as_json, {**shown, "newer_snapshot": newer.isoformat() if newer is not None else None}, text)


def _show_list(cwd: Path, as_json: bool) -> None:
    from reverie.agents.definition import load_definitions
    from reverie.cli.sessions.tasks import ask_all

    settings, places = load_places(cwd)
    found = load_definitions(places, bare=settings.session.bare)
    at_work: list[JsonObject] = [
        {**one, "session": live.id}
        for live, reply in ask_all(places, {"do": "agents"})
        for one in cast("list[JsonObject]", reply.get("agents") or [])
    ]
    kinds = [_kind_json(kind) for kind in found.kinds.values()]
    rows = [(kind.name, one_line(kind.description + _describe_source(kind))) for kind in found.kinds.values()]
    lines = list(table(rows))
    for one in at_work:
        who = f"running: {one['name']} ({one['mode']}, {one['seconds']} s, session {one['session'][:8]})"
        lines.append(one_line(f"{who}: {one.get('doing') or one.get('title')}"))
    answer(as_json, {"kinds": kinds, "problems": list(found.problems), "agents": at_work}, *lines)
    for problem in () if as_json else found.problems:
        click.echo(one_line(problem), err=True)


def _describe_source(kind: AgentDefinition) -> str:
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


def _open_memory(kind: str, cwd: Path) -> AgentMemory:
    from reverie.agents.definition import load_definitions
    from reverie.errors import UserError
    from reverie.memory.opening import MemoryOff, ProjectGate
    from reverie.memory.sharing.agent_memory import AgentMemory, AgentMemoryPlace
    from reverie.paths import MemoryPlace, memory_switch

    settings, places = load_places(cwd)
    switch = memory_switch(settings)
    if not switch.on:
        raise MemoryOff(f"Memory is off ({switch.rule}), and so are the memories of agents.")
    found = load_definitions(places).kinds.get(kind)
    if found is None or found.memory is None:
        why = "has no memory (`memory:` in its file gives it one)" if found is not None else "is not defined here"
        raise UserError(f"The agent {kind!r} {why}; `reverie agents` lists all agents.")
    place = AgentMemoryPlace.of(places, found.name, found.memory)
    return AgentMemory(place, lambda root: ProjectGate(MemoryPlace(root, "agent memory"), places, settings, None))
