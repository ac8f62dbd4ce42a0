"""Labelled conversations for measuring extraction, and the score of a run by their labels.

A file has one case per line, as a JSON object. Labels are matched as substrings, without case, in the topic files that
were created or changed. The index does not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import field
from datetime import date
from pathlib import Path

from bench.scratch import read_json_lines
from reverie.errors import UserError
from reverie.lab.measurement import Result, Table, named, plain, ratio
from reverie.memory.topic_file import TopicFile
from reverie.quick import dataclass
from reverie.types import JsonObject

_COLUMNS = (
    "group",
    "cases",
    *map(ratio, ("precision", "recall", "f1", "dates", "negatives_clean")),
    "forbidden_stored",
)


@dataclass(frozen=True, slots=True)
class Expected:
    """A memory that should be stored. `|` inside a string separates alternatives."""

    type: str
    all_of: tuple[str, ...]
    any_of: tuple[str, ...]
    updates: str | None
    dates: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """One labelled conversation. `note` starts with kind/category/language; no model sees it."""

    id: str
    today: date
    note: str
    instructions: str
    existing: dict[str, str]
    messages: tuple[JsonObject, ...]
    expected: tuple[Expected, ...]
    forbidden: tuple[str, ...]
    max_files: int
    removed: tuple[str, ...]
    split: str = ""
    """The part of the file, such as `tune` or `held`."""

    @property
    def labels(self) -> tuple[str, str, str]:
        """Kind, category and language."""
        kind, category, language, *_ = [*self.note.partition(":")[0].split("/"), "", "", ""]
        return kind.strip(), category.strip(), language.strip()

    @property
    def is_negative(self) -> bool:
        return not self.expected and not self.removed


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The result of a case: files created or changed, files removed, and why writes were refused."""

    case: LabelledCase
    written: dict[str, str] = field(default_factory=dict[str, str])
    gone: tuple[str, ...] = ()
    index: str = ""
    refused: tuple[str, ...] = ()
    failed: str = ""
    seconds: float = 0.0
    """The time of the run, from the directive to the last write, with the disk."""
    cpu_seconds: float = 0.0
    """The processor time of this process in it."""


def read_cases(path: Path) -> list[LabelledCase]:
    """The cases of a file, one JSON object per line; `UserError` if there is none."""
    found = read_json_lines(path, _case, "a labelled conversation")
    if not found:
        raise UserError(f"There are no cases in {path}.")
    return found


def _case(raw: JsonObject) -> LabelledCase:
    return LabelledCase(
        id=str(raw["id"]),
        today=date.fromisoformat(raw["today"]),
        note=str(raw.get("note", "")),
        instructions=str(raw.get("instructions") or ""),
        existing={str(one["file"]): str(one["text"]) for one in raw.get("existing", [])},
        messages=tuple(raw["messages"]),
        expected=tuple(
            Expected(
                type=str(one["type"]),
                all_of=tuple(one.get("all_of", ())),
                any_of=tuple(one.get("any_of", ())),
                updates=one.get("updates"),
                dates=tuple(one.get("dates", ())),
                scope=str(one.get("scope", "")),
            )
            for one in raw.get("expected", [])
        ),
        forbidden=tuple(raw.get("forbidden", ())),
        max_files=int(raw.get("max_files", 0)),
        removed=tuple(raw.get("removed") or ()),
        split=str(raw.get("split") or ""),
    )


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one case."""

    outcome: CaseOutcome
    met: tuple[tuple[Expected, str], ...]
    """Expected memories, each with its file."""
    missing: tuple[Expected, ...]
    wrong: tuple[str, ...]
    """Files without an expected memory, and files that should not have been removed."""
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that should have been removed."""
    dates: int
    dates_found: int
    forbidden: tuple[str, ...]

    @property
    def wanted(self) -> int:
        return len(self.met) + len(self.missing) + len(self.removed) + len(self.kept)

    @property
    def hits(self) -> int:
        return len(self.met) + len(self.removed)

    @property
    def good_files(self) -> int:
        return len(self.outcome.written) + len(self.outcome.gone) - len(self.wrong)

    @property
    def is_clean(self) -> bool:
        return not self.outcome.written and not self.outcome.gone

    @property
    def is_right(self) -> bool:
        over = len(self.outcome.written) > self.outcome.case.max_files
        bad = self.missing or self.wrong or self.kept or self.forbidden or over or self.outcome.failed
        return not bad and self.dates == self.dates_found


def score(outcome: CaseOutcome) -> Score:
    """Scores the files of a case by its labels."""
    case = outcome.case
    fitting = {name: [one for one in case.expected if _fits(one, name, text)] for name, text in outcome.written.items()}
    met: list[tuple[Expected, str]] = []
    dates = found = 0
    for one in case.expected:
        files = [name for name, fits in fitting.items() if one in fits]
        if not files:
            continue
        best = max(files, key=lambda name: sum(day in outcome.written[name] for day in one.dates))
        met.append((one, best))
        dates += len(one.dates)
        found += sum(day in outcome.written[best] for day in one.dates)
    have = [one for one, _ in met]
    return Score(
        outcome,
        met=tuple(met),
        missing=tuple(one for one in case.expected if one not in have),
        wrong=(
            *(name for name, fits in fitting.items() if not fits),
            *(name for name in outcome.gone if name not in case.removed),
        ),
        removed=tuple(name for name in case.removed if name in outcome.gone),
        kept=tuple(name for name in case.removed if name not in outcome.gone),
        dates=dates,
        dates_found=found,
        forbidden=tuple(one for one in case.forbidden if any(_holds(text, one) for text in outcome.written.values())),
    )


