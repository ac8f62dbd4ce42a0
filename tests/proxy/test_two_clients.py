"""Two clients with other keys begin with the same messages, in many conversations at once, while workers are killed:
no byte that only one of them said or got is in a request of the other, in its answers or in its files."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.counts import count
from tests.proxy.proxied import TOOLS, post, started, stats, workers_of
from tests.proxy.reader import LONG_SYSTEM, OURS

pytestmark = pytest.mark.soak

PAIRS, KILLS, WORKERS = count(3, 100), count(2, 20), count(2, 4)
SHARED, OWN = 10, 4
"""Rounds with the same words (20 messages), and rounds of each client's own."""
KEYS = ("alice", "bob")
_KEPT = re.compile(rb"toolu_talk_\d+_\d+\.txt")


def secret(key: str, talk: int) -> str:
    return f"[only {key} knows {talk}]"


class _Server(ThreadingHTTPServer):
    request_queue_size = 500
    daemon_threads = True


@contextmanager
def answering() -> Generator[tuple[str, list[tuple[str, bytes]]]]:
    """An upstream that gives everybody the same answers as long as they say the same, and the same ids always. Where it
    can, it reads what was kept, also by what it may not. Keeps the bodies, each with its key."""
    bodies = list[tuple[str, bytes]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            if len(raw) < int(self.headers["content-length"]):
                return  # the worker was killed while it sent this
            key = str(self.headers["x-api-key"])
            bodies.append((key, raw))
            time.sleep(0.02)  # a worker that is killed has requests
            answer = json.dumps(_answer(json.loads(raw), key, raw)).encode()
            with suppress(OSError):
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    finally:
        server.shutdown()
        server.server_close()


def _answer(body: dict[str, Any], key: str, raw: bytes) -> dict[str, Any]:
    messages = body["messages"]
    talk = int(messages[0]["content"][0]["text"].split()[1])
    rounds = sum(OURS not in json.dumps(one["content"]) for one in messages if one["role"] == "assistant")
    has_read = messages[-1]["content"][0].get("tool_use_id", "").startswith("read")
    names = [tool["name"] for tool in body["tools"]]
    text = f"Let me look at part {rounds}, because there may be something in it that helps all of us with talk {talk}."
    if OURS in names and rounds > SHARED and rounds % 2 and not has_read:
        ids = {*map(bytes.decode, _KEPT.findall(raw)), f"toolu_talk_{talk}_{SHARED:04}.txt"}
        paths = [f"../../{other}/tool-results/{one}" for other in KEYS for one in ids]
        content = [
            {"type": "tool_use", "id": f"read_{rounds}_{at}", "name": OURS, "input": {"id": one}}
            for at, one in enumerate([*sorted(ids)[-3:], *paths[:2]])
        ]
    else:
        said = text + (f" {secret(key, talk)}" if rounds > SHARED else "")
        call = {"type": "tool_use", "id": f"toolu_talk_{talk}_{rounds:04}", "name": names[0], "input": {"n": rounds}}
        content = [{"type": "text", "text": said}, call]
    usage = {"input_tokens": 5, "cache_read_input_tokens": len(raw) // 4}
    return {"id": f"msg_{rounds}", "content": content, "stop_reason": "tool_use", "usage": usage}


def walk(url: str, key: str, talk: int, kills: list[float]) -> list[bytes]:
    """One conversation; returns its answers. A request whose connection closed is sent again."""
    name = "Bash" if talk % 2 else "look_up"  # by its path, or with the tool of the proxy
    system = [{"type": "text", "text": LONG_SYSTEM, "cache_control": {"type": "ephemeral"}}]
    body: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 500, "system": system}
    body["tools"] = [{**TOOLS[0], "name": name}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": f"Talk {talk} begins."}]}]
    answers = list[bytes]()
    for step in range(SHARED + OWN):
        while True:
            began = time.monotonic()
            try:
                status, data = post(url, "/v1/messages", {**body, "messages": messages}, **{"x-api-key": key})
                assert status == 200, data[:500]
                break
            except (OSError, HTTPException):
                assert any(began - 1 <= kill <= time.monotonic() for kill in kills)
        answers.append(data)
        content = json.loads(data)["content"]
        line = f"line of part {step}" if step < SHARED else f"line of part {step} {secret(key, talk)}"
        result = f"{line}\n" * (3_000 if step % 3 == 1 or step >= SHARED else 60)
        told = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": result}
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [told]}]
    return answers


@pytest.mark.timeout(3_600)
def test_no_byte_of_one_client_reaches_another_one(tmp_path: Path) -> None:
    chosen = random.Random(11)
    with answering() as (to, bodies), started(tmp_path, to, WORKERS) as (url, process):
        kills = list[float]()
        work = [(key, talk) for talk in range(PAIRS) for key in KEYS]
        chosen.shuffle(work)
        with ThreadPoolExecutor(min(24, len(work))) as pool:
            walks = [(key, pool.submit(walk, url, key, talk, kills)) for key, talk in work]
            _kill(process.pid, kills, chosen, lambda: all(one.done() for _, one in walks), lambda: len(bodies))
            answers = [(key, data) for key, one in walks for data in one.result()]
        while len(workers_of(process.pid)) < WORKERS:
            time.sleep(0.05)
        found = stats(url)
    names = {_client_of(found, bodies, key): key for key in KEYS}
    assert len(kills) == KILLS and found["failures"] == {} and len(found["clients"]) == len(names) == 2
    assert len(found["sessions"]) == 2 * PAIRS, "a conversation each, and no branch"
    assert found["total"]["results"] > PAIRS and found["total"]["reads"] > PAIRS // 2
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "proxy-" in str(path.relative_to(tmp_path))]
    owned = [(key, path) for path in files for name, key in names.items() if f"proxy-{name[:12]}-" in str(path)]
    assert len(owned) == len(files) > 4 * PAIRS
    for key, other in (KEYS, KEYS[::-1]):
        theirs = secret(other, 0).partition(" knows")[0].encode()
        assert not any(theirs in raw for one, raw in (*bodies, *answers) if one == key)
        assert not [path for one, path in owned if one == key and theirs in path.read_bytes()]
        assert sum(secret(key, 0)[:9].encode() in raw for one, raw in bodies if one == key) > PAIRS, "it could be there"
    print(f"{2 * PAIRS} conversations, {len(bodies)} requests, {len(kills)} workers killed, {len(files)} files")


def _kill(
    pid: int, kills: list[float], chosen: random.Random, done: Callable[[], bool], asked: Callable[[], int]
) -> None:
    while not done():
        found = workers_of(pid)
        if found and len(kills) < KILLS and asked() > (len(kills) + 0.5) * 2 * PAIRS * (SHARED + OWN) / (KILLS + 1):
            kills.append(time.monotonic())
            os.kill(chosen.choice(found), signal.SIGKILL)
        time.sleep(0.01)


def _client_of(found: Any, bodies: list[tuple[str, bytes]], key: str) -> str:
    """The name of a client in the statistics, by a path that was in one of its own requests."""
    shown = (re.search(rb"/proxy-([0-9a-f]{12})-[0-9a-f]+/tool-results/", raw) for one, raw in bodies if one == key)
    label = next(match[1].decode() for match in shown if match)
    return next(name for name in found["clients"] if name.startswith(label))
