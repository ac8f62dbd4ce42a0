"""Random and bent bodies to every route of the simulator, with foreign hosts, pages and no key among them.

Never: a 5xx that nobody asked for, memory that grows with the number of requests, a clock or a ledger gone wrong.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from typing import Any

from reverie.simulator import Simulator
from reverie.simulator.http import app
from tests.attack.arena import Arena, in_child
from tests.simulator.asgi import KEYED, LOCAL, call
from tests.simulator.test_hostile import BAD_BODIES, BETAS, HELLO, MESSAGES, bases, mutated, resident, scratched

GROWTH = 300_000_000
_HOSTS = ("evil.example", "0.0.0.0", "", "localhost.evil.example", "127.0.0.1:x", "[::]")
_METHODS = ("GET", "PUT", "DELETE", "POST", "PATCH", "HEAD", "OPTIONS")
_PATHS = (
    "/",
    "/v1/models",
    "/_sim/ledger",
    "/_sim/clock",
    "/_sim/../v1/messages",
    "/%00",
    "/v1/messages/",
    "/_sim/x",
    "/v1/models/gpt-5",
)


def _body(chance: random.Random, body: Any) -> bytes:
    if chance.random() < 0.03:
        bad = chance.choice([one for name, one in BAD_BODIES.items() if name != "many values"])
        return bad if isinstance(bad, bytes) else json.dumps(bad).encode()
    raw = json.dumps(mutated(body, chance)).encode()
    return scratched(raw, chance) if chance.random() < 0.2 else raw


async def _round(seed: str, requests: int) -> None:
    chance = random.Random(seed)
    simulator = Simulator(control_key="k", threads=True)
    site, given = app(simulator), list(bases())
    trusted = [*KEYED, ("x-sim-key", "k"), BETAS]
    pending, clock, before = 0, simulator.clock.now(), resident()
    for number in range(requests):
        path, body = chance.choice(given)
        method, headers = "POST", trusted
        if chance.random() < 0.05:
            method, path = chance.choice(_METHODS), chance.choice(_PATHS)
        if chance.random() < 0.05:
            headers = [("host", chance.choice(_HOSTS)), *trusted[1:]]
        if chance.random() < 0.05:
            headers = [LOCAL]
        raw = _body(chance, body)
        try:
            status, answer = await call(site, method, path, raw, headers)
        except Exception as error:
            print(f"WRONG {method} {path} raised {error!r} for {raw[:400]!r}")
            continue
        if path in ("/_sim/faults", "/_sim/profile") and status == 200:
            pending += 10_000  # scripted faults are asked for; a fresh server follows
        wrong = None
        if status >= 500 and not pending:
            wrong = f"{status}: {answer[:200]!r}"
        elif headers is not trusted and headers[0] != LOCAL and status < 400:
            wrong = f"a foreign host got {status}"
        elif headers == [LOCAL] and path.startswith("/_sim/") and status < 400:
            wrong = f"control without a key: {status}"
        elif not math.isfinite(simulator.clock.now()) or simulator.clock.now() < clock:
            wrong = f"the clock says {simulator.clock.now()} after {clock}"
        elif simulator.ledger.totals()["requests"] != len(simulator.ledger.rows) if number % 100 == 0 else False:
            wrong = "the ledger does not add up"
        elif resident() - before > GROWTH:
            wrong = f"{(resident() - before) // 1_000_000} MB more after {number} requests"
        print("ok" if wrong is None else f"WRONG {method} {path}: {wrong} for {raw[:400]!r}")
        clock = simulator.clock.now()
        if pending:
            simulator = Simulator(control_key="k", threads=True)
            site, pending, clock = app(simulator), 0, simulator.clock.now()
    status, answer = await call(site, "POST", MESSAGES, json.dumps(HELLO).encode(), KEYED)
    print("ok" if status == 200 else f"WRONG: an ordinary request gets {status} at the end: {answer[:200]!r}")


def attack(arena: Arena) -> None:
    seed = f"simulator {arena.seed}"
    requests = arena.count(150, 4_000)
    done = in_child(lambda: asyncio.run(_round(seed, requests)), limit_s=400)
    lines = done.out.splitlines()
    for line in lines:
        if line == "ok" or line.startswith("WRONG"):
            arena.judge(None if line == "ok" else line)
    arena.judge_ended(done, f"after {len(lines)} requests")
