"""The protocol's bytes: one JSON message per line on the original standard input and output.

Nobody else can reach these two streams: what this process or a child prints goes to standard error, and nothing can
read a byte of the input. A line that is not a message is answered with an error, and never ends the connection.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import threading
from typing import cast

from reverie.parsing import MAX_JSON, RECORD_DEPTH, Unparsable, load_json
from reverie.types import Json, JsonObject

_PIECE = 1 << 16
_NO_JSON, _NO_REQUEST = -32700, -32600
_TOO_LONG = b"\0"
"""Stands for a line that is longer than any message; no line of JSON has this byte."""


class Wire:
    """Both streams. `receive` gives the next message, None at the end; `send` returns when the bytes are written."""

    def __init__(self) -> None:
        self._input, self._output = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._closed = False
        self._held: JsonObject | None = None
        # Daemon threads: one that waits for a stream cannot be ended.
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    # -- what the connection of the SDK calls -----------------------------------------------------------------------

    async def send(self, message: JsonObject) -> None:
        """Writes one message. After the other side has gone, it is dropped."""
        if self._closed:
            return
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((data, written))
        await written

    async def receive(self) -> JsonObject | None:
        """Returns the next message; None when the other side has gone."""
        if self._held is not None:
            held, self._held = self._held, None
            return held
        while not self._closed:
            line = await self._lines.get()
            if line is None:
                self._closed = True
            elif line.strip():
                try:
                    return _check(load_json(_bounded(line), depth=RECORD_DEPTH))
                except Unparsable as error:
                    await self._refuse(_NO_JSON, f"This line is not JSON: {error}.")
                except _NoMessageError as error:
                    await self._refuse(_NO_REQUEST, str(error), error.id)
        return None

    def put_back(self, message: JsonObject) -> None:
        """Lets `receive` return this message next."""
        self._held = message

    async def close(self) -> None:
        """Ends the receiving. What was sent is written."""
        self.stop()

    def stop(self) -> None:
        """Lets `receive` return None."""
        self._lines.put_nowait(None)

    # -- the streams ------------------------------------------------------------------------------------------------

    async def _refuse(self, code: int, sentence: str, id: Json = None) -> None:
        await self.send({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": sentence}})

    def _read(self) -> None:
        held = list[bytes]()
        size = 0
        while piece := _read_piece(self._input):
            first, *rest = piece.split(b"\n")
            held.append(first)
            size += len(first)
            for more in rest:
                self._deliver(b"".join(held) if size <= MAX_JSON else _TOO_LONG)
                held, size = [more], len(more)
            if size > MAX_JSON:
                held = []
        self._deliver(b"".join(held) if size <= MAX_JSON else _TOO_LONG)
        self._deliver(None)

    def _deliver(self, line: bytes | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:  # the loop is closed: we ended before our input
            return

    def _write(self) -> None:
        while True:
            data, written = self._waiting.get()
            try:
                at = 0
                while at < len(data):
                    at += os.write(self._output, data[at : at + _PIECE])
            except OSError:  # nobody reads any more: the same as the end of the input
                self._deliver(None)
            try:
                self._loop.call_soon_threadsafe(_settle, written)
            except RuntimeError:
                return


class _NoMessageError(Exception):
    """A JSON value that is not a message of JSON-RPC. `id`: that of the request, if it has one."""

    def __init__(self, sentence: str, id: Json = None) -> None:
        super().__init__(sentence)
        self.id = id


def _bounded(line: bytes) -> bytes:
    if line == _TOO_LONG:
        raise Unparsable(f"it has more than the {MAX_JSON:,} bytes that a message may have")
    return line


def _check(value: Json) -> JsonObject:
    """Returns a message whose parts have the types that the SDK relies on."""
    if not isinstance(value, dict):
        raise _NoMessageError("A message is a JSON object; batches are not supported.")
    message = cast(JsonObject, value)
    id, method = message.get("id"), message.get("method")
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise _NoMessageError("The id of a request is a string or a whole number.")
    if method is not None and not isinstance(method, str):
        raise _NoMessageError("The method of a request is a string.", id)
    if method is None and not message.keys() & {"result", "error"}:
        raise _NoMessageError("A message has a method, a result or an error.", id)
    if not isinstance(message.get("error", {}), dict | None):
        raise _NoMessageError("The error of an answer is a JSON object.", id)
    return message


def _read_piece(stream: int) -> bytes:
    try:
        return os.read(stream, _PIECE)
    except OSError:
        return b""


def _settle(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)
