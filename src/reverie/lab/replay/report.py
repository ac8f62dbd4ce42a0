"""Replays many sessions under many policies and adds up what each paid: for a program, and for people.

Sessions are replayed in as many processes as there are processors; each policy starts every session anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from reverie.lab.replay.bound import foresight, lower_bound
from reverie.lab.replay.policies import BASELINE, OTHERS, OURS, POLICIES, Policy
from reverie.lab.replay.recorded import Recorded
from reverie.lab.replay.run import Outcome, replay
from reverie.lab.replay.setting import PREFIX_TOKENS, TTL, WINDOW
from reverie.lab.replay.uses import needs_of
from reverie.types import Usage

_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Replayed:
    """One session under every policy, and what somebody who knows the future would have paid."""

    name: str
    model: str
    rounds: int
    outcomes: dict[str, Outcome]
    bound: float
    foresight: float

    @property
    def cheapest(self) -> tuple[str, ...]:
        """The policies that paid least; more than one if they tie. Who overran the window is not compared."""
        fitting = {name: out for name, out in self.outcomes.items() if not out.over_window} or self.outcomes
        least = min(outcome.cost for outcome in fitting.values()) * (1 + _TIE)
        return tuple(name for name, outcome in fitting.items() if outcome.cost <= least)

    @property
    def cheapest_with_notes(self) -> bool:
        """Whether ours is no dearer than any policy that is not a part of it, also with what its notes cost."""
        ours = self.outcomes[OURS]
        others = [out.cost for name, out in self.outcomes.items() if name in OTHERS and not out.over_window]
        return ours.cost + ours.notes_cost <= min(others, default=float("inf")) * (1 + _TIE)


Progress = Callable[[int, int, str], None]


def replay_all(
    sessions: Sequence[Recorded],
    policies: Sequence[Policy],
    *,
    prefix_tokens: int = PREFIX_TOKENS,
    window: int = WINDOW,
    progress: Progress = lambda _done, _all, _name: None,
) -> list[Replayed]:
    """Every session under every policy. `progress` is told how many are done, of how many, and the last one's name."""
    done = list[Replayed]()
    for one in _each(sessions, [policy.name for policy in policies], prefix_tokens, window):
        done.append(one)
        progress(len(done), len(sessions), one.name)
    return done


def _each(sessions: Sequence[Recorded], names: Sequence[str], prefix_tokens: int, window: int) -> Iterator[Replayed]:
    workers = min(os.cpu_count() or 1, len(sessions))
    jobs = [(session, names, prefix_tokens, window) for session in sessions]
    if workers == 1:
        yield from map(_replayed, jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_replayed, jobs)


def _replayed(job: tuple[Recorded, Sequence[str], int, int]) -> Replayed:
    session, names, prefix_tokens, window = job
    needs = needs_of(session)

    def under(policy: Policy) -> Outcome:
        return replay(session, needs, policy, prefix_tokens=prefix_tokens, window=window)

    outcomes = {name: under(POLICIES[name]) for name in names}
    ahead = under(foresight(session, needs))
    return Replayed(
        session.name,
        session.model,
        len(session.rounds),
        outcomes,
        lower_bound(session, needs, prefix_tokens),
        ahead.cost,
    )


@dataclass(frozen=True, slots=True)
class Total:
    """What one policy paid for all sessions."""

    cost: float
    dollars: float
    usage: Usage
    requests: int
    announced_breaks: int
    unannounced_breaks: int
    regret: float
    read_back: int
    cleared: int
    cleared_tokens: int
    over_window: int
    compactions: int
    without_model: int
    stopped: int
    notes_updates: int
    notes_cost: float

    @staticmethod
    def of(outcomes: Sequence[Outcome]) -> Total:
        return Total(
            sum(each.cost for each in outcomes),
            sum(each.dollars for each in outcomes),
            sum((each.usage for each in outcomes), Usage()),
            sum(each.requests for each in outcomes),
            sum(each.announced_breaks for each in outcomes),
            sum(each.unannounced_breaks for each in outcomes),
            sum(each.regret for each in outcomes),
            sum(each.read_back for each in outcomes),
            sum(each.cleared for each in outcomes),
            sum(each.cleared_tokens for each in outcomes),
            sum(each.over_window for each in outcomes),
            sum(each.compactions for each in outcomes),
            sum(each.without_model for each in outcomes),
            sum(each.stopped for each in outcomes),
            sum(each.notes_updates for each in outcomes),
            sum(each.notes_cost for each in outcomes),
        )

    @property
    def read_share(self) -> float:
        return self.usage.cache_read_input_tokens / self.usage.prompt if self.usage.prompt else 0.0

    def wire(self, baseline: float) -> dict[str, Any]:
        return {
            "cost": round(self.cost),
            "cost_usd": round(self.dollars, 4),
            "ratio_to_cached": round(self.cost / baseline, 4),
            "cache_read_share": round(self.read_share, 4),
            "announced_breaks": self.announced_breaks,
            "unannounced_breaks": self.unannounced_breaks,
            "regret": round(self.regret),
            "read_back": self.read_back,
            "cleared_results": self.cleared,
            "cleared_tokens": self.cleared_tokens,
            "requests": self.requests,
            "over_window": self.over_window,
            "compactions": self.compactions,
            "compactions_without_model": self.without_model,
            "stopped_by_breaker": self.stopped,
            "notes_updates": self.notes_updates,
            "notes_cost": round(self.notes_cost),
            "ratio_to_cached_with_notes": round((self.cost + self.notes_cost) / baseline, 4),
        }


