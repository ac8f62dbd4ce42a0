"""An HTTP server on loopback that gives canned answers, and remembers what it was asked and who hung up."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.waiting import LIMIT_S


@dataclass(slots=True)
class Canned:
    """One answer. `cut`: the connection breaks after the last chunk. `hold`: it stays open till the client goes."""

    chunks: list[str] = field(default_factory=list[str])
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    hold: bool = False

    @staticmethod
    def error(status: int, body: Any, **headers: str) -> Canned:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Canned([json.dumps(body)], status, {"content-type": "application/json", **named})


class Server:
    """What a test sees of the server."""

    def __init__(self, answers: list[Canned]) -> None:
        self._answers = answers
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.hung_up = threading.Event()

    def next(self) -> Canned:
        return self._answers[min(len(self.bodies), len(self._answers)) - 1]


@contextmanager
def serve(*answers: Canned) -> Iterator[Server]:
    """Answers requests in order; the last answer serves all that follow."""
    server = Server(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            server.bodies.append(json.loads(body))
            server.paths.append(self.path)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            canned = server.next()
            self.send_response(canned.status)
            for name, value in {"content-type": "text/event-stream", **canned.headers}.items():
                self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for chunk in canned.chunks:
                self._send(chunk)
            if canned.hold:
                self._wait_for_the_client_to_go()
            elif canned.cut:
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def _send(self, chunk: str) -> None:
            data = chunk.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _wait_for_the_client_to_go(self) -> None:
            self.close_connection = True
            self.connection.settimeout(LIMIT_S)
            with suppress(ConnectionError):
                while self.connection.recv(1):
                    pass
            server.hung_up.set()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def events(*given: dict[str, Any]) -> list[str]:
    """Messages-API events as they stand on the wire."""
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in given]


def message(*blocks: list[dict[str, Any]], stop: str = "end_turn", **delta: Any) -> list[str]:
    """A whole answer; each block is given as its start and its deltas."""
    made: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-test",
                "content": [],
                "stop_reason": None,
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1},
            },
        }
    ]
    for index, (start, *deltas) in enumerate(blocks):
        made.append({"type": "content_block_start", "index": index, "content_block": start})
        made += [{"type": "content_block_delta", "index": index, "delta": each} for each in deltas]
        made.append({"type": "content_block_stop", "index": index})
    ending = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, **delta}
    made += [{"usage": {"output_tokens": 25}, **ending}, {"type": "message_stop"}]
    return events(*made)


def text(*pieces: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces)]


def call(id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    start = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return [start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces)]


def chunks(*deltas: dict[str, Any], stop: str | None = "stop", usage: Any = None, id: str = "chatcmpl-1") -> list[str]:
    """Chat-completion chunks as they stand on the wire, with `[DONE]` at the end."""
    base = {"id": id, "object": "chat.completion.chunk", "created": 1, "model": "local"} if id else {}
    made = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if stop:
        made.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    if usage is not None:
        made.append({**base, "choices": [], "usage": usage})
    return [f"data: {json.dumps(each)}\n\n" for each in made] + ["data: [DONE]\n\n"] * bool(stop)
