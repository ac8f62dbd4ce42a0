"""`reverie dream`: put memory in order now, see what dreams did or want to do, and have the last word.

A dream runs in a session of its own; looking, accepting, rejecting and undoing need no model and no event loop.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from reverie.cli.memory.opening import cwd_option, json_option, memory_in, painted, say, say_json, version_json, warn
from reverie.cli.screen import CLEAR_LINE
from reverie.errors import ReverieError, UserError

if TYPE_CHECKING:
    from reverie.layers.l6_dreaming.proposal import Proposal
    from reverie.types import JsonObject

_EPILOG = """\b
Examples:
  reverie dream
  reverie dream --now
  reverie dream --dry-run
  reverie dream review
  reverie dream undo

Exit codes: 0 done or not yet, 1 it failed or was refused, 2 usage, 4 storage, 5 the model could not answer.
"""


@click.group("dream", invoke_without_command=True, epilog=_EPILOG)
@click.option("--now", is_flag=True, help="Dream whatever the gates say.")
@click.option("--dry-run", is_flag=True, help="Dream, show what it would change, and change nothing.")
@click.option("-m", "--model", metavar="NAME", help="Who dreams.  [default: the model of the settings]")
@json_option
@cwd_option
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
    from reverie.cli.running import Signals, run_async

    async def main(signals: Signals) -> int:
        return await _dream(signals, cwd, model, forced=now or dry_run, dry_run=dry_run, as_json=as_json)

    return run_async(main)


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
            if as_json:
                say_json({"outcome": "not yet", "gate": found.gate.value, "reason": found.reason})
            else:
                say(f"Not yet ({found.gate.value}): {found.reason}. `reverie dream --now` does it all the same.")
            return 0
        task = dreaming.start(dry_run=dry_run)
        killing: list[asyncio.Task[Any]] = []

        def kill() -> bool:
            killing.append(asyncio.ensure_future(session.tasks.kill(task.id)))
            return True

        signals.cancel = kill
        session.listen(_Progress(quiet=as_json))
        info = await task.wait()
    if task.result is None:
        why = info.error or f"The dream was {info.state.value}; nothing was changed."
        raise ReverieError(f"{why} {dreaming.telling.among}".rstrip())
    if as_json:
        say_json(task.result.to_json())
        return 0
    paint = painted()
    if dry_run and task.result.proposal is not None:
        for line in show_proposal(task.result.proposal, paint):
            say(line)
        say()
    for line in show_dreamt(task.result, paint):
        say(line)
    return 0


class _Progress:
    """Shows the state of a running dream on one line of standard error, and every warning on a line of its own."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, event: Any) -> None:
        import sys

        from reverie.cli.output import columns, cut, one_line
        from reverie.events import Notice, TaskChanged

        if isinstance(event, Notice) and event.level != "info":
            warn(one_line(event.text))
        elif isinstance(event, TaskChanged) and sys.stderr.isatty() and not self._quiet:
            text = cut(one_line(event.progress or event.state), columns() - 2)
            click.echo(CLEAR_LINE + (text if event.state in ("starting", "running") else ""), nl=False, err=True)


@command.command("status")
@json_option
@cwd_option
def status_command(as_json: bool, cwd: Path) -> None:
    """Say when the last dream was, what came of it, what it cost, and why the next is not yet.

    \b
    Example:
      reverie dream status --json
    """
    from reverie.cli.dream.look import look
    from reverie.flags import Flags

    memory = memory_in(cwd)
    flags = Flags.open(memory.places, memory.settings)
    try:
        found = look(memory, flags)
    finally:
        flags.close()
    running = _running(memory.places.projects, memory.directory.root)
    if as_json:
        say_json({**found.to_json(), "running": running})
        return
    paint = painted()
    for name, text in found.lines():
        say(f"{paint.bold(f'{name:<13}')} {text}")
    for one in running:
        phase, touched = f"{one['phase']:<13}", ", ".join(one["touched"]) or "no file yet"
        say(f"{paint.bold(phase)} {one['tools']} tool calls; {touched}")
        for turn in one["turns"]:
            say(paint.dim(f"  {turn}"))


def _running(projects: Path, root: Path) -> list[JsonObject]:
    """The dreams that live sessions have under way in this memory."""
    from reverie.runtime.live_client import ask_live, live_sessions

    found: list[JsonObject] = []
    for live in live_sessions(projects):
        if live.socket is None:
            continue
        try:
            answer = ask_live(live.socket, {"do": "dream"})
        except ReverieError:
            continue
        progress = cast("JsonObject | None", answer.get("running"))
        if progress is not None and answer.get("memory") == str(root):
            found.append({"session": live.id, "pid": live.pid, "task": answer.get("task"), **progress})
    return found


