"""One memory directory as a list: by time, type and trust, from its derived search index.

A thread updates the index; a page waits a moment for it and then shows what is there. So a page with 100,000 memories
opens as fast as one with ten, and says if it is still reading. Nothing here changes a memory.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from reverie.memory.changes import Mark
from reverie.memory.gate.marks import Marks
from reverie.memory.recall.index_process import refresh_elsewhere
from reverie.memory.recall.search_index import IndexedFile, IndexFailed, SearchIndex
from reverie.memory.scan import folder_mtimes, stat_topics
from reverie.memory.taxonomy import Trust
from reverie.quick import dataclass
from reverie.web.memories.kept import Kept
from reverie.web.memories.stores import Store
from reverie.web.site import Site

if TYPE_CHECKING:
    from reverie.memory.recall.ranker import Ranker

A_MOMENT: Final = 0.12
"""How long a page waits for news, in seconds."""
AFTER_A_CHANGE: Final = 10.0
_AGAIN_S: Final = 2.0
_AGAIN_COST: Final = 25
_RELEVANT: Final = 0.1
_RANKED: Final = 50
_AT_ONCE: Final = 500
_MANY_NEW: Final = 2_000
"""So many new files are read in another process."""
UNMARKED: Final = "unmarked"
UNTYPED: Final = "untyped"


@dataclass(frozen=True, slots=True)
class Head:
    """One memory of the list. `trust` is that of its first statement, `inferred` how many statements are inferred."""

    mtime_ns: int
    path: str
    type: str
    trust: str
    inferred: int


Counts: TypeAlias = tuple[Counter[str], Counter[str], int]


@dataclass(frozen=True, slots=True)
class Row:
    """A memory with what a list shows of it."""

    file: IndexedFile
    head: Head


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that a search found, and why; `score` is 0 if it only has all the words."""

    path: str
    score: float
    why: str


