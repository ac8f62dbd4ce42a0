"""Uploaded sessions: transcripts of Reverie or Claude Code that dreams and extraction read, so that the machine they
come from can be off. A client uploads one only if its user asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from reverie.server import stores
from reverie.server.database import Principal, Row
from reverie.server.dreams import rows
from reverie.server.dreams.checking import Transcript
from reverie.server.gate import check_words
from reverie.server.ids import new_id
from reverie.server.wire import (
    ApiError,
    format_time,
    make_time_page,
    plain_id,
    read_time_cursor,
    take_limit,
    take_row,
    take_text,
)

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

MOST_SENT: Final = 32_000_000
MOST_SESSIONS: Final = 10_000
"""Per scope: whoever has more deletes old ones first."""
_MOST_NAME: Final = 200
_COLUMNS: Final = "id, scope, name, format, size, records, sha256, uploaded_by, created_at"


def show(row: Row) -> dict[str, Any]:
    """What is known of a session; never its content."""
    return {
        "type": "session",
        "id": row["id"],
        "scope": row["scope"],
        "name": row["name"],
        "format": row["format"],
        "size_bytes": row["size"],
        "records": row["records"],
        "sha256": row["sha256"],
        "uploaded_by": row["uploaded_by"],
        "created_at": format_time(row["created_at"]),
    }


async def create(connection: Connection, who: Principal, given: Transcript, *, scope: str = "", name: str = "") -> Row:
    """Stores a transcript; private without a scope."""
    scope = scope or f"user:{who.person_id}"
    if scope not in who.scopes:
        raise ApiError(403, "You are not a member of this scope.")
    name = take_text({"name": name}, "name", most=_MOST_NAME)
    check_words("name", name)
    counted = await connection.execute("select count(*) as n from sessions where scope = %s", (scope,))
    if (await take_row(counted, "session", ""))["n"] >= MOST_SESSIONS:
        raise ApiError(400, f"There are {MOST_SESSIONS:,} sessions already: delete old ones first.")
    added = await connection.execute(
        "insert into sessions "
        "(id, organisation_id, scope, uploaded_by, name, format, transcript, size, records, sha256) "
        f"values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) returning {_COLUMNS}".encode(),
        (
            new_id("sesn"),
            who.organisation_id,
            scope,
            who.person_id,
            name,
            given.format,
            given.packed,
            given.size,
            given.records,
            given.sha256,
        ),
    )
    return await take_row(added, "session", "")


async def find(connection: Connection, id: str) -> Row:
    found = await connection.execute(f"select {_COLUMNS} from sessions where id = %s".encode(), (plain_id(id),))
    return await take_row(found, "session", id)


async def delete(connection: Connection, id: str) -> None:
    """Removes a session. A dream that has not read it yet fails."""
    await find(connection, id)
    await connection.execute("delete from sessions where id = %s", (id,))


async def page(connection: Connection, query: Mapping[str, str]) -> dict[str, Any]:
    """One page, newest first."""
    limit, (at, id) = take_limit(query), read_time_cursor(query)
    found = await connection.execute(
        f"select {_COLUMNS} from sessions where "
        "(%(at)s::timestamptz is null or (created_at, id) < (%(at)s, %(id)s)) "
        "order by created_at desc, id desc limit %(limit)s".encode(),
        {"at": at, "id": id, "limit": limit + 1},
    )
    return make_time_page(await found.fetchall(), limit, show)


async def extract(connection: Connection, who: Principal, id: str, body: Mapping[str, Any]) -> Row:
    """Queues the extraction of memories from a session into a store."""
    session = await find(connection, id)
    store_id = take_text(body, "store", least=1, most=_MOST_NAME)
    model = rows.read_model(body.get("model", rows.EMBEDDED))
    store = await stores.find(connection, store_id, locks=True, may_be_archived=False)
    return await rows.add(
        connection,
        store,
        who,
        kind="extraction",
        session_ids=[session["id"]],
        model=model,
        output="update_existing",
    )
