"""`reverie recall`: shows which memories a message recalls, and why.

Uses the ranking of a session without a selecting model. Writes only the search index.
"""

from __future__ import annotations

import os
from time import time
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from reverie.cli.memory.opening import with_memory
from reverie.cli.options import examples
from reverie.cli.output import answer, get_paint, line_width, one_line, plural, say, say_dim, warn, wrap_hanging
from reverie.memory.age import age_days, age_words
from reverie.memory.gate.review import MarkedStatement
from reverie.memory.recall.by_trust import FindMissing, Leads, by_trust, missing_names_in
from reverie.memory.recall.ranker import RankedMemory, Ranker, Ranking
from reverie.memory.recall.reminder import CANDIDATES, reason_against_recall
from reverie.text.columns import cut

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

Tier = Literal["auto", "builtin", "semantic"]
_TIERS = click.Choice(get_args(Tier))
_TOOL_HELP = "Rank as if the agent had just used this tool, e.g. 'Bash(kubectl get)'. Repeatable."
_TIER_HELP = (
    "builtin: compare words; semantic: also compare meaning, with an encoder; auto: semantic if an encoder is "
    "installed, otherwise builtin."
)


@examples(
    'reverie recall "how do we test against the database?"',
    'reverie recall "deploy to staging" --why',
    "reverie recall \"who owns billing\" --json | jq -r '.shown[].file'",
)
@click.command("recall")
@click.argument("query", nargs=-1, required=True)
@click.option("--why", is_flag=True, help="Show the scores and their parts, and the memories that were not shown.")
@click.option("--tool", "tools", metavar="NAME", multiple=True, help=_TOOL_HELP)
@click.option("--tier", type=_TIERS, default="auto", show_default=True, help=_TIER_HELP)
@with_memory
def command(
    query: tuple[str, ...], why: bool, tools: tuple[str, ...], tier: Tier, as_json: bool, memory: OpenedMemory
) -> None:
    """Show which memories would be added to a message.

    Shows at most five memories, or none if nothing matches. If a memory names files or symbols that the repository does
    not have any more, they are listed. This command ranks the memories without a language model. A session with a
    language model asks the model first, and uses this ranking only if the model is slow, fails or must not be asked.
    `--tier semantic` needs a sentence encoder: a small model that compares meaning (`reverie models add minilm`).

    Exit codes: 0: done, even if nothing matches; 1: memory is off; 2: wrong usage.
    """
    memory.require_on("nothing is recalled")
    text = " ".join(query)
    reason = reason_against_recall(text, 0)
    if reason is not None:
        answer(as_json, {"query": text, "ran": False, "reason": reason, "shown": [], "left_out": []})
        if not as_json:
            say(f"Recall did not run: {reason}. `reverie memory search` finds single words.", err=True)
        return
    places, root = memory.places, memory.directory.root
    off = _why_off(memory)
    name = memory.settings.memory.encoder
    with Ranker.open(root, places.search_index(root), tier=tier, models_dir=places.models, encoder=name) as ranker:
        ranking = ranker.rank(text, tools_in_use=tools, limit=CANDIDATES)
        note = ranker.note
    ranking, leads = by_trust(ranking, memory)
    gone = missing_names_in(memory)
    if as_json:
        answer(True, {**_as_json(text, ranking, note, memory, gone, leads), "off": off or None})
        return
    if off:
        say(off, err=True)
    _show(ranking, memory, gone, leads, why=why)
    if why and note:
        say()
        warn(note)


def _why_off(memory: OpenedMemory) -> str:
    """Why sessions do not recall now, as a sentence; empty if they do."""
    from contextlib import closing

    from reverie.settings.loading import MANAGED

    files = (memory.places.flags_file, MANAGED / "flags.toml")
    if not (memory.settings.flags.provider or memory.settings.flag_env or any(map(os.path.lexists, files))):
        return ""  # no flag is set, and reading them loads much
    from reverie.flags import Flags

    with closing(Flags.open(memory.places, memory.settings)) as flags:
        if flags.on("recall"):
            return ""
    return "Recall is off (the flag `recall`): nothing is added to messages. These memories fit:"


