"""Versions of memories: every change takes the next number of its store, under the lock of the store's row. So there
are no gaps, and "everything after 41" is complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from reverie.server import stores
from reverie.server.database import Row
from reverie.server.gate import Author
from reverie.server.ids import new_id
from reverie.server.wire import (
    ApiError,
    format_time,
    make_cursor,
    plain_id,
    read_cursor,
    take_choice,
    take_limit,
    take_moment,
    take_number,
    take_row,
    take_word,
)

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

VIEWS: Final = ("basic", "full")
_OPERATIONS: Final = ("created", "modified", "deleted")
_ACTOR_IDS: Final = {
    "user_actor": "user_id",
    "service_account_actor": "service_account_id",
    "session_actor": "session_id",
    "api_actor": "api_key_id",
}
_COLUMNS: Final = (
    "v.id, v.store_id, v.memory_id, v.number, v.operation, v.path, v.sha256, v.size, v.trust, v.actor_type, "
    "v.actor_id, v.token_id, v.reason, v.session_id, v.message_id, v.created_at, v.redacted_at, v.redacted_by_type, "
    "v.redacted_by_id, "
    # Who does not see the source learns the kind of its scope, not its ids.
    "case when exists (select from stores s where s.id = v.copied_from ->> 'memory_store_id') then v.copied_from "
    "else v.copied_from - array['memory_store_id', 'memory_id', 'memory_version_id'] end as copied_from"
)
_LARGEST_ANSWER: Final = 4_000_000  # bytes of contents in one answer of the change feed
_MOST_NUMBER: Final = 2**63 - 1


def show(row: Row) -> dict[str, Any]:
    """A version in the published form; what follows `redacted_by` is ours."""
    return {
        "type": "memory_version",
        "id": row["id"],
        "memory_id": row["memory_id"],
        "memory_store_id": row["store_id"],
        "operation": row["operation"],
        "path": row["path"],
        "content": row.get("content"),
        "content_sha256": row["sha256"],
        "content_size_bytes": row["size"],
        "created_at": format_time(row["created_at"]),
        "created_by": _show_actor(row["actor_type"], row["actor_id"]),
        "redacted_at": format_time(row["redacted_at"]),
        "redacted_by": _show_actor(row["redacted_by_type"], row["redacted_by_id"]),
        "number": row["number"],
        "trust": row["trust"],
        "api_key_id": row["token_id"],
        "reason": row["reason"],
        "session_id": row["session_id"],
        "message_id": row["message_id"],
        "copied_from": row["copied_from"],
    }


async def add(
    connection: Connection,
    store: Row,
    memory_id: str,
    operation: str,
    author: Author,
    *,
    path: str | None,
    content: str | None = None,
    sha256: str | None = None,
    size: int | None = None,
    trust: str | None = None,
    copied_from: Mapping[str, str] | None = None,
) -> Row:
    """The next version of a store. The caller has locked the store (`stores.find(locks=True)`). Without a path it is
    redacted from its beginning."""
    from psycopg.types.json import Jsonb

    added = await connection.execute(
        "with counted as (update stores set counter = counter + 1 where id = %(store)s returning counter) "
        "insert into versions (id, store_id, scope, memory_id, number, operation, path, content, sha256, size, trust, "
        "actor_type, actor_id, token_id, reason, session_id, message_id, copied_from, created_at, "
        "redacted_at, redacted_by_type, redacted_by_id) "
        "select %(id)s, %(store)s, %(scope)s, %(memory)s, counter, %(operation)s, %(path)s, %(content)s, %(sha256)s, "
        "%(size)s, %(trust)s, %(actor_type)s, %(actor_id)s, %(token)s, %(reason)s, %(session)s, %(message)s, "
        "%(copied_from)s, clock_timestamp(), case when %(redacted)s then clock_timestamp() end, "
        "case when %(redacted)s then %(actor_type)s end, case when %(redacted)s then %(actor_id)s end "
        "from counted returning *",
        {
            "id": new_id("memver"),
            "store": store["id"],
            "scope": store["scope"],
            "memory": memory_id,
            "operation": operation,
            "path": path,
            "redacted": path is None,
            "content": content,
            "sha256": sha256,
            "size": size,
            "trust": trust,
            "actor_type": author.actor_type,
            "actor_id": author.actor_id,
            "token": author.token_id,
            "reason": author.reason if path is not None else "",
            "session": author.session_id,
            "message": author.message_id,
            "copied_from": None if copied_from is None else Jsonb(dict(copied_from)),
        },
    )
    return await take_row(added, "memory store", store["id"])


async def find(connection: Connection, store_id: str, id: str) -> Row:
    found = await connection.execute(
        f"select {_COLUMNS}, v.content from versions v where v.store_id = %s and v.id = %s".encode(),
        (plain_id(store_id), plain_id(id)),
    )
    return await take_row(found, "memory version", id)


async def page(connection: Connection, store_id: str, query: Mapping[str, str]) -> dict[str, Any]:
    """One page, newest first."""
    store = await stores.find(connection, store_id)
    full = take_choice(query, "view", VIEWS, "basic") == "full"
    limit, cursor = take_limit(query, full=full), read_cursor(query, 1)
    before = take_number({"page": cursor[0]}, "page", most=_MOST_NUMBER) if cursor else None
    service = take_word(query, "service_account_id")
    # Only what is asked is in the statement, so that the database can choose the index for it.
    asked = {
        "v.number < %(before)s": ("before", before),
        "v.memory_id = %(memory)s": ("memory", take_word(query, "memory_id")),
        "v.operation = %(operation)s": ("operation", _read_operation(query)),
        "v.session_id = %(session)s": ("session", take_word(query, "session_id")),
        "v.token_id = %(token)s": ("token", take_word(query, "api_key_id")),
        "v.actor_type = 'service_account_actor' and v.actor_id = %(service)s": ("service", service),
        "v.created_at >= %(least)s": ("least", take_moment(query, "created_at[gte]")),
        "v.created_at <= %(most)s": ("most", take_moment(query, "created_at[lte]")),
    }
    conditions = "".join(f" and {text}" for text, (_, value) in asked.items() if value is not None)
    found = await connection.execute(
        f"select {_COLUMNS}{', v.content' if full else ''} from versions v where v.store_id = %(store)s{conditions} "
        "order by v.number desc limit %(limit)s".encode(),
        {"store": store["id"], "limit": limit + 1} | dict(asked.values()),
    )
    rows = await found.fetchall()
    following = make_cursor(str(rows[limit - 1]["number"])) if len(rows) > limit else None
    return {"data": [show(row) for row in rows[:limit]], "next_page": following}


async def redact(connection: Connection, store_id: str, id: str, author: Author) -> dict[str, Any]:
    """Removes path, content, hash and reason of a version. If it is what its memory shows, the memory is deleted, and
    with it everything that recall knows of it. Twice is like once. `same_content` names the other versions of the
    store with these bytes: each is redacted by itself."""
    if author.session_id:
        raise ApiError(403, "A session may not redact versions; a person or a service may.")
    await _redact_in_dreams(connection, plain_id(store_id), plain_id(id))  # a landing locks the dream first, too
    store = await stores.find(connection, store_id, locks=True)
    version = await find(connection, store_id, id)
    same = list[str]()
    if version["redacted_at"] is None:
        found = await connection.execute(
            "select id from versions where store_id = %s and sha256 = %s and id <> %s order by number",
            (store["id"], version["sha256"], version["id"]),
        )
        same = [row["id"] for row in await found.fetchall()]
        changed = await connection.execute(
            "update versions set path = null, content = null, sha256 = null, size = null, trust = null, reason = '', "
            "copied_from = null, redacted_at = clock_timestamp(), redacted_by_type = %s, redacted_by_id = %s "
            "where id = %s returning *",
            (author.actor_type, author.actor_id, version["id"]),
        )
        version = await take_row(changed, "memory version", id)
        gone = await connection.execute("delete from memories where version_id = %s", (version["id"],))
        if gone.rowcount:
            await add(connection, store, version["memory_id"], "deleted", author, path=None)
    return show(version) | {"same_content": same}


async def _redact_in_dreams(connection: Connection, store_id: str, id: str) -> None:
    """Removes path, hashes and reason of a version from the dreams that have read or made it."""
    await connection.execute(
        "update dreams set changes = (select jsonb_agg(case when %(id)s in (n->>'before_version', n->>'after_version') "
        "then n || jsonb_build_object('path', '', 'why', 'redacted', 'before_sha256', null, 'after_sha256', null, "
        "'state', case n->>'state' when 'proposed' then 'left' else n->>'state' end) else n end order by place) "
        "from jsonb_array_elements(changes) with ordinality as t (n, place)) "
        "where %(store)s in (store_id, output_store_id) and exists (select from jsonb_array_elements(changes) as n "
        "where %(id)s in (n->>'before_version', n->>'after_version'))",
        {"id": id, "store": store_id},
    )


async def changes(connection: Connection, store_id: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Every change after a number, in order. Content is there where the version is the one that its memory shows.
    `last` is the number to ask with next; it is smaller than `after` if the store was restored from a backup."""
    store = await stores.find(connection, store_id)
    after, limit = take_number(query, "after", most=_MOST_NUMBER), take_limit(query)
    found = await connection.execute(
        "with asked as ("
        f"select {_COLUMNS}, m.content, "
        "sum(octet_length(m.content)) over (order by v.number) - coalesce(octet_length(m.content), 0) as sent_before "
        "from (select * from versions where store_id = %(store)s and number > %(after)s "
        "order by number limit %(limit)s) v left join memories m on m.version_id = v.id and m.id = v.memory_id"
        ") select * from asked where coalesce(sent_before, 0) < %(largest)s order by number".encode(),
        {"store": store["id"], "after": after, "limit": limit, "largest": _LARGEST_ANSWER},
    )
    rows = await found.fetchall()
    last = rows[-1]["number"] if rows else min(after, store["counter"])
    data = [show(row) | {"is_current": row["content"] is not None} for row in rows]
    return {"data": data, "last": last, "has_more": last < store["counter"]}


def _read_operation(query: Mapping[str, str]) -> str | None:
    return take_choice(query, "operation", _OPERATIONS, "") if "operation" in query else None


def _show_actor(kind: str | None, id: str | None) -> dict[str, Any] | None:
    return None if kind is None else {"type": kind, _ACTOR_IDS[kind]: id}
