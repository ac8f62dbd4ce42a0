"""A server behind an address: streamable HTTP, or the older SSE. Answers are limited in size, like those of a process.

Headers of the entry go to this address only: the library follows no redirect to another host.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from reverie.errors import UserError
from reverie.settings.mcp_section import McpSettings
from reverie.tools.mcp.config import ServerConfig


@asynccontextmanager
async def open_http(config: ServerConfig, settings: McpSettings) -> AsyncGenerator[tuple[Any, Any]]:
    """Yields the streams of messages of a server behind an address."""

    def make(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        return _limit(create_mcp_http_client(headers, timeout, auth), settings.message_bytes)

    if config.kind == "sse":
        async with sse_client(
            config.url,
            headers=dict(config.headers),
            timeout=settings.start_s,
            sse_read_timeout=settings.call_s,
            httpx_client_factory=make,
        ) as streams:
            yield streams
        return
    async with (
        make(dict(config.headers), httpx2.Timeout(settings.start_s, read=settings.call_s)) as http,
        streamable_http_client(config.url, http_client=http, max_sse_event_size=settings.message_bytes) as streams,
    ):
        yield streams


def _limit(client: httpx2.AsyncClient, most: int) -> httpx2.AsyncClient:
    async def watch(response: httpx2.Response) -> None:
        if "text/event-stream" not in response.headers.get("content-type", ""):
            response.stream = _LimitedStream(response.stream, most)

    client.event_hooks["response"].append(watch)
    return client


class _LimitedStream(httpx2.AsyncByteStream):
    """The body of an answer. It ends with an error after too many bytes."""

    def __init__(self, body: Any, most: int) -> None:
        self._body, self._most = body, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for piece in self._body:
            seen += len(piece)
            if seen > self._most:
                raise UserError(f"it sent an answer of more than {self._most:,} bytes (setting mcp.message_bytes)")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()
