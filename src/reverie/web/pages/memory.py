"""What is remembered: a list over all projects with search and filters, forgotten memories, and one memory with its
evidence, links and versions."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from reverie.cli.memory.opening import version_json
from reverie.errors import UserError
from reverie.memory.age import age_words
from reverie.memory.taxonomy import MemoryType, Trust, is_topic
from reverie.web.memories.kept import Kept
from reverie.web.memories.one import SessionLinks, check_file, read_memory
from reverie.web.memories.shelf import A_MOMENT, UNMARKED, UNTYPED, Found, Head, Row, Shelf, fits, refresh_all, shelf_of
from reverie.web.memories.stores import Store, chosen_stores, find_store, list_stores, open_store
from reverie.web.memories.versions import book_of
from reverie.web.paging import Pager
from reverie.web.visit import Data, NotFound, Page, Visit

if TYPE_CHECKING:
    from reverie.storage.history.versions import Version

_TYPES: Final = (*(kind.value for kind in MemoryType), UNTYPED)
_TRUSTS: Final = (*(trust.value for trust in Trust), UNMARKED)
_ORDERS: Final = ("newest", "oldest")
_LONGEST_QUERY: Final = 400
_SEARCH_WAIT_S: Final = 2.0


def address(store: Store, file: str, more: str = "") -> str:
    """The address of the page of one memory."""
    return f"{store.address}/{quote(file, safe='/', errors='replace')}{more}"


def read(visit: Visit) -> Data:
    """The list: memories by time, or what a search finds."""
    stores = chosen_stores(visit)
    shelves = [shelf_of(visit.site, store) for store in stores]
    asked = {
        "q": " ".join(visit.query.get("q", "")[:_LONGEST_QUERY].split()),
        "type": _one_of(visit, "type", _TYPES),
        "trust": _one_of(visit, "trust", _TRUSTS),
        "order": _one_of(visit, "order", _ORDERS),
        "project": visit.query.get("project", ""),
    }
    needs_all = bool(asked["q"] or asked["type"] or asked["trust"] or asked["order"] == "oldest")
    is_complete = refresh_all(shelves, _SEARCH_WAIT_S if needs_all else A_MOMENT)
    pager, note = Pager(visit), ""
    if asked["q"]:
        found, note = _search(shelves, asked)
        why = {(shelf.store.root, one.path): one.why for shelf, one in found}
        part = [
            (shelf, row, why[(shelf.store.root, row.file.path)])
            for shelf, row in _rows([(shelf, one.path) for shelf, one in pager.of(found)])
        ]
        total = len(found)
    else:
        part, total = _newest(shelves, asked, pager)
    types, trusts, inferred = _counts(shelves)
    return {
        "asked": asked,
        "projects": [store.describe() for store in list_stores(visit.site)],
        "types": {name: types[name] for name in _TYPES if types[name]},
        "trusts": {name: trusts[name] for name in _TRUSTS if trusts[name]},
        "inferred": inferred,
        "known": sum(shelf.total for shelf in shelves),
        "is_complete": is_complete,
        "note": note,
        "again": "/memory?" + urlencode({**{name: text for name, text in asked.items() if text}, "start": pager.start}),
        "memories": [_row_data(shelf.store, row, why) for shelf, row, why in part],
        "pages": pager.describe(total),
    }


def _one_of(visit: Visit, name: str, allowed: Sequence[str]) -> str:
    given = visit.query.get(name, "")
    if given and given not in allowed:
        raise UserError(f"{name} must be one of {', '.join(allowed)}, not {given[:40]!r}.")
    return given


def _counts(shelves: Sequence[Shelf]) -> tuple[Counter[str], Counter[str], int]:
    types, trusts, inferred = Counter[str](), Counter[str](), 0
    for shelf in shelves:
        own = shelf.counts()
        types, trusts, inferred = types + own[0], trusts + own[1], inferred + own[2]
    return types, trusts, inferred


def _newest(shelves: Sequence[Shelf], asked: dict[str, str], pager: Pager) -> tuple[list[tuple[Shelf, Row, str]], int]:
    """One part of the list by time, and how many memories there are."""
    end, kind, trust = pager.start + pager.size, asked["type"], asked["trust"]
    lists = [shelf.heads(end, kind=kind, trust=trust) for shelf in shelves]
    oldest = asked["order"] == "oldest"

    def marked(at: int) -> Iterator[tuple[int, int, Head]]:
        heads = reversed(lists[at]) if oldest else lists[at]
        return ((head.mtime_ns if oldest else -head.mtime_ns, at, head) for head in heads)

    if len(lists) == 1:
        heads = lists[0][::-1] if oldest else lists[0]
        chosen = [(shelves[0], head.path) for head in heads[pager.start : end]]
    else:
        merged = heapq.merge(*(marked(at) for at in range(len(lists))), key=lambda one: one[:2])
        chosen = [(shelves[at], head.path) for _, at, head in islice(merged, pager.start, end)]
    total = sum(map(len, lists)) if kind or trust else sum(shelf.total for shelf in shelves)
    return [(shelf, row, "") for shelf, row in _rows(chosen)], total


def _search(shelves: Sequence[Shelf], asked: dict[str, str]) -> tuple[list[tuple[Shelf, Found]], str]:
    """What fits the words, the best first; then what only has them, the newest of each project first."""
    found: list[tuple[Shelf, Found]] = []
    note, kind, trust = "", asked["type"], asked["trust"]
    for shelf in shelves:
        own, note = shelf.search(asked["q"])
        found += [
            (shelf, one) for one in own if not (kind or trust) or fits(shelf.head_of(one.path), kind=kind, trust=trust)
        ]
    found.sort(key=lambda one: -one[1].score)
    if asked["order"] == "oldest":
        found = [one for one in found if one[1].score] + [one for one in reversed(found) if not one[1].score]
    return found, note


def _rows(chosen: Sequence[tuple[Shelf, str]]) -> list[tuple[Shelf, Row]]:
    """What a list shows of these memories, in this order; those that are gone are left out."""
    paths: dict[int, list[str]] = {}
    by_id = {id(shelf): shelf for shelf, _ in chosen}
    for shelf, path in chosen:
        paths.setdefault(id(shelf), []).append(path)
    known = {key: by_id[key].rows(own) for key, own in paths.items()}
    return [(shelf, known[id(shelf)][path]) for shelf, path in chosen if path in known[id(shelf)]]


def _row_data(store: Store, row: Row, why: str) -> Data:
    file, head = row.file, row.head
    return {
        "project": store.name,
        "project_label": store.label,
        "file": file.path,
        "name": file.name or file.path,
        "description": file.description,
        "type": file.type or UNTYPED,
        "trust": head.trust,
        "inferred": head.inferred,
        "modified": file.mtime,
        "age": age_words(file.mtime, time.time()),
        "why": why,
        "link": address(store, file.path),
    }


def read_one(visit: Visit) -> Data:
    """One memory, its versions (`view=history`), or a form to edit it (`view=edit`)."""
    store = find_store(visit.site, visit.path["project"])
    memory = open_store(visit.site, store)
    name = check_file(memory, visit.path["file"])
    view = visit.query.get("view", "")
    if view not in ("", "history", "edit"):
        raise UserError(f"view must be history or edit, not {view[:40]!r}.")
    exists = memory.directory.exists(name)
    data: Data = {
        "project": store.describe(),
        "file": name,
        "path": str(store.root / name),
        "address": address(store, name),
        "exists": exists,
        "is_topic": is_topic(name),
        "can_change": store.is_changeable and not visit.site.read_only and memory.switch.on,
        "why_not": "" if memory.switch.on else f"Memory is off ({memory.switch.rule}).",
        "view": view if exists else "history",
        "whole": bool(visit.query.get("whole")),
    }
    if exists:
        data |= {
            "memory": read_memory(
                visit.site, store, memory, name, whole=bool(visit.query.get("whole")) or view == "edit"
            )
        }
        data |= {"title": data["memory"]["name"]}
    if data["view"] == "history":
        data |= _read_history(visit, memory, name)
        if not exists and not data["versions"]:
            raise NotFound(f"There is no memory {name[:80]!r} in {store.label}.")
    if view == "edit":
        data |= {"draft": Kept.of(visit.site).drafts.get(visit.query.get("draft", ""))}
    return data


def _read_history(visit: Visit, memory: Any, name: str) -> Data:
    from reverie.memory.lookup import absorb

    directory = memory.directory
    if not visit.site.read_only:
        absorb(directory)  # changes by hand become a version, as the commands do
    pager = Pager(visit, size=10)
    if directory.history.head() is None:
        return {"versions": [], "pages": pager.describe(0), "has_more": False}
    book = book_of(visit.site, directory)
    found, has_more = book.read(
        directory, lambda one: any(change.name == name for change in one.files), pager.size, start=pager.start
    )
    total = pager.start + len(found) + (1 if has_more else 0)
    links = SessionLinks(visit.site)
    versions = [
        {**(version_json(one) or {}), "diff": directory.history.diff(one, name), **_about(one, name, links)}
        for one in found
    ]
    return {"versions": versions, "pages": pager.describe(total), "has_more": has_more}


def _about(version: Version, name: str, links: SessionLinks) -> Data:
    change = next(change for change in version.files if change.name == name)
    link = links.link(version.info.session, version.info.message)
    return {"change": change.verb, "time": version.when.timestamp(), "link": link}


def read_forgotten(visit: Visit) -> Data:
    """Memories that were removed and can be brought back, the last one first."""
    found: list[Data] = []
    is_complete = True
    for store in chosen_stores(visit):
        directory = open_store(visit.site, store).directory
        if directory.history.head() is None:
            continue
        versions, has_more = book_of(visit.site, directory).read(directory, _removes, 500)
        is_complete = is_complete and not has_more
        seen = set[str]()
        for version in versions:
            for change in version.files:
                name = change.name
                if change.after is not None or name in seen or not is_topic(name) or directory.exists(name):
                    continue
                seen.add(name)
                found.append(
                    {
                        "project": store.name,
                        "project_label": store.label,
                        "file": name,
                        "when": version.when.timestamp(),
                        "writer": version.info.writer,
                        "why": version.info.reasons.get(name) or version.info.why,
                        "link": address(store, name),
                    }
                )
    found.sort(key=lambda one: -one["when"])
    pager = Pager(visit)
    return {
        "project": visit.query.get("project", ""),
        "forgotten": list(pager.of(found)),
        "pages": pager.describe(len(found)),
        "is_complete": is_complete,
    }


def _removes(version: Version) -> bool:
    return any(change.after is None and is_topic(change.name) for change in version.files)


_LIST_QUERY: Final = {
    "project": "only the memory of this project",
    "q": "words to search for; meaning counts too if an encoder is installed",
    "type": f"one of {', '.join(_TYPES)}",
    "trust": f"trust of the first statement: one of {', '.join(_TRUSTS)}",
    "order": "newest (default) or oldest",
    "start": "the first row, from 0",
    "size": "rows per page",
}
PAGES = (
    Page(
        "/memory", "memory", "Memory", read, "memory", "Memories of all projects, or what a search finds.", _LIST_QUERY
    ),
    Page(
        "/forgotten",
        "forgotten",
        "Forgotten",
        read_forgotten,
        "memory",
        "Memories that were removed and can be brought back.",
        {"project": "only the memory of this project"},
    ),
    Page(
        "/memory/{project}/{file:path}",
        "memory_one",
        "Memory",
        read_one,
        "memory",
        "One memory: text, trust and evidence per statement, links, versions.",
        {
            "view": "history: its versions with diffs; edit: a form",
            "whole": "1: the whole text of a very long memory",
            "start": "history: the first version, from 0",
        },
    ),
)
