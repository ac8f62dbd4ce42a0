"""What the proxy knows of conversations, in one small database for all workers: their states, and their two bills.

A state is the hash of all messages up to an answer. It holds hashes, names and numbers; never a text and never a key.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from reverie.paths import make_private
from reverie.quick import dataclass

_KEPT_S = 30 * 86_400.0
_AT_ONCE = 500
_TABLES = """
create table if not exists states (hash blob primary key, conversation text not null, at real not null);
create table if not exists conversations (
  id text primary key, api text not null, model text not null, client text not null,
  began real not null, used real not null, tip blob, asked blob, stopped text not null default '',
  requests integer not null default 0, changed integer not null default 0, failed integer not null default 0,
  fresh integer not null default 0, read integer not null default 0, written integer not null default 0,
  output integer not null default 0, paid real not null default 0, direct real not null default 0,
  sent_meter real not null default 0, direct_meter real not null default 0,
  results integer not null default 0, compactions integer not null default 0
);
create table if not exists breaks (conversation text not null, cause text not null, times integer not null,
  primary key (conversation, cause));
"""


def chain(seed: str, fingerprints: Sequence[str]) -> list[bytes]:
    """The state after each message."""
    return extended(hashlib.sha256(seed.encode("utf-8", "replace")).digest(), fingerprints)[1:]


def extended(state: bytes, fingerprints: Sequence[str]) -> list[bytes]:
    """A state, and the states after each further message. A message that says nothing keeps the state."""
    found = [state]
    for one in fingerprints:
        state = hashlib.sha256(state + one.encode()).digest() if one else state
        found.append(state)
    return found


@dataclass(frozen=True, slots=True)
class KnownState:
    """A conversation that has a stored start of the messages. `is_newest`: nothing was answered in it since."""

    conversation: str
    length: int
    """How many messages of the request the state covers."""
    is_newest: bool
    asked: bytes
    """The hash of the last request."""


class Book:
    """The database of one home."""

    def __init__(self, path: Path) -> None:
        make_private(path.parent)
        self._lock = Lock()
        self._base = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        path.chmod(0o600)
        self._base.execute("pragma journal_mode=wal")
        self._base.execute("pragma synchronous=normal")
        self._base.executescript(_TABLES)
        self._base.execute("delete from states where at < ?", (time.time() - _KEPT_S,))

    def find(self, states: Sequence[bytes]) -> KnownState | None:
        """The longest stored start of a request with these states."""
        places = {state: place for place, state in enumerate(states)}
        with self._work() as base:
            for end in range(len(states), 0, -_AT_ONCE):
                part = states[max(0, end - _AT_ONCE) : end]
                marks = ",".join("?" * len(part))
                rows = base.execute(
                    f"select hash, conversation from states where hash in ({marks})",
                    part,
                ).fetchall()
                if rows:
                    state, name = max(rows, key=lambda row: places[row[0]])
                    row = base.execute("select tip, asked from conversations where id = ?", (name,)).fetchone()
                    return KnownState(
                        name, places[state] + 1, bool(row) and row[0] == state, row[1] or b"" if row else b""
                    )
        return None

    def begin(self, name: str, api: str, model: str, client: str) -> None:
        now = time.time()
        with self._work() as base:
            base.execute(
                "insert or ignore into conversations (id, api, model, client, began, used) values (?,?,?,?,?,?)",
                (name, api, model, client, now, now),
            )

    def asked(self, name: str, state: bytes) -> None:
        """Remembers the request that is sent now."""
        with self._work() as base:
            base.execute("update conversations set asked = ?, used = ? where id = ?", (state, time.time(), name))

    def answered(self, name: str, state: bytes) -> None:
        """Remembers the state after an answer."""
        with self._work() as base:
            base.execute("insert or replace into states values (?,?,?)", (state, name, time.time()))
            base.execute("update conversations set tip = ?, used = ? where id = ?", (state, time.time(), name))

    def add(self, name: str, **counts: float) -> None:
        """Adds to the numbers of a conversation."""
        sums = ", ".join(f"{key} = {key} + ?" for key in counts)
        with self._work() as base:
            base.execute(f"update conversations set {sums} where id = ?", (*counts.values(), name))

    def add_break(self, name: str, cause: str) -> None:
        with self._work() as base:
            base.execute(
                "insert into breaks values (?,?,1) on conflict do update set times = times + 1",
                (name, cause),
            )

    def stop(self, name: str, why: str) -> None:
        """From now on only what costs nothing is cleared in this conversation; with an empty reason, more may be."""
        with self._work() as base:
            base.execute("update conversations set stopped = ? where id = ?", (why, name))

    def row(self, name: str) -> dict[str, Any]:
        """All numbers of one conversation; empty if it is not known."""
        return next((one for one in self.rows() if one["id"] == name), dict[str, Any]())

    def meters(self, name: str) -> tuple[float, float]:
        """What a conversation has cost as it was sent and as it came, by the meters, in tokens of fresh input."""
        with self._work() as base:
            row = base.execute("select sent_meter, direct_meter from conversations where id = ?", (name,)).fetchone()
        return (float(row[0]), float(row[1])) if row else (0.0, 0.0)

    def rows(self) -> list[dict[str, Any]]:
        """All conversations, the last used first."""
        with self._work() as base:
            cursor = base.execute("select * from conversations order by used desc")
            names = [one[0] for one in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor]
            causes = base.execute("select conversation, cause, times from breaks").fetchall()
        for one in found:
            one.pop("tip")
            one.pop("asked")
            one["breaks"] = {cause: times for name, cause, times in causes if name == one["id"]}
        return found

    def close(self) -> None:
        self._base.close()

    @contextmanager
    def _work(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            yield self._base
