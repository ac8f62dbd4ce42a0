"""`reverie dream`: tidies up memory, shows what dreams changed or propose, and accepts, rejects or undoes it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.memory.opening import open_memory_in, show_in_browser, version_json, with_memory
from reverie.cli.options import examples, folder_options, web_option
from reverie.cli.output import answer, get_paint, show_progress, warn
from reverie.errors import ReverieError, UserError

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory
    from reverie.types import JsonObject


@examples(
    "reverie dream", "reverie dream --now", "reverie dream --dry-run", "reverie dream review", "reverie dream undo"
)
@agents_may(AgentsMay.ALL)
@click.group("dream", invoke_without_command=True)
@click.option("--now", is_flag=True, help="Dream even if no dream is due.")
@click.option("--dry-run", is_flag=True, help="Dream and show the changes, but do not save them.")
@click.option("--wait", "waits", is_flag=True, help="Dream now; the changes wait for your decision.")
@click.option("-m", "--model", metavar="NAME", help="The model that dreams.  [default: from the settings]")
@folder_options
@click.pass_context
def command(
    context: click.Context, now: bool, dry_run: bool, waits: bool, model: str | None, as_json: bool, cwd: Path
) -> int | None:
    """Tidy up memory across sessions.

    A dream joins duplicates, replaces relative dates ("tomorrow") by calendar dates, removes memories that turned out
    to be wrong, and shortens the index. It works on a copy. At the end, its changes are saved together, as one version
    with a reason for each file (with --wait, or if the setting `dream.mode` is `ask` or `inbox`, after you accept
    them). If the dream fails, nothing is saved. Without an option, the command dreams only if a dream is due: by
    default if the last one is at least 24 hours ago and at least five sessions have changed since then. Sessions also
    start dreams by themselves.

    Exit codes: 0: done, or no dream is due; 1: failed or refused; 2: wrong usage; 4: storage error; 5: the model could
    not answer.
    """
    if context.invoked_subcommand is not None:
        return None
    open_memory_in(cwd).require_on("there are no dreams")
    from reverie.cli.event_loop import run_async

    forced = now or dry_run or waits
    return run_async(
        lambda signals: _dream(signals, cwd, model, forced=forced, dry_run=dry_run, waits=waits, as_json=as_json)
    )


async def _dream(
    signals: Any, cwd: Path, model: str | None, *, forced: bool, dry_run: bool, waits: bool, as_json: bool
) -> int:
    import asyncio
    from datetime import UTC, datetime

    from reverie.cli.dream.display import show_dreamt, show_proposal
    from reverie.layers.l6_dreaming.gates import Closed
    from reverie.session.session import Session

    async with await Session.open(cwd=cwd, model=model) as session:
        dreaming = session.dreaming
        assert dreaming is not None, "memory is on"
        found = None if forced else dreaming.gates.look(datetime.now(UTC))
        if isinstance(found, Closed):
            text = f"Not yet ({found.gate.value}): {found.reason}. `reverie dream --now` dreams anyway."
            answer(as_json, {"outcome": "not yet", "gate": found.gate.value, "reason": found.reason}, text)
            return 0
        task = dreaming.start(dry_run=dry_run, waits=waits)
        killing: list[asyncio.Task[Any]] = []

        def kill() -> bool:
            killing.append(asyncio.ensure_future(session.tasks.kill(task.id)))
            return True

        signals.cancel = kill
        session.listen(partial(_show_event, quiet=as_json))
        info = await task.wait()
    if task.result is None:
        why = info.error or f"The dream was {info.state.value}; nothing was changed."
        raise ReverieError(f"{why} {dreaming.reporter.among}".rstrip())
    shown = [*show_proposal(task.result.proposal, get_paint()), ""] if dry_run and task.result.proposal else []
    answer(as_json, task.result.to_json(), *shown, *show_dreamt(task.result, get_paint()))
    return 0


def _show_event(event: Any, *, quiet: bool) -> None:
    """Shows a warning, or the progress of the dream on standard error."""
    import sys

    from reverie.cli.output import columns, one_line
    from reverie.events import Notice, TaskChanged
    from reverie.text.columns import cut

    if isinstance(event, Notice) and event.level != "info":
        warn(one_line(event.text))
    elif isinstance(event, TaskChanged) and sys.stderr.isatty() and not quiet:
        text = cut(one_line(event.progress or event.state), columns() - 2)
        show_progress(text if event.state in ("starting", "running") else "")


@examples("reverie dream status --json")
@agents_may(AgentsMay.ALL)
@command.command("status")
@with_memory
def status_command(as_json: bool, memory: OpenedMemory) -> None:
    """Show when the last dream ran, its result and its cost, and why the next one has not started."""
    from reverie.cli.dream.status import find_running, read_status_from_disk

    found, paint = read_status_from_disk(memory), get_paint()
    running = [one for one, _ in find_running(memory)]
    lines = list(found.lines(paint))
    for one in running:
        phase, touched = f"{one['phase']:<13}", ", ".join(one["touched"]) or "no file yet"
        lines.append(f"{paint.bold(phase)} {one['tools']} tool calls; {touched}")
        lines += [paint.dim(f"  {turn}") for turn in one["turns"]]
    answer(as_json, {**found.to_json(), "running": running}, *lines)


@examples("reverie dream log -n 5")
@agents_may(AgentsMay.ALL)
@command.command("log")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many dreams.")
@with_memory
def log_command(limit: int, as_json: bool, memory: OpenedMemory) -> None:
    """List dreams and failures, newest first."""
    from reverie.cli.dream.display import log_json, show_log
    from reverie.cli.dream.status import dream_runs
    from reverie.layers.l6_dreaming.proposal import Proposals

    versions = list(memory.directory.log()) if memory.directory.history.head() else []
    runs = dream_runs(memory)
    waiting = {proposal.id for proposal in Proposals(memory.directory.root).list()}
    lines = show_log(versions, runs, waiting, limit, get_paint())
    answer(as_json, log_json(versions, runs, limit), *lines)


@examples("reverie dream review", "reverie dream review 3f2a", "reverie dream review --web")
@agents_may(AgentsMay.ALL)
@command.command("review")
@click.argument("id", required=False, default="")
@web_option
@with_memory
def review_command(id: str, web: bool, as_json: bool, memory: OpenedMemory) -> None:
    """Show the dream that waits for your decision, or the last dream that changed memory.

    ID is the id of a dream or of a version; its first characters are enough.
    """
    from reverie.cli.dream.display import find_landed, proposal_json, show_proposal, show_version
    from reverie.layers.l6_dreaming.proposal import Proposals

    proposals, paint = Proposals(memory.directory.root), get_paint()
    waiting = [one for one in proposals.list() if one.id.startswith(id.lower())]
    if web:
        chosen = waiting[0].id if waiting else find_landed(memory.directory, id).id
        show_in_browser(memory, f"/dreams/{{project}}/{chosen}")
        return
    if waiting:
        shown = [line for proposal in waiting for line in (*show_proposal(proposal, paint), "")]
        then = paint.dim("Next: reverie dream accept, or reverie dream reject")
        answer(as_json, {"waiting": [proposal_json(one) for one in waiting]}, *shown, then)
        return
    version = find_landed(memory.directory, id)
    result = {**(version_json(version) or {}), "diff": memory.directory.history.diff(version)}
    answer(as_json, result, *show_version(memory.directory, version, paint))


@examples("reverie dream accept", "reverie dream accept 3f2a --only project_oven --keep-rest")
@command.command("accept")
@click.argument("id", required=False, default="")
@click.option("--only", "only", metavar="FILE", multiple=True, help="Accept only this file; drop the rest. Repeatable.")
@click.option("--keep-rest", is_flag=True, help="With --only: the rest waits for your decision.")
@with_memory
def accept_command(id: str, only: tuple[str, ...], keep_rest: bool, as_json: bool, memory: OpenedMemory) -> None:
    """Save the changes of the dream that waits for your decision.

    Changes that were made to memory after the dream began are kept. With --only, the index follows the files that you
    accept, and text that was to move into another file stays where it is.
    """
    from reverie.cli.dream.display import show_landed
    from reverie.layers.l6_dreaming.landing import accept
    from reverie.layers.l6_dreaming.proposal import Proposals

    memory.require_on("nothing is written")
    if keep_rest and not only:
        raise UserError("--keep-rest needs --only FILE: it says what happens to the other files.")
    proposals = Proposals(memory.directory.root)
    proposal, landed = accept(memory.directory, proposals, id, only=only or None, keep_rest=keep_rest)
    result = {"id": proposal.id, "version": version_json(landed.version), "left": dict(landed.left)}
    answer(as_json, result, *show_landed(landed, get_paint()))


@examples("reverie dream reject")
@command.command("reject")
@click.argument("id", required=False, default="")
@with_memory
def reject_command(id: str, as_json: bool, memory: OpenedMemory) -> None:
    """Reject the dream that waits for your decision. Memory does not change."""
    from reverie.layers.l6_dreaming.landing import reject
    from reverie.layers.l6_dreaming.proposal import Proposals

    proposal = reject(Proposals(memory.directory.root), id)
    answer(as_json, {"rejected": proposal.id}, f"Dropped dream {proposal.id}.")


@examples("reverie dream undo")
@command.command("undo")
@click.argument("version", metavar="[V]", required=False, default="")
@with_memory
def undo_command(version: str, as_json: bool, memory: OpenedMemory) -> None:
    """Undo the last dream that changed memory, or the dream that made version V. Later changes to other lines stay."""
    from reverie.layers.l6_dreaming.landing import undo

    undone, made = undo(memory.directory, version)
    text = f"Undone: {undone.short} ({', '.join(change.name for change in undone.files)})."
    answer(as_json, {"undone": version_json(undone), "version": version_json(made)}, text)


@examples("reverie dream kill")
@agents_may(AgentsMay.ALL)
@command.command("kill")
@with_memory
def kill_command(as_json: bool, memory: OpenedMemory) -> None:
    """Stop a running dream. Memory does not change."""
    from reverie.cli.dream.status import kill_running

    ended = kill_running(memory)
    states = [str(cast("JsonObject", one.get("task") or {}).get("state")) for one in ended]
    answer(as_json, {"ended": ended}, f"The dream is {', '.join(states)}. Memory did not change.")
