"""Answers that are a few kilobytes and a few hundred megabytes when they are decoded: the client gets what came, and
the proxy stays as large as it is."""

from __future__ import annotations

import hashlib
import itertools
import json
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.counts import count
from tests.proxy.proxied import Agent, memory_kb, post, started, stats
from tests.proxy.reader import LONG_SYSTEM, OURS, Client
from tests.proxy.wild import Reply, chunked, wild

MEGABYTES = count(100, 1_200)
MOST_KB = 120_000
"""How much larger the proxy may be at any time: two documents of the largest size that is read, as objects."""
NUMBERS = itertools.count()
START = b'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "usage": {}}}\n\n'
FILLINGS = {
    "one text": (b'{"id": "m", "content": "', b" " * 1_000_000),
    "many objects": (b'{"id": "m", "content": [', b"[]," * 333_333),
    "one line": (START + b"data: ", b"x" * 1_000_000),
    "one event": (START, b"data: x\n" * 125_000),
    "empty lines": (START, b"\n" * 1_000_000),
    "events": (START, b'data: {"type": "ping"}\n\n' * 41_000),
}


VALUES = {"objects": b"[" + b"{}," * 2_600_000 + b"{}]", "numbers": b"[" + b"1," * 3_900_000 + b"1]"}
"""Of just the size that is read, and up to a hundred times as large in memory."""


def whole(form: str, values: bytes) -> tuple[str, bytes]:
    """A type, and a body with these values in it."""
    if form == "document":
        return "application/json", b'{"id": "m", "content": ' + values + b"}"
    if form == "event":
        return "text/event-stream", START + b'data: {"type": "ping", "x": ' + values + b"}\n\n"
    item = b'data: {"type": "response.output_item.done", "item": {"x": ' + values + b"}}\n\n"
    return "text/event-stream", item * 7


@cache
def packed(filling: str) -> bytes:
    start, million = FILLINGS[filling]
    packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    return b"".join([packer.compress(start), *(packer.compress(million) for _ in range(MEGABYTES)), packer.flush()])


def plain_size(filling: str) -> int:
    start, million = FILLINGS[filling]
    return len(start) + MEGABYTES * len(million)


def read_slowly(url: str, body: Any) -> Iterator[bytes]:
    """The answer in pieces, so that the test itself needs no memory."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
    try:
        connection.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": "a"})
        answer = connection.getresponse()
        yield from iter(lambda: answer.read(1_000_000), b"")
    finally:
        connection.close()


class Proxied:
    """A proxy in a process of its own, in front of an upstream that answers what it is told."""

    def __init__(self, url: str, pid: int, replies: list[Reply]) -> None:
        self.url, self.replies, self._pid = url, replies, pid

    @contextmanager
    def small(self) -> Generator[None]:
        """Checks that the process does not need much more memory for what happens inside."""
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # the most so far begins again
        before = memory_kb(self._pid, "VmHWM")
        yield
        stats(self.url)  # all bills are written
        grown = memory_kb(self._pid, "VmHWM") - before
        assert grown < MOST_KB, f"{grown:,} KB more"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Generator[Proxied]:
    replies = list[Reply]()
    home = tmp_path_factory.mktemp("bombs")
    with wild(lambda line: replies.pop(0)(line)) as to, started(home, to, 1) as (url, process):
        yield Proxied(url, process.pid, replies)


def asks(proxied: Proxied, streams: bool, has_tool: bool) -> Client:
    client = Client("messages", proxied.url, streams, system=LONG_SYSTEM if has_tool else "Hi.")
    client.history = [{"role": "user", "content": [{"type": "text", "text": f"Hi. {next(NUMBERS)}"}]}]
    return client


@pytest.mark.parametrize("has_tool", [False, True], ids=["as it came", "with our tool"])
@pytest.mark.parametrize("filling", FILLINGS)
def test_a_compressed_answer_of_any_form_is_read_in_bounded_memory(
    proxied: Proxied, filling: str, has_tool: bool
) -> None:
    streams, raw = filling not in ("one text", "many objects"), packed(filling)
    kind = "text/event-stream" if streams else "application/json"
    parts = [raw[at : at + 50_000] for at in range(0, len(raw), 50_000)]
    proxied.replies.append(chunked(*parts, kind=kind, content_encoding="gzip"))
    size, hashed = 0, hashlib.sha256()
    unread = stats(proxied.url)["failures"].get("answer_not_read", 0)
    with proxied.small():
        for piece in read_slowly(proxied.url, asks(proxied, streams, has_tool).body()):
            size += len(piece)
            hashed.update(piece)
    assert stats(proxied.url)["failures"] == {"answer_not_read": unread + 1}
    if has_tool and streams:
        assert size == plain_size(filling), "every byte, decoded"
    else:
        assert hashed.digest() == hashlib.sha256(raw).digest(), "every byte as it came"


@pytest.mark.parametrize("has_tool", [False, True], ids=["as it came", "with our tool"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("form", ["document", "event", "items"])
def test_an_answer_of_many_values_is_read_in_bounded_memory(
    proxied: Proxied, form: str, values: str, has_tool: bool
) -> None:
    kind, raw = whole(form, VALUES[values])
    parts = [raw[at : at + 60_000] for at in range(0, len(raw), 60_000)]
    proxied.replies.append(chunked(*parts, kind=kind))
    with proxied.small():
        body = asks(proxied, kind != "application/json", has_tool).body()
        size = sum(map(len, read_slowly(proxied.url, body)))
    assert size == len(raw)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "br", "zstd", "deflate"])
def test_a_compressed_refusal_is_passed_on_as_it_came(proxied: Proxied, encoding: str) -> None:
    """Refusals of a prompt are read, because it may be too long."""
    raw = packed("one text")
    call = {"type": "tool_use", "id": "toolu_long_0001", "name": "Bash", "input": {}}
    answer = json.dumps({"id": "m", "content": [call], "usage": {"input_tokens": 5}}).encode()
    more = f"content-encoding: {encoding}\r\ncontent-length: {len(raw)}\r\n\r\n"
    head = f"HTTP/1.1 400 No\r\nconnection: close\r\n{more}".encode()
    proxied.replies += [chunked(answer, kind="application/json"), lambda line: line.sendall(head + raw)]
    agent = Agent(proxied.url, prompt=f"What is wrong with {encoding}?")
    agent.step("a line of a long result\n" * 5_000)
    with proxied.small():
        assert post(proxied.url, "/v1/messages", agent.body()) == (400, raw)
    assert proxied.replies == []


@pytest.mark.parametrize("encoding", ["gzip", "br"])
@pytest.mark.parametrize("streams", [False, True])
def test_a_round_that_the_client_does_not_see_may_be_one_too(proxied: Proxied, streams: bool, encoding: str) -> None:
    raw = packed("events" if streams else "one text")
    call = {"type": "tool_use", "id": "toolu_long_0001", "name": OURS, "input": {}}
    message = {"id": "m", "content": [call], "stop_reason": "tool_use", "usage": {"input_tokens": 5}}
    events = [
        {"type": "message_start", "message": {**message, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    first = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
    kind = "text/event-stream" if streams else "application/json"
    proxied.replies += [
        chunked(first if streams else json.dumps(message).encode(), kind=kind),
        chunked(raw, kind=kind, content_encoding=encoding),
    ]
    with proxied.small():
        size = sum(map(len, read_slowly(proxied.url, asks(proxied, streams, True).body())))
    assert proxied.replies == [], "our tool was called, and answered"
    assert size == len(raw) if not streams else size > (len(raw) if encoding == "gzip" else 10)
