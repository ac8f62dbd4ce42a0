"""Who works on a dream: a worker takes it by raising its attempt, renews its lease, and gives it up. Everything
compares the attempt, so a worker that was away too long changes nothing. Times are the database's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from reverie.quick import dataclass
from reverie.server.database import Database, Row
from reverie.server.dreams import rows
from reverie.server.job_schema import JOBS
from reverie.server.migrating import SCHEMA

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

MOST_ATTEMPTS: Final = 12
"""How often a dream is begun; workers that die at it every time stop here."""
MOST_FAILURES: Final = 3
TASK: Final = "reverie.dream"
SWEEP: Final = "reverie.sweep"
_PAUSE_S: Final = 20.0
_BUSY_S: Final = 2.0


class LeaseLost(Exception):
    """Another worker has the dream, or it was canceled: nothing of ours may land."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a dream until the lease runs out."""

    id: str
    attempt: int
    seconds: float


@dataclass(slots=True)
class Spent:
    """Tokens and dollars of a dream so far, with those of earlier attempts."""

    usage: dict[str, int]
    cost: Decimal

    @classmethod
    def of(cls, row: Row) -> Spent:
        return cls({name: row[name] for name in rows.USAGE}, row["cost"])

    def plus(self, usage: Mapping[str, Any], cost: float) -> Spent:
        added = {name: self.usage[name] + int(usage.get(name, 0)) for name in rows.USAGE}
        return Spent(added, self.cost + Decimal(str(cost)))


async def take(database: Database, id: str, worker: str, seconds: float) -> tuple[Lease, Row] | None:
    """Takes a dream that waits, or that its worker has lost; None if there is nothing to do. If another dream of the
    store runs, this one is queued again."""
    from psycopg import errors

    try:
        async with database.as_owner() as connection:
            found = await connection.execute(
                "update dreams set status = 'running', attempt = attempt + 1, worker = %s, "
                "lease_until = clock_timestamp() + make_interval(secs => %s), "
                "started_at = coalesce(started_at, clock_timestamp()) where id = %s "
                "and (status = 'pending' or (status = 'running' and lease_until < clock_timestamp())) returning *",
                (worker, seconds, id),
            )
            row = await found.fetchone()
    except errors.UniqueViolation:
        async with database.as_owner() as connection:
            await _queue(connection, id, _BUSY_S, only=("pending",))  # meanwhile another worker may have it
        return None
    return None if row is None else (Lease(id, row["attempt"], seconds), row)


async def renew(database: Database, lease: Lease, spent: Spent) -> None:
    """Extends the lease and notes what was used. Raises `LeaseLost`."""
    async with database.as_owner() as connection:
        await _note(connection, lease, spent)
        changed = await connection.execute(
            "update dreams set lease_until = clock_timestamp() + make_interval(secs => %s) "
            "where id = %s and attempt = %s and status = 'running' and lease_until > clock_timestamp()",
            (lease.seconds, lease.id, lease.attempt),
        )
        if not changed.rowcount:
            raise LeaseLost


async def hold(connection: Connection, lease: Lease) -> Row:
    """The row, locked until the end of the transaction, if the dream is still ours. Raises `LeaseLost`. A worker that
    is stopped in the transaction loses its connection, and with it the locks."""
    await connection.execute(
        "select set_config('idle_in_transaction_session_timeout', %s, true)", (str(int(lease.seconds * 1_000)),)
    )
    found = await connection.execute(
        "select * from dreams where id = %s and attempt = %s and status = 'running' "
        "and lease_until > clock_timestamp() for update",
        (lease.id, lease.attempt),
    )
    row = await found.fetchone()
    if row is None:
        raise LeaseLost
    return row


async def end_stopped(database: Database, lease: Lease, spent: Spent) -> None:
    """Says that the worker of a canceled dream has stopped."""
    async with database.as_owner() as connection:
        await _note(connection, lease, spent)
        await connection.execute(
            "update dreams set lease_until = null where id = %s and attempt = %s and status = 'canceled'",
            (lease.id, lease.attempt),
        )


async def fail(database: Database, lease: Lease, spent: Spent, type: str, message: str, *, again: bool = False) -> None:
    """Ends a dream with an error, or queues it again after a pause that grows."""
    async with database.as_owner() as connection:
        row = await hold(connection, lease)
        await _note(connection, lease, spent)
        failures = row["failures"] + 1
        if again and failures < MOST_FAILURES:
            await connection.execute("update dreams set failures = %s where id = %s", (failures, lease.id))
            await _queue(connection, lease.id, _PAUSE_S * 4 ** (failures - 1))
        else:
            await _fail(connection, lease.id, type, message)


async def give_back(database: Database, lease: Lease, spent: Spent) -> None:
    """Lets another worker begin it at once: this one is stopping."""
    async with database.as_owner() as connection:
        await hold(connection, lease)
        await _note(connection, lease, spent)
        await _queue(connection, lease.id, 0)


async def find_budget(database: Database, id: str) -> Decimal | None:
    """What whoever pays for a dream can spend this month: the team, the person of a private store, or else the
    organisation. None without a limit."""
    async with database.as_owner() as connection:
        found = await connection.execute(
            "select (case when d.team_id is not null then (select dream_budget from teams where id = d.team_id) "
            "when d.scope like 'user:%%' then (select dream_budget from people where id = substr(d.scope, 6)) "
            "else (select dream_budget from organisations where id = d.organisation_id) end) - "
            "(select coalesce(sum(o.cost), 0) from dreams o where o.organisation_id = d.organisation_id "
            "and o.team_id is not distinct from d.team_id and (d.team_id is not null or case "
            "when d.scope like 'user:%%' then o.scope = d.scope else o.scope not like 'user:%%' end) "
            "and coalesce(o.ended_at, now()) >= date_trunc('month', now())) as rest from dreams d where d.id = %s",
            (id,),
        )
        row = await found.fetchone()
        return None if row is None else row["rest"]


