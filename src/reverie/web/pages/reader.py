"""`/sessions/{session}`: a conversation, page by page, with its compactions, branches, agents and notes; and live."""

from __future__ import annotations

from dataclasses import fields, replace
from threading import current_thread
from typing import Any

from reverie.errors import UserError
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.transcript import records as r
from reverie.types import Block, ImageBlock
from reverie.web.paging import Pager
from reverie.web.sessions.items import Item, Transcript
from reverie.web.sessions.live import events, growing, status
from reverie.web.sessions.opened import Opened, holder
from reverie.web.sessions.parts import decode_image
from reverie.web.sessions.reading import COURTESY, Snapshot
from reverie.web.visit import Data, NotFound, Page, Raw, Stream, Visit

_SIZE = 40
_CHUNK = 100_000
"""Characters of a large result on one page."""
_MOST_FOUND = 2_000


def read(visit: Visit) -> Data:
    """The conversation."""
    with COURTESY:
        return _read(visit)


def _read(visit: Visit) -> Data:
    opened = Opened.of(visit)
    transcript, wanted = opened.transcript, visit.query.get("q", "").strip()[:500]
    is_own = not (opened.agent or opened.branch)
    is_live = is_own and growing(opened.info)
    items = transcript.items
    found: list[Item] | None = None
    if wanted:
        found = [item for item in items if _has(item, transcript, wanted.casefold())][:_MOST_FOUND]
    visit, at = _page_of(visit, opened, is_own and not wanted and holder(opened.info) is not None)
    pager, describer = Pager(visit, size=_SIZE), opened.describer()
    part = pager.of(found if found is not None else items)
    is_end = found is None and pager.start + len(part) >= len(items) and opened.reading() is None
    return {
        "title": opened.info.title or "Session",
        "tab": "session",
        "session": opened.head(),
        "agent": opened.agent,
        "branch": opened.branch,
        "q": wanted,
        "at": at,
        "items": [describer.describe(item) for item in part],
        "pages": pager.describe(len(found) if found is not None else len(items)),
        "reading": opened.reading(),
        "again": pager.here(),
        "unreadable": [{"line": bad.number, "why": bad.reason} for bad in opened.snapshot.bad[:50]],
        "outline": _outline(opened) if is_own else [],
        "agents": opened.agents() if is_own else [],
        "forks": opened.forks() if is_own else [],
        "pins": [{"id": id, "text": text} for id, text in opened.main.pins.items()],
        "live": status(opened) if is_live else None,
        "last": f"{len(items)}.{len(opened.snapshot.records)}" if is_live and is_end else "",
    }


