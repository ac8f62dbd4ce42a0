"""`reverie tasks`: the background tasks of every live session, and how to end one.

Asks the sessions over their sockets and changes nothing beside them; loads no event loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from reverie.cli.options import cwd_option, json_option, session_option

if TYPE_CHECKING:
    from reverie.runtime.live_client import LiveSession
    from reverie.types import JsonObject

_EPILOG = """\b
Examples:
  reverie tasks
  reverie tasks -s 3f2a --json
  reverie tasks kill notes-5d09af
"""

F = TypeVar("F", bound=Callable[..., Any])


def _options(function: F) -> F:
    named = session_option("Only this session; the beginning of its id is enough.  [default: all]", default=None)
    return named(json_option(cwd_option(function)))


@click.group("tasks", invoke_without_command=True, epilog=_EPILOG)
@_options
@click.pass_context
def command(context: click.Context, session: str | None, as_json: bool, cwd: Path) -> None:
    """List or kill the background tasks of live sessions.

    Notes, extraction, dreams and agents run in the background of a session. Without a sub-command, lists them.
    """
    if context.invoked_subcommand is None:
        _list(session, as_json, cwd)


@command.command("list", epilog="\b\nExample:\n  reverie tasks list --json")
@_options
def list_command(session: str | None, as_json: bool, cwd: Path) -> None:
    """Show running tasks and the last finished ones of every live session."""
    _list(session, as_json, cwd)


@command.command("kill", epilog="\b\nExample:\n  reverie tasks kill notes-5d09af")
@click.argument("id")
@_options
def kill_command(id: str, session: str | None, as_json: bool, cwd: Path) -> None:
    """End the running task ID; the beginning of an id is enough. What it had begun is rolled back."""
    from reverie.errors import UserError
    from reverie.runtime.live_client import ask_live

    running = [(live, task) for live, task in _tasks(session, cwd) if task.get("state") in ("starting", "running")]
    matching = [(live, task) for live, task in running if str(task.get("id", "")).startswith(id)]
    exact = [(live, task) for live, task in matching if task.get("id") == id]
    if len(exact or matching) != 1:
        what = f"{len(matching)} running tasks begin with {id!r}" if matching else f"No running task is called {id!r}"
        known = ", ".join(str(task.get("id")) for _, task in matching or running)
        raise UserError(f"{what}; {'there are: ' + known if known else 'none is running'}.")
    live, task = (exact or matching)[0]
    assert live.socket is not None
    ended = cast("JsonObject", ask_live(live.socket, {"do": "kill", "id": task["id"]}, timeout_s=30).get("task") or {})
    if as_json:
        click.echo(json.dumps({"session": live.id, "pid": live.pid, **ended}))
        return
    state = str(ended.get("state"))
    verb = "Killed" if state == "killed" else f"Too late, it has {state}:"
    click.echo(f"{verb} {ended.get('id')} ({ended.get('title')}).")


def _list(session: str | None, as_json: bool, cwd: Path) -> None:
    tasks = _tasks(session, cwd)
    if as_json:
        click.echo(json.dumps([{"session": live.id, "pid": live.pid, **task} for live, task in tasks]))
        return
    if not tasks:
        click.echo("No background tasks.")
    for live, task in tasks:
        progress = cast("list[object]", task.get("progress") or [])
        last = task.get("error") or (progress[-1] if progress else "")
        line = (
            f"{live.id[:8]}  {task.get('id')!s:<20} {task.get('state')!s:<10} {_seconds(task):>7}  {task.get('title')}"
        )
        click.echo(line + (f": {last}" if last else ""))


def _tasks(session: str | None, cwd: Path) -> list[tuple[LiveSession, JsonObject]]:
    """The tasks of all live sessions; one that does not answer is named on standard error and left out."""
    from reverie.errors import ReverieError, UserError
    from reverie.paths import Places
    from reverie.runtime.live_client import ask_live, live_sessions
    from reverie.settings import load_settings
    from reverie.storage.transcript.sessions import beginning_of

    found: list[tuple[LiveSession, JsonObject]] = []
    places = Places.of(cwd, load_settings(cwd))
    sessions = live_sessions(places.projects, beginning_of(session, places.project))
    if session is not None and not sessions:
        raise UserError(f"No live session begins with {session!r}; `reverie tasks` shows those there are.")
    for live in sessions:
        try:
            answer = {} if live.socket is None else ask_live(live.socket, {"do": "tasks"})
        except ReverieError as error:
            click.echo(f"Session {live.id[:8]} (PID {live.pid}) is left out: {error}", err=True)
            continue
        found += [(live, task) for task in cast("list[JsonObject]", answer.get("tasks") or [])]
    return found


def _seconds(task: JsonObject) -> str:
    seconds = task.get("seconds")
    if not isinstance(seconds, int | float):
        return ""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min"
