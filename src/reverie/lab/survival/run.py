"""What survives a compaction: how much of what a recorded session used afterwards is still in the new context.

At each compaction, real or simulated, several possible contexts are searched for the files, identifiers, requests and
failed commands that were used again. docs/layers/work-by-code.md has the definitions. No model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from reverie.lab.measurement import Column, Result, Table, at_option, measurement, named, paths_argument, share, whole
from reverie.lab.recordings import mean_or_none
from reverie.lab.survival.measures import HeldItems, find_held, find_used_again, touched_files
from reverie.lab.survival.moments import SIMULATED_AT, CompactionMoment, load_moments
from reverie.layers.l3_session_notes.trigger import NoteNumbers
from reverie.layers.l3_session_notes.writer import default_template
from reverie.layers.l4_compaction.by_code import Limits, operations, write_notes, write_summary
from reverie.layers.l4_compaction.compose import CompactionScope, SummaryParts, SummaryText, summary_blocks
from reverie.layers.l4_compaction.requests import requests_in
from reverie.layers.l4_compaction.setup import CompactionNumbers
from reverie.models.tokens import PROSE_BYTES
from reverie.quick import dataclass
from reverie.types import TextBlock

_Writer = Callable[[CompactionMoment, int], str]

NAMES = ("recorded", "last10", "notes", "summary", "reverie")
_LAST = 10
_FOR_REQUESTS = 0.7
"""The most of the room for the requests of the user, which come first."""

_STEPS = 8
_LESS, _MORE = 0.6, 1.25
_AIM, _FULL = 0.985, 0.96


def make_context(name: str, moment: CompactionMoment) -> str | None:
    """The new context of this name, within the room; None if there is no recorded summary."""
    if name == "recorded":
        return moment.summary
    if name == "last10":
        return "\n".join(touched_files(operations(moment.before), moment.cwd)[-_LAST:])
    return write_within(moment, moment.room, {"notes": _notes, "summary": _summary, "reverie": compose}[name])


def write_within(moment: CompactionMoment, room: int, write: _Writer) -> str:
    """The longest text of this writer within `room` tokens, found by asking for less or more."""
    asked, best = float(room), ("", -1)
    for _ in range(_STEPS):
        text = write(moment, int(asked))
        size = moment.tokens(text)
        if size <= room and size > best[1]:
            best = (text, size)
        elif size <= room:
            break  # it has no more to say
        if _FULL * room <= size <= room:
            break
        asked *= min(_MORE, max(_LESS, _AIM * room / max(1, size)))
    return best[0] if best[1] >= 0 else write(moment, 0)


def _notes(moment: CompactionMoment, tokens: int) -> str:
    numbers = NoteNumbers()
    limits = Limits.for_tokens(min(tokens, numbers.total_tokens))
    limits = replace(limits, section=min(limits.section, numbers.section_tokens * PROSE_BYTES))
    return write_notes(moment.before, default_template(), limits, cwd=moment.cwd)


def _summary(moment: CompactionMoment, tokens: int) -> str:
    most = CompactionNumbers().summary_tokens
    return write_summary(moment.before, Limits.for_tokens(min(tokens, most)), cwd=moment.cwd)


def compose(moment: CompactionMoment, tokens: int) -> str:
    """The whole new context, as our compaction writes it."""
    usual = CompactionNumbers()
    usual = replace(usual, requests_tokens=min(usual.requests_tokens, max(1, int(_FOR_REQUESTS * tokens))))
    bare = replace(usual, ledger_characters=1, names=0)
    left = tokens - moment.tokens(_join(moment, "", bare))
    limits = Limits.for_tokens(max(0, left))
    numbers = replace(
        usual,
        ledger_characters=min(usual.ledger_characters, max(1, limits.ledger)),
        names=min(usual.names, limits.names),
    )
    prose = replace(limits, total=max(0, limits.total - limits.ledger - limits.names * 15))
    return _join(moment, write_summary(moment.before, prose, cwd=moment.cwd, alone=False), numbers)


def _join(moment: CompactionMoment, prose: str, numbers: CompactionNumbers) -> str:
    beside = SummaryParts(
        requests=requests_in(moment.before),
        requests_folder=Path("requests"),
        all_requests=Path("requests/all.txt"),
        unsaved=frozenset(),
        pins={},
        transcript=Path(f"{moment.session}.jsonl"),
        cwd=moment.cwd,
    )
    blocks = summary_blocks(CompactionScope("whole", moment.before), SummaryText(prose, "code"), beside, numbers)
    return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))


KINDS = ("files", "requests", "failed_commands", "identifiers")


@dataclass(frozen=True, slots=True)
class SearchedContext:
    """One context at one compaction, and what was found in it."""

    name: str
    held: HeldItems
    tokens: int

    def share(self, kind: str) -> float | None:
        """The share of what was used again that it has; None if nothing of the kind was used."""
        total = self.held.total[kind]
        return self.held.kept[kind] / total if total else None

    @property
    def precision(self) -> float | None:
        """The share of what it lists that was used again; None if it lists nothing."""
        return self.held.listed_and_used / self.held.listed if self.held.listed else None


@dataclass(frozen=True, slots=True)
class MeasuredCompaction:
    """One compaction with all its contexts. `equal`: ours at the size of the recorded summary."""

    session: str
    real: bool
    room: int
    looks: tuple[SearchedContext, ...]
    equal: SearchedContext | None


def measure(paths: Sequence[Path], simulated_at: int = SIMULATED_AT) -> list[MeasuredCompaction]:
    """Measures every compaction of these sessions. UserError if there is none."""
    return [measure_moment(moment) for moment in load_moments(paths, simulated_at)]


def measure_moment(moment: CompactionMoment) -> MeasuredCompaction:
    """Measures one compaction."""
    used = find_used_again(moment.before, moment.after, moment.cwd)

    def search(name: str, text: str) -> SearchedContext:
        return SearchedContext(name, find_held(used, text), moment.tokens(text))

    texts = ((name, make_context(name, moment)) for name in NAMES)
    looks = tuple(search(name, text) for name, text in texts if text is not None)
    equal = None
    if moment.summary is not None:
        equal = search("reverie", write_within(moment, moment.tokens(moment.summary), compose))
    return MeasuredCompaction(moment.session, moment.summary is not None, moment.room, looks, equal)


@measurement("reverie lab survival ~/.claude/projects/my-project/*.jsonl --json")
@paths_argument
@at_option
def survival(paths: tuple[Path, ...], at: int) -> Result:
    """Measure what survives a compaction, on recorded sessions.

    For each compaction, the command collects what the user asked for before it, and the files, identifiers and failed
    commands from before it that the session used again later. It shows how many of them are in the summary that the
    recorded session itself made, in the summary that Reverie writes without a model, and, for comparison, in a plain
    list of the last ten files that the session used. PATH is a transcript, or a folder: then all transcripts in it and
    below it are measured.
    """
    return report(measure(paths, at))


def report(compacted: Sequence[MeasuredCompaction]) -> Result:
    """The figures by context, over the real compactions (or the simulated ones if there are no others).

    A share is the mean over the compactions that have something of the kind; `pooled` counts items instead.
    """
    real = [one for one in compacted if one.real]
    simulated = [one for one in compacted if not one.real]
    figures: dict[str, Any] = by_name(real or simulated)
    figures["pooled"] = by_name(real or simulated, pooled=True)
    if real and simulated:
        figures["simulated"] = by_name(simulated)
    pairs = [(one.looks[0], one.equal) for one in real if one.equal is not None]
    if pairs:
        figures["equal_tokens"] = _side_by_side(pairs)
        figures["equal_tokens_halves"] = [_side_by_side(pairs[start::2]) for start in (0, 1)]
    figures["halves"] = [by_name((real or simulated)[start::2]) for start in (0, 1)]
    figures["compactions"] = {"real": len(real), "simulated": len(simulated)}
    ours = [(one, look) for one in compacted for look in one.looks if look.name == "reverie"]
    figures["over_room"] = sum(look.tokens > one.room for one, look in ours)
    shown = list[Table | str]()
    for title, group in (("recorded", real), ("simulated", simulated)):
        rows = dict(by_name(group))
        if equals := [one.equal for one in group if one.equal is not None]:
            rows["reverie, equal tokens"] = _figures(equals)
        if group:
            columns = (Column("name", f"{len(group)} {title} compactions"), *map(share, (*KINDS, "precision")))
            shown.append(Table(named(rows), (*columns, whole("tokens"))))
    lost = [
        f"  {one.session[:8]}: {kind}: {', '.join(' '.join(item.split())[:80] for item in items[:12])}"
        for one, look in ours
        for kind, items in look.held.lost.items()
        if items
    ]
    return Result(figures, [*shown, *(["What `reverie` no longer held:", *lost] if lost else [])])


def _side_by_side(pairs: Sequence[tuple[SearchedContext, SearchedContext]]) -> dict[str, dict[str, float | None]]:
    return {
        "recorded": _figures([recorded for recorded, _ in pairs]),
        "reverie": _figures([equal for _, equal in pairs]),
    }


def by_name(compacted: Iterable[MeasuredCompaction], *, pooled: bool = False) -> dict[str, dict[str, float | None]]:
    """The six figures of each kind of context."""
    looks = [look for one in compacted for look in one.looks]
    found = {name: [look for look in looks if look.name == name] for name in NAMES}
    return {name: _figures(seen, pooled=pooled) for name, seen in found.items() if seen}


def _figures(looks: Sequence[SearchedContext], *, pooled: bool = False) -> dict[str, float | None]:
    if pooled:
        shares = {kind: _ratio((look.held.kept[kind], look.held.total[kind]) for look in looks) for kind in KINDS}
        precision = _ratio((look.held.listed_and_used, look.held.listed) for look in looks)
    else:
        shares = {kind: mean_or_none(look.share(kind) for look in looks) for kind in KINDS}
        precision = mean_or_none(look.precision for look in looks)
    return {**shares, "precision": precision, "tokens": round(fmean(look.tokens for look in looks)) if looks else None}


def _ratio(pairs: Iterable[tuple[int, int]]) -> float | None:
    kept, total = map(sum, zip(*pairs, strict=True))
    return kept / total if total else None
