"""What the proxy knows of conversations, in one small database for all workers: their states, and their two bills.

A state is the hash of all messages up to an answer. It holds hashes, names, numbers and our tools; never a text of a
conversation and never a key.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from reverie.errors import StorageError
from reverie.paths import make_private
from reverie.quick import dataclass

_KEPT_S = 30 * 86_400.0
_UNANSWERED_S = 86_400.0
_PRUNE_S = 3_600.0
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
create table if not exists prompts (hash blob primary key, at real not null);
create table if not exists failures (name text primary key, times integer not null);
create table if not exists breaks (conversation text not null, cause text not null, times integer not null,
  primary key (conversation, cause));
"""

_ADDED = {
    "said": "blob",
    "root": "text not null default ''",
    "rewrites": "integer not null default 0",
    "passes": "text not null default ''",
    "parent": "text not null default ''",
    "tool": "text not null default ''",
    "reads": "integer not null default 0",
    "rounds": "integer not null default 0",
    "recalled": "integer not null default 0",
    "carried": "integer not null default 0",
    "recall_meter": "real not null default 0",
    "is_beside": "integer not null default 0",
    "marked": "integer not null default -1",
    "marked_at": "real not null default 0",
    "reported": "integer not null default 0",
}
"""Columns of conversations that older books do not have: the hash of the newest answer, the conversation with which its
branches began, how often its client changed what was said before, why it is passed on as it comes, the conversation of
which it is a branch, the tool that we added to it, how many results were read with that, and in how many requests of
ours, the tokens that recall added, those of them in the last request, what they cost so far, whether a model wrote
its prompt, how many messages the cache has because of our markers, and since when, and how many tokens the server
counted up to the newest answer."""
_INDEXES = """
create index if not exists by_answer on conversations (said);
create index if not exists by_request on conversations (asked) where tip is null;
create index if not exists by_root on conversations (root);
"""


def hashed(*parts: str) -> bytes:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).digest()


def _owned(state: bytes, client: str) -> bytes:
    """A state of one client: others may have said the same, and got the same answers."""
    return hashlib.sha256(state + client.encode()).digest()


def chain(seed: str, fingerprints: Sequence[str]) -> list[bytes]:
    """The state after each message."""
    return extended(hashed(seed), fingerprints)[1:]


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
    client: str


