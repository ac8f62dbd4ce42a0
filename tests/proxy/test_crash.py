"""Many conversations through several workers that are killed at random: each request is answered, at the latest when
its client asks again; the bytes of a conversation stay the same, also in a later proxy; and a worker does not grow.

What is promised: a killed worker closes its connections, as any server that ends. A client that retries gets an answer
from another worker. Nothing that was decided is lost, because it is in the transcript before it is sent.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import signal
import statistics
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reverie.proxy.upkeep import Upkeep
from tests.counts import SOAK, count
from tests.proxy.proxied import Agent, memory_kb, same_but_cleared, started, stats, workers_of
from tests.waiting import wait_until

pytestmark = pytest.mark.soak

TALKS, STEPS, WORKERS, KILLS = count(8, 200), count(3, 8), count(2, 4), count(3, 20)
WARM, SERVED = 300, (500, 2_000, 5_000)
NOISE_KB = 20_000
"""How much larger a worker may be after any of these counts of requests than after the first ones."""
CLIENTS, EACH = 4, 10


class _Server(ThreadingHTTPServer):
    request_queue_size = 500
    daemon_threads = True


@contextmanager
def answering(pause: float = 0.1) -> Generator[tuple[str, dict[str, list[Any]]]]:
    """An upstream that answers each request with a call whose id follows from it; keeps the bodies by prompt. It takes
    a moment, so that a worker that is killed has requests; without a pause, it keeps nothing."""
    bodies = defaultdict[str, list[Any]](list)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            if len(raw) < int(self.headers["content-length"]):
                return  # the worker was killed while it sent this
            messages = json.loads(raw)["messages"]
            prompt = messages[0]["content"][0]["text"][:40].strip()
            if pause:
                bodies[prompt].append(messages)
                time.sleep(pause)
            call = f"toolu_{prompt.replace(' ', '_')}_{len(messages):04}"
            content = [{"type": "tool_use", "id": call, "name": "Bash", "input": {"n": len(messages)}}]
            raw = json.dumps({"id": f"msg_{call}", "content": content, "usage": {"input_tokens": 5}}).encode()
            with suppress(OSError):
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    finally:
        server.shutdown()
        server.server_close()


def result(talk: int, step: int) -> str:
    return f"talk {talk} step {step}\n" + "a line that says nothing much\n" * (3_000 if step % 3 == 1 else 300)


def walk(url: str, agent: Agent, talk: int, steps: range, kills: Sequence[int] = ()) -> int:
    """The steps of one conversation; returns how many requests had to be sent again. Only a kill since the beginning
    of the last one that was answered is a reason for it."""
    agent.url, again, before = url, 0, 0
    for step in steps:
        while True:
            now = len(kills)
            try:
                agent.step(result(talk, step))
                before = now
                break
            except (OSError, HTTPException):
                assert len(kills) > before
                again += 1
    return again


def test_workers_killed_at_random_lose_no_conversation(tmp_path: Path) -> None:
    agents = [Agent("", prompt=f"Conversation {number}") for number in range(TALKS)]
    chosen = random.Random(7)
    with answering() as (to, bodies):
        with started(tmp_path, to, WORKERS) as (url, process), ThreadPoolExecutor(TALKS) as pool:
            kills = list[int]()
            steps = range(STEPS)
            walks = [pool.submit(walk, url, agent, talk, steps, kills) for talk, agent in enumerate(agents)]
            while not all(one.done() for one in walks):
                asked = sum(map(len, list(bodies.values())))
                found = workers_of(process.pid)
                if found and len(kills) < KILLS and asked > (len(kills) + 0.5) * TALKS * STEPS / (KILLS + 1):
                    kills.append(chosen.choice(found))
                    os.kill(kills[-1], signal.SIGKILL)
                time.sleep(0.01)
            again = sum(one.result() for one in walks)
            wait_until(lambda: len(workers_of(process.pid)) == WORKERS)
            found = stats(url)
            assert found["failures"] == {}
            assert len(found["sessions"]) == TALKS, "a request that is sent again is no new conversation"
            assert len(kills) == KILLS and again > 0
            assert found["total"]["results"] > 0
        with started(tmp_path, to, 1) as (url, _):
            for talk, agent in enumerate(agents[:20]):
                walk(url, agent, talk, range(STEPS, STEPS + 1))
        print(f"{TALKS} conversations, {len(kills)} workers killed, {again} requests sent again")
    for talk in bodies.values():
        for before, after in itertools.pairwise(sorted(talk, key=len)):
            same_but_cleared(before, after)


@pytest.mark.timeout(3_600)
@pytest.mark.skipif(not SOAK, reason="says something only after thousands of requests: `make soak`")
def test_the_memory_of_a_worker_is_flat(tmp_path: Path) -> None:
    """Requests of 50 to 400 KB in hundreds of conversations, several at a time: after a warm-up that fills the caches,
    the process stays as large as it is."""
    with answering(pause=0) as (to, _), started(tmp_path, to, 1) as (url, process):
        assert workers_of(process.pid) == [], "one worker is the process itself"
        sizes, asked = dict[int, int](), list[int]()
        numbers, alone = itertools.count(), threading.Lock()

        def talk() -> None:
            while len(asked) < SERVED[-1]:
                number = next(numbers)
                agent = Agent(url, prompt=f"Conversation {number}".ljust(40) + varied(number, 48_000))
                for step in range(EACH):
                    asked.append(len(json.dumps(agent.body())))
                    agent.step(varied(number + step, (10_000, 60_000, 35_000)[step % 3]))
                    with alone:
                        sizes[len(asked)] = memory_kb(process.pid, "VmRSS")

        with ThreadPoolExecutor(CLIENTS) as pool:
            for one in [pool.submit(talk) for _ in range(CLIENTS)]:
                one.result()
        found = stats(url)
    assert found["failures"] == {} and found["total"]["requests"] == len(asked) >= SERVED[-1]
    assert found["total"]["results"] > 0 and len(found["sessions"]) >= SERVED[-1] // EACH
    assert 48_000 < min(asked) < 60_000 and 350_000 < max(asked) < 420_000

    def around(count: int) -> float:
        return statistics.median(size for at, size in sizes.items() if count - 50 <= at <= count)

    after = {count: around(count) for count in (WARM, *SERVED)}
    peak = max(size for at, size in sizes.items() if at > WARM)
    print(", ".join(f"{size:,.0f} KB after {count} requests" for count, size in after.items()), f"peak {peak:,} KB")
    assert max(after.values()) - after[WARM] < NOISE_KB, after
    assert peak - after[WARM] < 2 * NOISE_KB, "what one request needs comes on top, for a moment"


def test_what_was_closed_is_freed_after_some_requests() -> None:
    class Closed:
        def __init__(self) -> None:
            self.own = self

    gc.disable()
    try:
        left, upkeep = weakref.ref(Closed()), Upkeep(every=1_000)
        upkeep.served(600)
        assert left() is not None
        upkeep.served(600)
        assert left() is None
    finally:
        gc.enable()


def varied(seed: int, size: int) -> str:
    """A text of this many characters that is like no other, with lines as programs print them."""
    chosen = random.Random(seed)
    lines = (f"{chosen.getrandbits(64):016x} line {at} says something\n" for at in itertools.count())
    return "".join(itertools.islice(lines, size // 36 + 1))[:size]
