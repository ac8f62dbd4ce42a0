"""`reverie sessions import`: take in a conversation from another agent's file, to go on with it here."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.cli.options import with_places
from reverie.cli.output import answer, plural
from reverie.errors import ReverieError, UserError
from reverie.paths import Places, check_session_id
from reverie.storage.transcript.file import Transcript, parse_record, read_records
from reverie.storage.transcript.foreign import as_imported
from reverie.storage.transcript.pi_sessions import is_pi_session, read_pi_session
from reverie.types import Record


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@with_places
def import_command(files: tuple[Path, ...], as_json: bool, places: Places) -> None:
    """Take in conversations of Claude Code or pi, so that they can be gone on with here.

    The file is read, not changed. A session that is here already is not overwritten.

    \b
    Example:
      reverie sessions import ~/.pi/agent/sessions/my-project/*.jsonl
    """
    taken, failed = list[dict[str, object]](), list[ReverieError]()
    for file in files:
        try:
            taken.append(_take_in(file, places, quiet=as_json))
        except ReverieError as error:  # the other files are taken in all the same
            failed.append(error)
    answer(as_json, {"imported": taken})
    for error in failed[:-1]:
        click.echo(f"reverie: {error}", err=True)
    if failed:
        raise failed[-1]


def _take_in(file: Path, places: Places, *, quiet: bool) -> dict[str, object]:
    records = read_pi_session(file) if is_pi_session(file) else read_records(file).records
    name = check_session_id(_session_id(records) or file.stem)
    target = places.transcript(name)
    if target.exists():
        raise UserError(f"{file}: session {name} is here already; delete it first with `reverie sessions delete`")
    held = sum(record.message is not None for record in records)
    if not held:
        raise UserError(f"{file}: there is no conversation in it")
    transcript = Transcript(target)
    transcript.append(parse_record(as_imported(record.stored())) for record in records)
    transcript.close()
    if not quiet:
        click.echo(f"{name[:8]}  {plural(held, 'message')}  (reverie chat --resume {name[:8]})")
    return {"session": name, "file": str(file), "messages": held, "path": str(target)}


def _session_id(records: list[Record]) -> str:
    return next((str(record.data["sessionId"]) for record in records if record.data.get("sessionId")), "")