class Book:
    """The database of one home."""

    def __init__(self, path: Path) -> None:
        make_private(path.parent)
        self._lock = Lock()
        self._pruned = 0.0
        self._base = _connect(path)
        path.chmod(0o600)
        self._base.execute("delete from states where at < ?", (time.time() - _KEPT_S,))
        self._base.execute("delete from conversations where requests = 0 and used < ?", (time.time() - _UNANSWERED_S,))

    def find(self, states: Sequence[bytes], client: str) -> KnownState | None:
        """The longest stored start of a request with these states; if there are two, that of this client."""
        own, any_ones = self._find([_owned(one, client) for one in states]), self._find(states)
        return any_ones if own is None or (any_ones is not None and any_ones.length > own.length) else own

    def _find(self, states: Sequence[bytes]) -> KnownState | None:
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
                    row = base.execute("select tip, asked, client from conversations where id = ?", (name,)).fetchone()
                    tip, asked, client = row or (None, None, "")
                    is_newest = tip is not None and state in (tip, _owned(tip, client))
                    return KnownState(name, places[state] + 1, is_newest, asked or b"", client)
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

    def answered(self, name: str, *states: bytes, said: bytes | None = None, reported: int = 0) -> None:
        """Remembers the states after an answer, the last one as the newest, the answer if it is like no other, and how
        many tokens the server `reported` for all of it."""
        now = time.time()
        with self._work() as base:
            row = base.execute("select client from conversations where id = ?", (name,)).fetchone()
            own = [_owned(one, row[0]) for one in states] if row else []
            base.executemany(
                "insert or replace into states values (?,?,?)", [(one, name, now) for one in (*states, *own)]
            )
            base.execute(
                "update conversations set tip = ?, said = ?, used = ?, reported = ? where id = ?",
                (states[-1], said, now, reported, name),
            )

    def reported(self, name: str) -> int:
        """How many tokens the server counted up to the newest answer of a conversation; 0 if it did not say."""
        with self._work() as base:
            row = base.execute("select reported from conversations where id = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def said_last(self, said: bytes, client: str) -> str:
        """The conversation of a client that has this newest answer, the last used one; empty if there is none."""
        with self._work() as base:
            row = base.execute(
                "select id from conversations where said = ? and client = ? order by used desc", (said, client)
            ).fetchone()
        return str(row[0]) if row else ""

    def unanswered(self, asked: bytes, client: str) -> str:
        """The conversation of a client whose first request was this one and got no answer; empty if there is none."""
        with self._work() as base:
            row = base.execute(
                "select id from conversations where asked = ? and tip is null and client = ?", (asked, client)
            ).fetchone()
        return str(row[0]) if row else ""

    def branch(self, name: str, parent: str) -> None:
        """Remembers of which conversation this one is a branch."""
        with self._work() as base:
            base.execute(
                "update conversations set root = ?, parent = ?, tool = (select tool from conversations where id = ?)"
                " where id = ?",
                (self._root(base, parent), parent, parent, name),
            )

    def family(self, name: str) -> dict[str, int]:
        """A conversation, and those of which it is a branch, the nearest first; each with how often our tool read."""
        found = dict[str, int]()
        with self._work() as base:
            while name and name not in found:
                row = base.execute("select reads, parent from conversations where id = ?", (name,)).fetchone()
                found[name] = int(row[0]) if row else 0
                name = str(row[1]) if row else ""
        return found

    def tool(self, name: str) -> str:
        """The definition of our tool in a conversation; empty if it has none."""
        with self._work() as base:
            row = base.execute("select tool from conversations where id = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def set_tool(self, name: str, tool: str) -> str:
        """Gives a conversation our tool, once: returns what counts, if another worker was first."""
        with self._work() as base:
            base.execute("update conversations set tool = ? where id = ? and tool = ''", (tool, name))
        return self.tool(name)

    def branches(self, name: str) -> tuple[str, int]:
        """The conversation with which a branch began, and how many branches it has."""
        with self._work() as base:
            root = self._root(base, name)
            row = base.execute("select count(*) from conversations where root = ?", (root,)).fetchone()
        return root, int(row[0])

    def _root(self, base: sqlite3.Connection, name: str) -> str:
        row = base.execute("select root from conversations where id = ?", (name,)).fetchone()
        return str(row[0]) if row and row[0] else name

    def pass_on(self, name: str, why: str) -> None:
        """From now on the requests of this conversation go out as they come."""
        with self._work() as base:
            base.execute("update conversations set passes = ? where id = ?", (why, name))

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

    def meters(self, name: str) -> tuple[float, float]:
        """What a conversation has cost as it was sent and as it came, by the meters, in tokens of fresh input. What
        recall added is left out: the user asked for it."""
        with self._work() as base:
            row = base.execute(
                "select sent_meter - recall_meter, direct_meter from conversations where id = ?", (name,)
            ).fetchone()
        return (float(row[0]), float(row[1])) if row else (0.0, 0.0)

    def carried(self, name: str) -> int:
        """The tokens of memories in the last request of a conversation."""
        with self._work() as base:
            row = base.execute("select carried from conversations where id = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def wrote(self, prompts: Sequence[bytes]) -> None:
        """Remembers the hashes of texts that a model wrote for a tool: one may be the prompt of a sub-agent."""
        now = time.time()
        with self._work() as base:
            base.executemany("insert or replace into prompts values (?,?)", [(one, now) for one in prompts])
            if now > self._pruned + _PRUNE_S:
                self._pruned = now
                base.execute("delete from prompts where at < ?", (now - _UNANSWERED_S,))

    def is_written(self, prompts: Sequence[bytes]) -> bool:
        """Whether a model wrote one of these."""
        some = prompts[:_AT_ONCE]
        with self._work() as base:
            row = base.execute(f"select 1 from prompts where hash in ({','.join('?' * len(some))})", some).fetchone()
        return row is not None

    def is_beside(self, name: str) -> bool:
        """Whether a model wrote the prompt of this conversation."""
        with self._work() as base:
            row = base.execute("select is_beside from conversations where id = ?", (name,)).fetchone()
        return bool(row and row[0])

    def mark(self, name: str, covered: int, at: float) -> None:
        """Remembers that the cache has this many messages because of our markers."""
        with self._work() as base:
            base.execute("update conversations set marked = ?, marked_at = ? where id = ?", (covered, at, name))

    def marked(self, name: str, since: float) -> int:
        """How many messages the cache has because of our markers, if it was used since then; else -1."""
        with self._work() as base:
            row = base.execute(
                "select marked from conversations where id = ? and marked_at > ?", (name, since)
            ).fetchone()
        return int(row[0]) if row else -1

    def state_of(self, name: str) -> tuple[str, str, int, int]:
        """Why nothing is cleared in a conversation, why it is passed on as it comes (both may be empty), how many
        requests it had, and how often its client changed what was said before."""
        with self._work() as base:
            row = base.execute(
                "select stopped, passes, requests, rewrites from conversations where id = ?", (name,)
            ).fetchone()
        return (str(row[0]), str(row[1]), int(row[2]), int(row[3])) if row else ("", "", 0, 0)

    def fail(self, name: str) -> None:
        """Counts something of ours that failed."""
        with self._work() as base:
            base.execute("insert into failures values (?,1) on conflict do update set times = times + 1", (name,))

    def failures(self) -> dict[str, int]:
        with self._work() as base:
            return dict(base.execute("select name, times from failures").fetchall())

    def rows(self) -> list[dict[str, Any]]:
        """All conversations that were answered, the last used first."""
        with self._work() as base:
            cursor = base.execute("select * from conversations where requests > 0 order by used desc")
            names = [one[0] for one in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor]
            causes = base.execute("select conversation, cause, times from breaks").fetchall()
        for one in found:
            for key in ("tip", "asked", "said"):
                one.pop(key)
            one["breaks"] = {cause: times for name, cause, times in causes if name == one["id"]}
        return found

    def close(self) -> None:
        self._base.close()

    @contextmanager
    def _work(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            yield self._base


def _connect(path: Path) -> sqlite3.Connection:
    """Opens the database. A damaged one is put aside: conversations that go on are then recognised as new ones."""
    try:
        return _opened(path)
    except sqlite3.OperationalError as error:
        raise StorageError(f"The book of the proxy cannot be opened: {error} ({path}).") from error
    except sqlite3.DatabaseError:
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{path}{end}").replace(f"{path}.damaged{end}")
        return _opened(path)


def _opened(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        base.execute("pragma journal_mode=wal")
        base.execute("pragma synchronous=normal")
        base.execute("begin immediate")  # several workers start at once
        for statement in _TABLES.split(";"):
            base.execute(statement)
        known = {row[1] for row in base.execute("pragma table_info(conversations)")}
        for column, kind in _ADDED.items():
            if column not in known:
                base.execute(f"alter table conversations add column {column} {kind}")
        for statement in _INDEXES.split(";"):
            base.execute(statement)
        base.execute("commit")
    except sqlite3.Error:
        base.close()
        raise
    return base
