"""Shows dreams: a proposal or a version file by file with reasons and diffs, and the log of all dreams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from reverie.cli.memory.opening import version_json
from reverie.cli.output import Paint, diff_line, one_line, plural
from reverie.cli.screen import printable
from reverie.errors import UserError
from reverie.layers.l6_dreaming.landing import LandingResult, changes_of, dreams, is_dream
from reverie.layers.l6_dreaming.proposal import Proposal, ProposedChange
from reverie.layers.l6_dreaming.reporter import DreamOutcome
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import is_index
from reverie.memory.topic_file import body_statements
from reverie.moments import local_minutes
from reverie.runtime.background_log import LogEntry
from reverie.storage.history.versions import Version
from reverie.text.sameness import StatementIndex
from reverie.text.words import content_terms
from reverie.types import JsonObject


def show_proposal(proposal: Proposal, paint: Paint) -> Iterator[str]:
    """A proposal to review: every file with its reason, and where each statement goes or comes from."""
    when = local_minutes(proposal.created)
    yield f"{paint.bold(f'Dream {proposal.id}')}  {paint.dim(when)}  {_count_changes(proposal.changes)}"
    yield from _files(proposal.changes, paint)
    if proposal.kept:
        yield ""
        yield from (paint.warning(f"left   {one_line(why)}") for why in proposal.kept)
    yield ""
    if proposal.lost:
        yield paint.warning(f"Lost statements ({len(proposal.lost)} of {proposal.statements}):")
        yield from (f"  {one_line(text)}" for text in proposal.lost)
    elif proposal.statements:
        yield paint.dim(f"The text is complete: none of {proposal.statements} statements is lost.")


def show_version(directory: MemoryDirectory, version: Version, paint: Paint) -> Iterator[str]:
    """The same for a dream that changed memory."""
    when = version.when.astimezone().strftime("%Y-%m-%d %H:%M")
    changes = list(changes_of(directory, version))
    head = f"{paint.bold(one_line(version.info.why))}  {paint.accent(version.short)}  {paint.dim(when)}"
    yield f"{head}  {_count_changes(changes)}"
    yield from _files(changes, paint)


def proposal_json(proposal: Proposal) -> JsonObject:
    """A proposal as JSON."""
    return {
        "id": proposal.id,
        "created": proposal.created,
        "changes": [
            {"file": one.name, "change": one.verb, "reason": one.reason, "diff": one.diff()} for one in proposal.changes
        ],
        "lost": list(proposal.lost),
        "statements": proposal.statements,
    }


def find_landed(directory: MemoryDirectory, id: str) -> Version:
    """The last dream that changed memory, or the one whose version begins with `id`."""
    made = dreams(directory) if directory.history.head() else iter(())
    version = next((one for one in made if one.id.startswith(id)), None)
    if version is None:
        raise UserError(f"There is no dream {id[:20]!r}." if id else "No dream waits for you, and none changed memory.")
    return version


def _count_changes(changes: Sequence[ProposedChange]) -> str:
    topics = Counter(change.verb for change in changes if not is_index(change.name))
    words = (("change", "changed"), ("add", "added"), ("remove", "removed"))
    parts = [f"{topics[verb]} {word}" for verb, word in words if topics[verb]]
    return ", ".join([*parts, *(["the index"] if len(changes) > topics.total() else [])])


def _files(changes: Sequence[ProposedChange], paint: Paint) -> Iterator[str]:
    trail = Trail(changes)
    for change in sorted(changes, key=lambda one: is_index(one.name)):
        yield ""
        yield f"{paint.accent(change.verb)} {paint.bold(one_line(change.name))}: {one_line(change.reason)}"
        for line in printable(change.diff()).splitlines()[2:]:
            where = "" if is_index(change.name) else trail.describe(line, change.name)
            yield diff_line(line, paint) + (paint.dim(f"   {where}") if where else "")


class Trail:
    """Where statements moved between the files of one dream."""

    def __init__(self, changes: Sequence[ProposedChange]) -> None:
        topics = [change for change in changes if not is_index(change.name)]
        order = sorted(changes, key=lambda change: is_index(change.name))  # the index repeats what topic files say
        self._before = {change.name: StatementIndex(body_statements(change.before or "")) for change in order}
        self._after = {change.name: StatementIndex(body_statements(change.after or "")) for change in topics}

    def describe(self, line: str, name: str) -> str:
        """The other file that a removed line went to or a new line came from; empty if there is none."""
        if not content_terms(line[1:]) or line[:1] not in "+-":
            return ""
        files, arrow = (self._after, "→") if line.startswith("-") else (self._before, "←")
        order = [name, *(other for other in files if other != name)]  # the file itself first
        there = next((other for other in order if files[other].has(line[1:])), name)
        return f"{arrow} {there}" if there != name else ""


def show_dreamt(dreamt: DreamOutcome, paint: Paint) -> Iterator[str]:
    """The result of a dream: files with reasons, files left unchanged, and the cost."""
    if dreamt.proposal is None or dreamt.outcome == "unchanged":
        stopped = "Nothing was changed. `reverie log --kind dream_` shows what was not allowed."
        yield stopped if dreamt.stopped else "Nothing was changed: memory is tidy."
    else:
        landed = dreamt.landed.left if dreamt.landed is not None else dict[str, str]()
        for change in dreamt.proposal.changes:
            if change.name not in landed:
                yield f"{paint.accent(f'{change.verb:<6}')} {one_line(change.name)}: {one_line(change.reason)}"
        yield from (paint.warning(f"left   {one_line(why)}") for why in (*landed.values(), *dreamt.proposal.kept))
    denied = f", {plural(len(dreamt.denied), 'call')} denied" if dreamt.denied else ""
    denied += f", {plural(dreamt.held, 'statement')} kept for you (reverie memory inbox)" if dreamt.held else ""
    yield paint.dim(describe_cost(dreamt.rounds, dreamt.way, dreamt.hit_rate, dreamt.cost_usd) + denied)
    if dreamt.outcome == "landed":
        yield paint.dim("Undo: reverie dream undo")
    elif dreamt.outcome == "proposed":
        yield paint.dim("It waits for you: reverie dream review, then accept or reject")


def show_landed(landed: LandingResult, paint: Paint) -> Iterator[str]:
    files = ", ".join(landed.files) or "the index"
    yield f"Changed: {files}." if landed.version is not None else "Nothing was left to change."
    yield from (paint.warning(f"left: {one_line(why)}") for why in landed.left.values())
    if landed.version is not None:
        yield paint.dim("Undo: reverie dream undo")


def describe_cost(rounds: int, way: str, hit_rate: float, cost_usd: float | None) -> str:
    """`3 rounds (forked agent), 94% cached, $0.0120`."""
    money = f", ${cost_usd:.4f}" if cost_usd else ""
    return f"{plural(rounds, 'round')} ({way} agent), {hit_rate:.0%} cached{money}"


ENDS: Final = ("dream_completed", "dream_failed", "dream_killed")
"""Kinds of lines in the background log that say how a dream ended."""


class _Line(NamedTuple):
    when: datetime
    mark: str
    text: str
    is_bad: bool = False


def log_json(versions: Sequence[Version], runs: Sequence[LogEntry], limit: int) -> JsonObject:
    """The newest versions that dreams made, and the newest runs, as JSON."""
    dreams = [version for version in versions if is_dream(version)][:limit]
    return {
        "dreams": [version_json(one) for one in dreams],
        "runs": [entry.to_json() for entry in runs if entry.kind in ENDS][-limit:],
    }


def show_log(
    versions: Sequence[Version], runs: Sequence[LogEntry], waiting: Collection[str], limit: int, paint: Paint
) -> Iterator[str]:
    """One line per dream. `versions`: all versions, newest first. `waiting`: dreams without a decision."""
    ends = [entry for entry in runs if entry.kind in ENDS]
    costs = {str(entry.fields["version"]): _cost(entry) for entry in ends if entry.fields.get("version")}
    undone = {version.info.reverses for version in versions if version.info.reverses}
    made = [version for version in versions if is_dream(version)]
    lines = [_version_line(version, costs.get(version.id, ""), version.id in undone) for version in made]
    lines += [_run_line(entry, waiting) for entry in ends if not entry.fields.get("version")]
    if not lines:
        yield "No dream yet."
    for line in sorted(lines, key=lambda one: one.when, reverse=True)[:limit]:
        mark = f"{line.mark:<10}"
        when = line.when.astimezone().strftime("%Y-%m-%d %H:%M")
        yield f"{paint.dim(when)}  {paint.bad(mark) if line.is_bad else paint.accent(mark)}  {line.text}"


def _version_line(version: Version, cost: str, is_undone: bool) -> _Line:
    topics = [change.name for change in version.files if not is_index(change.name)]
    files = one_line(", ".join(topics) or "the index")
    accepted = "accepted: " if version.info.why.startswith("Accepted") else ""
    return _Line(version.when, version.short, f"{accepted}{files}{cost}{' (undone)' if is_undone else ''}")


def _run_line(entry: LogEntry, waiting: Collection[str]) -> _Line:
    if entry.kind == "dream_completed":
        outcome = str(entry.fields.get("outcome") or "")
        was_stopped = entry.fields.get("denied") or entry.fields.get("held")
        idle = "its changes were not allowed" if was_stopped else "memory was tidy"
        id = str(entry.fields.get("id"))
        words = {"unchanged": idle, "proposed": f"{id} waits for you" if id in waiting else f"{id}, decided"}
        return _Line(entry.time, outcome, words.get(outcome, outcome) + _cost(entry))
    return _Line(entry.time, entry.kind.removeprefix("dream_"), one_line(str(entry.fields.get("error") or "")), True)


def _cost(entry: LogEntry) -> str:
    found = entry.fields
    rates = float(found.get("hit_rate") or 0.0), float(found.get("cost_usd") or 0.0)
    return f": {describe_cost(int(found.get('rounds') or 0), str(found.get('way')), *rates)}"
