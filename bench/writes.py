"""Labelled writes: how the write gate ends each of them. A case has a conversation with origins, the memories before,
one write, and the right end. Right memories must be stored, foreign lines must wait and never be confirmed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

import click

from bench.scratch import file_argument, read_json_lines
from reverie.errors import ReverieError, UserError
from reverie.lab.measurement import Result, Table, measurement, named, track
from reverie.memory.changes import Change, Evidence, Mark, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import MemoryInbox
from reverie.memory.gate.lines import body_parts
from reverie.memory.gate.marks import Marks
from reverie.memory.gate.write_gate import WriteGate
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile
from reverie.quick import dataclass
from reverie.text.folding import fold_text, visible
from reverie.text.sentences import strip_marks
from reverie.types import Origin

KNOWN_CLASSES = ("mixture",)
"""Classes of which only this is asked: nothing of them is confirmed."""


@dataclass(frozen=True, slots=True)
class LineEnd:
    """What became of one labelled line."""

    text: str
    source: str
    is_stored: bool
    trust: Trust | None


@dataclass(frozen=True, slots=True)
class CaseEnd:
    """What became of one case."""

    id: str
    kind: str
    cls: str
    wanted: str
    end: str
    """`stored`, `held`, `question`, `removed`, `kept` or `refused`."""
    lines: tuple[LineEnd, ...]
    note: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the memory as a whole ended well."""
        if self.kind == "right":
            return self.end == self.wanted
        if self.wanted == "stored":
            return self.end == "stored" and not self.foreign_stored
        return not self.foreign_stored and self.end != "removed"

    @property
    def foreign_stored(self) -> list[LineEnd]:
        return [one for one in self.lines if one.source == "foreign" and one.is_stored]

    @property
    def foreign_confirmed(self) -> list[LineEnd]:
        return [one for one in self.foreign_stored if one.trust is Trust.CONFIRMED]


@dataclass
class ClassFigures:
    """The figures of one class of cases."""

    cases: int = 0
    right: int = 0
    refused: int = 0
    held_whole: int = 0
    lines: int = 0
    lines_held: int = 0
    confirmed: int = 0
    foreign_confirmed: int = 0
    wrong: list[str] = field(default_factory=list[str])


@measurement("reverie lab writes evals/writes.jsonl", "reverie lab writes evals/writes.jsonl --half dev --json")
@file_argument
@click.option("--half", metavar="NAME", help="Only cases whose field `half` is NAME.")
def writes(file: Path, half: str | None) -> Result:
    """Measure how the write gate ends labelled writes.

    FILE has one case per line: a conversation with the origin of each text, the memories before, one write, and the
    right end. Each write passes the real gate in a temporary directory. The result: how many right memories were
    refused or held, and how much foreign text was stored or confirmed. Every wrong end is named.
    """
    cases = read_json_lines(file, dict[str, Any], "a case")
    cases = [case for case in cases if half is None or case.get("half") == half]
    if not cases:
        raise UserError(f"No case in {file} has the `half` {half!r}." if half else f"{file} has no cases.")
    figures, _ = measure(track(cases, len(cases), "cases"))
    return report(figures)


def run_case(case: Mapping[str, Any]) -> CaseEnd:
    """Carries out one write in a scratch directory."""
    with tempfile.TemporaryDirectory(prefix="reverie-writes-") as folder:
        return _run(case, Path(folder) / "memory")


def _run(case: Mapping[str, Any], root: Path) -> CaseEnd:
    root.mkdir()
    gate = WriteGate(root, inbox=MemoryInbox(root))
    directory = MemoryDirectory.open(root, gate=gate)
    for name, held in cast("dict[str, Any]", case["memories"]).items():
        text = TopicFile.parse(str(held["text"])).with_changes(fields={"trust": held.get("trust")}).text
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        _set_marks(root, text, Trust.read(str(held.get("trust") or "")))
    write = cast("dict[str, Any]", case["write"])
    name, text = str(write["file"]), cast("str | None", write["text"])
    before = directory.read(name).text if directory.exists(name) else ""
    info = WriteInfo(Writer(str(case["writer"])), "a case", session="case", evidence=_evidence(case))
    try:
        outcome = directory.transaction([Change(name, text)], info)
    except ReverieError as error:
        return CaseEnd(case["id"], case["kind"], case["class"], case["expected"]["end"], "refused", (), str(error))
    final_name = outcome.name_of(name)
    final = directory.read(final_name).text if directory.exists(final_name) else ""
    kind = next((one.why for one in MemoryInbox(root).list()), "")
    end = _end_of(before, text, final, kind)
    if asked := case["expected"].get("gone"):
        now = fold_text(final)
        end = "kept" if any(fold_text(str(one)) in now for one in asked) else "removed"
    marks = Marks(root)
    before_lines = fold_text(" ".join(str(held["text"]) for held in case["memories"].values()))
    lines = tuple(
        _line(str(one["text"]), _source_of(one, case), TopicFile.parse(final).body, before_lines, marks)
        for one in case["expected"].get("lines") or ()
    )
    return CaseEnd(case["id"], case["kind"], case["class"], case["expected"]["end"], end, lines, outcome.note)


