"""How dreams are shown: a proposal or a version file by file, each with its reason and its difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from reverie.cli.output import Paint, one_line, plural
from reverie.cli.screen import printable
from reverie.layers.l6_dreaming.landing import Landed
from reverie.layers.l6_dreaming.loss import body_statements
from reverie.layers.l6_dreaming.outcome import Dreamt
from reverie.layers.l6_dreaming.proposal import Proposal, ProposedChange
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import is_index
from reverie.memory.topic_file import decode
from reverie.moments import local_minutes
from reverie.storage.history.versions import Version
from reverie.text.sameness import Said
from reverie.text.words import content_terms


def show_proposal(proposal: Proposal, paint: Paint) -> Iterator[str]:
    """A proposal for a person to judge: every file with its reason, and where each statement goes or comes from."""
    when = local_minutes(proposal.created)
    yield f"{paint.bold(f'Dream {proposal.id}')}  {paint.dim(when)}  {_counted(proposal.changes)}"
    yield from _files(proposal.changes, paint)
    if proposal.kept:
        yield ""
        yield from (paint.warning(f"left   {one_line(why)}") for why in proposal.kept)
    yield ""
    if proposal.lost:
        yield paint.warning(f"Said nowhere afterwards ({len(proposal.lost)} of {proposal.statements} statements):")
        yield from (f"  {one_line(text)}" for text in proposal.lost)
    elif proposal.statements:
        yield paint.dim(f"Everything is still said: none of {proposal.statements} statements is lost.")


def show_version(directory: MemoryDirectory, version: Version, paint: Paint) -> Iterator[str]:
    """A dream that landed, in the same form."""
    when = version.when.astimezone().strftime("%Y-%m-%d %H:%M")
    history = directory.history
    changes = [
        ProposedChange(
            change.name,
            None if change.before is None else decode(history.read(change.before)),
            None if change.after is None else decode(history.read(change.after)),
            version.info.reasons.get(change.name, ""),
        )
        for change in version.files
    ]
    head = f"{paint.bold(one_line(version.info.why))}  {paint.accent(version.short)}  {paint.dim(when)}"
    yield f"{head}  {_counted(changes)}"
    yield from _files(changes, paint)


def _counted(changes: Sequence[ProposedChange]) -> str:
    topics = Counter(change.verb for change in changes if not is_index(change.name))
    words = (("change", "changed"), ("add", "added"), ("remove", "removed"))
    parts = [f"{topics[verb]} {word}" for verb, word in words if topics[verb]]
    return ", ".join([*parts, *(["the index"] if len(changes) > topics.total() else [])])


def _files(changes: Sequence[ProposedChange], paint: Paint) -> Iterator[str]:
    """Each file in turn, indexes last: they only follow."""
    trail = _Trail(changes)
    for change in sorted(changes, key=lambda one: is_index(one.name)):
        yield ""
        yield f"{paint.accent(change.verb)} {paint.bold(one_line(change.name))}: {one_line(change.reason)}"
        for line in printable(change.diff()).splitlines()[2:]:
            told = "" if is_index(change.name) else trail.told(line, change.name)
            yield _painted(line, paint) + (paint.dim(f"   {told}") if told else "")


def _painted(line: str, paint: Paint) -> str:
    if line.startswith("@@"):
        return paint.dim(line)
    return paint.good(line) if line.startswith("+") else paint.bad(line) if line.startswith("-") else line


class _Trail:
    """Where statements went and came from, between the files of one dream."""

    def __init__(self, changes: Sequence[ProposedChange]) -> None:
        topics = [change for change in changes if not is_index(change.name)]
        self._before = {change.name: Said(body_statements(change.before or "")) for change in changes}
        self._after = {change.name: Said(body_statements(change.after or "")) for change in topics}

    def told(self, line: str, name: str) -> str:
        """What a person wants to know of a line that is gone from a file, or new in it; empty if nothing."""
        if not content_terms(line[1:]) or line[:1] not in "+-":
            return ""
        if line.startswith("-"):
            there = self._found(line[1:], self._after, name)
            return f"→ {there}" if there and there != name else ""
        there = self._found(line[1:], self._before, name)
        return f"← {there}" if there and there != name else ""

    def _found(self, said: str, files: Mapping[str, Said], name: str) -> str:
        """The file itself, if it says so; else another that does."""
        order = [name, *(other for other in files if other != name)]
        return next((other for other in order if files[other].has(said)), "")


def show_dreamt(dreamt: Dreamt, paint: Paint) -> Iterator[str]:
    """What a dream came to: its files with their reasons, what was left, and what it cost."""
    if dreamt.proposal is None or dreamt.outcome == "unchanged":
        yield (
            "Nothing was changed; what it was not allowed to do is in `reverie log --kind dream_`."
            if dreamt.stopped
            else ("Everything was in order; nothing was changed.")
        )
    else:
        landed = dreamt.landed.left if dreamt.landed is not None else dict[str, str]()
        for change in dreamt.proposal.changes:
            if change.name not in landed:
                yield f"{paint.accent(f'{change.verb:<6}')} {one_line(change.name)}: {one_line(change.reason)}"
        yield from (paint.warning(f"left   {one_line(why)}") for why in (*landed.values(), *dreamt.proposal.kept))
    cost = f"${dreamt.cost_usd:.4f}, " if dreamt.cost_usd else ""
    denied = f", {plural(len(dreamt.denied), 'call')} denied" if dreamt.denied else ""
    denied += f", {plural(dreamt.refused, 'write')} refused" if dreamt.refused else ""
    rounds = f"{dreamt.rounds} round{'s' if dreamt.rounds != 1 else ''}"
    yield paint.dim(f"{rounds} as {way_of(dreamt.way)}, {cost}{dreamt.hit_rate:.0%} cached{denied}")
    match dreamt.outcome:
        case "landed":
            yield paint.dim("Undo: reverie dream undo")
        case "proposed":
            yield paint.dim("It waits for you: reverie dream review, then accept or reject")
        case _:
            pass


def landed_lines(landed: Landed, paint: Paint) -> Iterator[str]:
    """What an accepted dream came to."""
    files = ", ".join(landed.files) or "the index"
    yield f"Landed: {files}." if landed.version is not None else "Nothing of it was left to do."
    yield from (paint.warning(f"left: {one_line(why)}") for why in landed.left.values())
    if landed.version is not None:
        yield paint.dim("Undo: reverie dream undo")


def way_of(way: str) -> str:
    """`a forked agent`, `an embedded agent`."""
    return f"{'an' if way[:1] in ('a', 'e', 'i', 'o', 'u') else 'a'} {way} agent"
