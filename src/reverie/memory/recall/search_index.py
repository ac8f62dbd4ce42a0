"""The derived search index of a memory directory: one SQLite file outside it that may be deleted at any time. It
follows the files by path, mtime and size, one transaction per change, so that several processes can share it. A corrupt
index is deleted and built again. It never writes into the memory directory."""

from __future__ import annotations

import hashlib
import math
import sqlite3
import time
from array import array
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reverie.memory.gate.lines import texts_of
from reverie.memory.gate.marks import statement_key
from reverie.memory.links import linked_names
from reverie.memory.recall.ranking.index_file import open_database
from reverie.memory.scan import FileStat, stat_topics
from reverie.memory.topic_file import TopicFile
from reverie.moments import change_ns
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.text.words import ANALYSIS_VERSION, terms

SCHEMA_VERSION: Final = f"3.{ANALYSIS_VERSION}"
BATCH_FILES: Final = 2_000
BUSY_MS: Final = 10_000
RACY_NS: Final = 1_000_000_000
"""A file changed this shortly before it was read may change again within the same mtime: it is read again."""
PREFIX_TERMS: Final = 400
MAX_BYTES: Final = 256 * 1024
"""More of a file is not searched: a memory is a page, not a book."""
_LENGTH_STEPS: Final = 4
_LENGTH_BITS: Final = 6

_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
  seen_mtime_ns INTEGER NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL, type TEXT NOT NULL,
  length INTEGER NOT NULL, digest BLOB NOT NULL, terms BLOB NOT NULL, trust TEXT NOT NULL, statements TEXT NOT NULL,
  links TEXT NOT NULL);
