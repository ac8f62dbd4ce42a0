"""Memory stores: rows of `stores` as the published API shows them. Everything here runs as the caller, so a store of
another scope does not exist."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from reverie.server.database import Principal, Row
from reverie.server.gate import check_words
from reverie.server.ids import new_id
from reverie.server.wire import (
    ApiError,
    format_time,
    make_time_page,
    plain_id,
    read_time_cursor,
    take_flag,
    take_limit,
    take_moment,
    take_row,
    take_text,
    take_word,
)

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

FIELDS: Final = ("name", "description", "metadata")
_MOST_NAME: Final = 255
_MOST_DESCRIPTION: Final = 1_024
_MOST_PAIRS: Final = 16
_MOST_KEY: Final = 64
_MOST_VALUE: Final = 512


def show(row: Row) -> dict[str, Any]:
    """A store in the published form; `scope` and `purpose` are ours."""
    return {
        "type": "memory_store",
        "id": row["id"],
        "name": row["name"],
        "description": row["description"],
        "metadata": row["metadata"],
        "created_at": format_time(row["created_at"]),
        "updated_at": format_time(row["updated_at"]),
        "archived_at": format_time(row["archived_at"]),
        "scope": row["scope"],
        "purpose": row["purpose"],
    }


async def create(
    connection: Connection,
    who: Principal,
    body: Mapping[str, Any],
    *,
    scope: str = "",
    purpose: str | None = None,
    if_missing: bool = False,
) -> Row:
    """A new store; private without a `scope`. Of each scope and purpose there is one: 409 if it exists, or that one."""
    from psycopg.types.json import Jsonb

    scope = scope or f"user:{who.person_id}"
    if scope not in who.scopes:
        raise ApiError(403, "You are not a member of this scope.")
    name, description = _name(body), _description(body, default="")
    metadata = _changed_metadata({}, body.get("metadata"), may_remove=False)
    added = await connection.execute(
        "insert into stores (id, organisation_id, scope, purpose, name, description, metadata, created_by, "
        "is_keyed) values (%s, %s, %s, %s, %s, %s, %s, %s, %s) "
        "on conflict (scope, purpose) where is_keyed and archived_at is null do nothing returning *",
        (
            new_id("memstore"),
            who.organisation_id,
            scope,
            purpose or "",
            name,
            description,
            Jsonb(metadata),
            who.person_id,
            purpose is not None,
        ),
    )
    made = await added.fetchone()
    if made is None and not if_missing:
        raise ApiError(409, "This scope has a store of this purpose; ask with `if_missing` to get it.")
    return made or await _find_keyed(connection, scope, purpose or "")


async def find(connection: Connection, id: str, *, locks: bool = False, may_be_archived: bool = True) -> Row:
    """The store, locked against other changes if asked; 404 if the caller does not see it."""
    found = await connection.execute(
        f"select * from stores where id = %s{' for update' if locks else ''}".encode(), (plain_id(id),)
    )
    row = await take_row(found, "memory store", id)
    if row["archived_at"] is not None and not may_be_archived:
        raise ApiError(400, "The memory store is archived: it can be read, but not changed.")
    return row


async def update(connection: Connection, id: str, body: Mapping[str, Any]) -> Row:
    """Changes what the body names; null leaves a field as it is."""
    from psycopg.types.json import Jsonb

    row = await find(connection, id, locks=True, may_be_archived=False)
    name = row["name"] if body.get("name") is None else _name(body)
    description = row["description"]
    if body.get("description") is not None:
        description = _description(body)
    metadata = _changed_metadata(row["metadata"], body.get("metadata"), may_remove=True)
    changed = await connection.execute(
        "update stores set name = %s, description = %s, metadata = %s, updated_at = now() where id = %s returning *",
        (name, description, Jsonb(metadata), row["id"]),
    )
    return await take_row(changed, "memory store", id)


async def archive(connection: Connection, id: str) -> Row:
    """Archiving twice changes nothing."""
    await find(connection, id, locks=True)
    changed = await connection.execute(
        "update stores set archived_at = coalesce(archived_at, now()), "
        "updated_at = case when archived_at is null then now() else updated_at end where id = %s returning *",
        (id,),
    )
    return await take_row(changed, "memory store", id)


async def delete(connection: Connection, id: str) -> None:
    """Removes the store with its memories and versions."""
    await find(connection, id, locks=True)
    await connection.execute("delete from stores where id = %s", (id,))


async def page(connection: Connection, query: Mapping[str, str], *, scope: str | None = None) -> dict[str, Any]:
    """One page, newest first; of a `scope`, and of a purpose, if they are given."""
    limit, (at, id) = take_limit(query), read_time_cursor(query)
    found = await connection.execute(
        "select * from stores where (%(all)s or archived_at is null) "
        "and (%(scope)s::text is null or scope = %(scope)s) and (%(purpose)s::text is null or purpose = %(purpose)s) "
        "and (%(least)s::timestamptz is null or created_at >= %(least)s) "
        "and (%(most)s::timestamptz is null or created_at <= %(most)s) "
        "and (%(at)s::timestamptz is null or (created_at, id) < (%(at)s, %(id)s)) "
        "order by created_at desc, id desc limit %(limit)s",
        {
            "all": take_flag(query, "include_archived"),
            "scope": scope,
            "purpose": take_word(query, "purpose"),
            "least": take_moment(query, "created_at[gte]"),
            "most": take_moment(query, "created_at[lte]"),
            "at": at,
            "id": id,
            "limit": limit + 1,
        },
    )
    return make_time_page(await found.fetchall(), limit, show)


def _name(body: Mapping[str, Any]) -> str:
    name = take_text(body, "name", least=1, most=_MOST_NAME)
    check_words("name", name)
    if any(unicodedata.category(one) == "Cc" for one in name):
        raise ApiError(400, "name: may not contain control characters.")
    return name


def _description(body: Mapping[str, Any], default: str | None = None) -> str:
    description = take_text(body, "description", most=_MOST_DESCRIPTION, default=default)
    check_words("description", description)
    return description


def _changed_metadata(now: Mapping[str, str], given: Any, *, may_remove: bool) -> dict[str, str]:
    if given is None:
        return dict(now)
    if not isinstance(given, dict):
        raise ApiError(400, "metadata: must be an object.")
    changed = dict(now)
    pairs = cast("dict[str, Any]", given)
    for key in pairs:
        if pairs[key] is None and may_remove:
            changed.pop(key, None)
            continue
        take_text({"metadata key": key}, "metadata key", least=1, most=_MOST_KEY)
        changed[key] = take_text({"metadata value": pairs[key]}, "metadata value", most=_MOST_VALUE)
        check_words("metadata", f"{key}: {changed[key]}")
    if len(changed) > _MOST_PAIRS:
        raise ApiError(400, f"metadata: may have {_MOST_PAIRS} pairs.")
    return changed


async def _find_keyed(connection: Connection, scope: str, purpose: str) -> Row:
    found = await connection.execute(
        "select * from stores where scope = %s and purpose = %s and is_keyed and archived_at is null", (scope, purpose)
    )
    return await take_row(found, "memory store", purpose)