@command.command("log")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Newest so many.")
@json_option
@cwd_option
def log_command(limit: int, as_json: bool, cwd: Path) -> None:
    """List what dreams have done, newest first, and what went wrong.

    \b
    Example:
      reverie dream log -n 5
    """
    from reverie.cli.dream.log import told_lines
    from reverie.layers.l6_dreaming.proposal import Proposals
    from reverie.runtime.background_log import BackgroundLog

    memory = memory_in(cwd)
    versions = list(memory.directory.log()) if memory.directory.history.head() else []
    entries = BackgroundLog(memory.places.background_log).read(kind="dream_")
    own = memory.places.below_home(memory.directory.root).parts  # a home that was moved keeps its log
    runs = [entry for entry in entries if Path(str(entry.fields.get("memory"))).parts[-len(own) :] == own]
    if as_json:
        from reverie.cli.dream.log import dreams_and_runs

        say_json(dreams_and_runs(versions, runs, limit))
        return
    waiting = {proposal.id for proposal in Proposals(memory.directory.root).list()}
    for line in told_lines(versions, runs, waiting, limit, painted()):
        say(line)


@command.command("review")
@click.argument("id", required=False, default="")
@json_option
@cwd_option
def review_command(id: str, as_json: bool, cwd: Path) -> None:
    """Show a dream that waits for you, file by file; or the last one that landed, if none waits.

    ID is the beginning of a dream's id, or of a version.

    \b
    Examples:
      reverie dream review
      reverie dream review 3f2a
    """
    from reverie.cli.dream.show import show_proposal, show_version
    from reverie.layers.l6_dreaming.proposal import Proposals
    from reverie.layers.l6_dreaming.review import dreams

    memory = memory_in(cwd)
    proposals, paint = Proposals(memory.directory.root), painted()
    waiting = [one for one in proposals.list() if one.id.startswith(id.lower())]
    if waiting:
        if as_json:
            say_json({"waiting": [_proposal_json(one) for one in waiting]})
            return
        for proposal in waiting:
            for line in show_proposal(proposal, paint):
                say(line)
            say()
        say(paint.dim("Then: reverie dream accept, or reject"))
        return
    made = dreams(memory.directory) if memory.directory.history.head() else iter(())
    version = next((one for one in made if one.id.startswith(id)), None)
    if version is None:
        raise UserError("No dream waits for you, and none has landed." if not id else f"There is no dream {id[:20]!r}.")
    if as_json:
        say_json({**(version_json(version) or {}), "diff": memory.directory.history.diff(version)})
        return
    for line in show_version(memory.directory, version, paint):
        say(line)


@command.command("accept")
@click.argument("id", required=False, default="")
@json_option
@cwd_option
def accept_command(id: str, as_json: bool, cwd: Path) -> None:
    """Let a dream that waits become memory, merged with what happened meanwhile.

    \b
    Example:
      reverie dream accept
    """
    from reverie.cli.dream.show import landed_lines
    from reverie.layers.l6_dreaming.proposal import Proposals
    from reverie.layers.l6_dreaming.review import accept

    memory = memory_in(cwd)
    memory.require_on("nothing is written")
    proposal, landed = accept(memory.directory, Proposals(memory.directory.root), id)
    if as_json:
        say_json({"id": proposal.id, "version": version_json(landed.version), "left": dict(landed.left)})
        return
    for line in landed_lines(landed, painted()):
        say(line)


@command.command("reject")
@click.argument("id", required=False, default="")
@json_option
@cwd_option
def reject_command(id: str, as_json: bool, cwd: Path) -> None:
    """Drop a dream that waits; memory stays as it is.

    \b
    Example:
      reverie dream reject
    """
    from reverie.layers.l6_dreaming.proposal import Proposals
    from reverie.layers.l6_dreaming.review import reject

    proposal = reject(Proposals(memory_in(cwd).directory.root), id)
    say_json({"rejected": proposal.id}) if as_json else say(f"Dropped dream {proposal.id}.")


@command.command("undo")
@click.argument("version", metavar="[V]", required=False, default="")
@json_option
@cwd_option
def undo_command(version: str, as_json: bool, cwd: Path) -> None:
    """Take back a dream that landed: the last one, or V. Later changes of other lines stay.

    \b
    Example:
      reverie dream undo
    """
    from reverie.layers.l6_dreaming.review import undo

    memory = memory_in(cwd)
    undone, made = undo(memory.directory, version)
    if as_json:
        say_json({"undone": version_json(undone), "version": version_json(made)})
        return
    say(f"Took back {undone.short}: {', '.join(change.name for change in undone.files)}.")


@command.command("kill")
@json_option
@cwd_option
def kill_command(as_json: bool, cwd: Path) -> None:
    """End a running dream; nothing of it remains.

    \b
    Example:
      reverie dream kill
    """
    from reverie.runtime.live_client import ask_live, live_sessions

    memory = memory_in(cwd)
    running = _running(memory.places.projects, memory.directory.root)
    if not running:
        raise UserError("No dream is running in a session that listens.")
    sockets = {live.id: live.socket for live in live_sessions(memory.places.projects)}
    ended: list[JsonObject] = []
    for one in running:
        socket = sockets.get(str(one["session"]))
        if socket is not None:
            ended.append(ask_live(socket, {"do": "kill", "id": one["task"]}, timeout_s=30))
    states = [str(cast("JsonObject", one.get("task") or {}).get("state")) for one in ended]
    say_json({"ended": ended}) if as_json else say(f"The dream is {', '.join(states)}; memory is as it was before.")


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
