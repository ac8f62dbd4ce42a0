"""`/sessions/{session}/window`: what filled the window, request by request, and every block of one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reverie.web.paging import Pager
from reverie.web.visit import Data, NotFound, Page, Visit

if TYPE_CHECKING:
    from reverie.context.window_life import LifeBlock, WindowAt
    from reverie.models.window import Thresholds
    from reverie.storage.transcript.sessions import SessionInfo
    from reverie.web.readings import SessionReading


def read(visit: Visit) -> Data:
    from reverie.web.readings import Readings

    info = visit.site.session(visit.path["session"])
    reading = Readings.of(visit.site).session(info.path)
    about: Data = {"session": describe(info), "title": f"Window of {info.title or info.id[:8]}"}
    if isinstance(reading, dict):
        return {**about, "reading": reading}
    return {**about, "reading": None, **_window(visit, reading)}


def describe(info: SessionInfo) -> Data:
    """The session that several pages name: id, title, project, folder."""
    return {"id": info.id, "title": info.title, "project": info.path.parent.name, "folder": info.cwd}


def _window(visit: Visit, reading: SessionReading) -> Data:
    from reverie.context.window_fill import SOURCES
    from reverie.web import window_map

    life, now = reading.life, reading.now
    requests = [*life.requests, now] if now.used or not life.requests else [*life.requests]
    chosen = requests[visit.number("request", len(requests), least=1, most=len(requests)) - 1]
    limits = _limits(visit, reading, chosen)
    blocks = life.blocks(chosen)
    pager = Pager(visit, size=50)
    gone = [window_map.gone_data(one) for one in blocks if one.gone is not None]
    shown = reading.once("sources", lambda: {share.source for one in requests for share in one.shares})
    compactions = [one for one in life.events if one.kind == "compaction" and one.number <= chosen.number]
    return {
        "requests": len(life.requests),
        "sources": {source: name for source, name in SOURCES.items() if source in shown},
        "limits": {
            "window": limits.window,
            "prompt": limits.effective,
            "compaction": limits.autocompact,
        },
        "columns": reading.once("columns", lambda: window_map.columns(requests)),
        "events": reading.once("events", lambda: _events(reading, len(requests))),
        "fullest": reading.once("fullest", lambda: _fullest(life.requests)),
        "left_out": reading.once("left out", lambda: _left_out(reading)),
        "selected": {
            "number": chosen.number,
            "is_next": not chosen.is_sent,
            "at": chosen.at,
            "model": chosen.model,
            "tokens": chosen.used,
            "over": chosen.over,
            "percent_left": limits.percent_left(chosen.used),
            "previous": chosen.number - 1 if chosen.number > 1 else None,
            "next": chosen.number + 1 if chosen.number < len(requests) else None,
            "sources": window_map.shares_data(chosen),
            "map": _not_recorded(chosen)
            + [{"number": one.number, "source": one.source, "tokens": one.tokens} for one in blocks],
            "blocks": [window_map.block_line(one) for one in pager.of(blocks)],
            "pages": pager.describe(len(blocks)),
            "gone": gone,
            "compactions": [{"request": one.number, "tokens": one.tokens, "what": one.what} for one in compactions],
        },
        "block": _block(visit, reading, blocks),
    }


def _fullest(requests: Sequence[WindowAt]) -> Data | None:
    """The request with the largest prompt: what filled the window."""
    from reverie.context.window_fill import SOURCES

    found = max(requests, key=lambda one: one.used, default=None)
    if found is None or not found.used:
        return None
    tokens = Counter[str]()
    for share in found.shares:
        tokens[share.source] += share.tokens
    return {
        "request": found.number,
        "tokens": found.used,
        "most": [
            {"name": SOURCES.get(s, s), "share": count / found.used} for s, count in tokens.most_common(2) if count
        ],
    }


def _not_recorded(chosen: WindowAt) -> list[Data]:
    from reverie.context.window_fill import NOT_RECORDED

    tokens = sum(share.tokens for share in chosen.shares if share.source == NOT_RECORDED)
    return [{"number": 0, "source": NOT_RECORDED, "tokens": tokens}] if tokens else []


def _limits(visit: Visit, reading: SessionReading, chosen: WindowAt) -> Thresholds:
    from reverie.models.window import limits_of
    from reverie.models.wire import model_id
    from reverie.web.readings import Readings

    folder = visit.site.project(reading.path.parent.name).folder
    settings = visit.site.settings if folder is None else visit.site.settings_in(folder)
    answered = chosen.model or next((one.model for one in reversed(reading.life.requests) if one.model), "")
    name = chosen.header.model if chosen.header is not None else answered
    return limits_of(name, Readings.of(visit.site).catalogue.facts(model_id(name)), settings)


def _events(reading: SessionReading, last: int) -> list[Data]:
    """What changed the window, and breaks of the cache, in order."""
    from reverie.web import window_map

    numbers = {one.uuid: one.number for one in reading.life.requests}
    found = [window_map.event_data(one, last) for one in reading.life.events]
    for row in reading.costs.rows:
        number = numbers.get(row.uuid)
        for broken in row.breaks if number is not None else ():
            entry = reading.costs.entry(row)
            found.append(
                {
                    "kind": "break",
                    "request": number,
                    "at": entry.at.isoformat() if entry.at is not None else None,
                    "what": f"{broken.cause}: {broken.detail}",
                    "tokens": broken.lost_tokens,
                    "announced": broken.announcement is not None,
                }
            )
    return sorted(found, key=lambda one: one["request"])


def _left_out(reading: SessionReading) -> int:
    """Requests of the conversation in branches that were left, e.g. by a rewind."""
    known = {one.uuid for one in reading.life.requests}
    return sum(reading.costs.entry(row).purpose == "main" and row.uuid not in known for row in reading.costs.rows)


def _block(visit: Visit, reading: SessionReading, blocks: list[LifeBlock]) -> Data | None:
    from reverie.web import window_map

    number = visit.number("block", 0)
    if not number:
        return None
    if number > len(blocks):
        raise NotFound(f"This request has no block {number}; it has {len(blocks)}.")
    return window_map.block_detail(blocks[number - 1], reading.path, visit.query.get("whole", ""))


PAGES = (
    Page(
        "/sessions/{session}/window",
        "window",
        "Window",
        read,
        section="sessions",
        about="What filled the window of a session: tokens by source for every request, and the blocks of one request. "
        "While a long session is still being read, only `reading` (`done` of `of` bytes).",
        query={
            "request": "which request, from 1; otherwise what the next request would send",
            "block": "details of one block of that request",
            "whole": "`text`, `before` or `copy`: this text of the block in full",
            "start": "first block of the list, from 0",
            "size": "blocks per page",
        },
    ),
)
