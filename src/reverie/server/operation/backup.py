"""Backup and restore of the whole database with PostgreSQL's own programs. The password is in their environment and
never an argument, which other users could see."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError, UserError
from reverie.server.migrating import SCHEMA, NewerSchema, list_migrations
from reverie.server.operation.postgres_programs import environment, find_client
from reverie.storage.atomic import flush_folder, remove, storage_error

_SCHEMAS: Final = (SCHEMA, "procrastinate")
_LOCK_S: Final = 30


def back_up(dsn: str, file: Path) -> int:
    """Writes everything to a new private file and returns its size. It is there whole or not at all."""
    if os.path.lexists(file):
        raise UserError(f"{file} exists already: choose another name.")
    program = find_client("pg_dump", _version(dsn))
    part = file.with_name(f".{file.name}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        part.chmod(0o600)
    except OSError as error:
        raise storage_error(error, file, "write") from error
    wanted = [f"--schema={one}" for one in _SCHEMAS]
    try:
        _run(program, dsn, "--format=custom", "--no-owner", f"--file={part}", *wanted)
        size = part.stat().st_size
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.rename(file)
        flush_folder(file.absolute().parent)
    except BaseException:
        remove(part)
        raise
    return size


def bring_back(dsn: str, file: Path, *, replaces: bool = False) -> None:
    """Reads a backup into the database, in one transaction. What is there is replaced only if `replaces`."""
    version = _version(dsn)
    reads, runs = find_client("pg_restore", version), find_client("psql", version)
    _check_archive(reads, file)
    has_accounts = asyncio.run(_has_accounts(dsn))  # also makes the role and the extension that the backup needs
    if has_accounts and not replaces:
        raise UserError("The database is not empty: --replace deletes everything in it first, or name an empty one.")
    with tempfile.TemporaryDirectory(prefix="reverie-restore-") as folder:
        script = Path(folder, "script.sql")
        _call([reads, "--no-owner", f"--file={script}", str(file)])
        drops = [
            f"set local lock_timeout = '{_LOCK_S}s'",
            *(f"drop schema if exists {one} cascade" for one in _SCHEMAS),
        ]
        steps = [one for drop in drops for one in ("--command", drop)]
        _run(runs, dsn, "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", *steps, f"--file={script}")


def _version(dsn: str) -> int:
    """The major version of the server."""
    import psycopg

    try:
        with psycopg.connect(dsn, connect_timeout=10) as connection:
            return connection.info.server_version // 10_000
    except psycopg.OperationalError as error:
        raise ReverieError(f"The database does not answer: {str(error).strip().splitlines()[0]}") from error


async def _has_accounts(dsn: str) -> bool:
    from reverie.server.database import Database
    from reverie.server.operation.operator import is_empty

    async with Database.open(dsn, size=1) as database, database.as_owner() as connection:
        return not await is_empty(connection)


def _check_archive(program: Path, file: Path) -> None:
    """That it is a backup of ours, of a schema that this Reverie knows."""
    found = _call([program, "--data-only", f"--schema={SCHEMA}", "--table=migrations", "--file=-", str(file)])
    rows = found.partition("\nCOPY ")[2].partition("\n\\.")[0].splitlines()[1:]
    numbers = [int(number) for number in (row.split("\t")[0] for row in rows) if number.isdigit()]
    if not numbers:
        raise UserError(f"{file} is not a backup of a memory server.")
    newest = list_migrations()[-1].number
    if max(numbers) > newest:
        raise NewerSchema(f"{file} has schema {max(numbers)}, and this Reverie knows {newest}: use a newer Reverie.")


def _run(program: Path, dsn: str, *given: str) -> None:
    """Runs a program on the database."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    parts = {name: value for name, value in conninfo_to_dict(dsn).items() if value is not None}
    password = str(parts.pop("password", ""))
    more = {"PGPASSWORD": password} if password else {}
    _call([program, f"--dbname={make_conninfo('', **parts)}", *given], **more)


def _call(command: list[Path | str], **more: str) -> str:
    program = Path(command[0]).name
    env = environment(PGCONNECT_TIMEOUT="10", **more)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, env=env)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines()
        said = " ".join(" ".join(lines[:1]).split()) or f"exit code {done.returncode}"
        if "unsupported version" in said or "does not appear to be a valid archive" in said:
            said += "; it must be a file of `reverie serve backup`, made by this version of PostgreSQL or an older one"
        raise UserError(f"{program} failed, and nothing was changed: {said}")
    return done.stdout
