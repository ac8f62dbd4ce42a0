"""`reverie dream`: put memory in order now, see what dreams did or want to do, and have the last word.

A dream runs in a session of its own; looking, accepting, rejecting and undoing need no model and no event loop.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from reverie.cli.memory.opening import memory_in, version_json, with_memory
from reverie.cli.options import examples, here
from reverie.cli.output import answer, painted, warn
from reverie.cli.screen import CLEAR_LINE
from reverie.errors import ReverieError, UserError

if TYPE_CHECKING:
    from reverie.layers.l6_dreaming.proposal import Proposal
    from reverie.memory.opening import OpenedMemory
    from reverie.types import JsonObject


@click.group(
    "dream",
    invoke_without_command=True,
    epilog=examples(
        "reverie dream", "reverie dream --now", "reverie dream --dry-run", "reverie dream review", "reverie dream undo"
    ),
)
@click.option("--now", is_flag=True, help="Dream whatever the gates say.")
@click.option("--dry-run", is_flag=True, help="Dream, show what it would change, and change nothing.")
@click.option("-m", "--model", metavar="NAME", help="Who dreams.  [default: the model of the settings]")
@here
@click.pass_context
def command(
    context: click.Context, now: bool, dry_run: bool, model: str | None, as_json: bool, cwd: Path
) -> int | None:
    """Put memory in order across sessions.

    Duplicates are joined, dates written out, what was disproved taken out, the index pruned. The work is done on a copy
    and lands as one version with a reason a file, or not at all. Without an option it dreams only if it is time to, as
    sessions do by themselves.
    """
    if context.invoked_subcommand is not None:
        return None
    memory_in(cwd).require_on("nothing is dreamt")
    from reverie.cli.running import run_async

    forced = now or dry_run
    return run_async(lambda signals: _dream(signals, cwd, model, forced=forced, dry_run=dry_run, as_json=as_json))


async def _dream(signals: Any, cwd: Path, model: str | None, *, forced: bool, dry_run: bool, as_json: bool) -> int:
    import asyncio
    from datetime import UTC, datetime

    from reverie.cli.dream.show import show_dreamt, show_proposal
    from reverie.layers.l6_dreaming.gates import Closed
    from reverie.session.session import Session

    async with await Session.open(cwd=cwd, model=model) as session:
        dreaming = session.dreaming
        assert dreaming is not None, "memory is on"
        found = None if forced else dreaming.gates.look(datetime.now(UTC))
        if isinstance(found, Closed):
            told = f"Not yet ({found.gate.value}): {found.reason}. `reverie dream --now` does it all the same."
            answer(as_json, {"outcome": "not yet", "gate": found.gate.value, "reason": found.reason}, told)
            return 0
        task = dreaming.start(dry_run=dry_run)
        killing: list[asyncio.Task[Any]] = []

        def kill() -> bool:
            killing.append(asyncio.ensure_future(session.tasks.kill(task.id)))
            return True

        signals.cancel = kill
        session.listen(partial(_show_progress, quiet=as_json))
        info = await task.wait()
    if task.result is None:
        why = info.error or f"The dream was {info.state.value}; nothing was changed."
        raise ReverieError(f"{why} {dreaming.telling.among}".rstrip())
    shown = [*show_proposal(task.result.proposal, painted()), ""] if dry_run and task.result.proposal else []
    answer(as_json, task.result.to_json(), *shown, *show_dreamt(task.result, painted()))
    return 0


def _show_progress(event: Any, *, quiet: bool) -> None:
    """The state of a running dream on one line of standard error, and every warning on a line of its own."""
    import sys

    from reverie.cli.output import columns, cut, one_line
    from reverie.events import Notice, TaskChanged

    if isinstance(event, Notice) and event.level != "info":
        warn(one_line(event.text))
    elif isinstance(event, TaskChanged) and sys.stderr.isatty() and not quiet:
        text = cut(one_line(event.progress or event.state), columns() - 2)
        click.echo(CLEAR_LINE + (text if event.state in ("starting", "running") else ""), nl=False, err=True)


@command.command("status", epilog=examples("reverie dream status --json"))
@with_memory
def status_command(as_json: bool, memory: OpenedMemory) -> None:
    """Say when the last dream was, what came of it, what it cost, and why the next is not yet."""
    from reverie.cli.dream.look import look_closed

    found, paint = look_closed(memory), painted()
    running = [one for one, _ in _running(memory)]
    lines = list(found.lines(paint))
    for one in running:
        phase, touched = f"{one['phase']:<13}", ", ".join(one["touched"]) or "no file yet"
        lines.append(f"{paint.bold(phase)} {one['tools']} tool calls; {touched}")
        lines += [paint.dim(f"  {turn}") for turn in one["turns"]]
    answer(as_json, {**found.to_json(), "running": running}, *lines)


def _running(memory: OpenedMemory) -> list[tuple[JsonObject, Path]]:
    """The dreams that live sessions have under way in this memory, each with its session's socket."""
    from reverie.runtime.live_client import ask_live, live_sessions

    found: list[tuple[JsonObject, Path]] = []
    for live in live_sessions(memory.places.projects):
        if live.socket is None:
            continue
        try:
            told = ask_live(live.socket, {"do": "dream"})
        except ReverieError:
            continue
        progress = cast("JsonObject | None", told.get("running"))
        if progress is not None and told.get("memory") == str(memory.directory.root):
            found.append(({"session": live.id, "pid": live.pid, "task": told.get("task"), **progress}, live.socket))
    return found


