"""`reverie sessions upload`: gives a conversation to the memory server, on request, for dreams and learning there."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reverie.cli.options import examples, folder_options, session_choice
from reverie.cli.output import answer, format_size, one_line
from reverie.errors import ReverieError, UserError
from reverie.storage.transcript.sessions import find_session


@examples("reverie sessions upload last", "reverie sessions upload 3f2a --yes --json")
@click.command("upload")
@session_choice()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@folder_options
def upload_command(session: str, yes: bool, as_json: bool, cwd: Path) -> None:
    """Send a conversation to your memory server, so that it can dream and learn from it while this machine is off.

    Only you see it there. Secrets are masked before it leaves this machine. A conversation is never sent by itself.

    Exit codes: 0: sent; 1: you said no, or the server refused; 2: wrong usage; 4: the server does not answer.
    """
    from reverie.cli.memory.opening import open_memory_in
    from reverie.memory.sharing.store.sync import open_client, require_store
    from reverie.memory.sharing.store.uploading import MOST_BYTES, upload_transcript

    memory = open_memory_in(cwd)
    require_store(memory)
    found = find_session(memory.places.project, session, everywhere=True)
    if found.size > MOST_BYTES:
        raise UserError(f"The transcript has {format_size(found.size)}; a server takes {format_size(MOST_BYTES)}.")
    if not yes:
        if not sys.stdin.isatty() or as_json:
            raise UserError("Nothing was sent: there is no terminal to ask on; give --yes.")
        where = f"{memory.settings.memory.store} ({format_size(found.size)})"
        if not click.confirm(f"Send {found.id[:8]}, {one_line(found.title, 50)}, to {where}?"):
            raise ReverieError("Nothing was sent.")
    with open_client(memory) as client:
        made = upload_transcript(client, found.path, found.id)
    answer(as_json, made, f"Sent {found.id[:8]} as {one_line(str(made.get('id', '')))}.")