def _page_of(visit: Visit, opened: Opened, is_open: bool) -> tuple[Visit, str]:
    """The visit with the start of the page that has `?at=`; a session that is open in a process begins at its end."""
    at, size = visit.query.get("at", ""), visit.number("size", _SIZE, least=1, most=500)
    items = opened.transcript.items
    kept = {key: value for key, value in visit.query.items() if key != "at"}
    if at:
        position = opened.transcript.at(at)
        if position is None:
            more = " The file is still being read: load the page again." if opened.reading() else ""
            raise NotFound(f"This conversation has no message {at[:80]!r}.{more}")
        start = position // size * size
        return replace(visit, query={**kept, "start": str(start)}), items[position].id
    if is_open and "start" not in visit.query and items:
        return replace(visit, query={**kept, "start": str((len(items) - 1) // size * size)}), ""
    return replace(visit, query=kept), ""


def _has(item: Item, transcript: Transcript, wanted: str) -> bool:
    for record in item.records:
        for block in record.message.content if record.message is not None else ():
            if wanted in str(block.wire()).casefold():
                return True
        for call in record.message.tool_uses if record.message is not None else ():
            result = transcript.results.get(call.id)
            if result is not None and wanted in result[0].text.casefold():
                return True
    return False


def _outline(opened: Opened) -> list[Data]:
    """The tree: the parts between compactions, with the branches, rewinds and agents in each."""
    transcript = opened.main
    started = {one["at"]: one for one in opened.agents() if one["at"]}
    parts = [_part("start", "Start", transcript.items[0].id if transcript.items else "", None)]
    number = 0
    for item in transcript.items:
        if item.kind == "compaction":
            number += 1
            boundary = item.payload
            assert isinstance(boundary, r.CompactBoundary)
            after = f" → {item.survival.tokens_after:,}" if item.survival is not None else ""
            size = f", {boundary.tokens_before:,}{after} tokens" if boundary.tokens_before else ""
            undone = ", undone" if item.undone else ""
            label = f"Compaction {number} ({boundary.trigger}{size}{undone})"
            parts.append(_part("compaction", label, item.id, item.at))
        elif item.kind == "branch":
            parts[-1]["children"].append(_part("branch", f"Branch of {len(item.records)} messages", item.id, item.at))
        elif isinstance(item.payload, r.Rewind | r.Undo):
            label = "Compaction undone" if isinstance(item.payload, r.Undo) else "Taken back"
            parts[-1]["children"].append(_part("rewind", label, item.id, item.at))
        elif item.kind == "message":
            parts[-1]["messages"] += 1
        if item.id in started:
            agent = started[item.id]
            made = {**_part("agent", agent["title"] or agent["id"], item.id, item.at), "address": agent["address"]}
            parts[-1]["children"].append({**made, "cost_usd": agent["cost_usd"]})
    return parts


def _part(kind: str, label: str, id: str, at: str | None) -> Data:
    return {"kind": kind, "label": label, "id": id, "at": at, "messages": 0, "children": [], "cost_usd": None}


def read_message(visit: Visit) -> Data:
    """One message, whole."""
    opened = Opened.of(visit)
    item = _item(opened, visit.path["message"])
    return {
        "title": "One message",
        "tab": "session",
        "session": opened.head(),
        "agent": opened.agent,
        "item": opened.describer(whole=True).describe(item),
    }


def _item(opened: Opened, id: str) -> Item:
    position = opened.transcript.at(id)
    if position is None:
        raise NotFound(f"This conversation has no message {id[:80]!r}.")
    return opened.transcript.items[position]


def read_result(visit: Visit) -> Data:
    """One result of a tool, whole: from the transcript, or from the file that layer 1 wrote."""
    opened, call = Opened.of(visit), visit.path["call"]
    found = opened.transcript.results.get(call)
    if found is None:
        raise NotFound(f"This conversation has no result of a call {call[:80]!r}.")
    describer = opened.describer()
    kept, text = describer.kept_file(call), found[0].text
    if kept is not None:
        try:
            text = read_regular(kept, LARGEST, follow=False).decode("utf-8", "replace")
        except OSError as error:
            raise UserError(f"The result on disk cannot be read: {error.strerror}.") from None
    pager = Pager(visit, size=_CHUNK)
    pager.size = _CHUNK
    position = opened.transcript.calls.get(call, -1)
    return {
        "title": "One result",
        "tab": "session",
        "session": opened.head(),
        "agent": opened.agent,
        "call": call,
        "message": opened.transcript.items[position].id if position >= 0 else "",
        "state": "cleared" if call in opened.transcript.cleared else "on disk" if kept is not None else "",
        "in_view": opened.transcript.replaced.get(call) or (found[0].text if kept is not None else None),
        "file": str(kept) if kept is not None else None,
        "is_error": bool(found[0].is_error),
        "text": text[pager.start : pager.start + pager.size],
        "pages": pager.describe(len(text)),
    }


def read_image(visit: Visit) -> tuple[bytes, str]:
    """A picture of a message or a result: PNG, JPEG, GIF or WebP by its bytes, never SVG."""
    opened = Opened.of(visit)
    name, _, number = visit.path["image"].rpartition(".")
    blocks: list[Block]
    if name.startswith("call."):
        found = opened.transcript.results.get(name.removeprefix("call."))
        content: Any = found[0].content if found is not None else ()
        blocks = list(content) if isinstance(content, tuple) else []  # pyright: ignore[reportUnknownArgumentType]
    else:
        records = _item(opened, name).records
        blocks = [block for one in records if one.message is not None for block in one.message.content]
    block = blocks[int(number[:9])] if number.isdecimal() and int(number[:9]) < len(blocks) else None
    raw, kind = decode_image(block) if isinstance(block, ImageBlock) else (b"", "")
    if not kind:
        raise NotFound("There is no picture here that a browser may show.")
    return raw, kind


def read_notes(visit: Visit) -> Data:
    """The notes of the session, and what they do not cover yet."""
    from reverie.cli.sessions.notes import NotesReport
    from reverie.cli.sessions.notes import read_notes as read_file
    from reverie.layers.l3_session_notes.trigger import NoteNumbers
    from reverie.storage.transcript.chain import conversation
    from reverie.storage.transcript.view import View

    opened = Opened.of(visit)
    settings, info = visit.site.settings, opened.info
    numbers = NoteNumbers(**{field.name: getattr(settings.notes, field.name) for field in fields(NoteNumbers)})
    path = info.folder / "session-memory" / "summary.md"
    template = visit.site.places.notes_config / "template.md"

    def measure(given: Snapshot) -> NotesReport:
        view = View()
        for number, record in enumerate(conversation(given.records)):
            view.apply(record)
            if number % 200 == 199 and current_thread() is not visiting:
                COURTESY.wait()
        return read_file(path, template, view, numbers)

    visiting = current_thread()
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    measured = opened.reader.derive_later(f"notes {changed}", opened.snapshot, measure)
    found = measured or read_file(path, template, View(), numbers)
    return {
        "title": "Notes",
        "tab": "notes",
        "session": opened.head(),
        "is_measured": measured is not None and opened.reading() is None,
        "notes": found.to_json(),
        "lines": found.about() if found.text is not None else [],
        "first_tokens": numbers.first_tokens,
    }


_AGENT = {"agent": "the conversation of this agent"}

PAGES = (
    Page(
        "/sessions/{session}",
        "session",
        "Session",
        read,
        section="sessions",
        about="A conversation: messages with calls and results, compactions, branches, and the tree of agents.",
        query={
            "at": "the page that has this message",
            "q": "only messages with these words",
            **_AGENT,
            "branch": "a branch that was left by a rewind",
            "start": "the first one, from 0",
            "size": "how many",
        },
    ),
    Page(
        "/sessions/{session}/messages/{message}",
        "session_message",
        "Message",
        read_message,
        section="sessions",
        about="One message, whole.",
        query=_AGENT,
    ),
    Page(
        "/sessions/{session}/results/{call:path}",
        "session_result",
        "Result",
        read_result,
        section="sessions",
        about="One result of a tool, whole, even if layer 1 put it on disk or layer 2 cleared it.",
        query={**_AGENT, "start": "the first character, from 0"},
    ),
    Page(
        "/sessions/{session}/notes",
        "session_notes",
        "Notes",
        read_notes,
        section="sessions",
        about="The notes of a session, and what they do not cover.",
    ),
)
RAWS = (
    Raw(
        "/sessions/{session}/images/{image:path}",
        "session_image",
        read_image,
        about="A picture of a conversation (PNG, JPEG, GIF or WebP).",
    ),
)
STREAMS = (
    Stream(
        "/sessions/{session}/live",
        "session_live",
        events,
        about="What is new in a live session, as HTML; it ends with the session. `?last=ITEMS.RECORDS`: what is known.",
    ),
)