async def sweep(database: Database, seconds: float) -> int:
    """Queues again what dead workers have left, and removes their jobs. Returns how many dreams."""
    async with database.as_owner() as connection:
        await connection.execute(f"set local search_path = {SCHEMA}, {JOBS}".encode())  # triggers of the queue need it
        found = await connection.execute(
            f"select d.id, d.attempt, d.job_id from dreams d left join procrastinate_jobs j on j.id = d.job_id "
            "where (d.status = 'running' and d.lease_until < clock_timestamp()) or (d.status = 'pending' and "
            f"(j.id is null or j.status not in ('todo', 'doing') or (j.status = 'doing' and {_started('j.id')}))) "
            "for update of d skip locked".encode(),
            {"seconds": seconds},
        )
        lost = await found.fetchall()
        for row in lost:
            await connection.execute(b"delete from procrastinate_jobs where id = %s", (row["job_id"],))
            if row["attempt"] >= MOST_ATTEMPTS:
                await _fail(connection, row["id"], "internal_error", "Every worker that began this dream was lost.")
            else:
                await _queue(connection, row["id"], 0)
        # The job of a worker that died after the dream had ended, or after it was queued again: it holds the lock.
        await connection.execute(
            f"delete from procrastinate_jobs j where j.status = 'doing' and {_started('j.id')} and ("
            f"j.task_name = '{SWEEP}' or (j.task_name = '{TASK}' and not exists (select from dreams d "
            "where d.id = j.args->>'dream' and d.job_id = j.id and d.status in ('pending', 'running'))))".encode(),
            {"seconds": seconds},
        )
        return len(lost)


async def add_automatic(database: Database) -> int:
    """Creates a dream for each store that dreams by itself, has enough changes since its last dream, and was not
    changed for a while. Changes by dreams do not count. Returns how many."""
    from psycopg import errors

    async with database.as_owner() as connection:
        found = await connection.execute(
            "select s.*, g.model, g.review from stores s join dream_settings g on g.id = coalesce("
            "(select id from dream_settings where id = s.id), s.organisation_id) and g.is_automatic "
            "cross join lateral (select coalesce(max(d.counter), 0) as counter from dreams d "
            "where d.store_id = s.id and d.status in ('completed', 'canceled') and d.kind = 'dream') last "
            "where s.archived_at is null and s.counter - last.counter >= g.least_changes "
            "and not exists (select from dreams d where d.store_id = s.id and d.status in ('pending', 'running')) "
            "and not exists (select from dreams d where d.output_store_id = s.id and d.store_id <> s.id) "
            "and (select count(*) from versions v where v.store_id = s.id and v.number > last.counter "
            "and coalesce(v.session_id, '') not like 'drm\\_%') >= g.least_changes "
            "and not exists (select from versions v where v.store_id = s.id and v.number > last.counter "
            "and v.created_at > now() - make_interval(secs => g.quiet_s)) "
            "and not exists (select from dreams d where d.store_id = s.id and d.status = 'failed' and d.is_automatic "
            "and d.ended_at > now() - interval '1 hour')"
        )
        stores = await found.fetchall()
    added = 0
    for store in stores:
        try:
            async with database.as_owner() as connection:
                since = await connection.execute(
                    "select id from sessions where scope = %s and created_at > coalesce((select max(created_at) "
                    "from dreams where store_id = %s and status = 'completed'), '-infinity') "
                    "order by created_at desc limit 100",
                    (store["scope"], store["id"]),
                )
                await rows.add(
                    connection,
                    store,
                    session_ids=sorted(row["id"] for row in await since.fetchall()),
                    model=store["model"],
                    output="update_existing",
                    waits=store["review"],
                    is_automatic=True,
                )
                added += 1
        except errors.UniqueViolation:
            continue  # another worker was quicker, or the queue has one
    return added


def _started(job: str) -> str:
    """SQL: whether the job was begun longer ago than a lease."""
    return (
        f"exists (select from procrastinate_events e where e.job_id = {job} and e.type = 'started' "
        "having max(e.at) < clock_timestamp() - make_interval(secs => %(seconds)s))"
    )


async def _queue(
    connection: Connection, id: str, pause_s: float, *, only: Sequence[str] = ("pending", "running")
) -> None:
    """A new job for a dream. The old one is not used again: a worker that wakes up would end it."""
    await connection.execute(
        "update dreams set status = 'pending', lease_until = null, job_id = queue_dream(id, store_id, null, "
        "clock_timestamp() + make_interval(secs => %s)) where id = %s and status = any (%s)",
        (pause_s, id, list(only)),
    )


async def _fail(connection: Connection, id: str, type: str, message: str) -> None:
    await connection.execute(
        "update dreams set status = 'failed', error_type = %s, error_message = %s, ended_at = clock_timestamp(), "
        "lease_until = null where id = %s",
        (type, message[:1_000], id),
    )


async def _note(connection: Connection, lease: Lease, spent: Spent) -> None:
    """What was used: it was paid, whether or not the dream is still ours."""
    await connection.execute(
        "update dreams set input_tokens = %(input_tokens)s, output_tokens = %(output_tokens)s, "
        "cache_read_input_tokens = %(cache_read_input_tokens)s, "
        "cache_creation_input_tokens = %(cache_creation_input_tokens)s, cost = %(cost)s "
        "where id = %(id)s and attempt = %(attempt)s and status in ('running', 'canceled')",
        {"id": lease.id, "attempt": lease.attempt, "cost": spent.cost, **spent.usage},
    )
