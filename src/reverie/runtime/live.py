"""A live session listens on a Unix socket, so that other commands act on it directly.

One JSON object per line, one handler per verb, for this user only. No client can end or block it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

from reverie.errors import ReverieError, SessionBusy, StorageError
from reverie.parsing import load_json
from reverie.runtime.live_client import LARGEST_REQUEST, check_socket_path, peer
from reverie.storage.atomic import make_private_dir, storage_error
from reverie.types import JsonObject

Handler: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]

MOST_CLIENTS = 200
REQUEST_WAIT_S = 30.0
HANDLER_WAIT_S = 120.0
_CLOSE_GRACE_S = 1.0


class LiveServer:
    """The socket of one session. `start` and `close` it, or use `async with`; close it from outside its handlers.

    A handler gets the request and returns what to add to `{"ok": true}`; a ReverieError becomes
    `{"ok": false, "error": sentence}`. `ping` always exists and lists the verbs.
    """

    def __init__(
        self,
        path: Path,
        handlers: Mapping[str, Handler],
        *,
        request_wait_s: float = REQUEST_WAIT_S,
        handler_wait_s: float = HANDLER_WAIT_S,
        most_clients: int = MOST_CLIENTS,
        largest_request: int = LARGEST_REQUEST,
    ) -> None:
        self.path = path
        self._handlers: dict[str, Handler] = {"ping": self._ping, **handlers}
        self._request_wait_s = request_wait_s
        self._handler_wait_s = handler_wait_s
        self._most_clients = most_clients
        self._largest_request = largest_request
        self._server: asyncio.Server | None = None
        self._inode: int | None = None
        self._clients: set[asyncio.Task[Any]] = set()
        self._answering: set[asyncio.Task[Any]] = set()
        self._closing = False

    async def start(self) -> None:
        """Starts to listen. Raises SessionBusy if another process listens there, UserError or StorageError."""
        check_socket_path(self.path)
        make_private_dir(self.path.parent)
        _check_private(self.path.parent)
        _remove_stale(self.path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(os.fspath(self.path))
            self.path.chmod(0o600)  # before anybody can connect
            self._inode = self.path.lstat().st_ino
            self._server = await asyncio.start_unix_server(self._accept, sock=listener, limit=self._largest_request)
        except OSError as error:
            listener.close()
            raise storage_error(error, self.path, "listen at") from error

    async def close(self) -> None:
        """Stops listening and removes the socket; running requests get a moment to end. A second call does nothing."""
        server, self._server = self._server, None
        if server is None:
            return
        self._closing = True
        server.close()
        with suppress(OSError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()
        for client in self._clients - self._answering:
            client.cancel()
        clients = set(self._clients)
        if clients:
            _, late = await asyncio.wait(clients, timeout=_CLOSE_GRACE_S)
            for client in late:
                client.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    @property
    def clients(self) -> int:
        return len(self._clients)

    async def __aenter__(self) -> LiveServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ping(self, _: JsonObject) -> JsonObject:
        return {"pid": os.getpid(), "verbs": sorted(self._handlers)}

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A separate task: those that asyncio makes for a coroutine print errors when they are cancelled.
        client = asyncio.create_task(self._serve(reader, writer))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = cast("asyncio.Task[Any]", asyncio.current_task())
        try:
            uid = peer(cast(socket.socket, writer.get_extra_info("socket")))[1]
            if uid not in (None, os.geteuid(), 0):
                return
            if len(self._clients) > self._most_clients:
                await self._send(writer, _no("Too many commands use this session at once; try again."))
                return
            while not self._closing:
                line = await self._line(reader)
                if line is None:
                    await self._send(writer, _no(f"A request is at most {self._largest_request:,} bytes on one line."))
                    return
                if not line.strip():
                    return
                self._answering.add(client)
                await self._send(writer, await self._answer(line))
                self._answering.discard(client)
        except (OSError, TimeoutError):
            pass  # the client is gone, or does not read
        finally:
            self._answering.discard(client)
            try:
                writer.close()
                async with asyncio.timeout(_CLOSE_GRACE_S):
                    await writer.wait_closed()
            except (OSError, TimeoutError):
                writer.transport.abort()  # it does not read its last answer

    async def _line(self, reader: asyncio.StreamReader) -> bytes | None:
        """Returns the next request; empty at the end, None if it is too long."""
        try:
            async with asyncio.timeout(self._request_wait_s):
                return await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as rest:
            return rest.partial
        except asyncio.LimitOverrunError:
            return None

    async def _send(self, writer: asyncio.StreamWriter, answer: JsonObject) -> None:
        writer.write(json.dumps(answer, default=str).encode() + b"\n")
        async with asyncio.timeout(self._request_wait_s):
            await writer.drain()

    async def _answer(self, line: bytes) -> JsonObject:
        try:
            request: Any = load_json(line)
        except ValueError:
            return _no("The request is not JSON.")
        verb: Any = cast(JsonObject, request).get("do") if isinstance(request, dict) else None
        if not isinstance(verb, str):
            return _no('A request is an object with "do", the name of a verb.')
        handler = self._handlers.get(verb)
        if handler is None:
            return _no(f"This session does not know {verb[:80]!r}; it knows: {', '.join(sorted(self._handlers))}.")
        return await self._handle(verb, handler, cast(JsonObject, request))

    async def _handle(self, verb: str, handler: Handler, request: JsonObject) -> JsonObject:
        running = asyncio.ensure_future(handler(request))
        try:
            await asyncio.wait({running}, timeout=self._handler_wait_s)
        finally:
            if not running.done():
                running.cancel()
        if not running.done() or running.cancelled():
            return _no(f"{verb!r} took longer than {self._handler_wait_s:g} s and was given up.")
        error = running.exception()
        if error is None:
            return (
                {"ok": True} | running.result() | {"ok": True}
            )  # first and always: readers may look at the first bytes
        if isinstance(error, ReverieError):
            return _no(str(error))
        return _no(f"{verb!r} failed: unexpected {type(error).__name__}.")  # a bug of ours must not end the session


def _no(sentence: str) -> JsonObject:
    return {"ok": False, "error": sentence}


def _check_private(folder: Path) -> None:
    try:
        found = folder.stat()
    except OSError as error:
        raise storage_error(error, folder, "use the folder") from error
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise StorageError(f"Cannot listen in {folder}: others can enter it; make it yours alone (chmod 700).")


def _remove_stale(path: Path) -> None:
    """Removes the socket file of a killed process, where nobody answers."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StorageError(f"Cannot listen at {path}: something that is not a socket is there; move it away.")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink()
                return
            except (TimeoutError, BlockingIOError):
                pid = 0  # it listens, and is too busy to answer
            else:
                pid = peer(probe)[0]
        raise SessionBusy(f"Another process (PID {pid}) listens at {path}; end it first.", pid)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(error, path, "listen at") from error
