"""`reverie cost`: shows what was spent, on what, and what the prompt cache saved. Reads the transcripts only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click
from click.core import ParameterSource

from reverie.cli.options import examples, folder_options, load_places, session_choice, web_option
from reverie.cli.output import Paint, answer, format_tokens, get_paint, keep_end, line_width, one_line, plural, table

if TYPE_CHECKING:
    from reverie.context.day_book import Spending
    from reverie.context.ledger import By, Ledger, Totals
    from reverie.paths import Places
    from reverie.session.session import Session
    from reverie.storage.transcript.records import CacheBreak

_BY = ("layer", "run", "day", "session", "model", "project")
_HEADS = ("", "requests", "input", "cache write", "cache read", "output", "cached", "cost")


@examples(
    "reverie cost",
    "reverie cost last --by model",
    "reverie cost last --by run",
    "reverie cost --today",
    "reverie cost --web",
    "reverie cost --all --by day --json | jq '.parts'",
)
@click.command("cost")
@session_choice(None, otherwise="all of this folder")
@click.option("--today", is_flag=True, help="Only since midnight, in all folders unless -C names one.")
@click.option("--by", type=click.Choice(_BY), default="layer", show_default=True, help="One line per layer, run, ….")
@click.option("-a", "--all", "everywhere", is_flag=True, help="Include all folders.")
@web_option
@folder_options
@click.pass_context
def command(
    context: click.Context, session: str | None, by: By, web: bool, as_json: bool, cwd: Path, **_chosen: bool
) -> None:
    """Show what was spent, in tokens and in dollars, and on what.

    `main` is the conversation itself. The other parts are recall, notes, compaction, extraction, dreams and agents.
    `--by run` shows each of their runs, and whether a dream shared the cache of the session (a fork) or not. SESSION is
    the id of a session (its first characters are enough), `last`, or the path of a transcript.
    """
    from reverie.context.day_book import DayBook, Spending
    from reverie.context.ledger import Ledger
    from reverie.models.catalogue import Catalogue
    from reverie.storage.following import followed_copies

    settings, places = load_places(cwd)
    if web:
        show_page(cwd, _page(context, session, places))
        return
    files, day, since = choose_transcripts(context, session, places)
    ledger = Ledger.of_transcripts(files, Catalogue.load(settings.catalogue.files), since=since)
    if day is not None:
        ledger = ledger.only(day=day)
    known = {path.stem for path in places.projects.glob("*/*.jsonl")}
    spent = DayBook(places.day_books).beside(known, since=day or date.min) if session is None else Spending()
    followed = {path for path, _ in followed_copies(settings)} & set(files)
    answer(
        as_json,
        {
            **ledger.to_json(by),
            "service": {"tokens": round(spent.tokens), "cost_usd": round(spent.dollars, 6)},
            "followed": len(followed),
        },
        *cost_lines(ledger, by, get_paint(), line_width(120)),
        *_beside_lines(spent, len(followed), today=day is not None),
    )


def show_page(cwd: Path, path: str) -> None:
    """Opens a page of the web view."""
    from reverie.cli.web import show

    show(cwd, path)


def session_in_home(path: Path, places: Places) -> str:
    """The id of a session that the web view can show. UserError for a transcript elsewhere."""
    from reverie.errors import UserError

    if path.resolve().parent.parent != places.projects.resolve():
        raise UserError(
            f"the web view shows sessions of the home only: `reverie sessions import {path}` imports this one"
        )
    return path.stem


def _page(context: click.Context, session: str | None, places: Places) -> str:
    """The page that shows the same: of a session, of this folder, or of all."""
    if session is not None:
        return f"/sessions/{session_in_home(find_transcript(session, places), places)}/money"
    days = "days=1" if context.params["today"] else ""
    is_here = not (context.params["everywhere"] or context.params["today"]) and places.project.is_dir()
    query = "&".join(filter(None, (f"project={quote(places.project.name)}" if is_here else "", days)))
    return f"/money?{query}" if query else "/money"


def _beside_lines(spent: Spending, followed: int, *, today: bool) -> Iterator[str]:
    """What the table does not contain, or what was not spent by us."""
    if spent.tokens:
        cost = f"{spent.tokens:,.0f} tokens, {dollars(spent.dollars)}"
        yield f"Learning in the background, beside the table: {cost} (all projects{'' if today else ', last 35 days'})."
    if followed:
        yield f"`main` of {plural(followed, 'followed session')} is what Claude Code or Codex has spent, not Reverie."


def choose_transcripts(
    context: click.Context, session: str | None, places: Places
) -> tuple[list[Path], date | None, float]:
    """The transcript of this session, or those of this folder or all, oldest first; the day, and when it began."""
    day = date.today() if context.params["today"] else None
    since = datetime.combine(day, time()).timestamp() if day is not None else 0.0
    if session is not None:
        return [find_transcript(session, places)], day, since
    is_folder_named = context.get_parameter_source("cwd") is not ParameterSource.DEFAULT
    everywhere = context.params["everywhere"] or (day is not None and not is_folder_named)
    folders = [folder for folder in places.projects.glob("*") if folder.is_dir()] if everywhere else [places.project]
    found = [path for folder in folders for path in folder.glob("*.jsonl") if not path.name.startswith("agent-")]
    return sorted(found, key=_modified_at), day, since


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find_transcript(wanted: str, places: Places) -> Path:
    """The transcript with this path, or of the session with this id or beginning of an id."""
    from reverie.errors import UserError
    from reverie.storage.transcript.sessions import find_session

    if wanted.endswith(".jsonl"):
        if not Path(wanted).is_file():
            raise UserError(f"There is no transcript {wanted}.")
        return Path(wanted)
    return find_session(places.project, wanted, everywhere=True).path


def cost_text(session: Session, by: By = "layer", *, paint: Paint | None = None, wide: int = 100) -> str:
    """The same for the session of a chat."""
    return "\n".join(cost_lines(session.accounts.ledger.now(), by, paint or Paint(False), wide))


def cost_lines(ledger: Ledger, by: By, paint: Paint, wide: int) -> Iterator[str]:
    """The table, then lines about the cache."""
    if not ledger.entries:
        yield "Nothing was spent here yet."
        return
    parts = _sort_parts(ledger, by)
    rows = [(one_line(name) or "(unknown)", *_cells(sums)) for name, sums in parts]
    if len(parts) > 1:
        rows.append(("total", *_cells(ledger.total)))
    figures = range(1, len(_HEADS))  # folders and ids differ at their ends
    lines = list(table([_HEADS, *rows], right=figures, room=wide, flexible=0, least=8, shorten=keep_end))
    lines[0] = paint.dim(lines[0])
    lines[-1] = paint.bold(lines[-1]) if len(parts) > 1 else lines[-1]
    yield from (*lines, "")
    yield from _background_lines(ledger)
    yield from _cache_lines(ledger)


def _sort_parts(ledger: Ledger, by: By) -> list[tuple[str, Totals]]:
    found = list(ledger.by(by).items())
    if by == "day":
        return sorted(found)
    return sorted(found, key=lambda part: (part[0] != "main", -part[1].cost, -part[1].equivalents))


def _cells(sums: Totals) -> tuple[str, ...]:
    used = sums.usage
    cached = (used.cache_creation_input_tokens, used.cache_read_input_tokens)
    counts = (used.input_tokens, *cached, used.output_tokens)
    price = "no price" if sums.unpriced == sums.requests else dollars(sums.cost)
    return (f"{sums.requests:,}", *(format_tokens(count) for count in counts), f"{sums.hit_rate:.0%}", price)


def dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def _background_lines(ledger: Ledger) -> Iterator[str]:
    """What was paid for work that nobody asked for."""
    from reverie.context.day_book import BACKGROUND

    found = {name: sums for name, sums in ledger.by("layer").items() if name in BACKGROUND}
    spent, whole = sum(sums.equivalents for sums in found.values()), ledger.total.equivalents
    if spent and whole:
        cost = sum(sums.cost for sums in found.values())
        price = f"{dollars(cost)}, " if cost else ""
        yield f"Background work ({', '.join(sorted(found))}): {price}{spent / whole:.1%} of the total."


def _cache_lines(ledger: Ledger) -> Iterator[str]:
    main, beside, whole = ledger.main, ledger.beside, ledger.total
    shares = [
        f"{sums.hit_rate:.1%} of {what}"
        for sums, what in ((main, "the conversation's prompts"), (beside, "other prompts"))
        if sums.requests
    ]
    saved = f", which saved {dollars(whole.saved)} of {dollars(whole.uncached)}" if whole.saved > 0 else ""
    yield f"Cache: {' and '.join(shares)} came from the cache{saved}."
    announced = [one.broken for one in ledger.breaks if one.broken.announcement is not None]
    found = [one.broken for one in ledger.breaks if one.broken.announcement is None]
    if not announced and not found:
        seen = main.usage.cache_read_input_tokens + main.usage.cache_creation_input_tokens
        yield "No cache breaks." if seen or main.requests < 2 else "Cache breaks are unknown: there are no figures."
    if found:
        causes = Counter(one.cause for one in found)
        named = ", ".join(f"{cause} {count}" for cause, count in causes.items())
        yield f"{plural(len(found), 'unannounced cache break')} ({named}): {_describe_loss(found)}."
    if announced:
        yield f"{plural(len(announced), 'announced cache break')}: {_describe_loss(announced)}."
    spared = ledger.spared_by()
    if spared:
        names = {"on disk": "results on disk (layer 1)", "cleared": "cleared results (layer 2)"}
        parts = ", ".join(f"{names.get(layer, layer)} {format_tokens(count)}" for layer, count in spared.items())
        yield f"Tokens kept out of all prompts together: {parts}."
    if whole.unpriced:
        yield f"{plural(whole.unpriced, 'request')} to models without a known price: counted in tokens, not in dollars."


def _describe_loss(breaks: Sequence[CacheBreak]) -> str:
    lost, price = sum(one.lost_tokens for one in breaks), sum(one.cost for one in breaks)
    return f"{format_tokens(lost)} tokens paid again" + (f", {dollars(price)}" if price else "")
