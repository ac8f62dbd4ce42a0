"""What dreams have done, newest first: those that landed, with what they cost and whether they were taken back, and
those that came to nothing, with why. Looks only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from reverie.cli.memory.opening import version_json
from reverie.cli.output import Paint, one_line
from reverie.layers.l6_dreaming.review import is_dream
from reverie.memory.taxonomy import is_index
from reverie.runtime.background_log import LogEntry
from reverie.storage.history.versions import Version
from reverie.types import JsonObject

_ENDS: Final = ("dream_completed", "dream_failed", "dream_killed")


class _Line(NamedTuple):
    when: datetime
    mark: str
    text: str
    is_bad: bool = False


def dreams_and_runs(versions: Sequence[Version], runs: Sequence[LogEntry], limit: int) -> JsonObject:
    """The same for programs: versions that dreams made, and the runs, each newest so many."""
    dreams = [version for version in versions if is_dream(version)][:limit]
    return {
        "dreams": [version_json(one) for one in dreams],
        "runs": [entry.to_json() for entry in runs if entry.kind in _ENDS][-limit:],
    }


def told_lines(
    versions: Sequence[Version], runs: Sequence[LogEntry], waiting: Collection[str], limit: int, paint: Paint
) -> Iterator[str]:
    """A line a dream. `versions` are all there are, newest first: what took a dream back is one of them.

    `waiting`: the dreams that nobody has decided on yet.
    """
    ends = [entry for entry in runs if entry.kind in _ENDS]
    costs = {str(entry.fields["version"]): _cost(entry) for entry in ends if entry.fields.get("version")}
    taken_back = {version.info.reverses for version in versions if version.info.reverses}
    lines = [
        _landed(version, costs.get(version.id, ""), version.id in taken_back)
        for version in versions
        if is_dream(version)
    ]
    lines += [_run(entry, waiting) for entry in ends if not entry.fields.get("version")]
    if not lines:
        yield "No dream yet."
    for line in sorted(lines, key=lambda one: one.when, reverse=True)[:limit]:
        mark = f"{line.mark:<10}"
        when = line.when.astimezone().strftime("%Y-%m-%d %H:%M")
        yield f"{paint.dim(when)}  {paint.bad(mark) if line.is_bad else paint.accent(mark)}  {line.text}"


def _landed(version: Version, cost: str, is_taken_back: bool) -> _Line:
    topics = [change.name for change in version.files if not is_index(change.name)]
    files = one_line(", ".join(topics) or "the index")
    accepted = "accepted: " if version.info.why.startswith("Accepted") else ""
    return _Line(version.when, version.short, f"{accepted}{files}{cost}{' (taken back)' if is_taken_back else ''}")


def _run(entry: LogEntry, waiting: Collection[str]) -> _Line:
    if entry.kind == "dream_completed":
        outcome = str(entry.fields.get("outcome") or "")
        was_stopped = entry.fields.get("denied") or entry.fields.get("refused")
        idle = "it was not allowed to do what it wanted" if was_stopped else "everything was in order"
        id = str(entry.fields.get("id"))
        words = {"unchanged": idle, "proposed": f"{id} waits for you" if id in waiting else f"{id}, decided since"}
        return _Line(entry.time, outcome, words.get(outcome, outcome) + _cost(entry))
    return _Line(entry.time, entry.kind.removeprefix("dream_"), one_line(str(entry.fields.get("error") or "")), True)


def _cost(entry: LogEntry) -> str:
    found = entry.fields
    rounds, share = int(found.get("rounds") or 0), float(found.get("hit_rate") or 0.0)
    money = f", ${float(found['cost_usd']):.4f}" if found.get("cost_usd") else ""
    return f" ({rounds} round{'s' if rounds != 1 else ''}, {found.get('way')}, {share:.0%} cached{money})"