def totals(done: Sequence[Replayed]) -> dict[str, Total]:
    return {name: Total.of([each.outcomes[name] for each in done]) for name in done[0].outcomes}


def summary(done: Sequence[Replayed], prefix_tokens: int = PREFIX_TOKENS, window: int = WINDOW) -> dict[str, Any]:
    """The figures a program reads. Costs are in tokens of fresh input, output included at its price."""
    paid = totals(done)
    baseline = paid[BASELINE].cost
    found: dict[str, Any] = {
        "policies": {
            name: {**total.wire(baseline), "cheapest_on": sum(name in each.cheapest for each in done)}
            for name, total in paid.items()
        },
        "sessions": [_row(each) for each in done],
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
        found["cheapest_share_with_notes"] = round(sum(each.cheapest_with_notes for each in done) / len(done), 4)
        for other in ("langchain", "summarise"):
            if other in paid:
                found[f"ratio_to_{other}"] = round(ours / paid[other].cost, 4)
                found[f"ratio_to_{other}_with_notes"] = round((ours + paid[OURS].notes_cost) / paid[other].cost, 4)
    return found


def _ratio(done: Sequence[Replayed]) -> float:
    """What ours pays of the baseline, over some of the sessions."""
    return round(sum(e.outcomes[OURS].cost for e in done) / sum(e.outcomes[BASELINE].cost for e in done), 4)


def _row(each: Replayed) -> dict[str, Any]:
    baseline = each.outcomes[BASELINE].cost
    return {
        "session": each.name,
        "model": each.model,
        "rounds": each.rounds,
        "cheapest": list(each.cheapest),
        "lower_bound": round(each.bound),
        "policies": {name: Total.of([outcome]).wire(baseline) for name, outcome in each.outcomes.items()},
    }


def table(done: Sequence[Replayed]) -> str:
    """The same for people: a line a session with what each policy paid of `cached`, then a line a policy."""
    paid = totals(done)
    names = list(paid)
    lines = [f"{'session':<14}{'rounds':>7}" + "".join(f"{name:>11}" for name in names) + f"{'bound':>8}"]
    for each in sorted(done, key=lambda one: -one.rounds):
        base = each.outcomes[BASELINE].cost
        row = "".join(f"{each.outcomes[name].cost / base:>10.3f}{_star(each, name)}" for name in names)
        lines.append(f"{each.name[:12]:<14}{each.rounds:>7}{row}{each.bound / base:>8.3f}")
    baseline = paid[BASELINE].cost
    lines += [
        "",
        f"{'policy':<11}{'cost':>13}{'USD':>10}{'of cached':>11}{'read':>7}{'breaks':>8}{'unannounced':>13}"
        f"{'cleared':>11}{'read back':>11}{'regret':>10}{'cheapest':>10}",
    ]
    for name, total in paid.items():
        won = sum(name in each.cheapest for each in done)
        lines.append(
            f"{name:<11}{total.cost:>13,.0f}{total.dollars:>10.2f}{total.cost / baseline:>11.3f}"
            f"{total.read_share:>7.0%}{total.announced_breaks:>8}{total.unannounced_breaks:>13}"
            f"{total.cleared_tokens:>11,}{total.read_back:>11}{total.regret / baseline:>10.1%}"
            f"{f'{won}/{len(done)}':>10}"
        )
    lines += _compactions(done, paid)
    bound = sum(each.bound for each in done)
    ahead = sum(each.foresight for each in done)
    lines += [
        "",
        f"No policy can pay less than {bound / baseline:.3f} of cached (every use known, every clear free); "
        f"the economic rule pays {ahead / baseline:.3f} if it is told the future.",
        "cost: tokens of fresh input, output included. read: share of the prompt read from the cache. regret: paid to "
        "have content again. over window: requests that would not have fitted. no model: compactions that asked none. "
        "stopped: sessions in which a breaker ended auto-compaction. "
        "notes: paid beside the conversation, not in cost.",
        "* cheapest on this session.",
    ]
    return "\n".join(lines)


def _compactions(done: Sequence[Replayed], paid: dict[str, Total]) -> list[str]:
    """What happened at the threshold, and what the notes cost beside the conversation."""
    baseline = paid[BASELINE].cost
    lines = [
        "",
        f"{'policy':<11}{'over window':>13}{'compactions':>13}{'no model':>10}{'stopped':>9}{'note updates':>14}"
        f"{'notes':>8}{'with notes, of cached':>23}",
    ]
    for name, total in paid.items():
        share = f"{total.without_model / total.compactions:.0%}" if total.compactions else "-"
        lines.append(
            f"{name:<11}{total.over_window:>13}{total.compactions:>13}{share:>10}{total.stopped:>9}{total.notes_updates:>14}"
            f"{total.notes_cost / baseline:>8.3f}{(total.cost + total.notes_cost) / baseline:>23.3f}"
        )
    if OURS in paid:
        won = sum(each.cheapest_with_notes for each in done)
        others = ", ".join(name for name in paid if name in OTHERS)
        lines += ["", f"With its notes paid, {OURS} is no dearer than {others} on {won} of {len(done)} sessions."]
    return lines


def _star(each: Replayed, name: str) -> str:
    return "*" if name in each.cheapest else " "
