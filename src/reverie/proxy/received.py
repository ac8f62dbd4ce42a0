"""An answer of an upstream: its head, and its bytes as they came or decoded, in bounded memory.

A few kilobytes may be a gigabyte when they are decoded. So decoding gives small pieces, and nobody has to take all of
them. What is too large to be read goes to the client as it came.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx

MOST_READ: Final = 8_000_000
"""Bytes of one document or event, decoded."""
MOST_STREAMED: Final = 64_000_000
"""Bytes of a whole stream that nobody compressed."""
MOST_VALUES: Final = 500_000
"""Values of one document or event: each takes up to a hundred times the bytes that it is sent as, and is looked at."""
MOST_VALUES_STREAMED: Final = 2_000_000
"""Those of a whole stream, which has some in each event."""
_PIECE: Final = 65_536
_PLAIN: Final = ("", "identity")
_READABLE: Final = (*_PLAIN, "gzip", "deflate")


class Received:
    """One answer. `raw` and `plain` close it."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks = response.aiter_raw()
        self._came = list[bytes]()
        self.status = response.status_code
        self.headers = response.headers
        self.is_success = response.is_success
        self.streams = "event-stream" in response.headers.get("content-type", "")
        self.encoding: str = response.headers.get("content-encoding", "").strip().lower()

    @property
    def is_readable(self) -> bool:
        """Whether it is in a form that can be decoded."""
        return self.encoding in _READABLE

    @property
    def most_streamed(self) -> int:
        """How much of a stream is read. We ask for no compression, and it costs whoever uses it next to nothing."""
        return MOST_STREAMED if self.encoding in _PLAIN else MOST_READ

    async def read(self, most: int = MOST_READ) -> bytes | None:
        """All of it, decoded. None if that is larger, broken or in another form: then `raw` still gives everything."""
        pieces, size, values, decoder = list[bytes](), 0, 0, Decoder(self.encoding)
        async for chunk in self._chunks:
            self._came.append(chunk)
            for piece in decoder.pieces(chunk):
                pieces.append(piece)
                size += len(piece)
                values += count_values(piece)
                if size > most or values > MOST_VALUES:
                    return None
            if decoder.is_broken:
                return None
        await self.close()
        return b"".join(pieces)

    async def raw(self) -> AsyncGenerator[bytes]:
        """Every byte as it came, also those that were read."""
        try:
            for chunk in self._came:
                yield chunk
            self._came.clear()
            async for chunk in self._chunks:
                yield chunk
        finally:
            await self.close()

    async def plain(self) -> AsyncGenerator[bytes]:
        """It decoded, in small pieces."""
        import httpx

        decoder = Decoder(self.encoding)
        async with aclosing(self.raw()) as chunks:
            async for chunk in chunks:
                for piece in decoder.pieces(chunk):
                    yield piece
                if decoder.is_broken:
                    raise httpx.DecodingError(f"not valid {self.encoding}")

    async def close(self) -> None:
        await self._response.aclose()


def count_values(raw: bytes) -> int:
    """At least as many values as begin in a piece of JSON."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


class Decoder:
    """Decodes chunks, each into pieces of bounded size. An unknown form counts as broken."""

    def __init__(self, encoding: str) -> None:
        self.is_broken = encoding not in _READABLE
        self._is_plain = encoding in _PLAIN
        self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        if self._is_plain:
            yield chunk
            return
        while chunk and not self.is_broken:
            if self._reader.eof:  # `gzip` joins files in this way
                self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
            try:
                piece = self._reader.decompress(chunk, _PIECE)
            except zlib.error:
                self.is_broken = True
                return
            chunk = self._reader.unconsumed_tail or self._reader.unused_data
            if piece:
                yield piece
