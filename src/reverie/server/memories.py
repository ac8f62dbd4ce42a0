"""Memories of a store, as the published API shows them. A change locks the store, so that two writers of one memory
come one after the other and a precondition holds until the change is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from reverie.memory.taxonomy import Trust
from reverie.server import stores, versions
from reverie.server.database import Row
from reverie.server.gate import Author, check_content, check_path, check_secrets, hash_content
from reverie.server.ids import new_id
from reverie.server.wire import (
    ApiError,
    format_time,
    make_cursor,
    plain_id,
    read_cursor,
    take_choice,
    take_limit,
    take_number,
    take_row,
    take_word,
)
from reverie.text.patterns import late

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

FIELDS: Final = ("content", "path")
UPDATE_FIELDS: Final = ("content", "path", "precondition")
_MOST_DEPTH: Final = 20
_FINAL: Final = {"x-should-retry": "false"}
"""The SDKs repeat a request that got 409, unless this header says that it does not help."""
_SHA256 = late(r"[0-9a-f]{64}")
_COLUMNS: Final = (
    "m.id, m.store_id, m.path, m.sha256, m.size, m.version_id, m.number, m.trust, m.created_at, m.updated_at"
)
# One step per item: after a folder, the next path that is not in it.
_WALK: Final = """
with recursive walk (step, item) as (
    (select 1, {item} from memories m where m.store_id = %(store)s and m.path >= %(start)s and m.path < %(end)s
     order by m.path limit 1)
    union all
    select walk.step + 1, {item} from walk cross join lateral (
        select path from memories
        where store_id = %(store)s and path < %(end)s
          and path >= case when right(walk.item, 1) = '/' then left(walk.item, -1) || '0'
                           else walk.item || chr(1) end collate "C"
        order by path limit 1
    ) m where walk.step < %(limit)s
)
select {columns}, walk.item from walk left join memories m on m.store_id = %(store)s and m.path = walk.item
order by walk.step
"""
_ITEM: Final = """
(case when cardinality(string_to_array(substr(m.path, %(skip)s), '/')) > %(depth)s
      then %(prefix)s || array_to_string((string_to_array(substr(m.path, %(skip)s), '/'))[1:%(depth)s], '/') || '/'
      else m.path end) collate "C"
