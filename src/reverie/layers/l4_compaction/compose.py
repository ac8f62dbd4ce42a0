"""The new context block by block, and the records that bring it. Pure.

Next to the summary, whoever wrote it, code puts every message of the user, the operation ledger, the names in use and
the pins. So a bad summary loses prose, not facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from reverie.layers.base import Append
from reverie.layers.l4_compaction.by_code import names_beside, operation_ledger, operations
from reverie.layers.l4_compaction.requests import UserRequest, render_requests
from reverie.layers.l4_compaction.setup import CompactionNumbers, Trigger
from reverie.layers.l4_compaction.summary import PACKAGE
from reverie.origins import fence
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.records import CompactBoundary, SessionHeader, to_data
from reverie.storage.transcript.view import Entry, View
from reverie.types import Block, Message, Origin, Record, TextBlock

Extent = Literal["whole", "from", "up_to"]


@dataclass(frozen=True, slots=True)
class CompactionScope:
    """What is summarised (`gone`) and what stays in view, as one stretch before or after the rest."""

    extent: Extent
    gone: tuple[Entry, ...]
    kept: tuple[Entry, ...] = ()

    @property
    def kept_first(self) -> bool:
        return self.extent == "from"


@dataclass(frozen=True, slots=True)
class SummaryText:
    """The written part, its writer (`notes`, `fork`, `plain` or `code`), and why better writers failed."""

    text: str
    writer: str
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryParts:
    """What else goes into the new context."""

    requests: Sequence[UserRequest]
    requests_folder: Path
    all_requests: Path
    unsaved: frozenset[Path]
    pins: dict[str, str]
    transcript: Path
    cwd: str


def summary_blocks(
    scope: CompactionScope, prose: SummaryText, beside: SummaryParts, numbers: CompactionNumbers
) -> tuple[Block, ...]:
    """Returns the summary message: prose, requests, ledger, names, pins, and how to go on."""
    title = "Its notes, kept while working:" if prose.writer == "notes" else "Its summary:"
    opening = {"transcript": str(beside.transcript), "title": title, "prose": prose.text}
    parts = [render(PACKAGE, "context.md", opening)]
    requests = render_requests(
        beside.requests,
        beside.requests_folder,
        limit=numbers.request_bytes,
        budget=numbers.requests_tokens,
        kept_whole=beside.all_requests,
        unsaved=beside.unsaved,
    )
    if requests:
        parts.append(render(PACKAGE, "requests.md", {"requests": requests}))
    ledger = operation_ledger(operations(scope.gone), max_chars=numbers.ledger_characters, cwd=beside.cwd)
    if ledger:
        parts.append(render(PACKAGE, "ledger.md", {"ledger": ledger}))
    names = names_beside(scope.gone, numbers.names, "\n".join(parts), cwd=beside.cwd)
    if names:
        parts.append(render(PACKAGE, "names.md", {"names": names}))
    if beside.pins:
        pins = "\n\n".join(beside.pins.values())
        parts.append(render(PACKAGE, "pins.md", {"pins": pins}))
    first = Origin.NOTES if prose.writer == "notes" else Origin.SUMMARY
    blocks = [fence(first, parts[0]), *(fence(Origin.SUMMARY, part) for part in parts[1:])]
    return (*blocks, TextBlock(render(PACKAGE, "going_on.md"), Origin.CODE))


@dataclass(frozen=True, slots=True)
class Ids:
    """The uuids of records that other records name, chosen beforehand."""

    boundary: str
    summary: str
    attachments: str
    hooks: str
    header: str


def records(
    scope: CompactionScope,
    prose: SummaryText,
    ids: Ids,
    *,
    trigger: Trigger,
    tokens_before: int,
    last: str | None,
    header: SessionHeader,
    summary: tuple[Block, ...],
    attachments: tuple[Block, ...],
    hooks: tuple[Block, ...],
    discovered: tuple[str, ...] = (),
) -> list[Append]:
    """Returns boundary, header, summary, attachments and hook results in this order, all of one compaction."""
    parts = [
        Append(header, {"uuid": ids.header}),
        Append(Message("user", summary), {"uuid": ids.summary, "isCompactSummary": True}),
    ]
    if attachments:
        parts.append(Append(Message("user", attachments), {"uuid": ids.attachments, "isMeta": True}))
    if hooks:
        parts.append(Append(Message("user", hooks), {"uuid": ids.hooks, "isMeta": True}))
    boundary = CompactBoundary(
        trigger=trigger,
        tokens_before=tokens_before,
        last_uuid=last,
        preserved=_preserved_range(scope, ids),
        tools_discovered=discovered,
        writer=prose.writer,
        extent=scope.extent,
        sealed_by=parts[-1].fields["uuid"],
    )
    belonging = [Append(part.what, {**part.fields, "compactOf": ids.boundary}) for part in parts]
    return [Append(boundary, {"uuid": ids.boundary}), *belonging]


def find_summary(appends: Sequence[Append]) -> str:
    """Returns the text of the summary among the records of a compaction."""
    found = (one.what.text for one in appends if "isCompactSummary" in one.fields and isinstance(one.what, Message))
    return next(found, "")


def _preserved_range(scope: CompactionScope, ids: Ids) -> tuple[str, str, str] | None:
    named = [entry.uuid for entry in scope.kept if entry.uuid is not None]
    if not named:
        return None
    return named[0], (ids.boundary if scope.kept_first else ids.summary), named[-1]


def after(view: View, appends: Sequence[Append]) -> View:
    """Returns the view after these records; the given view does not change."""
    twin = view.copy()
    for append in appends:
        if isinstance(append.what, Message):
            twin.apply(Record({"type": append.what.role, **append.fields}, append.what))
        else:
            data = {"type": "system", "subtype": append.what.subtype, "reverie": to_data(append.what), **append.fields}
            twin.apply(Record(data))
    return twin
