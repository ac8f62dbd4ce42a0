"""Dreams as the published API shows them: created, listed, archived and canceled by whoever sees their store. The row
is the truth; the job in the queue only wakes a worker (a trigger adds it in the same transaction)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from reverie.errors import ReverieError
from reverie.models.catalogue import Catalogue
from reverie.models.registry import EMBEDDED, split_name
from reverie.quick import dataclass
from reverie.server import stores
from reverie.server.database import Principal, Row
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
)

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

FIELDS: Final = ("inputs", "instructions", "model", "output_behavior", "review")
STATUSES: Final = ("pending", "running", "completed", "failed", "canceled")
ENDED: Final = ("completed", "failed", "canceled")
USAGE: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_MOST_INSTRUCTIONS: Final = 4_096
_MOST_SESSIONS: Final = 100
_MOST_MODEL: Final = 256
_MOST_ID: Final = 200
_PROVIDERS: Final = (EMBEDDED, "anthropic", "openai")
"""Models that run a program or a file of the worker's machine are not for requests."""
_ONE_UPDATE: Final = "dreams_one_update"
_BUSY: Final = "Another dream updates this memory store: wait until it has stopped, or cancel it."


@dataclass(frozen=True, slots=True)
class WantedDream:
    """What a request asks for, checked as far as that goes without the database."""

    store_id: str
    session_ids: tuple[str, ...]
    model: str
    instructions: str | None
    updates: bool
    waits: bool | None
    """Whether the result waits for a decision; None: as the store is set."""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> WantedDream:
        store, sessions = _read_inputs(body.get("inputs"))
        instructions = None
        if body.get("instructions") is not None:
            instructions = take_text(body, "instructions", least=1, most=_MOST_INSTRUCTIONS)
        output = _object(body.get("output_behavior") or {"type": "create_new"}, "output_behavior")
        updates = output.get("type") == "update_existing"
        if not updates and output.get("type") != "create_new":
            raise ApiError(400, "output_behavior.type: must be `create_new` or `update_existing`.")
        if updates and output.get("memory_store_id") != store:
            raise ApiError(400, "output_behavior.memory_store_id: must be the memory store of `inputs`.")
        waits = body.get("review")
        if waits is not None and not isinstance(waits, bool):
            raise ApiError(400, "review: must be true or false.")
        if waits and not updates:
            raise ApiError(400, "review: is for `update_existing`; a new store can be looked at before it is used.")
        return cls(store, sessions, read_model(body.get("model")), instructions, updates, waits)


def read_model(given: Any) -> str:
    """The name of a model, given as an id or as an object with `id` and `speed`."""
    if isinstance(given, dict):
        model = cast("dict[str, Any]", given)
        if model.get("speed") not in (None, "standard"):
            raise ApiError(400, "model.speed: dreams accept only `standard`.")
        if strange := sorted(set(model) - {"id", "speed"}):
            raise ApiError(400, f"model.{strange[0][:80]}: there is no such field.")
        given = model.get("id")
    name = take_text({"model": given}, "model", least=1, most=_MOST_MODEL)
    try:
        provider = split_name(name, Catalogue.load(()))[0]
    except ReverieError as error:
        raise ApiError(400, f"model: {error}") from error
    if provider not in _PROVIDERS:
        raise ApiError(400, f"model: {provider} models are not for the server; it has {', '.join(_PROVIDERS)}.")
    return name


def _read_inputs(given: Any) -> tuple[str, tuple[str, ...]]:
    if not isinstance(given, list):
        raise ApiError(400, "inputs: must be a list.")
    by_type: dict[str, dict[str, Any]] = {}
    for one in cast("list[Any]", given):
        entry = _object(one, "inputs")
        kind = entry.get("type")
        if kind not in ("memory_store", "sessions"):
            raise ApiError(400, "inputs.type: must be `memory_store` or `sessions`.")
        if kind in by_type:
            raise ApiError(400, f"inputs: has more than one `{kind}` entry.")
        by_type[cast("str", kind)] = entry
    if len(by_type) != 2:
        raise ApiError(400, "inputs: must have exactly one `memory_store` entry and one `sessions` entry.")
    store = take_text(by_type["memory_store"], "memory_store_id", least=1, most=_MOST_ID)
    ids = by_type["sessions"].get("session_ids")
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in cast("list[Any]", ids)):
        raise ApiError(400, "session_ids: must be a list of ids.")
    found = cast("list[str]", ids)
    if not 1 <= len(found) <= _MOST_SESSIONS:
        raise ApiError(400, f"session_ids: must have 1 to {_MOST_SESSIONS} ids; it has {len(found)}.")
    if len(set(found)) < len(found):
        raise ApiError(400, "session_ids: has an id twice.")
    return store, tuple(sorted(plain_id(one) for one in found))


