"""Everything about one memory: its text, the trust of each statement with its evidence, links, names that are gone, and
who recalled it. Reads only."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from reverie.errors import ReverieError, StorageError
from reverie.memory.age import age_days, age_words
from reverie.memory.directory import Document
from reverie.memory.gate.review import list_statements
from reverie.memory.index import entry_of
from reverie.memory.links import link_key, link_keys, linked_names, resolve_link
from reverie.memory.references import named_files, named_symbols
from reverie.memory.taxonomy import index_of, is_index, is_topic, pointer_of
from reverie.moments import iso
from reverie.paths import check_session_id
from reverie.storage.transcript.sessions import describe
from reverie.web.memories.kept import Kept
from reverie.web.memories.recalled import recalled_in
from reverie.web.memories.shelf import UNMARKED, shelf_of
from reverie.web.memories.stores import Store
from reverie.web.site import Site
from reverie.web.visit import Data, NotFound

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

_LONGEST_NAME: Final = 1_000
_PART: Final = 20_000
"""Characters of a text that are shown at first."""
_STATEMENTS: Final = 100
LONG: Final = 600
"""Characters of a statement that are shown at first."""
_FRESH_S: Final = 60.0
_WAIT_S: Final = 0.3


def check_file(memory: OpenedMemory, name: str) -> str:
    """The name of a memory or an index, as the address has it; `NotFound` if it cannot be one."""
    is_name = len(name) <= _LONGEST_NAME and "\0" not in name and (is_topic(name) or is_index(name))
    if is_name:
        with suppress(StorageError, ValueError):
            memory.directory.exists(name)  # refuses what leads out of the directory
            return name
    raise NotFound(f"There is no memory {name[:80]!r}.")


def read_memory(site: Site, store: Store, memory: OpenedMemory, name: str, *, whole: bool) -> Data:
    """The facts of one memory that exists."""
    document = memory.directory.read(name)
    topic, text = document.topic, document.text
    said = list_statements(name, text, memory.gate.marks, document.modified) if is_topic(name) else []
    lead = said[0].trust if said else None
    sessions = SessionLinks(site)
    statements = [
        {**one.to_json(), "when": one.since, "link": sessions.link(one.mark.session, one.mark.message)}
        if one.mark
        else {**one.to_json(), "when": None, "link": ""}
        for one in (said if whole else said[:_STATEMENTS])
    ]
    return {
        "name": topic.name or name,
        "description": topic.description,
        "type": topic.type.value if topic.type else None,
        "trust": lead.value if lead else UNMARKED,
        "modified": document.modified,
        "modified_at": iso(document.modified),
        "age": age_words(document.modified, time.time()),
        "age_days": age_days(document.modified, time.time()),
        "bytes": len(document.content),
        "digest": document.digest,
        "problems": list(topic.problems),
        "text": text if whole else text[:_PART],
        "characters": len(text),
        "is_whole": whole or _is_short(text, [one.text for one in said]),
        "statements": statements,
        "statements_total": len(said),
        "index_line": _index_line(memory, name),
        **_links(site, store, name, document),
        **_missing(site, memory, name, document),
        "recalled": [
            {**one, "link": sessions.link(str(one["session"]), "")} for one in recalled_in(site, memory.places, name)
        ],
    }


def _is_short(text: str, said: Sequence[str]) -> bool:
    """Whether a page can show all of it at once."""
    return len(text) <= _PART and len(said) <= _STATEMENTS and all(len(one) <= LONG for one in said)


def _index_line(memory: OpenedMemory, name: str) -> str | None:
    if not is_topic(name):
        return None
    index = index_of(name)
    if not memory.directory.exists(index):
        return None
    entry = entry_of(memory.directory.read(index).text, pointer_of(name))
    return entry.text.strip() if entry else None


def _links(site: Site, store: Store, name: str, document: Document) -> Data:
    """Links to other memories, and from them."""
    shelf = shelf_of(site, store)
    shelf.refresh()
    topic = document.topic
    wanted = linked_names(topic.body) if is_topic(name) else ()
    known = {path: row.file.name for path, row in shelf.rows([*wanted, *(f"{one}.md" for one in wanted)]).items()}
    if any(one not in known and f"{one}.md" not in known for one in wanted):
        known = dict(shelf.titles())  # some are titles, or are nowhere
    found = [(one, resolve_link(one, known.items())) for one in wanted]
    own = link_keys(name, topic.name)
    back = [
        {"file": file, "name": title or file}
        for file, title, names in shelf.links()
        if file != name and any(link_key(one) in own for one in names)
    ]
    return {
        "links": [
            {"as": one, "file": file, "name": known.get(file or "") or one} for one, file in found if file != name
        ],
        "linked_from": sorted(back, key=lambda one: one["file"]),
    }


def _missing(site: Site, memory: OpenedMemory, name: str, document: Document) -> Data:
    """Files and symbols that the memory names and its repository does not have. Looked up in a thread: a repository
    can be large."""
    from reverie.memory.recall.by_trust import missing_names_in

    text = document.text
    checkout = memory.places.checkout
    if not (named_files(text) or named_symbols(text)) or not memory.places.cwd.is_dir():
        return {"missing": [], "missing_known": True}
    known = Kept.of(site).missing
    key = (checkout, document.digest)
    found = known.get(key)
    if found is None or time.monotonic() - found[0] > _FRESH_S:

        def look() -> None:
            known[key] = time.monotonic(), missing_names_in(memory)(text)

        worker = threading.Thread(target=look, name="missing names", daemon=True)
        worker.start()
        worker.join(_WAIT_S)
        found = known.get(key)
    return {"missing": list(found[1]) if found else [], "missing_known": found is not None}


class SessionLinks:
    """Addresses of messages in the sessions that exist."""

    def __init__(self, site: Site) -> None:
        self._projects = site.places.projects
        self._known: dict[str, bool] = {}

    def link(self, session: str, message: str) -> str:
        """The address of a message; empty if the session is gone."""
        if session and session not in self._known:
            self._known[session] = self._exists(session)
        if not self._known.get(session):
            return ""
        return f"/sessions/{session}" + (f"?at={message}#message-{message}" if message else "")

    def _exists(self, session: str) -> bool:
        with suppress(ReverieError):
            name = check_session_id(session)  # a dream of its own has a file, but no conversation
            return any(describe(path) is not None for path in self._projects.glob(f"*/{name}.jsonl"))
        return False
