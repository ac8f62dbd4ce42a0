"""Replays many sessions under many policies, and adds up the costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from reverie.lab.measurement import Result, Table, dollars, measurement, named, paths_argument, ratio, share
from reverie.lab.replay.bound import foresight, lower_bound
from reverie.lab.replay.costs import SessionCosts, measure_each, totals
from reverie.lab.replay.plot import check_plot, draw
from reverie.lab.replay.policies import BASELINE, OTHERS, OURS, POLICIES, Policy, choose_policies
from reverie.lab.replay.recorded import PREFIX_TOKENS, TTL, WINDOW, RecordedSession, check_room, load
from reverie.lab.replay.run import PolicyOutcome
from reverie.lab.replay.run import replay as replay_under
from reverie.lab.replay.uses import needs_of

_COSTS = (
    "policy",
    "cost",
    dollars("cost_usd", "USD"),
    ratio("ratio_to_cached", "of cached"),
    share("cache_read_share", "read"),
    "announced_breaks",
    "unannounced_breaks",
    "cleared_tokens",
    "read_back",
    "regret",
    "cheapest_on",
)
_FULL = (
    "policy",
    "over_window",
    "compactions",
    "compactions_without_model",
    "stopped_by_breaker",
    "notes_updates",
    "notes_cost",
)
_SHOWN = 40
"""Sessions in the table; the figures are of all of them."""
_WORDS = (
    "cost: tokens of fresh input, output included. read: share of the prompt read from the cache. read back: results "
    "read again. regret: paid for that. cheapest on: sessions, among ours and those of others. over window: requests "
    "that would not have fitted. stopped by breaker: sessions in which a breaker ended auto-compaction. reverie-1m: in "
    "a window of a million tokens."
)


@measurement(
    "reverie lab replay ~/.claude/projects",
    "reverie lab replay ~/.claude/projects/my-project/*.jsonl --policy reverie --plot costs.png",
    "reverie lab replay ~/.claude/projects/my-project/*.jsonl --window 64000",
)
@paths_argument
@click.option("--policy", "names", metavar="NAME", multiple=True, help="Only this policy. Repeatable.")
@click.option(
    "--prefix-tokens",
    default=PREFIX_TOKENS,
    show_default=True,
    type=click.IntRange(min=0),
    help="The size of the system prompt and the tools, in tokens.",
)
@click.option("--window", default=WINDOW, show_default=True, type=click.IntRange(min=8_000), help="Window in tokens.")
@click.option(
    "--plot", "picture", metavar="FILE", type=click.Path(path_type=Path), help="Also write a chart (.png, .svg)."
)
def replay(
    paths: tuple[Path, ...], names: tuple[str, ...], prefix_tokens: int, window: int, picture: Path | None
) -> Result:
    """Replay recorded sessions and compare what different context policies cost.

    A policy decides what stays in a request and what is cleared or summarised. Each request is prepared as in a real
    session, with a clock that shows the time at which it was recorded, and the simulator computes its cost. If a policy
    removes content that the session needs later, the cost of reading it again is added: one more request per result.
    Notes and summaries are part of the cost. A small --window shows what happens when the window is full. PATH is a
    transcript, or a folder: then all transcripts in it and below it are replayed.

    \b
    Policies:
      resend     send everything again, without a cache
      cached     prompt caching alone: nothing is removed, and the window has no limit
      summarise  when the window is full, a plain summary replaces the conversation
      langchain  LangChain's ContextEditingMiddleware with its defaults, if it is installed
      server     the server of the model clears old tool results (context_management)
      time       layer 2, but it clears old tool results only after a pause of an hour
      economic   layer 2: it clears old tool results when that saves money, or after such a pause
      summary    layer 4 alone: a summary, with facts from the conversation next to it
      notes      layers 3 and 4: notes of a model (notes.cadence = reference) replace the old part
      reverie    layers 1 to 4 with their defaults
      reverie-1m the same in a window of a million tokens, whatever --window says
    """
    policies = choose_policies(names)
    check_room(prefix_tokens, window)
    if picture is not None:
        check_plot(picture)
    sessions = load(paths)
    left_out = "" if names or "langchain" in [one.name for one in policies] else " (without langchain: not installed)"
    click.echo(f"replaying {len(sessions)} sessions under {len(policies)} policies{left_out}", err=True)
    done = replay_all(sessions, policies, prefix_tokens=prefix_tokens, window=window)
    if picture is not None:
        draw(done, picture)
    return report(done, prefix_tokens, window)


def replay_all(
    sessions: Sequence[RecordedSession],
    policies: Sequence[Policy],
    *,
    prefix_tokens: int = PREFIX_TOKENS,
    window: int = WINDOW,
) -> list[SessionCosts]:
    """Replays every session under every policy. Sessions with messages that no server accepts are left out. UserError
    if none is left."""
    measure = partial(replay_session, names=[p.name for p in policies], prefix_tokens=prefix_tokens, window=window)
    return measure_each(sessions, measure, done_to="replayed")


def replay_session(
    session: RecordedSession,
    names: Sequence[str],
    prefix_tokens: int,
    window: int,
) -> SessionCosts:
    """One session under these policies."""
    needs = needs_of(session)

    def under(policy: Policy) -> PolicyOutcome:
        return replay_under(session, needs, policy, prefix_tokens=prefix_tokens, window=window)

    outcomes = {name: under(POLICIES[name]) for name in names}
    ahead = under(foresight(session, needs))
    bound = lower_bound(session, needs, prefix_tokens)
    return SessionCosts.of(session, outcomes, bound, ahead.cost)


def report(done: Sequence[SessionCosts], prefix_tokens: int = PREFIX_TOKENS, window: int = WINDOW) -> Result:
    """The costs of all sessions, in tokens of fresh input, including output."""
    paid = totals(done)
    baseline, bound = paid[BASELINE].cost, sum(each.bound for each in done)
    ahead = sum(each.foresight for each in done)
    policies = {
        name: {**total.figures(baseline), "cheapest_on": sum(name in each.cheapest for each in done)}
        for name, total in paid.items()
    }
    sessions = [session_figures(each) for each in done]
    figures: dict[str, Any] = {
        "policies": policies,
        "sessions": sessions,
        "setting": {"prefix_tokens": prefix_tokens, "window": window, "ttl": TTL, "sessions": len(done)},
        "all_knowing": {
            "lower_bound": round(bound),
            "lower_bound_to_cached": bound / baseline,
            "same_rule_with_foresight": round(ahead),
            "same_rule_with_foresight_to_cached": ahead / baseline,
        },
    }
    notes = [f"… and {len(done) - _SHOWN} shorter sessions."] if len(done) > _SHOWN else []
    if OURS in paid:
        ours, won = paid[OURS].cost, policies[OURS]["cheapest_on"]
        figures["all_knowing"]["reverie_over_lower_bound"] = ours / bound
        figures["cheapest_share"] = figures["cheapest_share_with_notes"] = won / len(done)
        figures["halves"] = [_ratio(done[start::2]) for start in (0, 1) if done[start::2]]
        figures |= {f"ratio_to_{name}": ours / paid[name].cost for name in ("langchain", "summarise") if name in paid}
        others = ", ".join(name for name in paid if name in OTHERS)
        notes.append(f"{OURS} costs no more than {others} on {won} of {len(done)} sessions.")
    notes.append(
        f"No policy can pay less than {bound / baseline:.3f} of cached (every use known, every clear free); "
        f"the economic rule pays {ahead / baseline:.3f} if it knows the future."
    )
    longest = sorted(sessions, key=lambda one: -one["rounds"])[:_SHOWN]
    shares = [ratio(f"policies.{name}.ratio_to_cached", name) for name in paid]
    rows = named(policies, "policy")
    tables = (
        Table(longest, ("session", "rounds", *shares, "lower_bound", "cheapest")),
        Table(rows, _COSTS),
        Table(rows, _FULL),
    )
    return Result(figures, (*tables, *notes, _WORDS))


def _ratio(done: Sequence[SessionCosts]) -> float:
    return sum(e.outcomes[OURS].cost for e in done) / sum(e.outcomes[BASELINE].cost for e in done)


def session_figures(each: SessionCosts) -> dict[str, Any]:
    """One session for programs."""
    baseline = each.outcomes[BASELINE].cost
    return {
        "session": each.name,
        "model": each.model,
        "rounds": each.rounds,
        "cheapest": list(each.cheapest),
        "lower_bound": round(each.bound),
        "policies": {name: outcome.figures(baseline) for name, outcome in each.outcomes.items()},
    }
