"""How dreams are shown: a proposal or a version file by file, each with its reason and its difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from reverie.cli.output import Paint, one_line, printable
from reverie.layers.l6_dreaming.landing import Landed
from reverie.layers.l6_dreaming.outcome import Dreamt
from reverie.layers.l6_dreaming.proposal import Proposal
from reverie.memory.directory import MemoryDirectory
from reverie.storage.history import Version

Say = Callable[[str], None]


def show_proposal(proposal: Proposal, paint: Paint) -> Iterator[str]:
    """A proposal for a person to judge."""
    when = datetime.fromtimestamp(proposal.created).astimezone().strftime("%Y-%m-%d %H:%M")
    yield f"{paint.bold(f'Dream {proposal.id}')}  {paint.dim(when)}"
    for change in proposal.changes:
        yield ""
        yield f"{paint.accent(change.verb)} {paint.bold(one_line(change.name))}: {one_line(change.reason)}"
        yield from painted_diff(change.diff(), paint)
    if proposal.kept:
        yield ""
        yield from (paint.warning(f"left   {one_line(why)}") for why in proposal.kept)
    if proposal.lost:
        yield ""
        yield paint.warning(f"Said nowhere afterwards ({len(proposal.lost)} of {proposal.statements} statements):")
        yield from (f"  {one_line(text)}" for text in proposal.lost)


def show_version(directory: MemoryDirectory, version: Version, paint: Paint) -> Iterator[str]:
    """A dream that landed, in the same form."""
    when = version.when.astimezone().strftime("%Y-%m-%d %H:%M")
    yield f"{paint.bold(one_line(version.info.why))}  {paint.accent(version.short)}  {paint.dim(when)}"
    for change in version.files:
        reason = version.info.reasons.get(change.name, "")
        yield ""
        yield f"{paint.accent(change.verb)} {paint.bold(one_line(change.name))}: {one_line(reason)}"
        yield from painted_diff(directory.history.diff(version, change.name), paint)


def painted_diff(text: str, paint: Paint) -> Iterator[str]:
    """A difference without its two head lines, coloured."""
    for line in printable(text).splitlines()[2:]:
        if line.startswith("@@"):
            yield paint.dim(line)
        else:
            yield paint.good(line) if line.startswith("+") else paint.bad(line) if line.startswith("-") else line


def show_dreamt(dreamt: Dreamt, paint: Paint) -> Iterator[str]:
    """What a dream came to: its files with their reasons, what was left, and what it cost."""
    if dreamt.proposal is None or dreamt.outcome == "unchanged":
        yield "Everything was in order; nothing was changed."
    else:
        landed = dreamt.landed.left if dreamt.landed is not None else dict[str, str]()
        for change in dreamt.proposal.changes:
            if change.name not in landed:
                yield f"{paint.accent(f'{change.verb:<6}')} {one_line(change.name)}: {one_line(change.reason)}"
        yield from (paint.warning(f"left   {one_line(why)}") for why in (*landed.values(), *dreamt.proposal.kept))
    cost = f"${dreamt.cost_usd:.4f}, " if dreamt.cost_usd else ""
    denied = f", {len(dreamt.denied)} calls denied" if dreamt.denied else ""
    yield paint.dim(f"{dreamt.rounds} rounds as a {dreamt.way} agent, {cost}{dreamt.hit_rate:.0%} cached{denied}")
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
