"""`reverie daemon`: shows, stops and runs the service behind the hooks of Claude Code and Codex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from reverie.cli.options import examples, with_places
from reverie.cli.output import answer, format_age, say, table

if TYPE_CHECKING:
    from reverie.paths import Places
    from reverie.types import JsonObject


@examples("reverie daemon status", "reverie daemon stop")
@click.group(name="daemon")
def command() -> None:
    """Show, stop or run the service behind the hooks of Claude Code and Codex.

    The first hook starts the service. It ends by itself when there was no event for some minutes
    (`connect.idle_minutes`). There is one service per user.
    """


@examples("reverie daemon status --json")
@command.command("status")
@with_places
def status_command(as_json: bool, places: Places) -> None:
    """Show whether the service runs, and what it has done."""
    from reverie.daemon.client import daemon_status

    found = daemon_status(places.home)
    if found is None:
        answer(as_json, {"running": False}, "The service is not running; the next hook starts it.")
    elif not found["answers"]:
        why = "does not answer: it starts, ends or hangs. `reverie daemon stop` ends it."
        answer(as_json, {"running": True, **found}, f"The service (PID {found['pid']}) {why}")
    else:
        answer(as_json, {"running": True, **found}, *table(_rows(found)))


@examples("reverie daemon stop")
@command.command("stop")
@with_places
def stop_command(as_json: bool, places: Places) -> None:
    """Stop the service and its background work.

    The next hook starts it again. Work that waits or is interrupted is taken up then. To switch the hooks off, use
    `reverie disconnect`.
    """
    from reverie.daemon.client import stop_daemon

    stopped = stop_daemon(places.home)
    answer(as_json, {"stopped": stopped}, "Stopped the service." if stopped else "The service was not running.")


@examples("reverie daemon run")
@command.command("run")
@with_places
def run_command(as_json: bool, places: Places) -> None:
    """Run the service in this terminal, to look for the cause of a problem.

    Ctrl-C ends it. `reverie log --kind hook` shows what it reports.
    """
    from reverie.daemon.__main__ import run
    from reverie.errors import UserError
    from reverie.paths import daemon_socket

    socket = daemon_socket(places.home)
    if not as_json:
        say(f"The service listens at {socket}. Ctrl-C ends it.")
    if not run(places.home, socket):
        raise UserError("The service runs already; `reverie daemon stop` ends it.")
    answer(as_json, {"ended": True}, "The service has ended.")


def _rows(found: JsonObject) -> list[tuple[str, str]]:
    jobs = cast("dict[str, Any]", found["jobs"])
    running = ", 1 running" if jobs["running"] else ""
    return [
        ("service", f"PID {found['pid']}, version {found['version']}, for {format_age(float(found['started']))}"),
        ("events", f"{found['events']}, {found['faults']} without an answer because of an error"),
        ("skipped", f"{found['skipped']['events']} events in 24 hours while no service ran"),
        ("jobs", f"{jobs['waiting']} waiting{running}, {jobs['done']} done, {jobs['failed']} failed"),
        ("socket", str(found["socket"])),
    ]
