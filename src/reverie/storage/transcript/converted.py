"""What the readers of other agents' session files share: names for records, compactions, and the lines of a file."""

from __future__ import annotations

import uuid
from typing import Final

from reverie.storage.transcript.file import parse_record
from reverie.storage.transcript.records import CompactBoundary
from reverie.types import JsonObject, Record

_NAMESPACE: Final = uuid.UUID("6f1f5f0e-63c1-4c58-9d0e-2f9a3f5b7c11")
_SUMMARY: Final = "Summary of the conversation before this point:\n\n"


def name_record(what: str) -> str:
    """Returns the uuid of a record that has none: the same text always gives the same uuid."""
    return str(uuid.uuid5(_NAMESPACE, what))


def compaction_records(head: JsonObject, summary: str, meta: JsonObject, kept: list[str]) -> tuple[Record, Record]:
    """Returns the boundary and the summary of another agent's compaction. `kept` are the messages that stay."""
    name = str(head["uuid"])
    said = name_record(f"{name}:summary")
    meta = {"trigger": "auto", **meta}
    if kept:
        meta["preservedSegment"] = {"headUuid": kept[0], "anchorUuid": said, "tailUuid": kept[-1]}
    boundary: JsonObject = {
        **head,
        "type": "system",
        "subtype": CompactBoundary.subtype,
        "parentUuid": None,
        "logicalParentUuid": head["parentUuid"],
        "compactMetadata": meta,
    }
    message: JsonObject = {
        **head,
        "type": "user",
        "uuid": said,
        "parentUuid": name,
        "isCompactSummary": True,
        "message": {"role": "user", "content": f"{_SUMMARY}{summary}"},
    }
    return Record(boundary), parse_record(message)
