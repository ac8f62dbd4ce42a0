"""An editor for tests: the SDK's own client, with a real `reverie acp` process on the other side of two pipes."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp import RequestError, connect_to_agent, schema
from acp.client import ClientSideConnection

from tests import warm
from tests.waiting import LIMIT_S

Answer = Callable[[schema.ToolCallUpdate, list[schema.PermissionOption]], schema.RequestPermissionResponse]


def choose(option: str, reason: str = "") -> Answer:
    """Answers every question with this option; empty: the user closes the question."""

    def answer(_call: schema.ToolCallUpdate, _options: list[schema.PermissionOption]) -> Any:
        if not option:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        meta = {"reason": reason} if reason else None
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option, field_meta=meta)
        return schema.RequestPermissionResponse(outcome=outcome)

    return answer


class Editor:
    """The client's side: keeps every update and question, and has unsaved buffers."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer or choose("deny")
        self.updates: list[tuple[str, Any]] = []
        self.questions: list[tuple[schema.ToolCallUpdate, list[schema.PermissionOption]]] = []
        self.buffers: dict[str, str] = {}
        self.asked_files: list[str] = []
        self.changed = asyncio.Event()

    def on_connect(self, conn: Any) -> None: ...

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.updates.append((session_id, update))
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_more: Any
    ) -> schema.RequestPermissionResponse:
        self.questions.append((tool_call, options))
        self.changed.set()
        given: Any = self.answer(tool_call, options)
        return await given if asyncio.isfuture(given) else given

    async def read_text_file(self, session_id: str, path: str, **_more: Any) -> schema.ReadTextFileResponse:
        self.asked_files.append(path)
        if path in self.buffers:
            return schema.ReadTextFileResponse(content=self.buffers[path])
        try:
            return schema.ReadTextFileResponse(content=Path(path).read_text())
        except OSError as error:
            raise RequestError.resource_not_found(path) from error

    async def write_text_file(self, session_id: str, path: str, content: str, **_more: Any) -> None:
        self.buffers.pop(path, None)
        Path(path).write_text(content)

    # -- what was seen ----------------------------------------------------------------------------------------------

    def kinds(self, session: str = "") -> list[str]:
        return [update.session_update for id, update in self.updates if not session or id == session]

    def of(self, kind: str, session: str = "") -> list[Any]:
        found = (update for id, update in self.updates if not session or id == session)
        return [update for update in found if update.session_update == kind]

    def text(self, kind: str = "agent_message_chunk", session: str = "") -> str:
        return "".join(getattr(one.content, "text", "") for one in self.of(kind, session))

    async def until(self, seen: Callable[[], object], seconds: float = LIMIT_S) -> None:
        async with asyncio.timeout(seconds):
            while not seen():
                self.changed.clear()
                await self.changed.wait()


@dataclass
class Running:
    """A process, the connection to it, and what it wrote to standard error."""

    agent: ClientSideConnection
    process: warm.Process
    errors: Path
    writer: asyncio.StreamWriter

    async def ended(self, seconds: float = LIMIT_S) -> int:
        return await asyncio.to_thread(self.process.wait, seconds)

    async def kill(self) -> None:
        self.process.kill()
        await self.ended()


@asynccontextmanager
async def running(
    editor: Editor, *args: str, capabilities: schema.ClientCapabilities | None = None, cwd: Path | None = None
) -> AsyncIterator[Running]:
    """A process that has answered `initialize`. At the end its input is closed, and it must end by itself with 0."""
    given, out = os.pipe(), os.pipe()
    with tempfile.NamedTemporaryFile(suffix=".err") as errors:
        streams = (given[0], out[1], errors.fileno())
        process = warm.Process("acp", *args, cwd=cwd or Path.cwd(), env=os.environ, streams=streams)
        os.close(given[0])
        os.close(out[1])
        reader, writer = await _streams(out[0], given[1])
        agent = connect_to_agent(editor, writer, reader, use_unstable_protocol=True)  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(LIMIT_S * 2):
                await agent.initialize(protocol_version=1, client_capabilities=capabilities)
                yield Running(agent, process, Path(errors.name), writer)
            was_killed = process.poll() is not None
            writer.close()
            assert was_killed or await asyncio.to_thread(process.wait, LIMIT_S) == 0
        finally:
            process.kill()
            await agent.close()


async def _streams(output: int, given: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=100_000_000)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb"))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(given, "wb"))
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)
