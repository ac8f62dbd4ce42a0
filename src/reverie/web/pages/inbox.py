"""What waits for a decision of the user: items of the inbox, and statements that are only inferred."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from reverie.cli.memory.decisions import WHY, decide_item
from reverie.errors import UserError
from reverie.memory.age import age_words
from reverie.memory.gate.review import describe_evidence, list_statements
from reverie.memory.taxonomy import Trust
from reverie.parsing import Unparsable, load_json
from reverie.storage.history.versions import Version
from reverie.types import Origin
from reverie.web.memories.one import SessionLinks
from reverie.web.memories.shelf import refresh_all, shelf_of
from reverie.web.memories.stores import Store, chosen_stores, list_stores, open_store, open_to_change
from reverie.web.pages.memory import address
from reverie.web.pages.memory_actions import noted, undo_of
from reverie.web.paging import Pager
from reverie.web.visit import Action, Data, Done, Page, Undo, Visit

if TYPE_CHECKING:
    from reverie.memory.gate.inbox import Item
    from reverie.memory.opening import OpenedMemory

_PER_PAGE: Final = 20


def read(visit: Visit) -> Data:
    """Items of the inbox and inferred statements of all projects, or of one."""
    stores = chosen_stores(visit)
    links = SessionLinks(visit.site)
    items = [
        _item_data(store, memory, item, links)
        for store in stores
        for memory in [open_store(visit.site, store)]
        for item in memory.inbox.list()
    ]
    items.sort(key=lambda one: one["time"])
    first = Pager(visit, size=_PER_PAGE)
    statements, total, is_complete = _inferred(visit, stores, first, links)
    return {
        "project": visit.query.get("project", ""),
        "projects": [store.describe() for store in list_stores(visit.site)],
        "items": items,
        "statements": statements,
        "pages": first.describe(total),
        "is_complete": is_complete,
    }


def _item_data(store: Store, memory: OpenedMemory, item: Item, links: SessionLinks) -> Data:
    why = item.reason if item.why == "evidence" and item.reason else WHY.get(item.why, item.why)
    marks = memory.gate.marks.of_each(item.removes)
    return {
        **item.to_json(),
        "project": store.name,
        "project_label": store.label,
        "can_change": store.is_changeable and memory.switch.on,
        "says_why": why,
        "other_lines": item.other_lines(),
        "now": [
            {"text": text, "evidence": describe_evidence(mark) if mark else ""}
            for text, mark in zip(item.removes, marks, strict=True)
        ],
        "sources": [
            {
                "origin": one.origin,
                "is_users": Origin.named(one.origin).is_users,
                "excerpt": one.excerpt,
                "link": links.link(item.session, one.message),
            }
            for one in item.sources
        ],
        "link": address(store, item.file),
        "exists": memory.directory.exists(item.file),
    }


def _inferred(visit: Visit, stores: list[Store], pager: Pager, links: SessionLinks) -> tuple[list[Data], int, bool]:
    """One part of the inferred statements. Only the files of this part are read."""
    shelves = [shelf_of(visit.site, store) for store in stores]
    is_complete = refresh_all(shelves)
    at, end, total = 0, pager.start + pager.size, 0
    found: list[Data] = []
    for shelf in shelves:
        store, memory = shelf.store, None
        for head in shelf.heads(end):
            if not head.inferred:
                continue
            total += head.inferred
            if at < end and at + head.inferred > pager.start:
                memory = memory or open_store(visit.site, store)
                found += _statements(store, memory, head.path, links)[max(0, pager.start - at) : end - at]
            at += head.inferred
    return found, total, is_complete


def _statements(store: Store, memory: OpenedMemory, file: str, links: SessionLinks) -> list[Data]:
    import time

    try:
        document = memory.directory.read(file)
    except UserError:
        return []  # removed meanwhile
    said = list_statements(file, document.text, memory.gate.marks, document.modified)
    return [
        {
            **one.to_json(),
            "project": store.name,
            "project_label": store.label,
            "can_change": store.is_changeable and memory.switch.on,
            "name": document.topic.name or file,
            "age": age_words(one.since, time.time()),
            "address": address(store, file),
            "link": links.link(one.mark.session, one.mark.message) if one.mark else "",
        }
        for one in said
        if one.trust is Trust.INFERRED
    ]


def _decide(verb: str, accepts: bool | None, about: str) -> Action:
    def act(visit: Visit) -> Done:
        store, memory = open_to_change(visit.site, visit.path["project"], "nothing is decided")
        item = memory.inbox.show(visit.form.get("id", ""))
        if accepts is None and not item.other:
            raise UserError(f"{item.id} is not about two versions; accept it, or reject it.")
        decided = decide_item(memory, item, accepts=accepts)
        noted(visit, store)
        form = {"item": json.dumps(item.to_json()), "version": decided.version.id if decided.version else ""}
        undo = Undo(f"{store.address}/inbox/back", form)
        return Done(
            decided.said,
            f"/inbox{store.chosen if visit.form.get('project') else ''}",
            undo,
            decided.result,
        )

    return Action(f"/memory/{{project}}/inbox/{verb}", f"inbox_{verb}", act, about, {"id": "the id of the item"})


def _back(visit: Visit) -> Done:
    from reverie.memory.changes import WriteInfo, Writer
    from reverie.memory.gate.inbox import parse_item

    store, memory = open_to_change(visit.site, visit.path["project"], "nothing is undone")
    try:
        raw: Any = load_json(visit.form.get("item", ""))
    except Unparsable:
        raw = None
    item = parse_item(raw) if isinstance(raw, dict) else None  # pyright: ignore[reportUnknownArgumentType]
    if item is None:
        raise UserError("The form has no item of the inbox.")
    made: Version | None = None
    if version := visit.form.get("version"):
        made = memory.directory.undo(version, WriteInfo(Writer.USER, "Undone in the web view."))
    memory.inbox.add(item)
    noted(visit, store)
    return Done(f"{item.id} waits in the inbox again.", "/inbox", undo_of(store, made))


PAGES = (
    Page(
        "/inbox",
        "inbox",
        "Inbox",
        read,
        "memory",
        "What waits for a decision: items of the inbox, and inferred statements.",
        {"project": "only the memory of this project", "start": "the first inferred statement, from 0"},
    ),
)
ACTIONS = (
    _decide("accept", True, "Saves an item of the inbox as confirmed; of two versions, that of this machine."),
    _decide("reject", False, "Drops an item of the inbox; of two versions, the other one stays."),
    _decide("keep", None, "Keeps both versions of a memory."),
    Action(
        "/memory/{project}/inbox/back",
        "inbox_back",
        _back,
        "Puts a decided item back into the inbox, and undoes the version that accepting it made.",
        {"item": "the item as JSON", "version": "the version to undo, if there is one"},
    ),
)
