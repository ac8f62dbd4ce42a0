"""`reverie health`: shows how often each layer fired, declined and failed, and why. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from reverie.cli.options import examples, folder_options, load_places, session_choice
from reverie.cli.output import Paint, answer, get_paint, keep_end, line_width, one_line, plural, table
from reverie.cli.sessions.cost import choose_transcripts, dollars

if TYPE_CHECKING:
    from reverie.context.health import By, Health, LayerSum, Outcome
    from reverie.paths import Places
    from reverie.settings import Settings
    from reverie.types import JsonObject

_BY = ("session", "day", "project")
_REASONS = 4
"""At most this many reasons per line."""
_HEADS = ("", "requests", "cached", "breaks", "cleared", "again", "compactions", "declined", "failed")


@examples(
    "reverie health",
    "reverie health last",
    "reverie health --all --by day",
    "reverie health --today --json | jq '.layers'",
)
@click.command("health")
@session_choice(None, otherwise="all of this folder")
@click.option("--today", is_flag=True, help="Only since midnight, in all folders unless -C names one.")
@click.option("--by", type=click.Choice(_BY), help="One line per session, day or project.")
@click.option("-a", "--all", "everywhere", is_flag=True, help="Include all folders.")
@folder_options
@click.pass_context
def command(
    context: click.Context, session: str | None, by: By | None, as_json: bool, cwd: Path, **_chosen: bool
) -> None:
    """Show how often each layer fired, declined and failed, and why.

    Also shows the breakers that stop auto-compaction, the cache and the cost of its breaks, results that were cleared
    and requested again, compactions and what they kept, memories, and what is left of the day's budget. SESSION is the
    id of a session (its first characters are enough), `last`, or the path of a transcript.
    """
    from reverie.context.health import Health
    from reverie.models.catalogue import Catalogue
    from reverie.runtime.background_log import BackgroundLog

    settings, places = load_places(cwd)
    files, day, since = choose_transcripts(context, session, places)
    log = BackgroundLog(places.background_log).read()
    health = Health.read(files, log, Catalogue.load(settings.catalogue.files), since=since)
    if day is not None:
        health = health.only(lambda _at, _session, _project: True, day=day)
    memory = _count_memories(settings, places, files[0].stem if session is not None else None, day)
    budget = budget_left(settings, places)
    if by is not None:
        parts = health.by(by)
        groups = {"by": by, "parts": {name: part.to_json() for name, part in parts.items()}}
        lines = _table(parts, line_width(120))
    else:
        groups, lines = dict[str, object](), health_lines(health, memory, budget, get_paint())
    answer(as_json, {**health.to_json(), "memory": memory._asdict(), "budget": budget, **groups}, *lines)


class MemoryCounts(NamedTuple):
    """What happened to the memories of this folder. `inferred` and `confirmed`: statements that exist now."""

    written: int = 0
    undone: int = 0
    inferred: int = 0
    confirmed: int = 0


def _count_memories(settings: Settings, places: Places, session: str | None, day: date | None) -> MemoryCounts:
    from reverie.memory.gate.review import all_statements
    from reverie.memory.opening import open_memory
    from reverie.memory.taxonomy import Trust
    from reverie.paths import memory_switch

    if not memory_switch(settings).on:
        return MemoryCounts()
    directory = open_memory(settings, places).directory
    if not directory.root.is_dir():
        return MemoryCounts()
    versions = [
        version.info
        for version in directory.log()
        if (session is None or version.info.session == session)
        and (day is None or version.when.astimezone().date() == day)
    ]
    undone = sum(bool(info.reverses) for info in versions)
    trust = Counter(one.trust for one in all_statements(directory))
    return MemoryCounts(len(versions) - undone, undone, trust[Trust.INFERRED], trust[Trust.CONFIRMED])


def budget_left(settings: Settings, places: Places) -> JsonObject:
    """What background work may still spend today, in tokens of fresh input and in dollars; None: no limit."""
    from reverie.context.day_book import DayBook
    from reverie.flags import Flags

    given, spent = settings.budget, DayBook(places.day_books).today()
    with closing(Flags.open(places, settings)) as flags:
        tokens = flags.number("budget.background_tokens_per_day", given.background_tokens_per_day)
        most = flags.number("budget.background_dollars_per_day", given.background_dollars_per_day or 0.0)
    return {
        "used_tokens": round(spent.tokens),
        "left_tokens": max(0, round(tokens - spent.tokens)) if tokens else None,
        "used_usd": round(spent.dollars, 6),
        "left_usd": max(0.0, round(most - spent.dollars, 6)) if most else None,
    }


def health_lines(health: Health, memory: MemoryCounts, budget: JsonObject, paint: Paint) -> Iterator[str]:
    """The layers, each with its reasons, then breakers, cache, compactions, memories and the budget."""
    from reverie.context.health import LAYERS

    layers = health.layers()
    if not layers and not health.ledger.entries:
        yield "Nothing happened here yet."
        return
    for name, sums in layers.items():
        yield from _layer_lines(LAYERS.get(name, name), sums, paint)
    yield ""
    for name, reason in health.open_breakers.items():
        yield f"{paint.bad('Breaker open')} in {name[:8]}: {one_line(reason)}."
    if not health.open_breakers:
        yield "No breaker is open."
    yield from _cache_lines(health)
    again, cleared = health.requested_again, health.cleared
    yield f"{plural(cleared, 'result')} cleared, {again} of them requested again." if cleared else "No results cleared."
    yield from _compaction_lines(health)
    recalled, used = health.recalled
    yield (
        f"Memories: {plural(memory.written, 'write')}, {memory.undone} undone; statements now: {memory.confirmed} "
        f"confirmed, {memory.inferred} inferred. {recalled} recalled, {used} of them used in an answer."
    )
    left = "no limit" if budget["left_tokens"] is None else f"{budget['left_tokens']:,} tokens"
    money = "" if budget["left_usd"] is None else f" and {dollars(budget['left_usd'])}"
    yield f"Budget of background work today: {budget['used_tokens']:,} tokens used, {left}{money} left."


def _layer_lines(label: str, sums: LayerSum, paint: Paint) -> Iterator[str]:
    words: dict[Outcome, str] = {
        "fired": "fired",
        "again": "requested again",
        "declined": "declined",
        "retried": "sent again",
    }
    told = [f"{word} {sums.counts[key]}" for key, word in words.items() if sums.counts[key]]
    if sums.counts["failed"]:
        told.append(paint.bad(f"failed {sums.counts['failed']}"))
    yield f"{paint.bold(label)}: {', '.join(told)}"
    outcomes: tuple[Outcome, ...] = ("fired", "declined", "retried", "failed")
    for outcome in outcomes:
        reasons = sums.reasons.get(outcome, Counter[str]())
        for why, count in reasons.most_common(_REASONS):
            mark = paint.bad("✗") if outcome == "failed" else "-"
            yield f"  {mark} {count} {outcome if outcome != 'retried' else 'sent again'}: {one_line(why)}"
        if len(reasons) > _REASONS:
            yield f"    and {len(reasons) - _REASONS} more reasons (--json lists them)"


def _cache_lines(health: Health) -> Iterator[str]:
    ledger = health.ledger
    main, beside = ledger.main, ledger.beside
    if not main.requests:
        return
    forks = f", {beside.hit_rate:.1%} of background work" if beside.requests else ""
    yield f"Cache: {main.hit_rate:.1%} of the conversations' prompts{forks} came from the cache."
    causes: dict[tuple[str, bool], list[float]] = {}
    for one in ledger.breaks:
        key = (one.broken.cause, one.broken.announcement is not None)
        sums = causes.setdefault(key, [0, 0, 0.0])
        sums[0] += 1
        sums[1] += one.broken.lost_tokens
        sums[2] += one.broken.cost
    for (cause, announced), (count, lost, price) in causes.items():
        paid = f", {dollars(price)}" if price else ""
        yield f"  {count:.0f} × {cause}{' (announced)' if announced else ''}: {lost:,.0f} tokens paid again{paid}"


def _compaction_lines(health: Health) -> Iterator[str]:
    if not health.compactions:
        yield "No compactions."
    for one in health.compactions:
        size = f"{one.before:,} → {one.after:,} tokens" if one.after is not None else f"{one.before:,} tokens before"
        kept = f"; {one.kept} of {one.of} names, figures and requests kept" if one.of else ""
        yield f"Compaction in {one.session[:8]} ({one.kind}): {size}{kept}"


def _table(parts: dict[str, Health], wide: int) -> Iterator[str]:
    rows = [
        (
            one_line(name) or "(unknown)",
            f"{part.ledger.total.requests:,}",
            f"{part.ledger.main.hit_rate:.0%}",
            str(len(part.ledger.breaks)),
            str(part.cleared),
            str(part.requested_again),
            str(len(part.compactions)),
            str(sum(one.count for one in part.events if one.outcome == "declined")),
            str(part.failures),
        )
        for name, part in parts.items()
    ]
    yield from table([_HEADS, *rows], right=range(1, len(_HEADS)), room=wide, flexible=0, least=8, shorten=keep_end)
