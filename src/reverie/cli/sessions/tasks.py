"""`reverie tasks`: lists and kills the background tasks of live sessions, over their sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from reverie.cli.options import examples, session_option, with_places
from reverie.cli.output import answer, format_seconds, table

if TYPE_CHECKING:
    from reverie.paths import Places
    from reverie.runtime.live_client import LiveSession
    from reverie.types import JsonObject


F = TypeVar("F", bound=Callable[..., Any])


def _options(function: F) -> F:
    named = session_option("Only this session; the start of its id is enough.  [default: all]", default=None)
    return named(with_places(function))


@examples("reverie tasks", "reverie tasks -s 3f2a --json", "reverie tasks kill notes-5d09af")
@click.group("tasks", invoke_without_command=True)
@_options
@click.pass_context
def command(context: click.Context, session: str | None, as_json: bool, places: Places) -> None:
    """List and stop the background tasks of live sessions.

    A live session is a session that is open in another process. Its notes, extraction, dreams and agents run in the
    background. Without a sub-command, the command lists them.
    """
    if context.invoked_subcommand is None:
        _show_list(session, as_json, places)


@examples("reverie tasks list --json")
@command.command("list")
@_options
def list_command(session: str | None, as_json: bool, places: Places) -> None:
    """Show the running tasks and the last finished tasks of every live session."""
    _show_list(session, as_json, places)


@examples("reverie tasks kill notes-5d09af")
@command.command("kill")
@click.argument("id")
@_options
def kill_command(id: str, session: str | None, as_json: bool, places: Places) -> None:
    """Stop the running task ID and discard its unfinished work.

    What it has already saved stays. The first characters of the ID are enough.
    """
    from reverie.errors import UserError
    from reverie.runtime.live_client import ask_live

    running = [
        (live, task) for live, task in _find_tasks(session, places) if task.get("state") in ("starting", "running")
    ]
    matching = [(live, task) for live, task in running if str(task.get("id", "")).startswith(id)]
    exact = [(live, task) for live, task in matching if task.get("id") == id]
    if len(exact or matching) != 1:
        what = f"{len(matching)} running tasks begin with {id!r}" if matching else f"No running task is called {id!r}"
        known = ", ".join(str(task.get("id")) for _, task in matching or running)
        raise UserError(f"{what}; {'running tasks: ' + known if known else 'no task is running'}.")
    live, task = (exact or matching)[0]
    assert live.socket is not None
    ended = cast("JsonObject", ask_live(live.socket, {"do": "kill", "id": task["id"]}, timeout_s=30).get("task") or {})
    state = str(ended.get("state"))
    verb = "Killed" if state == "killed" else f"Too late, already {state}:"
    text = f"{verb} {ended.get('id')} ({ended.get('title')})."
    answer(as_json, {"session": live.id, "pid": live.pid, **ended}, text)


def _show_list(session: str | None, as_json: bool, places: Places) -> None:
    tasks = _find_tasks(session, places)
    rows = [
        (
            live.id[:8],
            str(task.get("id")),
            str(task.get("state")),
            _seconds(task),
            f"{task.get('title')}{_last_note(task)}",
        )
        for live, task in tasks
    ]
    found = [{"session": live.id, "pid": live.pid, **task} for live, task in tasks]
    answer(as_json, found, *(table(rows, right=(3,)) if rows else ["No background tasks."]))


def _last_note(task: JsonObject) -> str:
    progress = cast("list[object]", task.get("progress") or [])
    last = task.get("error") or (progress[-1] if progress else "")
    return f": {last}" if last else ""


def _find_tasks(session: str | None, places: Places) -> list[tuple[LiveSession, JsonObject]]:
    from reverie.errors import UserError
    from reverie.storage.transcript.sessions import resolve_prefix

    asked = list(ask_all(places, {"do": "tasks"}, resolve_prefix(session, places.project)))
    if session is not None and not asked:
        raise UserError(f"No live session begins with {session!r}; `reverie tasks` lists all live sessions.")
    return [(live, task) for live, found in asked for task in cast("list[JsonObject]", found.get("tasks") or [])]


def ask_all(
    places: Places, request: JsonObject, session: str | None = None
) -> Iterator[tuple[LiveSession, JsonObject]]:
    """The replies of all live sessions; a session that does not reply is reported on standard error."""
    from reverie.errors import ReverieError
    from reverie.runtime.live_client import ask_live, live_sessions

    for live in live_sessions(places.projects, session):
        try:
            yield live, {} if live.socket is None else ask_live(live.socket, request)
        except ReverieError as error:
            click.echo(f"Session {live.id[:8]} (PID {live.pid}) is left out: {error}", err=True)
            yield live, {}


def _seconds(task: JsonObject) -> str:
    seconds = task.get("seconds")
    return format_seconds(seconds) if isinstance(seconds, int | float) else ""
