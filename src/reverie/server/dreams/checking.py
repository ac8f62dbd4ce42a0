"""Reads an uploaded transcript: line by line, in a process of its own that may use little memory and time. A few
hundred kilobytes can unpack to millions of values, and the process that answers requests must never hold them.

The process is `python -m reverie.server.dreams.checking`: the upload on standard input, the transcript with gzip on
standard output, and one line of JSON about it on standard error.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO, Final

from reverie.errors import ReverieError
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.runtime.bounded import bounded
from reverie.server.wire import ApiError
from reverie.storage.transcript.file import parse_line

MOST_BYTES: Final = 64_000_000
"""Of a transcript; a dream skips larger ones."""
MOST_LINES: Final = 250_000
"""64 MB of `{}` would be 20 million records: little to send, and hours to read."""
_MOST_LINE: Final = 16_000_000
_MOST_MEMORY: Final = 256_000_000
_MOST_S: Final = 60.0
_TOO_MUCH: Final = "The session takes too much time or memory to read: send a part of it."
_GZIP: Final = b"\x1f\x8b"
_AT_ONCE: Final = 65_536
_UNPACKED_AT_ONCE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Transcript:
    """An uploaded transcript, checked."""

    packed: bytes
    """With gzip."""
    size: int
    sha256: str
    format: str
    records: int


async def check_transcript(sent: BinaryIO) -> Transcript:
    """The transcript in an upload: JSONL, or the same compressed with gzip (recognised by its first bytes)."""
    sent.seek(0)
    with tempfile.TemporaryFile() as packed:
        child = await asyncio.create_subprocess_exec(
            *bounded([sys.executable, "-P", "-m", __name__], _MOST_MEMORY),
            stdin=sent,
            stdout=packed,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_MOST_S):
                _, said = await child.communicate()
        except TimeoutError:
            raise ApiError(413, _TOO_MUCH) from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode:
            raise (
                ApiError(413, _TOO_MUCH) if child.returncode < 0 else ReverieError(f"It ended with {child.returncode}.")
            )
        told = load_json(said.splitlines()[-1])
        if "refused" in told:
            raise ApiError(*told["refused"])
        packed.seek(0)
        return Transcript(packed.read(), **told)


def _check(sent: BinaryIO, packed: BinaryIO) -> dict[str, object]:
    """What is known of a transcript that is written to `packed`. Raises `ApiError`."""
    hashed, size, count, has_message, is_ours = sha256(), 0, 0, False, False
    broken: tuple[int, ValueError] | None = None
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as out:
        for number, line in enumerate(_lines(sent), 1):
            hashed.update(line)
            out.write(line)
            size += len(line)
            if not line.strip():
                continue
            if broken is not None:
                break
            try:
                records = parse_line(line)
            except ValueError as error:
                broken = number, error
                if not count:
                    break
                continue  # if it is the last one, it was written just now, and is not whole
            count += len(records)
            has_message = has_message or any(record.message is not None for record in records)
            is_ours = is_ours or any("origins" in record.data for record in records)
        else:
            broken = None
    if broken is not None:
        raise ApiError(400, f"Line {broken[0]} is not a JSON object: a transcript has one record per line.")
    if not has_message:
        raise ApiError(400, "The transcript has no message: it must be one of Reverie or of Claude Code.")
    form = "reverie" if is_ours else "claude_code"
    return {"size": size, "sha256": hashed.hexdigest(), "format": form, "records": count}


def _lines(sent: BinaryIO) -> Iterator[bytes]:
    """The lines with their ends, as many as may be."""
    left, count = bytearray(), 0
    for part in _unpacked(sent):
        *whole, rest = part.split(b"\n")
        for line in whole:
            count += 1
            if count > MOST_LINES:
                raise ApiError(413, f"A transcript may have {MOST_LINES:,} lines.")
            yield b"%b%b\n" % (left, line)
            left.clear()
        left += rest
        if len(left) > _MOST_LINE:
            raise ApiError(413, f"A line of a transcript may have {_MOST_LINE:,} bytes.")
    if left:
        yield bytes(left)


def _unpacked(sent: BinaryIO) -> Iterator[bytes]:
    """The bytes of the transcript, as many as may be, in parts of bounded size."""
    size = 0
    for part in _parts(sent):
        size += len(part)
        if size > MOST_BYTES:
            raise ApiError(413, f"A transcript may have {MOST_BYTES:,} bytes.")
        yield part


def _parts(sent: BinaryIO) -> Iterator[bytes]:
    chunk = sent.read(_AT_ONCE)
    if not chunk.startswith(_GZIP):
        while chunk:
            yield chunk
            chunk = sent.read(_AT_ONCE)
        return
    unpacking = zlib.decompressobj(wbits=31)
    try:
        while chunk:
            if unpacking.eof:  # `gzip` joins files in this way
                unpacking = zlib.decompressobj(wbits=31)
            yield unpacking.decompress(chunk, _UNPACKED_AT_ONCE)
            chunk = unpacking.unconsumed_tail or unpacking.unused_data or sent.read(_AT_ONCE)
    except zlib.error as error:
        raise ApiError(400, f"The gzip data cannot be read: {error}.") from error
    if not unpacking.eof:
        raise ApiError(400, "The gzip data ends in the middle.")


def _main() -> None:
    try:
        with os.fdopen(0, "rb") as sent, os.fdopen(1, "wb") as packed:
            told = _check(sent, packed)
    except MemoryError:
        told = {"refused": [413, _TOO_MUCH]}
    except ApiError as error:
        told = {"refused": [error.status, str(error)]}
    print(json.dumps(told), file=sys.stderr)


if __name__ == "__main__":
    _main()
