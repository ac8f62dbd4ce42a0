"""`reverie sessions import`: take in a conversation from another agent's file, to go on with it here."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.cli.output import plural
from reverie.errors import UserError
from reverie.paths import Places, check_session_id
from reverie.settings import load_settings
from reverie.storage.foreign import as_imported
from reverie.storage.pi_sessions import is_pi_session, read_pi_session
from reverie.storage.transcript import Transcript, parse_record, read_records
from reverie.types import Record


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "-C",
    "--cwd",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="The folder the conversation shall belong to.  [default: this one]",
)
def import_command(files: tuple[Path, ...], cwd: Path) -> None:
    """Take in conversations of Claude Code or pi, so that they can be gone on with here.

    The file is read, not changed. A session that is here already is not overwritten.

    \b
    Example:
      reverie sessions import ~/.pi/agent/sessions/my-project/*.jsonl
    """
    places = Places.of(cwd, load_settings(cwd))
    for file in files:
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
        click.echo(f"{name[:8]}  {plural(held, 'message')}  (reverie chat --resume {name[:8]})")


def _session_id(records: list[Record]) -> str:
    return next((str(record.data["sessionId"]) for record in records if record.data.get("sessionId")), "")
