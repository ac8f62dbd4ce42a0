"""What the servers have in their caches, for both bills, in a small file that all workers share.

It holds hashes and times, and forgets what has expired. If it cannot be used, each worker bills by what it saw itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from reverie.parsing import load_json
from reverie.simulator.cache import CacheEntry
from reverie.storage.sqlite import connect

_TABLE = """
create table if not exists entries (world text not null, key blob not null, ttl text not null, expires real not null,
  edits text not null, primary key (world, key)) without rowid
"""
_EVERY_S = 60.0
_KEPT_S = 3_600.0
"""Seconds for which an expired entry stays."""


class SharedEntries:
    """The entries of one world. Not for several threads at once."""

    def __init__(self, path: Path, world: str) -> None:
        self._world = world
        self._base = connect(path, 5)
        self._base.execute("pragma journal_mode=wal")
        self._base.execute("pragma synchronous=off")  # after a crash of the machine, the real caches are old as well
        self._base.execute(_TABLE)
        self._forgot = 0.0

    def get(self, key: bytes) -> CacheEntry | None:
        row = self._base.execute(
            "select ttl, expires, edits from entries where world = ? and key = ?", (self._world, key)
        ).fetchone()
        return CacheEntry(row[0], row[1], tuple(load_json(row[2]))) if row else None

    def put(self, keys: Sequence[bytes], entry: CacheEntry) -> None:
        edits = json.dumps(entry.edits)
        rows = [(self._world, key, entry.ttl, entry.expires, edits) for key in keys]
        self._base.execute("begin immediate")
        try:
            self._base.executemany("insert or replace into entries values (?,?,?,?,?)", rows)
        finally:
            self._base.execute("commit")

    def forget(self, now: float) -> None:
        if now > self._forgot + _EVERY_S:
            self._forgot = now
            self._base.execute("delete from entries where expires < ?", (now - _KEPT_S,))

    def close(self) -> None:
        self._base.close()
