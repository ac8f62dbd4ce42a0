"""Clears results when it pays: the saving in all later rounds against one break of the prefix and later misses.

See docs/decisions/0007-economic-clearing.md. In short: a token costs `read` per round; taking tokens out means that
everything after them is written again; a result that is needed again costs a round. All cuts are tried; the best
is made if it clearly pays. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import log

from reverie.layers.l2_microcompact.lessons import Lessons
from reverie.layers.l2_microcompact.results import ClearableResult, ResultIndex
from reverie.models.catalogue import ModelFacts
from reverie.models.prices import output_ratio
from reverie.quick import dataclass

ROUNDS_TO_COME = 0.5
"""A session is expected to have half as many more rounds as it has had."""
USED_AGAIN = {"Read": 0.5, "Edit": 0.02, "Write": 0.02, "Bash": 0.15}
USED_AGAIN_OTHERWISE = 0.3
"""How likely a fresh result is needed again after it was answered, by tool."""
EDITED = 0.2
REPEATED = 0.4
"""Factors on that likelihood if the file was edited since, or was read or run again."""
FADES_OVER = 10
"""Rounds after which the likelihood is halved."""
CLEARLY = 0.15
"""A cut must gain the cost of its break plus this share of the cost to write the whole prompt again."""
_ASKING = 60
"""Tokens of a call that asks for a result again."""
_EXPIRED_PRIOR = (0.5, 20)
_TAIL = log(2) / log(1 + ROUNDS_TO_COME)

LIFETIME_S = {"5m": 300, "1h": 3_600}


@dataclass(frozen=True, slots=True)
class Rates:
    """What a token costs, in tokens of fresh input: read from the cache, written to it, produced."""

    read: float = 0.1
    write: float = 1.25
    output: float = 5.0
    lifetime_s: int = 300

    @staticmethod
    def of(facts: ModelFacts, ttl: str) -> Rates:
        write = facts.cache_write_1h if ttl == "1h" else facts.cache_write_5m
        return Rates(facts.cache_read, write, output_ratio(facts), LIFETIME_S[ttl])


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is expected of the rest of the session."""

    to_come: float
    expiring: float
    """The share of them that find the cache expired."""
    likelihood: Callable[[ClearableResult, int], float] | None = None
    """How likely a result is needed again after so many rounds; None: `likelihood`."""


@dataclass(frozen=True, slots=True)
class ClearingCut:
    """What to clear, oldest first, and the expected gain beyond its price, in tokens of fresh input."""

    chosen: tuple[ClearableResult, ...]
    gain: float
    price: float


def outlook(index: ResultIndex, rounds: int, rates: Rates) -> Outlook:
    """Returns the outlook from the session so far. `rounds` counts its responses."""
    known, of = _EXPIRED_PRIOR
    expiring = (index.expiries(rates.lifetime_s) + known) / (index.rounds + of)
    return Outlook(ROUNDS_TO_COME * rounds, expiring)


def chance_of(rounds: float, so_far: int) -> float:
    """Returns how likely a session of `so_far` rounds has as many more: evens for `ROUNDS_TO_COME` times as many."""
    return (so_far / (so_far + rounds)) ** _TAIL if so_far else 0.0


def likelihood(held: ClearableResult, age: int) -> float:
    """Returns how likely the session needs this result again, `age` rounds after it came."""
    fresh = USED_AGAIN.get(held.tool, USED_AGAIN_OTHERWISE)
    if held.edited:
        fresh *= EDITED
    if held.repeated:
        fresh *= REPEATED
    return fresh / (1 + age / FADES_OVER)


def best_cut(
    index: ResultIndex,
    now: datetime,
    *,
    used: int,
    rates: Rates,
    ahead: Outlook,
    keep_rounds: int,
    lessons: Lessons,
    broken: bool = False,
    allowance: float | None = None,
) -> ClearingCut | None:
    """Returns the cut that pays best, or None if none clearly pays. `used`: tokens of the current prompt.

    Results of the last `keep_rounds` stay. `broken`: the prefix breaks anyway, so that a cut costs nothing.
    `allowance`: what its break may cost at most, in tokens of fresh input.
    """
    expired = broken or _is_expired(index, now, rates)
    carried = ahead.to_come * (rates.read + ahead.expiring * (rates.write - rates.read))
    saved = carried + (rates.write if expired else rates.read)
    again = rates.write + carried / 2  # written again, and carried for half of the remaining rounds on average
    one_round = rates.read * used + rates.output * _ASKING
    break_price = 0.0 if expired else rates.write - rates.read
    cached_since = _cached_since(index, now, rates)
    judge, rounds = ahead.likelihood or likelihood, index.rounds
    behind, gained, best, best_price, count = -index.fresh, 0.0, 0.0, 0.0, 0
    saved_tokens, chosen = 0, list[ClearableResult]()
    raised = {tool: lessons.raises(tool) for tool in lessons.again}
    for held in reversed(index.held):
        behind += held.gap
        age = rounds - held.since
        worth = 0.0
        stays = not held.repeated and lessons.is_kept(held.about, new_turn=held.since < index.turn_since)
        if age >= max(1, keep_rounds) and not stays:
            needed = min(1.0, judge(held, age) * raised.get(held.tool, 1.0))
            worth = held.saves * saved - needed * (held.tokens * again + one_round)
        if worth <= 0:
            behind += held.tokens
            continue
        chosen.append(held)
        gained += worth
        saved_tokens += held.saves
        if held.since >= cached_since:
            rewritten = behind
        else:
            rewritten = (index.turn if held.since >= index.turn_since else used) - index.fresh - saved_tokens
        price = break_price * max(0, rewritten)
        if gained - price > best and (allowance is None or price <= allowance):
            best, best_price, count = gained - price, price, len(chosen)
        behind += held.marker_tokens
    if count == 0 or best < best_price + CLEARLY * break_price * used:
        return None
    return ClearingCut(tuple(reversed(chosen[:count])), best, best_price)


def _is_expired(index: ResultIndex, now: datetime, rates: Rates) -> bool:
    """Whether the cache is gone anyway, so that a break costs nothing. A clock that went back says no."""
    return bool(index.asked) and (now - index.asked[-1]).total_seconds() > rates.lifetime_s


def _cached_since(index: ResultIndex, now: datetime, rates: Rates) -> int:
    """The round from which the prefix of a result has its own cache entry, made by the request that brought the result.
    Before that round, everything is written again from the start of the turn, which has a marker, or from the start."""
    oldest = now - timedelta(seconds=rates.lifetime_s)
    return bisect_left(index.asked, oldest)


def describe_clears(chosen: Sequence[ClearableResult], done: str) -> str:
    """Describes the clears: how many results, how many tokens, and what happened to them."""
    tokens = sum(held.saves for held in chosen)
    one = len(chosen) == 1
    results = "1 old tool result" if one else f"{len(chosen)} old tool results"
    return f"{results} (about {tokens:,} tokens) {'was' if one else 'were'} {done}"
