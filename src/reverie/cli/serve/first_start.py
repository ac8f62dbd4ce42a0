"""What `reverie serve` says when it starts. The first start makes an organisation, a person for the user of the machine
and a token in a private file."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.cli.serve.opening import Where, this_user

if TYPE_CHECKING:
    from reverie.server.accounts import NewToken

ORGANISATION = "home"


def greet(where: Where, dsn: str, url: str) -> Iterator[str]:
    """How to use the server."""
    token = None if where.dsn else asyncio.run(_set_up_once(dsn, where))
    is_empty = bool(where.dsn) and asyncio.run(_is_empty(dsn))
    yield f"Memory server at {url} (Ctrl-C stops it)"
    if is_empty:
        yield "There is nobody yet: `reverie serve setup` with the same database makes a person and a token."
        return
    path = token_path(where.home)
    if token is not None:
        yield f"The organisation {ORGANISATION!r} has one person, {this_user()!r}, an administrator."
        yield f"The token is in {path}{f': {token.secret}' if sys.stdout.isatty() else '.'}"
    if where.dsn or not path.is_file():
        return
    yield ""
    yield "Sessions of Reverie use it from now on with this line (it sets `memory.store`):"
    yield f"  reverie memory login {url} < {shlex.quote(str(path))}"
    yield "A program with the anthropic SDK uses its memory stores with these (not its models: there are none here):"
    yield f"  export ANTHROPIC_BASE_URL={url}"
    yield f"  export ANTHROPIC_API_KEY=$(cat {shlex.quote(str(path))})"
    yield "Others get in with `reverie serve people add NAME` and `reverie serve tokens add NAME`."


def token_path(home: Path) -> Path:
    return home / "server" / "token"


def keep_token(home: Path, token: NewToken) -> Path:
    """Writes the token to a file that only this user can read."""
    from reverie.storage.atomic import make_private_dir, write_atomic

    path = token_path(home)
    make_private_dir(path.parent)
    write_atomic(path, f"{token.secret}\n".encode())
    return path


async def _set_up_once(dsn: str, where: Where) -> NewToken | None:
    from reverie.server.database import Database
    from reverie.server.operation.operator import is_empty, set_up

    async with Database.open(dsn, size=1) as database, database.as_owner() as connection:
        await connection.execute("lock table organisations in exclusive mode")  # two first starts at the same time
        if not await is_empty(connection):
            return None
        token = await set_up(connection, this_user(), ORGANISATION, this_user())
        keep_token(where.home, token)  # before the commit: a token that nobody can read would be lost
        return token


async def _is_empty(dsn: str) -> bool:
    from reverie.server.database import Database
    from reverie.server.operation.operator import is_empty

    async with Database.open(dsn, size=1) as database, database.as_owner() as connection:
        return await is_empty(connection)