def _source_of(line: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    """Who said a line. Text in characters that nobody sees is not stored; without it, the words may be the user's."""
    shown = fold_text(visible(str(line["text"]))).rstrip(".")
    typed = fold_text(" ".join(str(one["text"]) for one in case["messages"] if one["origin"] in ("typed", "entered")))
    is_clean = shown != fold_text(str(line["text"])).rstrip(".") and shown in typed
    return "user" if is_clean else str(line["from"])


def _line(text: str, source: str, body: str, before: str, marks: Marks) -> LineEnd:
    parts = [bare for _, bare in body_parts(visible(text))] or [strip_marks(text)]
    stored = [bare for _, bare in body_parts(body)]
    now = fold_text(strip_marks(" ".join(stored)))
    found = [one for one in parts if fold_text(one) in now]
    if source == "foreign":  # what stood before stays what it was; text beside a fence or in a link counts too
        raw = fold_text(body)
        found += [one for one in [fold_text(text)] if one in raw and not found]
        found = [one for one in found if fold_text(one) not in before]
    own = [one for one in stored if any(fold_text(part) in fold_text(one) for part in found)]
    trusts = [mark.trust for one in own if (mark := marks.of(one)) is not None]
    trust = min(trusts, key=lambda one: one is Trust.CONFIRMED) if trusts else None
    is_stored = len(found) == len(parts) if source != "foreign" else bool(found)
    return LineEnd(text, source, is_stored, trust)


def _end_of(before: str, text: str | None, final: str, kind: str) -> str:
    old = [fold_text(bare) for _, bare in body_parts(TopicFile.parse(before).body)]
    new = {fold_text(bare) for _, bare in body_parts(TopicFile.parse(visible(text or "")).body)}
    now = {fold_text(bare) for _, bare in body_parts(TopicFile.parse(final).body)}
    removed = [one for one in old if one not in new]
    if text is None or (removed and not new - set(old)):
        gone = [one for one in removed if one not in now]
        return "removed" if len(gone) == len(removed) else "kept"
    if kind in ("removal", "contradiction"):
        return "question"
    return "stored" if now - set(old) or (now and now == new) else "held"


def _set_marks(root: Path, text: str, trust: Trust | None) -> None:
    path = root / ".trust" / "marks.jsonl"
    path.unlink(missing_ok=True) if trust is None else None
    if trust is not None:
        topic = TopicFile.parse(text)
        texts = [bare for _, bare in body_parts(topic.body)] + [topic.description]
        Marks(root).add({one: Mark(trust, "typed", quote=one) for one in texts if one})


def _evidence(case: Mapping[str, Any]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            Origin.named(str(one["origin"])), str(one["text"]), f"m{number}", str(one["at"]), not one.get("old", False)
        )
        for number, one in enumerate(cast("list[dict[str, Any]]", case["messages"]))
    )


def measure(cases: Iterable[Mapping[str, Any]]) -> tuple[dict[str, ClassFigures], list[CaseEnd]]:
    """Runs the cases; returns figures per class, and every end."""
    figures: dict[str, ClassFigures] = {}
    ends: list[CaseEnd] = []
    for case in cases:
        end = run_case(case)
        ends.append(end)
        one = figures.setdefault(f"{end.kind}/{end.cls}", ClassFigures())
        one.cases += 1
        one.right += end.is_right
        one.refused += end.end == "refused"
        own = [line for line in end.lines if line.source != "foreign" or end.kind == "right"]
        one.held_whole += end.kind == "right" and end.end != end.wanted
        one.lines += len(own)
        one.lines_held += sum(not line.is_stored for line in own)
        one.confirmed += sum(line.trust is Trust.CONFIRMED for line in own)
        one.foreign_confirmed += len(end.foreign_confirmed) if end.kind == "foreign" else 0
        if not end.is_right:
            one.wrong.append(end.id)
    return figures, ends


def report(figures: Mapping[str, ClassFigures]) -> Result:
    """The figures per class, and the ones that must hold."""
    right = [one for key, one in figures.items() if key.startswith("right/")]
    cross = figures.get("right/cross-language", ClassFigures())
    foreign = {key: one for key, one in figures.items() if key.startswith("foreign/")}
    judged = [one for key, one in foreign.items() if key.removeprefix("foreign/") not in KNOWN_CLASSES]
    lines = sum(one.lines for one in right)
    cases = sum(one.cases for one in judged)
    found = {
        "right": {
            "cases": sum(one.cases for one in right),
            "refused": sum(one.refused for one in right),
            "held_whole": sum(one.held_whole for one in right) - cross.held_whole,
            "held_whole_cross_language": cross.held_whole,
            "lines": lines,
            "lines_held_share": sum(one.lines_held for one in right) / lines if lines else 0.0,
            "confirmed_lines": sum(one.confirmed for one in right),
        },
        "foreign": {
            "cases": sum(one.cases for one in foreign.values()),
            "confirmed": sum(one.foreign_confirmed for one in foreign.values()),
            "held_share_without_mixtures": sum(one.right for one in judged) / cases if cases else 0.0,
        },
        "classes": dict(sorted(figures.items())),
    }
    own, others = found["right"], found["foreign"]
    columns = ("class", "cases", "right", "refused", "held_whole", "lines", "lines_held", "foreign_confirmed", "wrong")
    words = (
        f"right memories: {own['refused']} refused, {own['held_whole']} held whole (between languages "
        f"{cross.held_whole}), {own['lines_held_share']:.1%} of lines held",
        f"foreign text: {others['confirmed']} lines confirmed, {others['held_share_without_mixtures']:.1%} of cases "
        "held or asked (mixtures apart)",
    )
    return Result(found, (Table(named(found["classes"], "class"), columns), *words))
