"""What one recorded session costs in several ways, and the same for many sessions, one process per processor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeAlias

from reverie.errors import UserError
from reverie.lab.replay.policies import OTHERS, OURS
from reverie.lab.replay.recorded import RecordedSession
from reverie.lab.replay.run import PolicyOutcome
from reverie.quick import dataclass
from reverie.simulator.errors import ApiError
from reverie.text.columns import table

columns = partial(table, right=range(1, 99))
_TIE = 1e-9

Progress: TypeAlias = Callable[[int, int, str], None]
"""Gets the number of sessions that are done, the number of all, and the last name, or why it is left out."""


@dataclass(frozen=True, slots=True)
class SessionCosts:
    """One session in several ways: under policies, or through proxies. `bound` and `foresight`: its costs with
    knowledge of the future, if they were asked for."""

    name: str
    model: str
    rounds: int
    outcomes: dict[str, PolicyOutcome]
    bound: float = 0.0
    foresight: float = 0.0

    @classmethod
    def of(
        cls, session: RecordedSession, outcomes: dict[str, PolicyOutcome], bound: float = 0.0, foresight: float = 0.0
    ) -> SessionCosts:
        return cls(session.name, session.model, len(session.rounds), outcomes, bound, foresight)

    @property
    def cheapest(self) -> tuple[str, ...]:
        """Ours or those of others with the least cost, without policies that were over the window."""
        rivals = {name: out for name, out in self.outcomes.items() if name in (*OTHERS, OURS)}
        fitting = {name: out for name, out in rivals.items() if not out.over_window} or rivals
        least = min(outcome.cost for outcome in fitting.values()) * (1 + _TIE)
        return tuple(name for name, outcome in fitting.items() if outcome.cost <= least)


def measure_each(
    sessions: Sequence[RecordedSession],
    measure: Callable[[RecordedSession], SessionCosts],
    *,
    done_to: str,
    progress: Progress = lambda _done, _all, _name: None,
) -> list[SessionCosts]:
    """Measures every session. Those with messages that no server accepts are left out; UserError if none is left.
    `done_to`: what was to be done to them, for that error."""
    done, refused = list[SessionCosts](), list[str]()
    for session, one in zip(sessions, _each(sessions, partial(_unless_refused, measure)), strict=True):
        if isinstance(one, SessionCosts):
            done.append(one)
        else:
            refused.append(f"{session.name} is left out: {one}")
        progress(len(done) + len(refused), len(sessions), refused[-1] if isinstance(one, str) else session.name)
    if not done:
        raise UserError(f"None of the sessions can be {done_to}; {refused[0]}.")
    return done


def _each(
    sessions: Sequence[RecordedSession], measure: Callable[[RecordedSession], SessionCosts | str]
) -> Iterator[SessionCosts | str]:
    workers = min(os.cpu_count() or 1, len(sessions))
    if workers == 1:
        yield from map(measure, sessions)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(measure, sessions)


def _unless_refused(measure: Callable[[RecordedSession], SessionCosts], session: RecordedSession) -> SessionCosts | str:
    """The costs of one session, or why a server would refuse it."""
    try:
        return measure(session)
    except ApiError as error:
        return str(error)


def totals(done: Sequence[SessionCosts]) -> dict[str, PolicyOutcome]:
    """The cost of each way for all sessions."""
    return {name: PolicyOutcome.sum(each.outcomes[name] for each in done) for name in done[0].outcomes}
