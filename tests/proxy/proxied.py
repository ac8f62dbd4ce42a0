"""A proxy in front of the simulator, both on loopback for the time of a test, and an agent that talks through it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reverie.models.catalogue import Catalogue
from reverie.models.script import Script
from reverie.proxy.server import create_app, running
from reverie.runtime.loopback import address, listen
from reverie.simulator import Clock, ScriptResponder, Simulator
from reverie.simulator.http import running as simulated

AGENT = """
repeat forever
say Step {round}: let me look at one more part of the log, because there may be something in it that helps us.
call Bash {"command": "part {round}"}
end
"""
TOOLS = [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]


@dataclass
class Upstream:
    """The simulator, with every body that reached it."""

    url: str
    simulator: Simulator

    def time(self) -> datetime:
        return datetime.fromtimestamp(self.simulator.clock.now(), UTC)


@contextmanager
def upstream(script: str = AGENT) -> Generator[Upstream]:
    simulator = Simulator(ScriptResponder(Script.parse(script)), clock=Clock.running())
    with simulated(simulator) as url:
        yield Upstream(url, simulator)


@contextmanager
def proxy(home: Path, to: str, **options: Any) -> Generator[str]:
    app = create_app(home, dict.fromkeys(("messages", "chat", "responses"), to), Catalogue.load(), **options)
    listener = listen(0)
    try:
        with running(app, listener):
            yield address(listener)
    finally:
        listener.close()


def post(url: str, path: str, body: Mapping[str, Any] | bytes, **headers: str) -> tuple[int, bytes]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        given = {"content-type": "application/json", "x-api-key": "simulated", "anthropic-version": "2023-06-01"}
        connection.request("POST", path, raw, given | headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def get(url: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def stats(url: str) -> Any:
    return json.loads(get(url, "/reverie/stats")[1])


@dataclass
class Agent:
    """A client of the Messages API that keeps its whole history, with cache markers as Claude Code sets them."""

    url: str
    prompt: str = "Find the bug in this project, please."
    messages: list[dict[str, Any]] = field(default_factory=list)
    marks: int = 1
    """How many of the last user messages have a marker; 0: there is none, also not on the system prompt."""

    def __post_init__(self) -> None:
        self.messages = self.messages or [{"role": "user", "content": [{"type": "text", "text": self.prompt}]}]

    def body(self) -> dict[str, Any]:
        copy = json.loads(json.dumps(self.messages))
        system = [{"type": "text", "text": "You are an agent. " * 400}]
        users = [one for one in copy if one["role"] == "user"]
        for block in [*system, *(one["content"][-1] for one in users[-self.marks :])] if self.marks else ():
            block["cache_control"] = {"type": "ephemeral"}
        return {"model": "claude-sonnet-4-5", "max_tokens": 500, "system": system, "tools": TOOLS, "messages": copy}

    def step(self, result: str) -> dict[str, Any]:
        """One request; the tool that the answer calls returns `result`."""
        status, data = post(self.url, "/v1/messages", self.body())
        assert status == 200, data[:500]
        answer = json.loads(data)
        call = next(block for block in answer["content"] if block["type"] == "tool_use")
        self.messages.append({"role": "assistant", "content": answer["content"]})
        told = {"type": "tool_result", "tool_use_id": call["id"], "content": result}
        self.messages.append({"role": "user", "content": [told]})
        return answer


class Recorder:
    """An upstream that keeps every request as it came, and answers with what the test gives it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.kind = "application/json"
        self.answer = b"{}"
        self.answers: list[bytes] = []
        """What it answers first."""
        self.reply: Callable[[bytes], Any] | None = None
        """Makes the answer to a body, instead."""

    @contextmanager
    def running(self) -> Generator[str]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                recorder.paths.append(self.path)
                recorder.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                recorder.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(recorder.status)
                self.send_header("content-type", recorder.kind)
                self.send_header("x-request-id", "req_1")
                self.end_headers()
                if recorder.reply is not None:
                    recorder.answer = json.dumps(recorder.reply(recorder.bodies[-1])).encode()
                self.wfile.write(recorder.answers.pop(0) if recorder.answers else recorder.answer)

            do_GET = do_POST

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()


class Tee:
    """Passes every request on to `to`, and keeps the paths and bodies in the order in which they came."""

    def __init__(self, to: str) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        self.url = ""
        self._to = urlsplit(to).netloc

    @contextmanager
    def running(self) -> Generator[Tee]:
        tee = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                tee.bodies.append((self.path, body))
                connection = HTTPConnection(tee._to, timeout=120)
                try:
                    given = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                    connection.request(self.command, self.path, body, given)
                    answer = connection.getresponse()
                    self.send_response(answer.status)
                    for name, value in answer.getheaders():
                        if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                            self.send_header(name, value)
                    self.send_header("transfer-encoding", "chunked")
                    self.end_headers()
                    while part := answer.read1(65_536):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                finally:
                    connection.close()

            do_GET = do_POST

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()


def same_but_cleared(before: list[Any], after: list[Any]) -> None:
    """Every message is the same, apart from markers; a clearing changes results, and then all of them at once."""
    for one, two in zip(plain(before), plain(after), strict=False):
        if one != two:
            assert "cleared" in json.dumps(two).lower(), (one, two)


def plain(messages: list[Any]) -> list[Any]:
    copy = json.loads(json.dumps(messages))
    for message in copy:
        for block in message["content"]:
            block.pop("cache_control", None)
    return copy
