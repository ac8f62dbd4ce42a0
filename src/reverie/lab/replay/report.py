"""Replays many sessions under many policies, and adds up the costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from reverie.errors import ReverieError
from reverie.lab.replay.bound import foresight, lower_bound
from reverie.lab.replay.costs import Progress, SessionCosts, columns, measure_each, totals
from reverie.lab.replay.policies import BASELINE, OTHERS, OURS, POLICIES, Policy
from reverie.lab.replay.recorded import PREFIX_TOKENS, TTL, WINDOW, RecordedSession, load_session
from reverie.lab.replay.run import PolicyOutcome, replay
from reverie.lab.replay.uses import needs_of
from reverie.simulator.errors import ApiError

_COSTS = ("policy", "cost", "USD", "of cached", "read", "breaks", "unannounced", "cleared", "again", "regret", "best")
_FILLED = ("policy", "over window", "compactions", "no model", "stopped", "note updates", "notes")
_SHOWN = 40
"""Sessions in the table; the figures are of all of them."""
_WORDS = (
    "cost: tokens of fresh input, output included. read: share of the prompt read from the cache. again: results "
    "read again. regret: paid for that. best: sessions on which it is cheapest. over window: requests that would not "
    "have fitted. no model: compactions without a model. stopped: sessions in which a breaker ended auto-compaction. "
    "notes: the part of the cost for them, as a share of cached. reverie-1m: in a window of a million tokens."
)


def replay_all(
    sessions: Sequence[RecordedSession],
    policies: Sequence[Policy],
    *,
    prefix_tokens: int = PREFIX_TOKENS,
    window: int = WINDOW,
    progress: Progress = lambda _done, _all, _name: None,
) -> list[SessionCosts]:
    """Replays every session under every policy. `progress` gets the number done, the total and the last name.

    Sessions with messages that no server accepts are left out. UserError if none is left.
    """
    measure = partial(_replay_session, names=[p.name for p in policies], prefix_tokens=prefix_tokens, window=window)
    return measure_each(sessions, measure, done_to="replayed", progress=progress)


def replay_file(
    path: Path, names: Sequence[str], prefix_tokens: int, window: int, on_policy: Callable[[str], None]
) -> SessionCosts | str:
    """The costs of the session in a file, or why it is left out. `on_policy` hears of each policy that is done."""
    try:
        session = load_session(path)
        if not session.rounds:
            return "it has no recorded answer"
        return _replay_session(session, names, prefix_tokens, window, on_policy)
    except (ApiError, ReverieError) as error:
        return str(error)


class RunningTotals:
    """The totals of the sessions so far. Adding one costs the same, however many there are."""

    def __init__(self) -> None:
        self.sessions = 0
        self._paid = dict[str, PolicyOutcome]()
        self._cheapest = Counter[str]()
        self._bound = 0.0

    def add(self, one: SessionCosts) -> None:
        self.sessions += 1
        self._cheapest.update(one.cheapest)
        self._bound += one.bound
        for name, outcome in one.outcomes.items():
            known = self._paid.get(name)
            self._paid[name] = replace(
                PolicyOutcome.sum([*([known] if known else []), outcome]), by_round=[], breaks=[]
            )

    def to_json(self) -> dict[str, Any]:
        """The same figures per policy as in `summary`."""
        baseline = self._paid[BASELINE].cost
        return {
            "policies": {
                name: {**total.figures(baseline), "cheapest_on": self._cheapest[name]}
                for name, total in self._paid.items()
            },
            "sessions": self.sessions,
            "lower_bound_to_cached": round(self._bound / baseline, 4),
        }


def _replay_session(
    session: RecordedSession,
    names: Sequence[str],
    prefix_tokens: int,
    window: int,
    on_policy: Callable[[str], None] = lambda _name: None,
) -> SessionCosts:
    needs = needs_of(session)

    def under(policy: Policy) -> PolicyOutcome:
        outcome = replay(session, needs, policy, prefix_tokens=prefix_tokens, window=window)
        on_policy(policy.name)
        return outcome

    outcomes = {name: under(POLICIES[name]) for name in names}
    ahead = under(foresight(session, needs))
    bound = lower_bound(session, needs, prefix_tokens)
    return SessionCosts.of(session, outcomes, bound, ahead.cost)


def summary(done: Sequence[SessionCosts], prefix_tokens: int = PREFIX_TOKENS, window: int = WINDOW) -> dict[str, Any]:
    """The figures for programs. Costs are in tokens of fresh input, including output."""
    paid = totals(done)
    baseline = paid[BASELINE].cost
    found: dict[str, Any] = {
        "policies": {
            name: {**total.figures(baseline), "cheapest_on": sum(name in each.cheapest for each in done)}
            for name, total in paid.items()
        },
        "sessions": [session_figures(each) for each in done],
        "setting": {"prefix_tokens": prefix_tokens, "window": window, "ttl": TTL, "sessions": len(done)},
        "all_knowing": {
            "lower_bound": round(sum(each.bound for each in done)),
            "lower_bound_to_cached": round(sum(each.bound for each in done) / baseline, 4),
            "same_rule_with_foresight": round(sum(each.foresight for each in done)),
            "same_rule_with_foresight_to_cached": round(sum(each.foresight for each in done) / baseline, 4),
        },
    }
    if OURS in paid:
        ours = paid[OURS].cost
        found["all_knowing"]["reverie_over_lower_bound"] = round(ours / sum(each.bound for each in done), 4)
        found["cheapest_share"] = round(sum(OURS in each.cheapest for each in done) / len(done), 4)
        found["halves"] = [_ratio(done[start::2]) for start in (0, 1) if done[start::2]]
        found["cheapest_share_with_notes"] = found["cheapest_share"]
        for other in ("langchain", "summarise"):
            if other in paid:
                found[f"ratio_to_{other}"] = round(ours / paid[other].cost, 4)
    return found


def _ratio(done: Sequence[SessionCosts]) -> float:
    return round(sum(e.outcomes[OURS].cost for e in done) / sum(e.outcomes[BASELINE].cost for e in done), 4)


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


def table(done: Sequence[SessionCosts]) -> str:
    """The figures for people: one line per session with costs as shares of `cached`, then one line per policy."""
    paid = totals(done)
    baseline, bound = paid[BASELINE].cost, sum(each.bound for each in done)
    ahead = sum(each.foresight for each in done)
    longest = sorted(done, key=lambda one: -one.rounds)
    lines = [
        *columns([("session", "rounds", *paid, "bound"), *map(_paid, longest[:_SHOWN])]),
        *([f"… and {len(done) - _SHOWN} shorter sessions."] if len(done) > _SHOWN else []),
        "",
        *columns([_COSTS, *(_cost_row(name, total, baseline, done) for name, total in paid.items())]),
        "",
        *columns([_FILLED, *(_window_row(name, total, baseline) for name, total in paid.items())]),
    ]
    if OURS in paid:
        won = sum(OURS in each.cheapest for each in done)
        others = ", ".join(name for name in paid if name in OTHERS)
        lines += ["", f"{OURS} costs no more than {others} on {won} of {len(done)} sessions."]
    lines += [
        "",
        f"No policy can pay less than {bound / baseline:.3f} of cached (every use known, every clear free); "
        f"the economic rule pays {ahead / baseline:.3f} if it knows the future.",
        _WORDS,
        "* cheapest on this session, among ours and those of others.",
    ]
    return "\n".join(lines)


def _paid(each: SessionCosts) -> tuple[str, ...]:
    base, best = each.outcomes[BASELINE].cost, each.cheapest
    shares = (f"{one.cost / base:.3f}{'*' if name in best else ' '}" for name, one in each.outcomes.items())
    return (each.name[:12], str(each.rounds), *shares, f"{each.bound / base:.3f}")


def _cost_row(name: str, total: PolicyOutcome, baseline: float, done: Sequence[SessionCosts]) -> tuple[str, ...]:
    won = sum(name in each.cheapest for each in done)
    shares = (f"{total.cost / baseline:.3f}", f"{total.read_share:.0%}")
    breaks = (str(total.announced_breaks), str(total.unannounced_breaks))
    missed = (f"{total.cleared_tokens:,}", str(total.read_back), f"{total.regret / baseline:.1%}")
    return (name, f"{total.cost:,.0f}", f"{total.dollars:.2f}", *shares, *breaks, *missed, f"{won}/{len(done)}")


def _window_row(name: str, total: PolicyOutcome, baseline: float) -> tuple[str, ...]:
    share = f"{total.without_model / total.compactions:.0%}" if total.compactions else "-"
    counts = (total.over_window, total.compactions, share, int(total.stopped), total.notes_updates)
    return (name, *map(str, counts), f"{total.notes_cost / baseline:.3f}")
