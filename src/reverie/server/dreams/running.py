"""One dream in a worker: the store becomes a folder, a process of its own dreams in it, and the result lands in the
transaction that compares the attempt. The lease is renewed while the process works."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import os
import secrets
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.server import stores
from reverie.server.database import Database, NoDatabase, Principal, Row
from reverie.server.dreams import dreamer, landing, leases
from reverie.server.dreams.landing import FileChange
from reverie.server.dreams.leases import Lease, LeaseLost, Spent
from reverie.server.wire import ApiError
from reverie.storage.atomic import make_private_dir
from reverie.types import JsonObject

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

_BEAT_S: Final = 2.0
_MOST_LINE: Final = 1_000_000
_MOST_MEMORY: Final = 200_000_000
"""Bytes of all memories of a store that dreams."""
_LAND_PAUSE_S: Final = 0.5
_log = logging.getLogger("reverie.worker")


class DreamError(Exception):
    """A dream cannot go on: a code, a sentence, and whether another try can help."""

    def __init__(self, type: str, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.type = type
        self.again = again


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a dream reads, as it was at that moment."""

    files: dict[str, Row]
    sessions: list[tuple[str, bytes, float]]
    counter: int


class DreamRun:
    """One attempt at one dream."""

    def __init__(self, database: Database, lease: Lease, row: Row, folders: Path) -> None:
        self._database = database
        self._lease = lease
        self._row = row
        self._folder = folders / f"{os.getpid()}-{secrets.token_hex(6)}"
        self._before = Spent.of(row)
        self.spent = self._before
        self._child: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Dreams, and settles how it ended. Raises `NoDatabase` if that could not be stored; `CancelledError` gives the
        dream back."""
        lease = self._lease
        try:
            await self._within_lease()
            _log.info("%s completed (attempt %d)", lease.id, lease.attempt)
        except LeaseLost:
            _log.info("%s was canceled or taken over (attempt %d)", lease.id, lease.attempt)
            await leases.end_stopped(self._database, lease, self.spent)
        except DreamError as error:
            _log.warning("%s: %s (attempt %d)", lease.id, error.type, lease.attempt)
            with contextlib.suppress(LeaseLost):
                await leases.fail(self._database, lease, self.spent, error.type, str(error), again=error.again)
        except asyncio.CancelledError:
            with contextlib.suppress(LeaseLost, NoDatabase):
                await leases.give_back(self._database, lease, self.spent)
            raise
        except NoDatabase:
            raise
        except Exception:  # the log has the reason, the row does not
            said = "The worker failed; its log has the reason."
            with contextlib.suppress(LeaseLost):
                await leases.fail(self._database, lease, self.spent, "internal_error", said, again=True)
            raise
        finally:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _within_lease(self) -> None:
        rest = await leases.find_budget(self._database, self._lease.id)
        if rest is not None and rest <= 0:
            raise DreamError("budget_exceeded", dreamer.OVER_BUDGET)
        beating = asyncio.create_task(self._beat())
        working = asyncio.create_task(self._work(None if rest is None else float(rest)))
        try:
            await asyncio.wait({beating, working}, return_when=asyncio.FIRST_COMPLETED)
            if beating.done():
                beating.result()
            changes, inputs, summary = await working
        finally:
            for task in (working, beating):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
            await self._stop_child()
        await self._land(changes, inputs, summary)

    # -- the lease -----------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Renews the lease until it is lost. A database that is away is asked again as long as the lease lasts."""
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(min(_BEAT_S, self._lease.seconds / 4))
            try:
                await leases.renew(self._database, self._lease, self.spent)
                rest = await leases.find_budget(self._database, self._lease.id)
            except NoDatabase:
                if time.monotonic() - renewed > self._lease.seconds:
                    raise LeaseLost from None
                continue
            renewed = time.monotonic()
            if rest is not None:
                self._tell_limit(float(self.spent.cost - self._before.cost + rest))

    # -- the process ---------------------------------------------------------------------------------------------

    async def _work(self, limit_usd: float | None) -> tuple[list[FileChange], Inputs, str]:
        inputs = await self._read()
        order = {
            "kind": self._row["kind"],
            "model": self._row["model"],
            "instructions": self._row["instructions"],
            "limit_usd": limit_usd,
            "confirmed": [path[1:] for path, one in inputs.files.items() if one["trust"] == "confirmed"],
        }
        await asyncio.to_thread(self._lay_out, inputs, order)
        result = await self._run_child()
        if error := cast("JsonObject | None", result.get("error")):
            raise DreamError(str(error["type"]), str(error["message"]), again=bool(error["again"]))
        changes = list[FileChange]()
        for one in cast("list[JsonObject]", result["changes"]):
            path = f"/{one['name']}"
            there = inputs.files.get(path)
            version, hash = (there["version_id"], there["sha256"]) if there else (None, None)
            changes.append(FileChange(path, cast("str | None", one["after"]), version, hash, str(one["why"])))
        return changes, inputs, str(result["summary"])

    async def _read(self) -> Inputs:
        row = self._row
        async with self._database.as_scopes(row["organisation_id"], [row["scope"]]) as connection:
            try:
                store = await stores.find(connection, row["store_id"], may_be_archived=False)
            except ApiError as error:
                raise DreamError("memory_store_unavailable", str(error)) from error
            files = await landing.read_files(connection, store["id"])
        if sum(len(one["content"]) for one in files.values()) > _MOST_MEMORY:
            raise DreamError("memory_store_too_large", f"A store that dreams may have {_MOST_MEMORY:,} characters.")
        sessions = list[tuple[str, bytes, float]]()
        async with self._database.as_owner() as connection:
            for id in row["session_ids"]:
                found = await connection.execute(
                    "select transcript, created_at from sessions where id = %s and organisation_id = %s",
                    (id, row["organisation_id"]),
                )
                session = await found.fetchone()
                if session is None:
                    raise DreamError("session_unavailable", f"The session {id} was deleted.")
                sessions.append((id, session["transcript"], session["created_at"].timestamp()))
        return Inputs(files, sessions, store["counter"])

    def _lay_out(self, inputs: Inputs, order: JsonObject) -> None:
        make_private_dir(self._folder)
        root, talks = self._folder / dreamer.MEMORY, self._folder / dreamer.SESSIONS
        landing.write_files(root, {path[1:]: one["content"] for path, one in inputs.files.items()})
        for path, one in inputs.files.items():
            moment = one["updated_at"].timestamp()
            os.utime(root / path[1:], (moment, moment))
        make_private_dir(talks)
        for id, packed, moment in inputs.sessions:
            file = talks / f"{id}.jsonl"
            file.write_bytes(gzip.decompress(packed))
            os.utime(file, (moment, moment))
        (self._folder / dreamer.ORDER).write_bytes(json.dumps(order).encode())

    async def _run_child(self) -> JsonObject:
        child = self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            dreamer.__name__,
            str(self._folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_MOST_LINE,
            start_new_session=True,
        )
        assert child.stdout is not None
        async for line in child.stdout:
            with contextlib.suppress(Unparsable, KeyError, TypeError, ValueError):
                told = cast("dict[str, Any]", load_json(line))
                self.spent = self._before.plus(told["usage"], float(told["cost"]))
        code = await child.wait()
        try:
            return cast(JsonObject, load_json(read_regular(self._folder / dreamer.RESULT)))
        except (OSError, Unparsable) as error:
            raise DreamError("internal_error", f"The process of the dream ended with {code}.", again=True) from error

    def _tell_limit(self, limit_usd: float) -> None:
        """Other dreams of the team spend too: the process hears what is left before its next request."""
        if self._child is not None and self._child.stdin is not None and not self._child.stdin.is_closing():
            self._child.stdin.write(f"{limit_usd}\n".encode())

    async def _stop_child(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    # -- landing -------------------------------------------------------------------------------------------------

    async def _land(self, changes: Sequence[FileChange], inputs: Inputs, summary: str) -> None:
        """Lands exactly once. If the database goes away, it is asked again: the row says whether it has landed."""
        until = time.monotonic() + self._lease.seconds
        while True:
            try:
                await self._land_once(changes, inputs, summary)
                return
            except NoDatabase:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(_LAND_PAUSE_S)
            except LeaseLost:
                if await self._has_landed():
                    return
                raise

    async def _land_once(self, changes: Sequence[FileChange], inputs: Inputs, summary: str) -> None:
        from psycopg.types.json import Jsonb

        given = self._row
        async with self._database.as_scopes(given["organisation_id"], [given["scope"]]) as connection:
            row = await leases.hold(connection, self._lease)
            try:
                store = await stores.find(connection, row["store_id"], locks=True, may_be_archived=False)
            except ApiError as error:
                raise DreamError("memory_store_unavailable", str(error)) from error
            try:
                output, review, notes = await _land(connection, row, store, changes)
            except ApiError as error:  # the new store is refused; a single memory would be left
                raise DreamError("dream_failed", str(error)) from error
            await connection.execute(
                "update dreams set status = 'completed', ended_at = clock_timestamp(), lease_until = null, "
                "output_store_id = %s, review = %s, changes = %s, summary = %s, counter = %s, input_tokens = %s, "
                "output_tokens = %s, cache_read_input_tokens = %s, cache_creation_input_tokens = %s, cost = %s "
                "where id = %s",
                (
                    output,
                    review,
                    Jsonb(notes),
                    summary[:2_000],
                    inputs.counter,
                    *self.spent.usage.values(),
                    self.spent.cost,
                    row["id"],
                ),
            )

    async def _has_landed(self) -> bool:
        async with self._database.as_owner() as connection:
            found = await connection.execute(
                "select 1 from dreams where id = %s and attempt = %s and status = 'completed'",
                (self._lease.id, self._lease.attempt),
            )
            return await found.fetchone() is not None


async def _land(
    connection: Connection, row: Row, store: Row, changes: Sequence[FileChange]
) -> tuple[str, str | None, list[dict[str, Any]]]:
    """Where the result is, whether it waits, and a note per change."""
    author = landing.author_of(row)
    if row["output"] == "update_existing" and not row["waits"]:
        return store["id"], "landed", await landing.land(connection, store, changes, author)
    who = Principal(
        row["token_id"] or "", True, row["created_by"], "session", False, row["organisation_id"], [row["scope"]]
    )
    state, review = ("proposed", "pending") if row["waits"] else ("landed", None)
    made, notes = await landing.land_in_copy(connection, store, changes, author, who, state)
    return made["id"], review, notes


async def run_dream(database: Database, id: str, worker: str, lease_s: float, folders: Path) -> None:
    """Takes a dream and runs it; does nothing if it is not there to be taken."""
    taken = await leases.take(database, id, worker, lease_s)
    if taken is not None:
        lease, row = taken
        await DreamRun(database, lease, row, folders).run()