class Shelf:
    """The list of one memory directory. Its methods may be called from any thread."""

    def __init__(self, site: Site, store: Store) -> None:
        self.store = store
        self._site = site
        self._path = site.places.search_index(store.root)
        self._lock = threading.RLock()
        self._index = SearchIndex(store.root, self._path)
        self._ranker: Ranker | None = None
        self._marks = Marks(store.root)
        self._heads: list[Head] | None = None
        self._by_path: dict[str, Head] = {}
        self._chosen: dict[tuple[str, str], list[Head]] = {}
        self._counts: Counts = (Counter(), Counter(), 0)
        self._seen: tuple[object, ...] = ()
        self._folders: tuple[str, ...] = ("",)
        self._checked = -1e9
        self._cost = 0.0
        self._work: threading.Thread | None = None
        self._is_behind = False

    def refresh(self, wait: float = A_MOMENT, *, force: bool = False) -> bool:
        """Looks for changes, and waits so long for them. Returns whether the list is complete."""
        with self._lock:
            is_due = time.monotonic() - self._checked > max(_AGAIN_S, _AGAIN_COST * self._cost)
            is_news = force or self._stamp() != self._seen
            if self._work is None and (is_due or is_news):
                self._is_behind = is_news
                self._work = threading.Thread(target=self._update, name="memory list", daemon=True)
                self._work.start()
            work = self._work
        if work is not None:
            work.join(wait)
        return self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether everything that was there at the last look is in the list."""
        return self._heads is not None and (self._work is None or not self._is_behind)

    @property
    def total(self) -> int:
        """How many memories are known."""
        with self._lock:
            return len(self._heads) if self._heads is not None else self._index.totals()[0]

    def heads(self, most: int, *, kind: str = "", trust: str = "") -> Sequence[Head]:
        """The memories of one type and trust, the newest first; of the first `most` if the list is not complete yet."""
        if self._heads is None:
            with self._lock:
                marks = self._marks.by_key()
                found = [_head(row, marks) for row in self._index.heads(most)]
            return [head for head in found if fits(head, kind=kind, trust=trust)]
        if not kind and not trust:
            return self._heads
        chosen, key = self._chosen, (kind, trust)
        if key not in chosen:
            chosen[key] = [head for head in self._heads if fits(head, kind=kind, trust=trust)]
        return chosen[key]

    def rows(self, paths: Sequence[str]) -> dict[str, Row]:
        """What a list shows of these memories. A file that was just edited is read again."""
        found: dict[str, Row] = {}
        with self._lock:
            marks = self._marks.by_key()
            for start in range(0, len(paths), _AT_ONCE):
                part = paths[start : start + _AT_ONCE]
                with suppress(IndexFailed):
                    self._index.refresh_paths(part)
                for file, trust, said in self._index.entries(part):
                    row = (int(file.mtime * 1e9), file.path, file.type, trust, said)
                    found[file.path] = Row(file, _head(row, marks))
        return found

    def counts(self) -> Counts:
        """How many memories per type and per trust, and how many inferred statements."""
        return self._counts

    def head_of(self, path: str) -> Head | None:
        """One memory of the list."""
        return self._by_path.get(path)

    def titles(self) -> list[tuple[str, str]]:
        """(file, title) of every memory."""
        with self._lock:
            return self._index.titles()

    def links(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """(file, title, names that it links to) of every memory with links."""
        with self._lock:
            return self._index.links()

    def search(self, query: str) -> tuple[list[Found], str]:
        """Memories that fit a query by words and meaning, the best first; then all others that have every word. Also a
        note about the way of the search."""
        from reverie.memory.recall.ranker import Ranker
        from reverie.text.words import FUNCTION_TERMS, terms

        with self._lock:
            if self._ranker is None:
                models, encoder = self._site.places.models, self._site.settings.memory.encoder
                self._ranker = Ranker.open(self.store.root, self._path, models_dir=models, encoder=encoder)
            ranking = self._ranker.rank(query, limit=_RANKED, refresh=False)
            shown = {one.path for one in ranking.shown}
            best = [one for one in ranking.ranked if one.signals.words > _RELEVANT or one.path in shown]
            found = [Found(one.path, one.score, one.why) for one in best]
            asked = list(dict.fromkeys(terms(query)))
            telling = [term for term in asked if term not in FUNCTION_TERMS] or asked
            known = {one.path for one in found}
            found += [Found(path, 0.0, "") for path in self._index.having_all(telling) if path not in known]
            return found, self._ranker.note

    def _update(self) -> None:
        began = time.monotonic()
        try:
            with SearchIndex(self.store.root, self._path) as index:
                stamp = self._stamp()
                if len(stat_topics(self.store.root)[0]) - index.totals()[0] > _MANY_NEW and not index.problem:
                    refresh_elsewhere(self.store.root, self._path)
                folders = index.refresh().folders
                marks = self._marks.by_key()
                heads = [_head(row, marks) for row in index.heads()]
                self._counts = _count(heads)
                self._by_path = {head.path: head for head in heads}
                self._heads, self._chosen = heads, {}
                # Not known yet: which folders there are. The next look compares with all of them.
                self._seen, self._folders = (stamp if folders == self._folders else ()), folders
        except (IndexFailed, OSError):
            self._heads = self._heads or []
        finally:
            self._checked = time.monotonic()
            self._cost = self._checked - began
            self._work = None

    def _stamp(self) -> tuple[object, ...]:
        try:
            status = self._marks.path.stat()
            marks = status.st_mtime_ns, status.st_size
        except OSError:
            marks = (0, 0)
        return (*folder_mtimes(self.store.root, self._folders), *marks)


def _head(row: tuple[int, str, str, str, str], marks: Mapping[str, Mark]) -> Head:
    mtime_ns, path, kind, trust, said = row
    otherwise = Trust.INFERRED if trust == Trust.INFERRED else None
    found = [mark.trust if (mark := marks.get(key)) else otherwise for key in said.split()]
    lead = found[0] if found else None
    return Head(mtime_ns, path, kind, lead.value if lead else UNMARKED, found.count(Trust.INFERRED))


def _count(heads: Iterable[Head]) -> Counts:
    types, trusts, inferred = Counter[str](), Counter[str](), 0
    for head in heads:
        types[head.type or UNTYPED] += 1
        trusts[head.trust] += 1
        inferred += head.inferred
    return types, trusts, inferred


def shelf_of(site: Site, store: Store) -> Shelf:
    """The list of a memory directory, kept between visits."""
    shelves = Kept.of(site).shelves
    return shelves.get(store.root) or shelves.setdefault(store.root, Shelf(site, store))


def refresh_all(shelves: Sequence[Shelf], wait: float = A_MOMENT) -> bool:
    """Looks for changes in all of them at once. Returns whether all lists are complete."""
    until = time.monotonic() + wait
    for shelf in shelves:
        shelf.refresh(0.0)
    return all(shelf.refresh(max(0.0, until - time.monotonic())) for shelf in shelves)


def fits(head: Head | None, *, kind: str = "", trust: str = "") -> bool:
    """Whether a memory has this type and trust; an empty text means any."""
    return head is not None and kind in ("", head.type or UNTYPED) and trust in ("", head.trust)
