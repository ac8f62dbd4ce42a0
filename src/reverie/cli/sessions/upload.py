"""`reverie sessions upload`: gives a conversation to the memory server, on request, for dreams and learning there."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click

from reverie.cli.options import examples, folder_options, session_choice
from reverie.cli.output import answer, format_size, one_line
from reverie.errors import ReverieError, UserError
from reverie.parsing import Unparsable, load_json
from reverie.regular_files import read_regular
from reverie.storage.atomic import storage_error
from reverie.storage.transcript.sessions import find_session

_MOST_BYTES = 64_000_000


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

    memory = open_memory_in(cwd)
    require_store(memory)
    found = find_session(memory.places.project, session, everywhere=True)
    if found.size > _MOST_BYTES:
        raise UserError(f"The transcript has {format_size(found.size)}; a server takes {format_size(_MOST_BYTES)}.")
    if not yes:
        if not sys.stdin.isatty() or as_json:
            raise UserError("Nothing was sent: there is no terminal to ask on; give --yes.")
        where = f"{memory.settings.memory.store} ({format_size(found.size)})"
        if not click.confirm(f"Send {found.id[:8]}, {one_line(found.title, 50)}, to {where}?"):
            raise ReverieError("Nothing was sent.")
    data = gzip.compress("".join(f"{line}\n" for line in _masked(found.path)).encode("utf-8", "replace"), mtime=0)
    with open_client(memory) as client:
        made = client.send("/v1/reverie/sessions", data, name=found.id)
    answer(as_json, made, f"Sent {found.id[:8]} as {one_line(str(made.get('id', '')))}.")


def _masked(path: Path) -> Iterator[str]:
    """The records of a transcript, without secrets; half a line at its end is left out."""
    from reverie.memory.secrets.scan import redact

    def mask(value: Any) -> Any:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, list):
            return [mask(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: mask(one) for key, one in cast("dict[str, Any]", value).items()}
        return value

    try:
        data = read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise storage_error(error, path, "read") from error
    for line in data.split(b"\n"):
        try:
            yield json.dumps(mask(load_json(line)), ensure_ascii=False)
        except Unparsable:
            continue
