"""Which database the commands of the memory server use: `--dsn`, a file, the setting, or the one of the home."""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from reverie.cli.options import folder_options, inherit, load_places
from reverie.cli.output import say, warn
from reverie.errors import MissingExtra, UserError
from reverie.paths.installed import pip_install
from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.server.database import Database
    from reverie.server.operation.operator import Operator

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
DSN_HELP = "A PostgreSQL database with pgvector, as postgresql://USER@HOST/NAME.  [default: one of our own]"
DSN_FILE_HELP = "A private file with the DSN: a password in it is not seen by other users, as in --dsn."
_MOST_DSN = 10_000


@dataclass(frozen=True, slots=True)
class Where:
    """The home, and the DSN that was given; empty for the database of the home."""

    home: Path
    dsn: str


def dsn_options(function: F) -> F:
    """`--dsn` and `--dsn-file`."""
    file = click.Path(path_type=Path, exists=True, dir_okay=False)
    by_file = click.option("--dsn-file", type=file, callback=inherit, help=DSN_FILE_HELP)
    return click.option("--dsn", default="", callback=inherit, help=DSN_HELP)(by_file(function))


def database_options(function: F) -> F:
    """The same, with `--json` and `-C`."""
    return dsn_options(folder_options(function))


def organisation_option(function: F) -> F:
    help = "The organisation; needed only if there are several."
    return click.option("--organisation", metavar="NAME", default="", callback=inherit, help=help)(function)


def find_database(cwd: Path, dsn: str, dsn_file: Path | None) -> Where:
    """Refuses what cannot be a DSN. Never shows one: it may have a password."""
    from reverie.regular_files import read_regular_text

    settings = load_places(cwd)[0]
    if dsn and dsn_file is not None:
        raise UserError("--dsn and --dsn-file both name a database. Give only one.")
    if dsn_file is not None:
        if dsn_file.stat().st_mode & 0o007:
            warn(f"{dsn_file}: other users can read it; `chmod 600` makes it private.")
        dsn = read_regular_text(dsn_file, _MOST_DSN, errors="replace").strip()
        if not dsn:
            raise UserError(f"{dsn_file} is empty.")
    elif dsn and _has_password(dsn):
        warn("A password on the command line is visible to other users: use REVERIE_SERVE_DSN or --dsn-file.")
    dsn = dsn or settings.serve.dsn
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise MissingExtra(f"The memory server needs PostgreSQL: {pip_install('server')}") from error
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise UserError("The DSN cannot be read: it must look like postgresql://USER@HOST/NAME.") from None
    return Where(settings.places.home, dsn)


def _has_password(dsn: str) -> bool:
    try:
        return bool(urlsplit(dsn).password) or "password=" in dsn
    except ValueError:
        return False


@contextmanager
def started(where: Where, *, makes: bool = False) -> Generator[str]:
    """The DSN of a database that runs. Ours is started if it does not, and made if `makes`."""
    from reverie.server.embedded import EmbeddedPostgres

    if where.dsn:
        yield where.dsn
        return
    own = EmbeddedPostgres.at(where.home)
    if not makes and not own.is_made:
        raise UserError("This home has no memory server yet: start `reverie serve`, or name a database with --dsn.")
    try:
        yield own.start(lambda text: say(text, err=True))
    finally:
        own.stop()


def with_database(where: Where, act: Callable[[Database], Awaitable[T]], *, makes: bool = False) -> T:
    """Runs `act` with the open database."""
    import asyncio

    from reverie.server.database import Database

    async def run(dsn: str) -> T:
        async with Database.open(dsn, size=2) as database:
            return await act(database)

    with started(where, makes=makes) as dsn:
        return asyncio.run(run(dsn))


def as_operator(where: Where, organisation: str, act: Callable[[Operator], Awaitable[T]]) -> T:
    """Runs `act` in one transaction as the operator of an organisation."""
    from reverie.server.operation.operator import open_operator

    async def run(database: Database) -> T:
        async with database.as_owner() as connection:
            return await act(await open_operator(connection, this_user(), organisation))

    return with_database(where, run)


def this_user() -> str:
    """The user of the machine, by name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"
