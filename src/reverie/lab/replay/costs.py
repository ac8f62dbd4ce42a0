"""What one recorded session costs in several ways, and the same for many sessions, one process per processor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from reverie.cli.output import show_progress
from reverie.errors import UserError
from reverie.lab.replay.policies import OTHERS, OURS
from reverie.lab.replay.recorded import RecordedSession
from reverie.lab.replay.run import PolicyOutcome
from reverie.quick import dataclass
from reverie.simulator.errors import ApiError

_TIE = 1e-9


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
) -> list[SessionCosts]:
    """Measures every session. Those with messages that no server accepts are left out; UserError if none is left.
    `done_to`: what was to be done to them, for that error."""
    done, refused = list[SessionCosts](), list[str]()
    for session, one in zip(sessions, _each(sessions, partial(_unless_refused, measure)), strict=True):
        if isinstance(one, SessionCosts):
            done.append(one)
        else:
            refused.append(f"{session.name} is left out: {one}")
        count, name = len(done) + len(refused), refused[-1] if isinstance(one, str) else session.name
        ends = isinstance(one, str) or count == len(sessions)
        show_progress(f"{done_to} {count} of {len(sessions)}: {name[:90]:<36}", ends_line=ends)
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
