"""`reverie log`: prints the background log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import cwd_option, examples, json_lines_option, places_of, session_option
from reverie.cli.screen import json_text

if TYPE_CHECKING:
    from reverie.runtime.background_log import LogEntry


@examples("reverie log", "reverie log -n 200 --kind task_failed", "reverie log --session 3f2a --json")
@click.command("log")
@click.option("-n", "number", type=click.IntRange(1), default=50, show_default=True, help="How many lines.")
@session_option("Only this session; the start of its id is enough.  [default: all]", default=None)
@click.option("--kind", metavar="KIND", help="Only entries whose kind begins with KIND, e.g. task, task_failed, dream.")
@json_lines_option
@cwd_option
def command(number: int, session: str | None, kind: str | None, as_json: bool, cwd: Path) -> None:
    """Show what happened in the background: tasks, failures, refusals.

    The log contains no messages and no secrets.
    """
    from reverie.runtime.background_log import BackgroundLog
    from reverie.storage.transcript.sessions import resolve_prefix

    places = places_of(cwd)
    path = places.background_log
    session = resolve_prefix(session, places.project)
    entries = BackgroundLog(path).read(number, kind=kind, session=session)
    for entry in entries:
        click.echo(json.dumps(entry.to_json()) if as_json else _line(entry))
    if not entries and not as_json:
        click.echo(f"Nothing{' of that kind' if session or kind else ''} in the background log ({path}).")


def _line(entry: LogEntry) -> str:
    when = entry.time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    fields = "  ".join(f"{key}={_format_value(value)}" for key, value in entry.fields.items() if value is not None)
    return f"{when}  {(entry.session or '-')[:8]:<8}  {entry.kind.replace('_', ' '):<16}  {fields}".rstrip()


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json_text(value)
    text = "".join(character if character.isprintable() else " " for character in text)
    return f'"{text}"' if " " in text and isinstance(value, str) else text
