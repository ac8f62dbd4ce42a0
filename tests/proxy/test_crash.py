"""Many conversations through several workers that are killed at random: each request is answered, at the latest when
its client asks again; the bytes of a conversation stay the same, also in a later proxy; and a worker does not grow.

What is promised: a killed worker closes its connections, as any server that ends. A client that retries gets an answer
from another worker. Nothing that was decided is lost, because it is in the transcript before it is sent.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.counts import SOAK, count
from tests.proxy.proxied import Agent, same_but_cleared, stats

pytestmark = pytest.mark.soak

TALKS, STEPS, WORKERS, KILLS = count(8, 200), count(3, 8), count(2, 4), count(3, 20)
FEW, MANY = count(10, 100), count(30, 2_000)
GROWTH_KB = 64_000
"""How much a worker may grow between the two counts: 32 conversations stay open, and the allocator keeps some."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 500
    daemon_threads = True


@contextmanager
def answering() -> Generator[tuple[str, dict[str, list[Any]]]]:
    """An upstream that answers each request with a call whose id follows from it; keeps the bodies by prompt."""
    bodies = defaultdict[str, list[Any]](list)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            if len(raw) < int(self.headers["content-length"]):
                return  # the worker was killed while it sent this
            messages = json.loads(raw)["messages"]
            prompt = messages[0]["content"][0]["text"]
            bodies[prompt].append(messages)
            time.sleep(0.1)  # so that a worker that is killed has requests
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


@contextmanager
def started(home: Path, to: str, workers: int) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """`reverie proxy` as a process, with its address."""
    command = [sys.executable, "-m", "reverie", "proxy", "--workers", str(workers), "--upstream", to]
    environment = {**os.environ, "REVERIE_HOME": str(home), "HOME": str(home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=home) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[2], process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (0, -signal.SIGTERM)
            assert workers_of(process.pid) == []


def workers_of(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def result(talk: int, step: int) -> str:
    return f"talk {talk} step {step}\n" + "a line that says nothing much\n" * (3_000 if step % 3 == 1 else 300)


def walk(url: str, agent: Agent, talk: int, steps: range, kills: Sequence[float] = ()) -> int:
    """The steps of one conversation; returns how many requests had to be sent again. Only a kill is a reason for it."""
    agent.url, again = url, 0
    for step in steps:
        while True:
            began = time.monotonic()
            try:
                agent.step(result(talk, step))
                break
            except (OSError, HTTPException):
                assert any(began - 1 <= kill <= time.monotonic() for kill in kills)
                again += 1
    return again


def test_workers_killed_at_random_lose_no_conversation(tmp_path: Path) -> None:
    agents = [Agent("", prompt=f"Conversation {number}") for number in range(TALKS)]
    chosen = random.Random(7)
    with answering() as (to, bodies):
        with started(tmp_path, to, WORKERS) as (url, process), ThreadPoolExecutor(TALKS) as pool:
            kills = list[float]()
            steps = range(STEPS)
            walks = [pool.submit(walk, url, agent, talk, steps, kills) for talk, agent in enumerate(agents)]
            while not all(one.done() for one in walks):
                asked = sum(map(len, list(bodies.values())))
                found = workers_of(process.pid)
                if found and len(kills) < KILLS and asked > (len(kills) + 0.5) * TALKS * STEPS / (KILLS + 1):
                    kills.append(time.monotonic())
                    os.kill(chosen.choice(found), signal.SIGKILL)
                time.sleep(0.01)
            again = sum(one.result() for one in walks)
            while len(workers_of(process.pid)) < WORKERS:
                time.sleep(0.05)
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


@pytest.mark.skipif(not SOAK, reason="says something only after many requests: `make soak`")
def test_the_memory_of_a_worker_is_flat(tmp_path: Path) -> None:
    sizes = list[int]()
    with answering() as (to, _), started(tmp_path, to, 1) as (url, process):
        done = 0
        for until in (FEW, MANY):
            while done < until:
                walk(url, Agent("", prompt=f"Conversation {done}"), done, range(10))
                done += 10
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            sizes.append(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")))
    print(f"{sizes[0]:,} KB after {FEW} requests, {sizes[1]:,} KB after {MANY}")
    assert sizes[1] - sizes[0] < GROWTH_KB, sizes
