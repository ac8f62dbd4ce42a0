"""Recorded sessions through the proxy, beside direct and beside headroom, in the same run: the bills of each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.proxy.headroom import headroom
from bench.proxy.traffic import Server, Traffic, serving
from reverie.lab.replay.costs import Progress, SessionCosts, columns, measure_each, totals
from reverie.lab.replay.recorded import PREFIX_TOKENS, WINDOW, RecordedSession
from reverie.lab.replay.run import PolicyOutcome
from reverie.models.catalogue import Catalogue
from reverie.proxy.bodies import APIS
from reverie.proxy.server import create_app, running
from reverie.runtime.loopback import address, listen

DIRECT, PROXY, HEADROOM = "direct", "proxy", "headroom"
AIM, WORST = 0.78, 1.01
_WORDS = (
    "Shares of the direct bill in US dollars. breaks: requests that did not read what the cache had. again: results "
    "that the model read again, in requests of their own; regret: the price of those. highest: the largest share if "
    "the session had ended after any of its rounds."
)


def measure(
    sessions: Sequence[RecordedSession],
    *,
    prefix_tokens: int = PREFIX_TOKENS,
    window: int = WINDOW,
    other: Path | None = None,
    progress: Progress = lambda _done, _all, _name: None,
) -> list[SessionCosts]:
    """Sends every session in every way. `other`: the program headroom. Sessions that no server accepts are left out."""
    one = partial(_measure, prefix_tokens=prefix_tokens, window=window, other=other)
    return measure_each(sessions, one, done_to="sent", progress=progress)


def _measure(session: RecordedSession, prefix_tokens: int, window: int, other: Path | None) -> SessionCosts:
    made = {
        DIRECT: _direct(session, prefix_tokens),
        PROXY: _through_proxy(session, prefix_tokens, window),
    }
    if other is not None:
        made[HEADROOM] = _through_headroom(session, prefix_tokens, other)
    return SessionCosts.of(session, made)


def _send(session: RecordedSession, url: str, server: Server, prefix_tokens: int) -> PolicyOutcome:
    return asyncio.run(Traffic(session, url, server, prefix_tokens).send())


def _direct(session: RecordedSession, prefix_tokens: int) -> PolicyOutcome:
    with serving(session.rounds[0].at) as server:
        return _send(session, server.url, server, prefix_tokens)


def _through_proxy(session: RecordedSession, prefix_tokens: int, window: int) -> PolicyOutcome:
    with TemporaryDirectory(prefix="reverie-lab-") as home, serving(session.rounds[0].at) as server:
        upstreams = dict.fromkeys(APIS, server.url)
        app = create_app(Path(home), upstreams, Catalogue.load(), window=window, clock=server.time)
        with closing(listen(0)) as listener, running(app, listener):
            return _send(session, address(listener), server, prefix_tokens)


def _through_headroom(session: RecordedSession, prefix_tokens: int, program: Path) -> PolicyOutcome:
    with serving(session.rounds[0].at) as server, headroom(program, server.url) as url:
        return _send(session, url, server, prefix_tokens)


def _ratio(each: SessionCosts, way: str = PROXY) -> float:
    return each.outcomes[way].dollars / each.outcomes[DIRECT].dollars


def _highest(each: SessionCosts, way: str = PROXY) -> float:
    """The largest ratio if the session had ended after any of its rounds: a clearing is paid before it pays."""
    pairs = zip(each.outcomes[way].by_round, each.outcomes[DIRECT].by_round, strict=True)
    return max(own / direct for own, direct in pairs)


def holds(done: Sequence[SessionCosts]) -> bool:
    """Whether the total is low enough, and no session is too much above its direct bill."""
    whole = totals(done)
    return whole[PROXY].dollars <= AIM * whole[DIRECT].dollars and max(_ratio(each) for each in done) <= WORST


def summary(done: Sequence[SessionCosts], prefix_tokens: int = PREFIX_TOKENS, window: int = WINDOW) -> dict[str, Any]:
    """The figures for programs."""
    whole = totals(done)
    ways = [way for way in whole if way != DIRECT]
    worst = {way: max(done, key=lambda each, way=way: _ratio(each, way)) for way in ways}
    return {
        "total": {way: _figures(one, whole[DIRECT]) for way, one in whole.items()},
        "worst": {way: {"session": one.name, "ratio": round(_ratio(one, way), 4)} for way, one in worst.items()},
        "highest_ratio_after_any_round": {way: round(max(_highest(each, way) for each in done), 4) for way in ways},
        "above_1_percent": {way: sum(_ratio(each, way) > WORST for each in done) for way in ways},
        "sessions": [
            {
                "session": each.name,
                "model": each.model,
                "rounds": each.rounds,
                "highest": {way: round(_highest(each, way), 4) for way in ways},
                "ways": {way: _figures(one, each.outcomes[DIRECT]) for way, one in each.outcomes.items()},
            }
            for each in done
        ],
        "setting": {"prefix_tokens": prefix_tokens, "window": window, "sessions": len(done)},
        "aim": {"total": AIM, "worst": WORST, "holds": holds(done)},
    }


def _figures(one: PolicyOutcome, direct: PolicyOutcome) -> dict[str, Any]:
    return {
        "cost_usd": round(one.dollars, 4),
        "ratio": round(one.dollars / direct.dollars, 4),
        "ratio_in_tokens": round(one.cost / direct.cost, 4),
        "requests": one.requests,
        "breaks": one.announced_breaks,
        "read_again": one.read_back,
        "regret": round(one.regret / direct.cost, 4),
        "cache_read_share": round(one.read_share, 4),
    }


def table(done: Sequence[SessionCosts]) -> str:
    """The figures for people."""
    whole = totals(done)
    ways = [way for way in whole if way != DIRECT]
    head = ("session", "rounds", "direct", *ways, "highest", "breaks", "again")
    rows = [
        (
            each.name[:12],
            str(each.rounds),
            f"${each.outcomes[DIRECT].dollars:.2f}",
            *(f"{_ratio(each, way):.3f}" for way in ways),
            f"{_highest(each):.3f}",
            str(each.outcomes[PROXY].announced_breaks),
            str(each.outcomes[PROXY].read_back),
        )
        for each in sorted(done, key=lambda one: -_ratio(one))
    ]
    figures = {way: _figures(one, whole[DIRECT]) for way, one in whole.items()}
    keys = ("cost_usd", "ratio", "requests", "breaks", "read_again", "regret", "cache_read_share")
    sums = [("way", "USD", "of direct", "requests", "breaks", "again", "regret", "read")]
    sums += [(way, *(str(one[key]) for key in keys)) for way, one in figures.items()]
    worst = max(done, key=lambda each: _ratio(each))
    verdict = f"The worst session pays {_ratio(worst):.3f} of direct, all together {figures[PROXY]['ratio']:.3f}."
    return "\n".join([*columns([head, *rows]), "", *columns(sums), "", verdict, _WORDS])