@command.command("log", epilog=examples("reverie dream log -n 5"))
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Newest so many.")
@with_memory
def log_command(limit: int, as_json: bool, memory: OpenedMemory) -> None:
    """List what dreams have done, newest first, and what went wrong."""
    from reverie.cli.dream.show import dreams_and_runs, told_lines
    from reverie.layers.l6_dreaming.proposal import Proposals
    from reverie.runtime.background_log import BackgroundLog

    versions = list(memory.directory.log()) if memory.directory.history.head() else []
    entries = BackgroundLog(memory.places.background_log).read(kind="dream_")
    own = memory.places.below_home(memory.directory.root).parts  # a home that was moved keeps its log
    runs = [entry for entry in entries if Path(str(entry.fields.get("memory"))).parts[-len(own) :] == own]
    waiting = {proposal.id for proposal in Proposals(memory.directory.root).list()}
    lines = told_lines(versions, runs, waiting, limit, painted())
    answer(as_json, dreams_and_runs(versions, runs, limit), *lines)


@command.command("review", epilog=examples("reverie dream review", "reverie dream review 3f2a"))
@click.argument("id", required=False, default="")
@with_memory
def review_command(id: str, as_json: bool, memory: OpenedMemory) -> None:
    """Show a dream that waits for you, file by file; or the last one that landed, if none waits.

    ID is the beginning of a dream's id, or of a version.
    """
    from reverie.cli.dream.show import landed_version, show_proposal, show_version
    from reverie.layers.l6_dreaming.proposal import Proposals

    proposals, paint = Proposals(memory.directory.root), painted()
    waiting = [one for one in proposals.list() if one.id.startswith(id.lower())]
    if waiting:
        shown = [line for proposal in waiting for line in (*show_proposal(proposal, paint), "")]
        then = paint.dim("Then: reverie dream accept, or reject")
        answer(as_json, {"waiting": [_proposal_json(one) for one in waiting]}, *shown, then)
        return
    version = landed_version(memory.directory, id)
    told = {**(version_json(version) or {}), "diff": memory.directory.history.diff(version)}
    answer(as_json, told, *show_version(memory.directory, version, paint))


@command.command("accept", epilog=examples("reverie dream accept"))
@click.argument("id", required=False, default="")
@with_memory
def accept_command(id: str, as_json: bool, memory: OpenedMemory) -> None:
    """Let a dream that waits become memory, merged with what happened meanwhile."""
    from reverie.cli.dream.show import landed_lines
    from reverie.layers.l6_dreaming.proposal import Proposals
    from reverie.layers.l6_dreaming.review import accept

    memory.require_on("nothing is written")
    proposal, landed = accept(memory.directory, Proposals(memory.directory.root), id)
    told = {"id": proposal.id, "version": version_json(landed.version), "left": dict(landed.left)}
    answer(as_json, told, *landed_lines(landed, painted()))


@command.command("reject", epilog=examples("reverie dream reject"))
@click.argument("id", required=False, default="")
@with_memory
def reject_command(id: str, as_json: bool, memory: OpenedMemory) -> None:
    """Drop a dream that waits; memory stays as it is."""
    from reverie.layers.l6_dreaming.proposal import Proposals
    from reverie.layers.l6_dreaming.review import reject

    proposal = reject(Proposals(memory.directory.root), id)
    answer(as_json, {"rejected": proposal.id}, f"Dropped dream {proposal.id}.")


@command.command("undo", epilog=examples("reverie dream undo"))
@click.argument("version", metavar="[V]", required=False, default="")
@with_memory
def undo_command(version: str, as_json: bool, memory: OpenedMemory) -> None:
    """Take back a dream that landed: the last one, or V. Later changes of other lines stay."""
    from reverie.layers.l6_dreaming.review import undo

    undone, made = undo(memory.directory, version)
    told = f"Took back {undone.short}: {', '.join(change.name for change in undone.files)}."
    answer(as_json, {"undone": version_json(undone), "version": version_json(made)}, told)


@command.command("kill", epilog=examples("reverie dream kill"))
@with_memory
def kill_command(as_json: bool, memory: OpenedMemory) -> None:
    """End a running dream; nothing of it remains."""
    from reverie.runtime.live_client import ask_live

    running = _running(memory)
    if not running:
        raise UserError("No dream is running in a session that listens.")
    ended = [ask_live(socket, {"do": "kill", "id": one["task"]}, timeout_s=30) for one, socket in running]
    states = [str(cast("JsonObject", one.get("task") or {}).get("state")) for one in ended]
    answer(as_json, {"ended": ended}, f"The dream is {', '.join(states)}; memory is as it was before.")


def _proposal_json(proposal: Proposal) -> JsonObject:
    return {
        "id": proposal.id,
        "created": proposal.created,
        "changes": [
            {"file": one.name, "change": one.verb, "reason": one.reason, "diff": one.diff()} for one in proposal.changes
        ],
        "lost": list(proposal.lost),
        "statements": proposal.statements,
    }