CREATE INDEX files_by_time ON files (seen_mtime_ns, path);
CREATE INDEX files_with_links ON files (path) WHERE links != '';
CREATE TABLE terms (id INTEGER PRIMARY KEY, term TEXT NOT NULL UNIQUE, files INTEGER NOT NULL);
CREATE TABLE postings (term INTEGER, file INTEGER, packed INTEGER, PRIMARY KEY (term, file)) WITHOUT ROWID;
CREATE TABLE vectors (encoder TEXT, digest BLOB, data BLOB NOT NULL, PRIMARY KEY (encoder, digest)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A topic file in the index; `mtime` is in seconds."""

    id: int
    path: str
    name: str
    description: str
    type: str
    length: int
    mtime: float

    @property
    def header(self) -> str:
        return _header(self.path, self.name, self.description)


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the vocabulary and the number of files that have it."""

    id: int
    text: str
    files: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """What one check of the directory changed in the index."""

    changed: int
    removed: int
    folders: tuple[str, ...]

    @property
    def anything(self) -> bool:
        return bool(self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class _Read:
    stat: FileStat
    seen_mtime_ns: int
    topic: TopicFile
    counts: Counter[str]
    length: int
    digest: bytes
    statements: tuple[str, ...]
    links: tuple[str, ...]


class SearchIndex:
    """Opens (or makes) the index of `memory_dir` at `path`; without a path it is in memory. Not for two threads at
    once. Close it, or use it in a `with`."""

    def __init__(self, memory_dir: Path, path: Path | None) -> None:
        self.memory_dir = memory_dir
        self._path = path
        self._openings = 0
        self._opened = open_database(path, _SCHEMA, SCHEMA_VERSION, BUSY_MS)
        self._db = self._opened.connection

    @property
    def problem(self) -> str:
        """Why the index is in memory and not at its path; empty if it is at its path."""
        return self._opened.problem

    def recover(self, error: sqlite3.DatabaseError) -> None:
        """After `IndexFailed`: starts again, so that the next call works whatever is wrong with the file. A damaged
        file is deleted if nobody else uses it; if the disk fails, or the file stays locked, the index is in memory from
        here on and `problem` says why."""
        self._opened.close()
        damaged = not isinstance(error, sqlite3.OperationalError)
        path = self._path if damaged else None
        self._opened = open_database(path, _SCHEMA, SCHEMA_VERSION, BUSY_MS, distrust=damaged)
        if not damaged:
            self._opened.problem = f"{self._path}: {error}"
        self._db = self._opened.connection
        self._openings += 1

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> SearchIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Following the files.

    def refresh(self) -> Refresh:
        """Updates the index from every file of the directory; a file that cannot be read is left out."""
        files, folders = stat_topics(self.memory_dir)
        found = {stat.path: stat for stat in files}
        rows = self._db.execute("SELECT path, mtime_ns, size FROM files")
        stored = {path: (mtime_ns, size) for path, mtime_ns, size in rows}
        gone = [path for path in stored if path not in found]
        changed = [stat for path, stat in found.items() if stored.get(path) != (stat.mtime_ns, stat.size)]
        changed.sort(key=lambda stat: -stat.mtime_ns)  # others can already see the newest files of a large directory
        return self._apply(changed, gone, folders)

    def refresh_paths(self, paths: Iterable[str]) -> Refresh:
        """Updates only these files: they are about to be shown, or were just written."""
        changed: list[FileStat] = []
        gone: list[str] = []
        for path in paths:
            row = self._row(path)
            try:
                found = (self.memory_dir / path).lstat()
            except OSError:
                if row is not None:
                    gone.append(path)
                continue
            stat = FileStat(path, change_ns(found), found.st_size)
            if row != (stat.mtime_ns, stat.size):
                changed.append(stat)
        return self._apply(changed, gone, ())

    def _apply(self, changed: Sequence[FileStat], gone: Sequence[str], folders: tuple[str, ...]) -> Refresh:
        if not changed and not gone:
            return Refresh(0, 0, folders)
        done = 0
        with self._writing():
            for path in gone:
                self._remove(path)
        for start in range(0, len(changed), BATCH_FILES):
            reads = [read for stat in changed[start : start + BATCH_FILES] if (read := self._read(stat)) is not None]
            with self._writing():
                # Another process may have stored the same change while we read.
                reads = [read for read in reads if self._row(read.stat.path) != (read.stat.mtime_ns, read.stat.size)]
                for read in reads:
                    self._remove(read.stat.path)
                self._store(reads)
            done += len(reads)
        return Refresh(done, len(gone), folders)

    def _read(self, stat: FileStat) -> _Read | None:
        try:
            data = read_regular(self.memory_dir / stat.path)
        except OSError:
            return None
        topic = TopicFile.parse(data[:MAX_BYTES])
        found = terms(f"{_header(stat.path, topic.name, topic.description)}\n{topic.body}")
        racy = abs(time.time_ns() - stat.mtime_ns) < RACY_NS
        digest = hashlib.blake2b(stat.path.encode() + b"\0" + data, digest_size=16).digest()
        said = tuple(map(statement_key, texts_of(topic)))
        links = linked_names(topic.body)
        return _Read(stat, -1 if racy else stat.mtime_ns, topic, Counter(found), len(found), digest, said, links)

    def _row(self, path: str) -> tuple[int, int] | None:
        return self._db.execute("SELECT mtime_ns, size FROM files WHERE path = ?", (path,)).fetchone()

    def _remove(self, path: str) -> None:
        row = self._db.execute("SELECT id, length, terms FROM files WHERE path = ?", (path,)).fetchone()
        if row is None:
            return
        file, length, blob = row
        used = array("I", blob)
        self._db.executemany("DELETE FROM postings WHERE term = ? AND file = ?", [(term, file) for term in used])
        self._db.executemany("UPDATE terms SET files = files - 1 WHERE id = ?", [(term,) for term in used])
        self._db.execute("DELETE FROM files WHERE id = ?", (file,))
        self._add_totals(-1, -length)

    def _store(self, reads: Sequence[_Read]) -> None:
        spread: Counter[str] = Counter()
        for read in reads:
            spread.update(read.counts.keys())
        self._db.executemany("INSERT OR IGNORE INTO terms (term, files) VALUES (?, 0)", [(term,) for term in spread])
        self._db.executemany("UPDATE terms SET files = files + ? WHERE term = ?", [(n, t) for t, n in spread.items()])
        ids = {term: found for found, term in self._ids(list(spread))}
        rows: list[tuple[int, int, int]] = []
        for read in reads:
            used = array("I", sorted(ids[term] for term in read.counts))
            cursor = self._db.execute(
                "INSERT INTO files (path, mtime_ns, size, seen_mtime_ns, name, description, type, length, digest,"
                " terms, trust, statements, links) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (read.stat.path, read.seen_mtime_ns, read.stat.size, read.stat.mtime_ns, read.topic.name,
                 read.topic.description, read.topic.type or "", read.length, read.digest, used.tobytes(),
                 read.topic.trust or "", " ".join(read.statements), "\n".join(read.links)),
            )  # fmt: skip
            file = int(cursor.lastrowid or 0)
            code = _length_code(read.length)
            rows += [(ids[term], file, (n << _LENGTH_BITS) | code) for term, n in read.counts.items()]
        rows.sort()
        self._db.executemany("INSERT INTO postings VALUES (?, ?, ?)", rows)
        self._add_totals(len(reads), sum(read.length for read in reads))

    def _ids(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        for start in range(0, len(texts), 500):
            part = texts[start : start + 500]
            marks = ",".join("?" * len(part))
            yield from self._db.execute(f"SELECT id, term FROM terms WHERE term IN ({marks})", part)

    def _add_totals(self, files: int, length: int) -> None:
        self._db.executemany(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
            [("files", files), ("length", length)],
        )

    @contextmanager
    def _writing(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # Asking.

    def totals(self) -> tuple[int, float]:
        """The number of files, and their mean length in terms."""
        found = dict(self._db.execute("SELECT key, value FROM meta WHERE key IN ('files', 'length')"))
        files = int(found.get("files", 0))
        return files, max(1.0, found.get("length", 0) / files) if files else 1.0

    def terms(self, texts: Sequence[str]) -> dict[str, Term]:
        """The terms among `texts` that occur in a file."""
        if not texts:
            return {}
        marks = ",".join("?" * len(texts))
        rows = self._db.execute(f"SELECT id, term, files FROM terms WHERE term IN ({marks}) AND files > 0", texts)
        return {text: Term(found, text, files) for found, text, files in rows}

    def terms_beginning(self, prefix: str) -> list[Term]:
        rows = self._db.execute(
            "SELECT id, term, files FROM terms WHERE term >= ? AND term < ? AND files > 0 LIMIT ?",
            (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), PREFIX_TERMS),
        )
        return [Term(*row) for row in rows]

    def postings(self, term: int, among: Sequence[int] | None = None) -> list[tuple[int, int]]:
        """(file, packed count and length) of a term, in all files or among some; see `unpack`."""
        if among is None:
            return self._db.execute("SELECT file, packed FROM postings WHERE term = ?", (term,)).fetchall()
        marks = ",".join(map(str, among))
        sql = f"SELECT file, packed FROM postings WHERE term = ? AND file IN ({marks})"
        return self._db.execute(sql, (term,)).fetchall()

    def files(self, ids: Iterable[int] | None = None) -> dict[int, IndexedFile]:
        """The files with these ids, or all files."""
        sql = "SELECT id, path, name, description, type, length, seen_mtime_ns FROM files"
        if ids is not None:
            sql += f" WHERE id IN ({','.join(map(str, ids))})"
        return {row[0]: IndexedFile(*row[:6], mtime=row[6] / 1e9) for row in self._db.execute(sql)}

    # Lists for people.

    def heads(self, limit: int = -1, offset: int = 0) -> Iterator[tuple[int, str, str, str, str]]:
        """(mtime in ns, path, type, trust in its head, keys of its statements), the newest file first."""
        sql = (
            "SELECT seen_mtime_ns, path, type, trust, statements FROM files"
            " ORDER BY seen_mtime_ns DESC, path LIMIT ? OFFSET ?"
        )
        return self._db.execute(sql, (limit, offset))

    def entries(self, paths: Sequence[str]) -> list[tuple[IndexedFile, str, str]]:
        """The files at these paths, each with the trust in its head and the keys of its statements."""
        sql = (
            "SELECT id, path, name, description, type, length, seen_mtime_ns, trust, statements FROM files"
            f" WHERE path IN ({','.join('?' * len(paths))})"
        )
        return [(IndexedFile(*row[:6], mtime=row[6] / 1e9), *row[7:]) for row in self._db.execute(sql, paths)]

    def having_all(self, texts: Sequence[str]) -> list[str]:
        """The paths of the files that have all of these terms, the newest first."""
        known = self.terms(texts)
        if not texts or len(known) < len(set(texts)):
            return []
        among = "".join(f" AND id IN (SELECT file FROM postings WHERE term = {one.id})" for one in known.values())
        sql = f"SELECT path FROM files WHERE 1{among} ORDER BY seen_mtime_ns DESC"
        return [path for (path,) in self._db.execute(sql)]

    def links(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """(path, title, names that it links to) of every file with links."""
        rows = self._db.execute("SELECT path, name, links FROM files WHERE links != ''")
        return [(path, name, tuple(names.split("\n"))) for path, name, names in rows]

    def titles(self) -> list[tuple[str, str]]:
        """(path, title) of every file."""
        return self._db.execute("SELECT path, name FROM files").fetchall()

    def body(self, file: IndexedFile) -> str:
        """The body of the file as it is on disk now; empty if it cannot be read."""
        try:
            return TopicFile.parse(read_regular(self.memory_dir / file.path)[:MAX_BYTES]).body
        except OSError:
            return ""

    # Vectors of an encoder, stored by the digest of the content: a file that is touched or restored keeps them.

    def vectors(self, encoder: str) -> list[tuple[int, bytes]]:
        """(file, packed vectors of its passages) for every file encoded so far."""
        sql = "SELECT f.id, v.data FROM files f JOIN vectors v ON v.encoder = ? AND v.digest = f.digest"
        return self._db.execute(sql, (encoder,)).fetchall()

    def without_vectors(self, encoder: str) -> list[tuple[int, bytes]]:
        """(file, digest) of files not encoded yet, newest first."""
        sql = (
            "SELECT id, digest FROM files f WHERE NOT EXISTS"
            " (SELECT 1 FROM vectors v WHERE v.encoder = ? AND v.digest = f.digest) ORDER BY seen_mtime_ns DESC"
        )
        return self._db.execute(sql, (encoder,)).fetchall()

    def vector(self, encoder: str, digest: bytes) -> bytes | None:
        """Vectors of any digest, not only a file's."""
        sql = "SELECT data FROM vectors WHERE encoder = ? AND digest = ?"
        row = self._db.execute(sql, (encoder, digest)).fetchone()
        return row[0] if row else None

    def add_vectors(self, encoder: str, made: Sequence[tuple[bytes, bytes]]) -> None:
        """Stores (digest, vectors)."""
        with self._writing():
            self._db.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", [(encoder, digest, data) for digest, data in made]
            )

    def generation(self) -> tuple[int, int, int]:
        """Changes when this or another process has written to the index."""
        own = self._db.total_changes
        return (self._openings, int(self._db.execute("PRAGMA data_version").fetchone()[0]), own)


def _header(path: str, name: str, description: str) -> str:
    return f"{path.removesuffix('.md').replace('/', ' ')}\n{name}\n{description}"


def unpack(packed: int) -> tuple[int, float]:
    """(how often the term occurs, the file's approximate length in terms) of a posting."""
    return packed >> _LENGTH_BITS, 2.0 ** ((packed & ((1 << _LENGTH_BITS) - 1)) / _LENGTH_STEPS)


def _length_code(length: int) -> int:
    return min((1 << _LENGTH_BITS) - 1, round(_LENGTH_STEPS * math.log2(max(1, length))))


IndexFailed = sqlite3.DatabaseError
"""Raised when the file is damaged or the disk fails; `SearchIndex.recover` repairs it."""
