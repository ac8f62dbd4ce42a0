"""What a compaction came to, or would come to, and what taking one back did: for people, commands and the socket."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from reverie.layers.base import Commit
from reverie.layers.l4_compaction.survival import in_words
from reverie.storage.transcript.records import CompactBoundary, Survival, to_data
from reverie.types import JsonObject, Message


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction came to, or would come to. `text` is what stands for the part that left."""

    writer: str
    tokens_before: int
    tokens_after: int
    report: Survival
    notice: str
    text: str

    def to_json(self) -> JsonObject:
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "report"}
        return {**told, "survival": to_data(self.report)}


@dataclass(frozen=True, slots=True)
class Undone:
    """A compaction was taken back; `notice` says what that came to."""

    boundary: str
    tokens: int
    notice: str

    def to_json(self) -> JsonObject:
        return asdict(self)


def compacted_by(commit: Commit) -> Compacted:
    """Of the records of a compaction, what it came to."""
    boundary = next(a.what for a in commit.appends if isinstance(a.what, CompactBoundary))
    report = next(a.what for a in commit.appends if isinstance(a.what, Survival))
    summary = next(a.what for a in commit.appends if isinstance(a.what, Message))
    return Compacted(
        writer=boundary.writer,
        tokens_before=report.tokens_before,
        tokens_after=report.tokens_after,
        report=report,
        notice=commit.notice or in_words(report),
        text=summary.text,
    )