"""


def show(row: Row, *, full: bool) -> dict[str, Any]:
    """A memory in the published form; `trust` and `number` are ours."""
    return {
        "type": "memory",
        "id": row["id"],
        "memory_store_id": row["store_id"],
        "memory_version_id": row["version_id"],
        "path": row["path"],
        "content": row["content"] if full else None,
        "content_sha256": row["sha256"],
        "content_size_bytes": row["size"],
        "created_at": format_time(row["created_at"]),
        "updated_at": format_time(row["updated_at"]),
        "trust": row["trust"],
        "number": row["number"],
    }


def read_content(body: Mapping[str, Any]) -> str | None:
    """The content of a body, checked; None if it is absent or null."""
    content = body.get("content")
    if content is not None and not isinstance(content, str):
        raise ApiError(400, "content: must be a string.")
    return None if content is None else check_content(content)


def read_path(body: Mapping[str, Any]) -> str | None:
    path = body.get("path")
    if path is not None and not isinstance(path, str):
        raise ApiError(400, "path: must be a string.")
    return None if path is None else check_path(path)


def read_precondition(body: Mapping[str, Any]) -> str | None:
    """The hash that the memory must have."""
    given = body.get("precondition")
    if given is None:
        return None
    condition = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if condition.get("type") != "content_sha256" or set(condition) - {"type", "content_sha256"}:
        raise ApiError(400, "precondition: must be an object with the type `content_sha256`.")
    return read_hash("precondition.content_sha256", condition.get("content_sha256"))


def read_hash(name: str, given: Any) -> str:
    if not isinstance(given, str) or not _SHA256.fullmatch(given):
        raise ApiError(400, f"{name}: must have 64 lowercase hexadecimal characters.")
    return given


async def find(connection: Connection, store_id: str, id: str) -> Row:
    found = await connection.execute(
        "select * from memories where store_id = %s and id = %s", (plain_id(store_id), plain_id(id))
    )
    return await take_row(found, "memory", id)


async def create(
    connection: Connection,
    store_id: str,
    author: Author,
    path: str,
    content: str,
    *,
    trust: str = "",
    copied_from: Mapping[str, str] | None = None,
) -> Row:
    """A new memory; 409 if the path is taken. Path and content are checked already."""
    await check_secrets(path, content)
    store = await stores.find(connection, store_id, locks=True, may_be_archived=False)
    await _check_free(connection, store["id"], path)
    id, trust = new_id("mem"), trust or author.trust_in(path, content)
    hash, size = hash_content(content), len(content.encode())
    version = await versions.add(
        connection,
        store,
        id,
        "created",
        author,
        path=path,
        content=content,
        sha256=hash,
        size=size,
        trust=trust,
        copied_from=copied_from,
    )
    added = await connection.execute(
        "insert into memories (id, store_id, scope, path, content, sha256, size, version_id, number, trust, "
        "created_at, updated_at) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) returning *",
        (
            id,
            store["id"],
            store["scope"],
            path,
            content,
            hash,
            size,
            version["id"],
            version["number"],
            trust,
            version["created_at"],
            version["created_at"],
        ),
    )
    return await take_row(added, "memory", id)


async def update(
    connection: Connection,
    store_id: str,
    id: str,
    author: Author,
    *,
    path: str | None = None,
    content: str | None = None,
    expected: str | None = None,
    trust: str = "",
    copied_from: Mapping[str, str] | None = None,
) -> Row:
    """Renames a memory, writes it, or both. What changes nothing makes no version; only a person who writes the same
    text again can confirm it. Of several writers that expect the same content one is answered, the others get 409, also
    if they write the same."""
    if content is not None:
        before = await find(connection, store_id, id)
        await check_secrets(path or before["path"], content, before["content"])
    elif path is not None:
        await check_secrets(path, "")
    store = await stores.find(connection, store_id, locks=True, may_be_archived=False)
    memory = await find(connection, store_id, id)
    new_path = memory["path"] if path is None else path
    text = memory["content"] if content is None else content
    new_trust = memory["trust"] if content is None else trust or author.trust_in(new_path, text)
    is_same = new_path == memory["path"] and text == memory["content"]
    if expected is not None and expected != memory["sha256"]:
        raise _stale()
    if is_same and (new_trust == memory["trust"] or new_trust != Trust.CONFIRMED):
        return memory
    if new_path != memory["path"]:
        await _check_free(connection, store["id"], new_path, but=memory["id"])
    hash, size = hash_content(text), len(text.encode())
    version = await versions.add(
        connection,
        store,
        memory["id"],
        "modified",
        author,
        path=new_path,
        content=text,
        sha256=hash,
        size=size,
        trust=new_trust,
        copied_from=copied_from,
    )
    changed = await connection.execute(
        "update memories set path = %s, content = %s, sha256 = %s, size = %s, version_id = %s, number = %s, "
        "trust = %s, updated_at = %s where id = %s returning *",
        (
            new_path,
            text,
            hash,
            size,
            version["id"],
            version["number"],
            new_trust,
            version["created_at"],
            memory["id"],
        ),
    )
    return await take_row(changed, "memory", id)


async def delete(
    connection: Connection, store_id: str, id: str, author: Author, *, expected: str | None = None
) -> None:
    """Deletes a memory, also of an archived store; its versions stay."""
    store = await stores.find(connection, store_id, locks=True)
    memory = await find(connection, store_id, id)
    if expected is not None and expected != memory["sha256"]:
        raise _stale()
    await versions.add(connection, store, memory["id"], "deleted", author, path=memory["path"])
    await connection.execute("delete from memories where id = %s", (memory["id"],))


async def share(connection: Connection, store_id: str, id: str, target: str, path: str, author: Author) -> Row:
    """Copies a memory into another store. If that has a copy of it that nobody changed since, the copy is brought up to
    date; if it has something else at the path (without one, that of the memory), 409."""
    memory = await find(connection, store_id, id)
    path = check_path(path or str(memory["path"]))  # which may be older than a rule for paths
    source = {
        "scope": str(memory["scope"]).partition(":")[0],
        "memory_store_id": memory["store_id"],
        "memory_id": memory["id"],
        "memory_version_id": memory["version_id"],
    }
    trust = memory["trust"] if author.is_person else author.trust_in(path, memory["content"])
    await stores.find(connection, target, locks=True, may_be_archived=False)
    found = await connection.execute(
        "select m.id, m.sha256, v.copied_from from memories m join versions v on v.id = m.version_id "
        "where m.store_id = %s and m.path = %s",
        (target, path),
    )
    there = await found.fetchone()
    if there is None:
        return await create(connection, target, author, path, memory["content"], trust=trust, copied_from=source)
    is_copy = there["copied_from"] is not None and there["copied_from"]["memory_id"] == memory["id"]
    if not is_copy and there["sha256"] != memory["sha256"]:
        raise _taken(path, there["id"])
    return await update(
        connection, target, there["id"], author, content=memory["content"], trust=trust, copied_from=source
    )


async def page(connection: Connection, store_id: str, query: Mapping[str, str]) -> dict[str, Any]:
    """One page in the order of paths; with a `depth`, deeper memories are folded into `memory_prefix` items. The next
    page begins after the last item, so a memory that nobody touches is in exactly one page."""
    store = await stores.find(connection, store_id)
    full = take_choice(query, "view", versions.VIEWS, "basic") == "full"
    limit, depth = take_limit(query, full=full), take_number(query, "depth", most=_MOST_DEPTH)
    prefix, cursor = take_word(query, "path_prefix") or "/", read_cursor(query, 1)
    if not (prefix.startswith("/") and prefix.endswith("/")):
        raise ApiError(400, "path_prefix: must start and end with `/`.")
    if cursor and not cursor[0].startswith(prefix):
        raise ApiError(400, "page: is not a `next_page` of this list.")
    columns = _COLUMNS + (", m.content" if full else "")
    if depth:
        statement = _WALK.format(item=_ITEM, columns=columns)
    else:
        statement = (
            f"select {columns}, m.path as item from memories m where m.store_id = %(store)s and m.path >= %(start)s "
            "and m.path < %(end)s order by m.path limit %(limit)s"
        )
    found = await connection.execute(
        statement.encode(),
        {
            "store": store["id"],
            "start": _after(cursor[0]) if cursor else prefix,
            "end": _after(prefix),
            "prefix": prefix,
            "skip": len(prefix) + 1,
            "depth": depth,
            "limit": limit + 1,
        },
    )
    rows = await found.fetchall()
    data = [
        show(row, full=full) if row["id"] else {"type": "memory_prefix", "path": row["item"]} for row in rows[:limit]
    ]
    return {"data": data, "next_page": make_cursor(rows[limit - 1]["item"]) if len(rows) > limit else None}


def _after(item: str) -> str:
    """The first text that comes after a path, or after everything in a folder (`0` follows `/`)."""
    return f"{item[:-1]}0" if item.endswith("/") else f"{item}\x01"


async def _check_free(connection: Connection, store_id: str, path: str, *, but: str = "") -> None:
    """409 if the path is taken, or if a folder would also be a file: a store can always become a folder."""
    parts = path.split("/")
    above = ["/".join(parts[:end]) for end in range(2, len(parts) + 1)]
    found = await connection.execute(
        "(select id, path from memories where store_id = %(store)s and path = any (%(above)s) "
        "and id <> %(but)s limit 1) union all "
        "(select id, path from memories where store_id = %(store)s and path >= %(first)s and path < %(end)s "
        "and id <> %(but)s limit 1)",
        {
            "store": store_id,
            "above": above,
            "but": but,
            "first": f"{path}/",
            "end": _after(f"{path}/"),
        },
    )
    taken = await found.fetchone()
    if taken is not None:
        raise _taken(taken["path"], taken["id"])


def _taken(path: str, id: str) -> ApiError:
    said = f"path: {path} is taken by the memory {id}."
    return ApiError(409, said, type="memory_path_conflict_error", headers=_FINAL)


def _stale() -> ApiError:
    said = "The memory has another content than expected: read it again."
    return ApiError(409, said, type="memory_precondition_failed_error", headers=_FINAL)
