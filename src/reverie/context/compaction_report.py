"""The result of a compaction, of its preview and of its undo, for the user, commands and the socket."""

from __future__ import annotations

from dataclasses import asdict, fields

from reverie.layers.base import StageCommit
from reverie.layers.l4_compaction.survival import describe_survival
from reverie.quick import dataclass
from reverie.storage.transcript.records import CompactBoundary, Survival, to_data
from reverie.types import JsonObject, Message


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What a compaction does or would do. `text` is the summary that replaces the old part."""

    writer: str
    tokens_before: int
    tokens_after: int
    report: Survival
    notice: str
    text: str

    def to_json(self) -> JsonObject:
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "report"}
        return {**given, "survival": to_data(self.report)}


@dataclass(frozen=True, slots=True)
class UndoReport:
    """The result of an undo. `notice` says it in a sentence."""

    boundary: str
    tokens: int
    notice: str

    def to_json(self) -> JsonObject:
        return asdict(self)


def report_of(commit: StageCommit) -> CompactionReport:
    """Reads the report from the records of a compaction."""
    boundary = next(a.what for a in commit.appends if isinstance(a.what, CompactBoundary))
    report = next(a.what for a in commit.appends if isinstance(a.what, Survival))
    summary = next(a.what for a in commit.appends if isinstance(a.what, Message))
    return CompactionReport(
        writer=boundary.writer,
        tokens_before=report.tokens_before,
        tokens_after=report.tokens_after,
        report=report,
        notice=commit.notice or describe_survival(report),
        text=summary.text,
    )