def _fits(one: Expected, name: str, text: str) -> bool:
    kind = TopicFile.parse(text).type
    return (
        kind is not None
        and kind.value == one.type
        and (one.updates is None or name == one.updates)
        and all(_holds(text, term) for term in one.all_of)
        and (not one.any_of or any(_holds(text, term) for term in one.any_of))
    )


def _holds(text: str, term: str) -> bool:
    lower = text.lower()
    return any(part.lower() in lower for part in term.split("|") if part)


def figures(scores: Sequence[Score]) -> JsonObject:
    """Precision by files, recall by expected memories and removals, and the share of right dates."""
    files = sum(len(one.outcome.written) + len(one.outcome.gone) for one in scores)
    good = sum(one.good_files for one in scores)
    wanted, hits = sum(one.wanted for one in scores), sum(one.hits for one in scores)
    dates, found = sum(one.dates for one in scores), sum(one.dates_found for one in scores)
    negatives = [one for one in scores if one.outcome.case.is_negative]
    precision = good / files if files else 1.0
    recall = hits / wanted if wanted else 1.0
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "dates": found / dates if dates else 1.0,
        "forbidden_stored": sum(len(one.forbidden) for one in scores),
        "negatives_clean": sum(one.is_clean for one in negatives) / len(negatives) if negatives else 1.0,
        "cases": len(scores),
        "files": files,
        "wanted": wanted,
        "over_max_files": sum(len(one.outcome.written) > one.outcome.case.max_files for one in scores),
        "forbidden_in_index": sum(
            _holds(one.outcome.index, term) for one in scores for term in one.outcome.case.forbidden
        ),
        "failed": sum(bool(one.outcome.failed) for one in scores),
    }


def report(scores: Sequence[Score]) -> Result:
    """All figures, also by kind, category and language, and every miss with its details."""
    labels = [one.outcome.case.labels for one in scores]

    def group_by(label: int) -> JsonObject:
        names = sorted({each[label] for each in labels})
        return {
            name: figures([one for one, each in zip(scores, labels, strict=True) if each[label] == name])
            for name in names
        }

    groups = {name: group_by(label) for label, name in enumerate(("by_kind", "by_category", "by_language"))}
    misses = [_miss(one) for one in scores if not one.is_right]
    wall, cpu = (_spread([getattr(one.outcome, name) for one in scores]) for name in ("seconds", "cpu_seconds"))
    found = {**figures(scores), "ms_per_turn": wall, "cpu_ms_per_turn": cpu, **groups, "misses": misses}
    rows = named({"all": found, **groups["by_kind"], **groups["by_language"]}, "group")
    spread = (
        f"per turn: {cpu['p50']:.1f} ms of work (95%: {cpu['p95']:.1f}), {wall['p50']:.1f} ms with the disk "
        f"({wall['p95']:.1f})"
    )
    return Result(found, [Table(rows, _COLUMNS), spread, *(line for miss in misses for line in _miss_lines(miss))])


def _miss_lines(miss: JsonObject) -> Iterator[str]:
    yield from ("", f"{miss['id']}  {miss['note']}", *(f"  said: {text[:300]}" for text in miss["said"]))
    for key in ("missing", "wrong", "not_removed", "dates_missing", "forbidden", "refused"):
        yield from (f"  {key}: {one}" for one in miss[key])
    yield from [f"  failed: {miss['failed']}"] if miss["failed"] else []
    for name, text in miss["written"].items():
        yield from (f"  wrote {name}:", *(f"    | {line}" for line in text.strip().splitlines()))


def _spread(seconds: Sequence[float]) -> JsonObject:
    """Median and 95th percentile in ms. Cases that run at the same time share one process: use `--jobs 1`."""
    taken = sorted(1_000 * one for one in seconds)
    late = taken[min(len(taken) - 1, int(0.95 * len(taken)))]
    return {"p50": statistics.median(taken), "p95": late}


def _miss(one: Score) -> JsonObject:
    case, outcome = one.outcome.case, one.outcome
    return {
        "id": case.id,
        "note": case.note,
        "said": [str(message.get("text", "")) for message in case.messages if message["role"] == "user"],
        "missing": [plain(expected) for expected in one.missing],
        "wrong": list(one.wrong),
        "not_removed": list(one.kept),
        "dates_missing": [
            day for expected, name in one.met for day in expected.dates if day not in outcome.written[name]
        ],
        "forbidden": list(one.forbidden),
        "over_max_files": len(outcome.written) > case.max_files,
        "written": outcome.written,
        "removed": list(outcome.gone),
        "refused": list(outcome.refused),
        "failed": outcome.failed,
    }
