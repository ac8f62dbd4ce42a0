"""A server as a process: JSON lines through its standard input and output, each of them limited in size.

Text that is not a message is skipped and reported once. The processes of a server end together with the connection,
also those that left its session. The reason of a failure often is in its last lines on standard error: they are kept.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.runtime.agent_above import mark_environment, mark_words
from reverie.runtime.process_family import ProcessFamily, end_marked
from reverie.tools.mcp.config import ServerConfig
from reverie.tools.mcp.leash import VARIABLE, Leash

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

_INHERITED = frozenset(
    {
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    }
)
"""What a server gets of our environment. Keys and tokens are not in it: an entry names what it needs as `${VAR}`."""
_OWN = "REVERIE_MCP_SERVER"
_NO_PIPE = (-1, -1)
_GRACE_SECONDS = 1.0
_LAST_WORDS_SECONDS = 0.1
_TAIL_BYTES = 2_000
_CHUNK_BYTES = 64 * 1024


@dataclass(slots=True, eq=False)
class StdioServer:
    """One connection to a process. `closed` is set when the process has closed its output."""

    config: ServerConfig
    environment: Mapping[str, str]
    leash: Leash
    largest: int
    number: int
    report: Callable[[str], None]
    closed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    problem: str = field(default="", init=False)
    """What ended the connection, if we know it."""
    pid: int = field(default=0, init=False)
    _exited: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _said: bytes = field(default=b"", init=False)
    _rubbish: bool = field(default=False, init=False)

    @property
    def last_words(self) -> str:
        """The last line that the process wrote to standard error."""
        lines = self._said.decode("utf-8", "replace").strip().splitlines()
        return " ".join(lines[-1].split())[:300] if lines else ""

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[tuple[Any, Any]]:
        """Starts the process and yields the streams of messages, in the form of the library."""
        from anyio import create_memory_object_stream
        from mcp.shared.message import SessionMessage

        process = await self._start()
        arriving, reading = create_memory_object_stream[SessionMessage | Exception](0)
        writing, leaving = create_memory_object_stream[SessionMessage](0)
        work = [
            asyncio.create_task(self._read(process, arriving)),
            asyncio.create_task(self._write(process, leaving)),
            asyncio.create_task(self._listen(process)),
            asyncio.create_task(self._watch(arriving)),
        ]
        try:
            yield reading, writing
        finally:
            # A task of its own: whoever cancels the connection does not cancel the end of the process.
            await asyncio.shield(asyncio.create_task(self._end(process, work)))
            for stream in (arriving, reading, writing, leaving):
                stream.close()

    async def _start(self) -> asyncio.subprocess.Process:
        config = self.config
        kept = {name: value for name, value in self.environment.items() if name in _INHERITED}
        env = {**mark_environment(kept), **config.env, VARIABLE: self.leash.mark, _OWN: self._mark}
        await asyncio.to_thread(self.leash.take)
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _Protocol(self.largest, loop, self._exited),
                *self._words(env),
                cwd=config.folder,
                env=env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UserError(_explain(error, config)) from error
        process = asyncio.subprocess.Process(transport, protocol, loop)
        self.pid = process.pid
        self.leash.tell(process.pid)
        return process

    def _words(self, env: Mapping[str, str]) -> list[str]:
        """The marked command. What starts it has no error of its own for a program that does not exist."""
        command, path = self.config.command, env.get("PATH", os.defpath)
        if not ((self.config.folder / command).exists() if "/" in command else shutil.which(command, path=path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return mark_words([command, *self.config.args])

    @property
    def _mark(self) -> str:
        return f"{self.leash.mark}-{self.number}"

    async def _read(
        self, process: asyncio.subprocess.Process, to: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        assert process.stdout is not None
        try:
            while line := await process.stdout.readuntil(b"\n"):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self._tell_rubbish(line)
                    await asyncio.sleep(0)
                    continue
                await to.send(SessionMessage(message))
        except asyncio.IncompleteReadError:
            pass  # the end of the output
        except asyncio.LimitOverrunError:
            self.problem = f"it sent a message of more than {self.largest:,} bytes (setting mcp.message_bytes)"
        except (BrokenResourceError, ClosedResourceError, OSError):
            pass  # nobody listens any longer
        finally:
            self.closed.set()
            to.close()

    async def _watch(self, to: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Ends the connection when the process has ended, even if a child of it still holds its output."""
        await self._exited.wait()
        await asyncio.sleep(_LAST_WORDS_SECONDS)
        self.closed.set()
        to.close()

    def _tell_rubbish(self, line: bytes) -> None:
        if line.strip() and not self._rubbish:
            self._rubbish = True
            shown = " ".join(line[:80].decode("utf-8", "replace").split())
            self.report(f"it prints text that is not a message, which is skipped: {shown!r}")

    async def _write(
        self, process: asyncio.subprocess.Process, given: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        assert process.stdin is not None
        with suppress(OSError):
            async for one in given:
                process.stdin.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while piece := await process.stderr.read(_CHUNK_BYTES):
            self._said = (self._said + piece)[-_TAIL_BYTES:]

    async def _end(self, process: asyncio.subprocess.Process, work: list[asyncio.Task[None]]) -> None:
        """Closes its input, which a good server obeys; then ends all its processes."""
        assert process.stdin is not None
        process.stdin.close()
        if not self.problem:
            await self._wait_for_exit(_GRACE_SECONDS)
        await ProcessFamily(process.pid, _NO_PIPE).end()
        await asyncio.to_thread(end_marked, f"{_OWN}={self._mark}".encode())
        await self._wait_for_exit(_GRACE_SECONDS)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        self.leash.tell(process.pid, ended=True)
        if (transport := getattr(process, "_transport", None)) is not None:
            transport.close()  # else it waits for whoever still holds a pipe

    async def _wait_for_exit(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), seconds)


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Says when the process itself has ended: `Process.wait` waits for everybody who holds its pipes."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop, exited: asyncio.Event) -> None:
        super().__init__(limit=limit, loop=loop)
        self._reverie_exited = exited

    def process_exited(self) -> None:
        self._reverie_exited.set()
        super().process_exited()


def _explain(error: OSError | ValueError, config: ServerConfig) -> str:
    if isinstance(error, ValueError):
        return f"{config.command!r} cannot be started: {error}"
    if error.errno == errno.ENOENT and config.folder.is_dir():
        return f"the program {config.command!r} was not found; install it, or write its whole path"
    return f"{config.command!r} cannot be started: {(error.strerror or str(error)).lower()}"