def _as_json(
    query: str, ranking: Ranking, note: str, memory: OpenedMemory, gone: FindMissing, leads: Leads
) -> dict[str, Any]:
    return {
        "query": query,
        "ran": True,
        "reason": ranking.silent or None,
        "tier": ranking.tier,
        "directory": str(memory.directory.root),
        "files": ranking.files,
        "confidence": round(ranking.confidence, 4),
        "grounds": {name: round(value, 4) for name, value in ranking.grounds},
        "shown": [
            {
                **_candidate(one),
                **_trust_json(leads[one.path]),
                "gone": list(gone(memory.directory.read(one.path).text)),
            }
            for one in ranking.shown
        ],
        "left_out": [{**_candidate(out.candidate), "reason": out.reason} for out in ranking.left_out],
        "not_encoded": ranking.not_encoded,
        "note": note or None,
    }


def _candidate(one: RankedMemory) -> dict[str, Any]:
    return {
        "file": one.path,
        "name": one.name,
        "description": one.description,
        "type": one.type or None,
        "score": round(one.score, 4),
        "why": one.why,
        "age": age_words(one.mtime, time()),
        "age_days": age_days(one.mtime, time()),
    }


def _trust_json(lead: MarkedStatement | None) -> dict[str, Any]:
    trust = lead.trust.value if lead and lead.trust else None
    return {"trust": trust, "evidence": lead.evidence() or None if lead else None}


def _show(ranking: Ranking, memory: OpenedMemory, gone: FindMissing, leads: Leads, *, why: bool) -> None:
    paint, wide = get_paint(), line_width()
    if not ranking.files:
        say(f"There are no memories in {memory.directory.root} yet.", err=True)
        return
    if not ranking.shown:
        reason = ranking.silent if why else ranking.silent.partition(" (")[0]
        say(f"Recall ran over {plural(ranking.files, 'memory', 'memories')} and chose nothing: {reason}.", err=True)
    for number, one in enumerate(ranking.shown):
        if number and why:
            say()
        score = f"{one.score:.2f}  " if why else ""
        lead = leads[one.path]
        about = " · ".join([age_words(one.mtime, time()), *([lead.trust] if lead and lead.trust else [])])
        say(f"{score}{paint.accent(one_line(one.path))}  {paint.dim(about)}")
        indent = " " * (len(score) or 2)
        if one.description:
            say(f"{indent}{cut(one_line(one.description), wide - len(indent))}")
        if lead and (evidence := lead.evidence()):
            say(paint.dim(f"{indent}{cut(one_line(evidence), wide - len(indent))}"))
        if why:
            say_dim(one.why, len(indent))
        if missing := gone(memory.directory.read(one.path).text):
            text = f"not in the repository any more: {', '.join(missing)}"
            say(wrap_hanging(text, f"{indent}{paint.warning('!')} ", len(indent) + 2))
    if why:
        _show_left_out(ranking)


def _show_left_out(ranking: Ranking) -> None:
    paint = get_paint()
    if ranking.left_out:
        say()
        say(paint.bold("left out"))
    for out in ranking.left_out:
        one = out.candidate
        say(f"{one.score:.2f}  {paint.accent(one_line(one.path))}  {paint.dim(age_words(one.mtime, time()))}")
        say_dim(f"{out.reason} ({one.why})", 6)
    say()
    left = f", {ranking.not_encoded} not encoded yet" if ranking.not_encoded else ""
    counted = f"{ranking.tier} ranker, {plural(ranking.files, 'memory', 'memories')}{left}"
    say(paint.dim(f"{counted}; {ranking.confidence:.0%} confident that a memory matches"))
    if ranking.grounds:
        say_dim(", ".join(f"{name} {value:.2f}" for name, value in ranking.grounds))
