"""One MCP server: it starts in the background, lists its tools, answers calls, and starts again after it died.

A server that hangs, dies or sends rubbish is reported and costs its own tools only. Restarts wait longer each time. A
task of its own holds the connection, because the library wants it opened and closed in one task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reverie import __version__
from reverie.errors import ReverieError, UserError
from reverie.origins import escape_tags
from reverie.quick import dataclass
from reverie.settings.mcp_section import McpSettings
from reverie.tools.mcp.config import ServerConfig
from reverie.tools.mcp.definitions import ToolDefinition, clean, define
from reverie.tools.mcp.leash import Leash
from reverie.tools.mcp.library import is_timeout, load_library, lost_session, say
from reverie.tools.mcp.stdio import StdioServer
from reverie.types import JsonObject

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult

_MOST_TOOLS = 500
_MOST_PAGES = 50
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_SHORT_WAIT = 4.0
"""A call waits this long for the next try; for a longer time it is refused. In seconds."""
_LIST_AGAIN_SECONDS = 0.3


class ServerState(StrEnum):
    """What a server is doing, in the words of `/mcp`."""

    WAITING = "not started"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


class ServerGone(ReverieError):
    """The connection to a server ended, or cannot be made."""


@dataclass(slots=True, eq=False)
class McpServer:
    """One server. `changed` is called when its state or its tools change, `report` with a sentence for the user."""

    config: ServerConfig
    settings: McpSettings
    environment: Mapping[str, str]
    root: Path
    leash: Leash
    changed: Callable[[McpServer], None]
    report: Callable[[McpServer, str], None]
    state: ServerState = field(default=ServerState.WAITING, init=False)
    problem: str = field(default="", init=False)
    tools: tuple[ToolDefinition, ...] = field(default=(), init=False)
    """Those of the last list. They stay known when the server is gone: a call starts it again."""
    instructions: str = field(default="", init=False)
    title: str = field(default="", init=False)
    listed: bool = field(default=False, init=False)
    """Whether it has ever listed its tools."""
    _client: Client | None = field(default=None, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _listing: asyncio.Task[None] | None = field(default=None, init=False)
    _settled: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _process: StdioServer | None = field(default=None, init=False)
    _failures: int = field(default=0, init=False)
    _not_before: float = field(default=0.0, init=False)

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def pid(self) -> int:
        """The process of a ready stdio server; else 0."""
        return self._process.pid if self._process is not None and self.state is ServerState.READY else 0

    def find(self, name: str) -> ToolDefinition | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def start(self) -> None:
        """Starts it in the background, unless it runs or its entry has a mistake."""
        if self._task is not None or self.state is ServerState.CLOSED:
            return
        if self.config.problem:
            self._fail(self.config.problem)
            return
        self._settled.clear()
        self._stop = asyncio.Event()
        self._set(ServerState.STARTING)
        self._task = asyncio.create_task(self._hold(), name=f"mcp {self.name}")
        self._task.add_done_callback(self._ended)

    async def settled(self) -> None:
        """Waits until it is ready or has failed."""
        if self._task is not None:
            await self._settled.wait()

    async def restart(self) -> None:
        """Ends it and starts it at once, whatever happened before."""
        await self._end()
        self._failures, self._not_before = 0, 0.0
        self.start()
        await self.settled()

    async def close(self) -> None:
        await self._end()
        self._set(ServerState.CLOSED)

    async def call(self, tool: ToolDefinition, given: JsonObject, tell: Callable[[str], None]) -> CallToolResult:
        """Calls a tool. Starts a server that has died. Raises ServerGone, UserError.

        A tool that is not as it was when the call was allowed does not run.
        """
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.shared.exceptions import MCPError

        client = await self._connected()
        now = self.find(tool.name)
        if now is None or (now.raw, now.digest) != (tool.raw, tool.digest):
            raise UserError(f"{self.name} has changed or removed {tool.name} in the meantime, so it was not called.")

        async def told(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            tell(clean(message, 200) or share)

        limit = self.settings.call_s
        try:
            result = await client.call_tool(tool.raw, given, read_timeout_seconds=limit, progress_callback=told)
            self._failures = 0
            return result
        except (ClosedResourceError, BrokenResourceError) as error:
            raise ServerGone(self._say_gone()) from error
        except MCPError as error:
            await asyncio.sleep(0)  # if the server has died, the reader knows it now
            if self._process is None and lost_session(error):
                self._stop.set()  # the next call connects again
            if self._is_gone:
                raise ServerGone(self._say_gone(str(error))) from error
            if is_timeout(error):
                raise UserError(
                    f"{self.name} did not answer within {limit:g} s (setting mcp.call_s), so the call was given up; "
                    "it may still have an effect."
                ) from error
            said = clean(self.config.hide(str(error)), 2_000)
            raise UserError(f"{self.name} refused the call: {escape_tags(said)}") from error
        except (RuntimeError, ValueError) as error:  # its result does not have the form that it promised
            raise UserError(f"{self.name} sent a result that cannot be used: {clean(say(error), 1_000)}") from error

    @property
    def _is_gone(self) -> bool:
        return self._stop.is_set() or (self._process is not None and self._process.closed.is_set())

    async def _connected(self) -> Client:
        if self._client is not None and self._is_gone and self._task is not None:
            await asyncio.wait({self._task})  # it ends right now
        if self._client is None and self.state is not ServerState.CLOSED:
            wait = self._not_before - time.monotonic() if self._task is None else 0.0
            if wait > _SHORT_WAIT:
                raise ServerGone(f"{self.name} is not running: {self.problem}. It can be tried again in {wait:.0f} s.")
            await asyncio.sleep(max(0.0, wait))
            self.start()
            await self.settled()
        if self._client is None:
            raise ServerGone(f"{self.name} is not running: {self.problem or 'the session is closing'}.")
        return self._client

    def _say_gone(self, why: str = "") -> str:
        why = self._process.problem or self._process.last_words if self._process is not None else why
        return (
            f"{self.name} ended during the call{f': {clean(self.config.hide(why), 300)}' if why else ''}. "
            "The next call starts it again."
        )

    # -- the connection -------------------------------------------------------------------------------------------

    async def _hold(self) -> None:
        """Opens the connection, lists the tools, and keeps it open until the server ends or `_stop` is set."""
        await asyncio.to_thread(load_library)
        try:
            async with asyncio.timeout(self.settings.start_s) as limit, self._open() as client:
                self._note(client)
                self._take(await self._list(client))
                limit.reschedule(None)
                self._client = client
                self._set(ServerState.READY)
                self._settled.set()
                await self._until_over()
        except TimeoutError as error:
            why = f"it did not start within {self.settings.start_s:g} s (setting mcp.start_s)"
            raise ServerGone(why) from error
        finally:
            self._client = None
            if self._listing is not None:
                self._listing.cancel()

    async def _until_over(self) -> None:
        over = [asyncio.ensure_future(self._stop.wait())]
        if self._process is not None:
            over.append(asyncio.ensure_future(self._process.closed.wait()))
        try:
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in over:
                one.cancel()
        if not self._stop.is_set():
            raise ServerGone("it ended")

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Client]:
        from mcp.client.client import Client
        from mcp.shared.exceptions import MCPError
        from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, Implementation

        def make(mode: str) -> Client:
            return Client(
                self._transport(),
                mode=mode,
                cache=None,
                client_info=Implementation(name="reverie", version=__version__),
                list_roots_callback=self._roots,
                message_handler=self._hear,
            )

        client = make("legacy")  # every server of today knows it, and its lists announce changes by themselves
        try:
            await client.__aenter__()
        except MCPError as error:
            if error.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise
            client = make("auto")
            await client.__aenter__()
        try:
            yield client
        finally:
            await client.__aexit__(None, None, None)

    def _transport(self) -> Any:
        if self.config.kind == "stdio":
            self._process = StdioServer(
                self.config,
                self.environment,
                self.leash,
                self.settings.message_bytes,
                next(self.leash.numbers),
                lambda text: self.report(self, text),
            )
            return self._process.connect()
        from reverie.tools.mcp.http import open_http

        self._process = None
        return open_http(self.config, self.settings)

    async def _roots(self, context: Any) -> Any:
        del context
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

        return ListRootsResult(roots=[Root(uri=FileUrl(self.root.as_uri()), name=self.root.name)])

    async def _hear(self, message: Any) -> None:
        """Lists the tools again when the server says that they changed; several such messages count as one."""
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification) and (self._listing is None or self._listing.done()):
            self._listing = asyncio.create_task(self._list_again())

    async def _list_again(self) -> None:
        from mcp.shared.exceptions import MCPError

        await asyncio.sleep(_LIST_AGAIN_SECONDS)
        if self._client is not None:
            try:
                self._take(await self._list(self._client))
            except (MCPError, UserError, ValueError) as error:
                if isinstance(error, MCPError) and lost_session(error):
                    return  # its end is reported elsewhere
                self.report(self, f"it changed its tools, but the new list cannot be read: {clean(say(error), 200)}")
                return
            self.changed(self)

    def _note(self, client: Client) -> None:
        info = client.server_info
        title = clean(f"{info.name} {info.version}", 100) if info is not None else ""
        if self.title and title != self.title:
            self.report(self, f"it now calls itself {title!r}, before {self.title!r}; its tools keep their names")
        self.title = title
        self.instructions = clean(client.instructions, self.settings.instructions_characters)

    async def _list(self, client: Client) -> tuple[ToolDefinition, ...]:
        if client.server_capabilities.tools is None:
            return ()
        found, cursor = dict[str, ToolDefinition](), None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if len(found) >= _MOST_TOOLS:
                    self.report(self, f"it has more than {_MOST_TOOLS} tools; the rest is not used")
                    return _sorted(found)
                hints = tool.annotations
                try:
                    made = define(
                        self.name,
                        tool.name,
                        tool.description,
                        tool.input_schema,
                        only_reads=bool(hints and hints.read_only_hint),
                        most=self.settings.description_characters,
                    )
                except UserError as error:
                    self.report(self, str(error))
                    continue
                found.setdefault(made.name, made)
            cursor = page.next_cursor
            if not cursor:
                break
        return _sorted(found)

    def _take(self, tools: tuple[ToolDefinition, ...]) -> None:
        self.tools, self.listed = tools, True

    # -- its end --------------------------------------------------------------------------------------------------

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if self.state is ServerState.CLOSED or self._stop.is_set() or task.cancelled():
            self._set(ServerState.WAITING)
        else:
            self._fail(self._explain(error))
        self._settled.set()

    def _fail(self, why: str) -> None:
        self.problem = clean(self.config.hide(why), 500).rstrip(".")
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (self._failures - 1)) if self._failures else 0.0
        self._failures += 1
        self._not_before = time.monotonic() + wait
        self._set(ServerState.FAILED)

    def _explain(self, error: BaseException | None) -> str:
        found: BaseException | None = error
        while isinstance(found, BaseExceptionGroup):
            found = cast("BaseExceptionGroup[BaseException]", found).exceptions[0]
        known = self._process.problem if self._process is not None else ""
        said = self._process.last_words if self._process is not None else ""
        why = known or say(found) or type(found).__name__
        return f"{why} (it said: {said})" if said and not known else why

    async def _end(self) -> None:
        self._stop.set()
        task = self._task
        if task is None:
            return
        if self._client is None:
            task.cancel()  # it is still starting
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})

    def _set(self, state: ServerState) -> None:
        if self.state is not ServerState.CLOSED and state is not self.state:
            self.state = state
            if state is ServerState.READY:
                self.problem = ""
            self.changed(self)


def _sorted(found: Mapping[str, ToolDefinition]) -> tuple[ToolDefinition, ...]:
    return tuple(found[name] for name in sorted(found))
