"""The MCP server: tools, resources and one prompt over the memory of a project. The SDK speaks the protocol; here is
which project is meant, in which thread the work runs, and which form an answer has. Only this folder imports the SDK.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from reverie import __version__
from reverie.connect.mcp.answers import Tools
from reverie.connect.mcp.conversation import NOBODY, Conversation
from reverie.connect.mcp.tools import MOST_CHARACTERS, TOOLS, check_arguments
from reverie.daemon.projects import Project, Projects
from reverie.errors import ReverieError, UserError
from reverie.memory.lookup import find_file
from reverie.prompts import render
from reverie.storage.atomic import storage_error
from reverie.text.cutting import shorten
from reverie.text.quoting import one_line

SCHEME: Final = "reverie://memory/"
PAGE: Final = 100
PROMPT: Final = "with_memory"
_MARKDOWN: Final = "text/markdown"
_ROOTS: Final = "roots"
_ROOTS_S: Final = 5.0
_LINE: Final = 160
_WAITING: Final = 64
"""Lines of a client that were read and not taken up yet."""

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]


class MemoryServer:
    """One server. `cwd`: the project; None: the first root of the client, else `fallback`. `is_alone`: there is only
    one client, which has started us, so its roots are asked for once and count from then on."""

    def __init__(self, home: Path, cwd: Path | None, fallback: Path, *, is_alone: bool) -> None:
        self._projects = Projects(home)
        self._variables = {**os.environ}  # they say where other programs keep their files
        self._conversation = Conversation.find(home)
        self._cwd = cwd
        self._fallback = fallback
        self._is_alone = is_alone
        self._asks_roots = is_alone and cwd is None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reverie-mcp")
        self._bus = InMemorySubscriptionBus()
        self.sdk: Server[Any] = Server(
            "reverie",
            version=__version__,
            title="Reverie",
            instructions=render("reverie.connect.mcp", "instructions.md"),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # errors reach the client; a traceback helps nobody

    async def serve_stdio(self) -> None:
        """Serves the client on standard input and output until it closes them."""
        options = self.sdk.create_initialization_options(NotificationOptions(resources_changed=True))
        # A copy of the descriptor, because what anything else prints must not get between the messages.
        taken = os.dup(1)
        os.dup2(2, 1)
        output = anyio.wrap_file(os.fdopen(taken, "w", encoding="utf-8", closefd=False))
        try:
            async with stdio_server(cast("Any", _read_lines(os.dup(0))), output) as (reading, writing):
                await self.sdk.run(reading, writing, options)
        except* BrokenPipeError:
            pass  # the client is gone

    def close(self) -> None:
        """Waits for running work, and closes the rankers."""
        self._thread.submit(self._projects.close)
        self._thread.shutdown(wait=True)

    # -- tools -------------------------------------------------------------------------------------------------------

    async def _list_tools(self, _ctx: Context, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=one.name,
                    description=one.description,
                    input_schema=one.schema,
                    annotations=types.ToolAnnotations(title=one.title, read_only_hint=one.reads, open_world_hint=False)
                    if one.reads
                    else types.ToolAnnotations(title=one.title, destructive_hint=False, open_world_hint=False),
                )
                for one in TOOLS.values()
            ]
        )

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        spec = TOOLS.get(params.name)
        if spec is None:
            known = ", ".join(TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:40]!r}; there are {known}.")
        try:
            given = check_arguments(spec, params.arguments)
            cwd = await self._find_project(ctx, params)
            if cwd is None:
                return _ask_for_roots()
            answer = await self._work(cwd, lambda project: self._tools(project, ctx).call(spec.name, given))
        except ReverieError as error:
            return types.CallToolResult(content=[_text(one_line(str(error)))], is_error=True)
        if answer.changed:
            await self._tell_change(ctx)
        return types.CallToolResult(content=[_text(answer.text)], structured_content=answer.data)

    def _tools(self, project: Project, ctx: Context) -> Tools:
        client = ctx.session.client_params
        name = one_line(client.client_info.name)[:60].strip() if client is not None else ""
        is_claude = self._is_alone and name == "claude-code"  # others may inherit its variables
        return Tools(project, self._conversation if is_claude else NOBODY, f"{name or 'a client'} over MCP")

    async def _tell_change(self, ctx: Context) -> None:
        """Tells clients that the list of resources has changed, in the way of their protocol."""
        await self._bus.publish(ResourcesListChanged())
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await ctx.session.send_resource_list_changed()

    # -- resources ---------------------------------------------------------------------------------------------------

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        after = (params.cursor if params is not None else None) or ""
        entries = await self._read(ctx, None, lambda tools: tools.project.memory.directory.list())
        left = [one for one in sorted(entries, key=lambda one: one.name) if one.name > after]
        resources = [
            types.Resource(
                uri=f"{SCHEME}{quote(one.name)}",
                name=one.name,
                title=one_line(one.title) or None,
                description=one_line(shorten(one.description, _LINE)) or None,
                mime_type=_MARKDOWN,
                size=one.size,
            )
            for one in left[:PAGE]
        ]
        return types.ListResourcesResult(
            resources=resources, next_cursor=left[PAGE - 1].name if len(left) > PAGE else None
        )

    async def _list_templates(self, _ctx: Context, _params: object) -> types.ListResourceTemplatesResult:
        memory = types.ResourceTemplate(
            uri_template=f"{SCHEME}{{name}}", name="memory", description="One memory", mime_type=_MARKDOWN
        )
        return types.ListResourceTemplatesResult(resource_templates=[memory])

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        uri = str(params.uri)
        if not uri.startswith(SCHEME):
            raise MCPError(types.INVALID_PARAMS, f"{uri[:80]!r} is not a memory; they begin with {SCHEME}.")
        name = unquote(uri.removeprefix(SCHEME))
        text = await self._read(ctx, params, lambda tools: tools.show(find_file(tools.project.memory.directory, name)))
        if text is None:
            return _ask_for_roots()
        contents = types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[contents])

    # -- the prompt --------------------------------------------------------------------------------------------------

    async def _list_prompts(self, _ctx: Context, _params: object) -> types.ListPromptsResult:
        prompt = types.Prompt(
            name=PROMPT,
            title="Start with memory",
            description="A task together with the memories that fit it",
            arguments=[types.PromptArgument(name="task", description="What you want to do", required=True)],
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        task = (params.arguments or {}).get("task", "").strip()
        if params.name != PROMPT or not task or len(task) > MOST_CHARACTERS:
            wanted = f"`task`, at most {MOST_CHARACTERS:,} characters"
            raise MCPError(types.INVALID_PARAMS, f"There is one prompt, `{PROMPT}`, and it needs {wanted}.")
        text = await self._read(ctx, params, lambda tools: tools.task(task))
        if text is None:
            return _ask_for_roots()
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=_text(text))])

    # -- which project, which thread ---------------------------------------------------------------------------------

    async def _read(self, ctx: Context, params: Any, work: Callable[[Tools], T]) -> Any:
        """Does work for a resource or the prompt, where an error is one of the protocol. None: the client is asked for
        its roots first."""
        try:
            cwd = await self._find_project(ctx, params)
            if cwd is None:
                return None
            return await self._work(cwd, lambda project: work(self._tools(project, ctx)))
        except ReverieError as error:
            code = types.INVALID_PARAMS if isinstance(error, UserError) else types.INTERNAL_ERROR
            raise MCPError(code, one_line(str(error))) from error

    async def _work(self, cwd: Path, work: Callable[[Project], T]) -> T:
        """Runs work on the disk in the one thread of this server: calls wait for each other."""

        def run() -> T:
            self._projects.close_unused()
            return work(self._projects.of(cwd, self._variables))

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except OSError as error:
            raise storage_error(error, cwd, "use the memory of") from error

    async def _find_project(self, ctx: Context, params: Any) -> Path | None:
        """The folder of the project. None: the client must be asked for its roots, which the answer does."""
        if not self._asks_roots:
            return self._cwd or self._fallback
        abilities = ctx.session.client_capabilities
        if abilities is None or abilities.roots is None:
            return self._fallback
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            found = types.ListRootsResult(roots=[])
            with suppress(MCPError, TimeoutError):
                asked = ctx.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
                found = await asyncio.wait_for(asked, _ROOTS_S)
        elif params is None:
            return self._fallback  # a list cannot ask
        elif params.input_responses is None:
            return None
        else:
            found = params.input_responses.get(_ROOTS)
        roots = found.roots if isinstance(found, types.ListRootsResult) else []
        self._cwd = next((path for root in roots if (path := _folder_of(str(root.uri)))), None)
        self._asks_roots = False
        return self._cwd or self._fallback


async def _read_lines(given: int) -> AsyncIterator[str]:
    """The lines of a descriptor. The thread that waits for them does not keep the process alive after a signal."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | None](_WAITING)

    def read() -> None:
        with suppress(OSError, RuntimeError), os.fdopen(given, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()
        with suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(queue.put(None), loop)

    threading.Thread(target=read, name="reverie-mcp-input", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def _ask_for_roots() -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests={_ROOTS: types.ListRootsRequest()})


def _folder_of(uri: str) -> Path | None:
    """The folder that a root names, if it is one of this machine."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = Path(unquote(parts.path))
    with suppress(OSError, ValueError):
        return path if path.is_absolute() and path.is_dir() else None
    return None


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
