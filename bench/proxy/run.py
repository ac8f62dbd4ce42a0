"""Recorded sessions through the proxy, beside direct and beside headroom, in the same run: the bills of each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from bench.proxy.headroom import PROGRAM, headroom
from bench.proxy.latency import latency_report
from bench.proxy.traffic import Server, Traffic, serving
from bench.scratch import count_option
from reverie.cli.output import warn
from reverie.lab.measurement import Result, Table, dollars, measurement, named, ratio
from reverie.lab.replay.costs import SessionCosts, measure_each, totals
from reverie.lab.replay.recorded import PREFIX_TOKENS, WINDOW, RecordedSession, load
from reverie.lab.replay.run import PolicyOutcome
from reverie.models.catalogue import Catalogue
from reverie.proxy.bodies import APIS
from reverie.proxy.server import create_app, running
from reverie.runtime.loopback import address, listen

DIRECT, PROXY, HEADROOM = "direct", "proxy", "headroom"
AIM, WORST = 0.78, 1.01
_SHARES = ("ratio", "regret", "cache_read_share")
_COUNTS = ("requests", "breaks", "read_again")
_WORDS = (
    "Shares of the direct bill in US dollars. breaks: requests that did not read what the cache had. read again: "
    "results that the model read again, in requests of their own; regret: the price of those. highest: the largest "
    "share if the session had ended after any of its rounds."
)


_SETS = (Path("../shared/data/transcripts"), Path("tests/data/samples/transcripts"))
"""Where recorded sessions are, if none are named: beside the project, and in it."""


@measurement(
    "reverie lab proxy ~/.claude/projects/my-project --json",
    "reverie lab proxy --headroom .venv-clients/headroom/bin/headroom",
    "reverie lab proxy --latency",
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--latency", is_flag=True, help="Measure how much time the proxy adds to a request of 100,000 tokens.")
@count_option("--runs", 31, 3, "Requests, with --latency.")
@click.option(
    "--headroom",
    "other",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The program headroom, to send the same traffic through it.  [default: that of `make integration`]",
)
@click.option("--alone", is_flag=True, help="Without headroom.")
def proxy(paths: tuple[Path, ...], latency: bool, runs: int, other: Path | None, alone: bool) -> Result:
    """Send recorded sessions through the proxy to the simulator, and compare the bill with that of direct requests.

    Every recorded round is a real request over HTTP, at its recorded time, once directly, once through `reverie proxy`,
    and once through headroom if that is installed. The simulator gives the recorded answer. If that answer used a text
    which is not in the request, the model reads it again first, and that request is billed too. PATH is a transcript,
    or a folder: then all transcripts in it and below it are sent. Without PATH, the sessions of this repository are.

    With --latency, no session is sent: the proxy is compared with one that only parses and writes JSON.

    Exit codes: 0: the aims hold (at most .78 of direct in total, no session above 1.01; at most 3 times the time); 1:
    they do not; 2: wrong usage.
    """
    if latency:
        return latency_report(runs=runs)
    program = None if alone else other or PROGRAM
    if program is not None and not program.is_file():
        warn(f"headroom is not in {program}, so it is left out; `make .venv-clients/headroom/.installed` installs it.")
        program = None
    sessions = load(paths or [next((one for one in _SETS if one.is_dir()), _SETS[-1])])
    one = partial(_measure, prefix_tokens=PREFIX_TOKENS, window=WINDOW, other=program)
    return report(measure_each(sessions, one, done_to="sent"))


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


def report(done: Sequence[SessionCosts]) -> Result:
    """The bills of all sessions. It holds if the total is low enough, and no session is too much above direct."""
    sums = totals(done)
    ways = [way for way in sums if way != DIRECT]
    total = {way: _figures(one, sums[DIRECT]) for way, one in sums.items()}
    worst = {way: max(done, key=lambda each, way=way: _ratio(each, way)) for way in ways}
    holds = sums[PROXY].dollars <= AIM * sums[DIRECT].dollars and _ratio(worst[PROXY]) <= WORST
    sessions: list[dict[str, Any]] = [
        {
            "session": each.name,
            "model": each.model,
            "rounds": each.rounds,
            "highest": {way: _highest(each, way) for way in ways},
            "ways": {way: _figures(one, each.outcomes[DIRECT]) for way, one in each.outcomes.items()},
        }
        for each in done
    ]
    figures = {
        "total": total,
        "worst": {way: {"session": one.name, "ratio": _ratio(one, way)} for way, one in worst.items()},
        "highest_ratio_after_any_round": {way: max(_highest(each, way) for each in done) for way in ways},
        "above_1_percent": {way: sum(_ratio(each, way) > WORST for each in done) for way in ways},
        "sessions": sessions,
        "setting": {"prefix_tokens": PREFIX_TOKENS, "window": WINDOW, "sessions": len(done)},
        "aim": {"total": AIM, "worst": WORST, "holds": holds},
    }
    columns = (
        "session",
        "rounds",
        dollars("ways.direct.cost_usd", "direct"),
        *(ratio(f"ways.{way}.ratio", way) for way in ways),
        ratio("highest.proxy", "highest"),
        "ways.proxy.breaks",
        "ways.proxy.read_again",
    )
    table = Table(named(total, "way"), ("way", dollars("cost_usd", "USD"), *map(ratio, _SHARES), *_COUNTS))
    by_ratio = sorted(sessions, key=lambda one: -one["ways"][PROXY]["ratio"])
    verdict = f"The worst session pays {_ratio(worst[PROXY]):.3f} of direct, all together {total[PROXY]['ratio']:.3f}."
    return Result(figures, (Table(by_ratio, columns), table, verdict, _WORDS), holds)


def _figures(one: PolicyOutcome, direct: PolicyOutcome) -> dict[str, Any]:
    return {
        "cost_usd": one.dollars,
        "ratio": one.dollars / direct.dollars,
        "ratio_in_tokens": one.cost / direct.cost,
        "requests": one.requests,
        "breaks": one.announced_breaks,
        "read_again": one.read_back,
        "regret": one.regret / direct.cost,
        "cache_read_share": one.read_share,
    }