def _object(given: Any, name: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ApiError(400, f"{name}: must be an object.")
    return cast("dict[str, Any]", given)


def show(row: Row) -> dict[str, Any]:
    """A dream in the published form; what follows `usage` is ours."""
    updates = row["output"] == "update_existing"
    error = None
    if row["status"] == "failed":
        error = {"type": row["error_type"], "message": row["error_message"]}
    output = row["output_store_id"]
    return {
        "type": row["kind"],
        "id": row["id"],
        "status": row["status"],
        "inputs": [
            {"type": "memory_store", "memory_store_id": row["store_id"]},
            {"type": "sessions", "session_ids": sorted(row["session_ids"])},
        ],
        "instructions": row["instructions"],
        "model": {"id": row["model"], "speed": "standard"},
        "output_behavior": {"type": "update_existing", "memory_store_id": row["store_id"]}
        if updates
        else {"type": "create_new"},
        "outputs": [{"type": "memory_store", "memory_store_id": output}] if output else [],
        "session_id": None,
        "error": error,
        "created_at": format_time(row["created_at"]),
        "ended_at": format_time(row["ended_at"]),
        "archived_at": format_time(row["archived_at"]),
        "usage": {name: row[name] for name in USAGE},
        "cost_usd": float(row["cost"]),
        "review": row["review"],
        "is_automatic": row["is_automatic"],
        "attempt": row["attempt"],
        "summary": row["summary"],
        "left": [{"path": one["path"], "reason": one["why"]} for one in row["changes"] if one["state"] == "left"],
    }


async def create(connection: Connection, who: Principal, wanted: WantedDream) -> Row:
    """A new dream of a store and of sessions that the caller sees."""
    from psycopg import errors

    store = await stores.find(connection, wanted.store_id, locks=True, may_be_archived=False)
    await _check_sessions(connection, wanted.session_ids)
    waits = wanted.waits
    if waits is None:
        waits = wanted.updates and (await find_settings(connection, store))["review"]
    if wanted.updates:
        stopping = await connection.execute(
            "select 1 from dreams where store_id = %s and kind = 'dream' and output = 'update_existing' "
            "and (status in ('pending', 'running') or (status = 'canceled' and lease_until > now()))",
            (store["id"],),
        )
        if await stopping.fetchone() is not None:
            raise ApiError(409, _BUSY)
    try:
        return await add(
            connection,
            store,
            who,
            session_ids=list(wanted.session_ids),
            instructions=wanted.instructions,
            model=wanted.model,
            output="update_existing" if wanted.updates else "create_new",
            waits=waits,
        )
    except errors.UniqueViolation as error:
        if error.diag.constraint_name == _ONE_UPDATE:
            raise ApiError(409, _BUSY) from error
        raise


async def add(connection: Connection, store: Row, who: Principal | None = None, **values: Any) -> Row:
    """A row, and with it its job. Nobody asked for a dream without `who`."""
    from psycopg import sql

    prefix = "extr" if values.get("kind") == "extraction" else "drm"
    row: dict[str, Any] = {
        "id": new_id(prefix),
        "organisation_id": store["organisation_id"],
        "scope": store["scope"],
        "store_id": store["id"],
        "counter": store["counter"],
        "created_by": None if who is None else who.person_id,
        "token_id": None if who is None else who.token_id,
        **values,
    }
    query = sql.SQL("insert into dreams ({}) values ({}) returning *").format(
        sql.SQL(", ").join(map(sql.Identifier, row)), sql.SQL(", ").join(sql.Placeholder() * len(row))
    )
    return await take_row(await connection.execute(query, list(row.values())), "dream", row["id"])


async def _check_sessions(connection: Connection, ids: Sequence[str]) -> None:
    found = await connection.execute("select id from sessions where id = any (%s)", (list(ids),))
    missing = sorted(set(ids) - {row["id"] for row in await found.fetchall()})
    if missing:
        raise ApiError(404, f"There is no session {missing[0][:80]!r}.")


async def find(connection: Connection, id: str, *, kind: str = "dream", locks: bool = False) -> Row:
    found = await connection.execute(
        f"select * from dreams where id = %s and kind = %s{' for update' if locks else ''}".encode(),
        (plain_id(id), kind),
    )
    return await take_row(found, kind, id)


async def archive(connection: Connection, id: str) -> Row:
    """Hides a dream that has ended; twice is like once."""
    row = await find(connection, id, locks=True)
    if row["status"] not in ENDED:
        raise ApiError(400, f"The dream is {row['status']}: cancel it first.")
    changed = await connection.execute(
        "update dreams set archived_at = coalesce(archived_at, now()) where id = %s returning *", (id,)
    )
    return await take_row(changed, "dream", id)


async def cancel(connection: Connection, id: str, *, kind: str = "dream") -> Row:
    """Stops a dream. Its worker notices within seconds; nothing lands after this."""
    row = await find(connection, id, kind=kind, locks=True)
    if row["status"] == "canceled":
        return row
    if row["status"] in ENDED:
        raise ApiError(400, f"The {kind} is {row['status']} already.")
    changed = await connection.execute(
        "update dreams set status = 'canceled', ended_at = clock_timestamp() where id = %s returning *", (id,)
    )
    return await take_row(changed, kind, id)


async def page(connection: Connection, query: Mapping[str, str], statuses: Sequence[str]) -> dict[str, Any]:
    """One page, newest first."""
    if strange := [one for one in statuses if one not in STATUSES]:
        raise ApiError(400, f"statuses: {strange[0][:40]!r} is not one of {', '.join(STATUSES)}.")
    limit, (at, id) = take_limit(query), read_time_cursor(query)
    found = await connection.execute(
        "select * from dreams where kind = 'dream' and (%(all)s or archived_at is null) "
        "and (%(statuses)s::text[] is null or status = any (%(statuses)s)) "
        "and (%(after)s::timestamptz is null or created_at > %(after)s) "
        "and (%(before)s::timestamptz is null or created_at < %(before)s) "
        "and (%(at)s::timestamptz is null or (created_at, id) < (%(at)s, %(id)s)) "
        "order by created_at desc, id desc limit %(limit)s",
        {
            "all": take_flag(query, "include_archived"),
            "statuses": list(statuses) or None,
            "after": take_moment(query, "created_at[gt]"),
            "before": take_moment(query, "created_at[lt]"),
            "at": at,
            "id": id,
            "limit": limit + 1,
        },
    )
    return make_time_page(await found.fetchall(), limit, show)


# -- settings ---------------------------------------------------------------------------------------------------------

SETTINGS: Final = ("automatic", "review", "model", "quiet_seconds", "least_changes")
_OFF: Final[Row] = {
    "is_automatic": False,
    "review": False,
    "model": EMBEDDED,
    "quiet_s": 900,
    "least_changes": 5,
}
_LARGEST: Final = {"quiet_seconds": 86_400, "least_changes": 10_000}


async def find_settings(connection: Connection, store: Row) -> Row:
    """How a store dreams: its own settings, else those of its organisation, else not by itself."""
    found = await connection.execute(
        "select * from dream_settings where id in (%s, %s) order by id = %s desc limit 1",
        (store["id"], store["organisation_id"], store["id"]),
    )
    return await found.fetchone() or _OFF


def show_settings(row: Row) -> dict[str, Any]:
    return {
        "automatic": row["is_automatic"],
        "review": row["review"],
        "model": row["model"],
        "quiet_seconds": row["quiet_s"],
        "least_changes": row["least_changes"],
    }


async def change_settings(connection: Connection, id: str, now: Row, scope: str, body: Mapping[str, Any]) -> Row:
    """Stores settings of a store or an organisation; what the body does not name stays as it is `now`."""
    values = show_settings(now)
    for name in ("automatic", "review"):
        values[name] = body.get(name, values[name])
        if not isinstance(values[name], bool):
            raise ApiError(400, f"{name}: must be true or false.")
    for name, most in _LARGEST.items():
        values[name] = body.get(name, values[name])
        least = 1 if name == "least_changes" else 0
        if type(values[name]) is not int or not least <= values[name] <= most:
            raise ApiError(400, f"{name}: must be a whole number of {least} to {most:,}.")
    if "model" in body:
        values["model"] = read_model(body["model"])
    stored = await connection.execute(
        "insert into dream_settings as s "
        "(id, organisation_id, scope, is_automatic, review, model, quiet_s, least_changes) "
        "values (%(id)s, my_organisation(), %(scope)s, %(automatic)s, %(review)s, %(model)s, %(quiet_seconds)s, "
        "%(least_changes)s) on conflict (id) do update set is_automatic = excluded.is_automatic, "
        "review = excluded.review, model = excluded.model, quiet_s = excluded.quiet_s, "
        "least_changes = excluded.least_changes, updated_at = now() returning *",
        {"id": id, "scope": scope, **values},
    )
    return await take_row(stored, "setting", id)
