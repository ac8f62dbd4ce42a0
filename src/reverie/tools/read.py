"""Read: returns the lines of a file with their numbers, or an image; limited in lines, line length and bytes.

It notes in the read cache what it saw, for Edit and Write. It always marks a line that is cut. Its limits are final:
its results are never moved to disk.
"""

from __future__ import annotations

import asyncio
import io
import os
from base64 import b64encode
from pathlib import Path
from typing import BinaryIO

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.storage.atomic import storage_error
from reverie.tools.base import BuiltIn, ReadCache, SeenFile, ToolContext, ToolOutput
from reverie.tools.files import WHOLE_FILE_LIMIT, Located, digest, locate, locate_open, open_file
from reverie.tools.seen_files import describe_seen_file
from reverie.tools.text_form import find_encoding, looks_binary, replace_surrogates
from reverie.types import ImageBlock, JsonObject

MAX_IMAGE_BYTES = 3_750_000
"""5 MB as base64, the most that the API takes."""
_SNIFFED_BYTES = 8_192
_IMAGE_MARKS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}
_PROPERTIES: JsonObject = {
    "file_path": {"type": "string", "description": "The file to read"},
    "offset": {"type": "integer", "minimum": 0, "description": "The first line to return, counted from 1"},
    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to return"},
}


@dataclass(frozen=True, slots=True)
class _Lines:
    """A range of lines as shown, and what is left out."""

    shown: list[str]
    first: int
    more: bool
    cut: bool
    odd_bytes: bool


@dataclass(frozen=True)
class Read(BuiltIn, prompt="read.md", properties=_PROPERTIES, required=["file_path"], reads_only=True):
    """The Read tool. A small window lowers its limits, but never changes its schema."""

    max_lines: int = 2_000
    max_line_chars: int = 2_000
    max_bytes: int = 256 * 1024
    max_image_bytes: int = MAX_IMAGE_BYTES

    def _foresee(self, given: JsonObject, context: ToolContext) -> None:
        os.close(open_file(locate(given["file_path"], context))[0])

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        where = await locate_open(given["file_path"], context)
        output, seen = await asyncio.to_thread(self._read, where, given.get("offset"), given.get("limit"))
        _remember(where, seen, context.read_cache)
        return output

    def _read(self, where: Located, offset: int | None, limit: int | None) -> tuple[ToolOutput, SeenFile]:
        fd, status = open_file(where)
        size = status.st_size if where.unsaved is None else len(where.unsaved)
        with os.fdopen(fd, "rb") as on_disk:
            file = on_disk if where.unsaved is None else io.BytesIO(where.unsaved)
            try:
                start = file.read(_SNIFFED_BYTES)
                file.seek(0)
                if media_type := find_image_type(start):
                    return self._image(where, file, status, media_type)
                _refuse_binary(where, start, size)
                if offset is None and limit is None and size > self.max_bytes:
                    raise UserError(
                        f"{where.shown} has {size:,} bytes, more than the {self.max_bytes:,} shown at once: "
                        "read a part of it with offset and limit, or search it with Grep."
                    )
                whole = file.read(WHOLE_FILE_LIMIT + 1) if size <= WHOLE_FILE_LIMIT else None
                source = file if whole is None else io.BytesIO(whole)
                lines = self._lines(source, start, max(1, int(offset or 1)), int(limit or self.max_lines))
            except OSError as error:
                raise storage_error(error, Path(where.shown), "read") from error
        total = None if whole is None else _count_lines(whole)
        partial = lines.first > 1 or lines.more or lines.cut
        seen = SeenFile(status.st_mtime_ns, size, "" if whole is None else digest(whole), partial, 0)
        return self._output(where, lines, total, seen), seen

    def _lines(self, source: BinaryIO, start: bytes, first: int, limit: int) -> _Lines:
        """Reads up to `limit` lines from line `first`; holds only the shown part of a line in memory."""
        mark, encoding = find_encoding(start)
        source.seek(len(mark))
        errors = "surrogateescape" if encoding == "utf-8" else "replace"
        text = io.TextIOWrapper(source, encoding, errors=errors, newline="\n")
        shown: list[str] = []
        size, cut, odd_bytes, more = 0, False, False, False
        for number in range(1, first):
            if not self._line(text)[0]:
                text.detach()
                return _Lines([], number, False, False, False)
        while True:
            if len(shown) >= min(limit, self.max_lines):
                more = bool(text.read(1))  # not a whole line: the next one may be gigabytes long
                break
            line, rest = self._line(text)
            size += len(line.encode("utf-8", "replace")) + 8
            if not line or (size > self.max_bytes and shown):
                more = bool(line)
                break
            clean = replace_surrogates(line)
            odd_bytes = odd_bytes or clean != line
            cut = cut or rest > 0
            ending = f"… [{rest:,} more characters in this line]" if rest else ""
            shown.append(f"{first + len(shown):6d}\t{clean.removesuffix(chr(10)).removesuffix(chr(13))}{ending}")
        text.detach()
        return _Lines(shown, first, more, cut, odd_bytes)

    def _line(self, text: io.TextIOWrapper) -> tuple[str, int]:
        """Returns the shown part of the next line (empty at the end), and how many characters are left out."""
        line = text.readline(self.max_line_chars + 2)  # room for a line end of two characters
        size, tail = len(line), line[-2:]
        while not tail.endswith("\n") and (piece := text.readline(65_536)):
            size, tail = size + len(piece), (tail + piece)[-2:]
        rest = size - len(tail) + len(tail.removesuffix("\n").removesuffix("\r")) - self.max_line_chars
        return (line, 0) if rest <= 0 else (line[: self.max_line_chars], rest)

    def _output(self, where: Located, lines: _Lines, total: int | None, seen: SeenFile) -> ToolOutput:
        count = len(lines.shown)
        structured = {
            "type": "text",
            "file": {"filePath": where.shown, "numLines": count, "startLine": lines.first, "totalLines": total},
            **describe_seen_file(seen),
        }
        if not lines.shown and lines.first == 1:
            return ToolOutput(f"{where.shown} is empty.", structured=structured)
        if not lines.shown:
            there = f"{total:,} lines" if total is not None else f"fewer than {lines.first:,} lines"
            raise UserError(f"{where.shown} has only {there}: give an offset within it.")
        notes: list[str] = []
        last = lines.first + count - 1
        if lines.more:
            of = f" of {total:,}" if total is not None else ""
            notes.append(f"[Lines {lines.first:,} to {last:,}{of} shown; continue with offset {last + 1}.]")
        if lines.odd_bytes:
            notes.append("[Bytes that are not valid UTF-8 are shown as \ufffd.]")
        if where.unsaved is not None:
            notes.append("[This is what the user's editor shows; it has changes that are not saved.]")
        return ToolOutput("\n".join([*lines.shown, *notes]), structured=structured)

    def _image(
        self, where: Located, file: BinaryIO, status: os.stat_result, media_type: str
    ) -> tuple[ToolOutput, SeenFile]:
        if status.st_size > self.max_image_bytes:
            raise UserError(
                f"{where.shown} is an image of {status.st_size:,} bytes, more than the {self.max_image_bytes:,} that "
                "can be shown: make a smaller copy first."
            )
        data = file.read()
        source = {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}
        structured = {"type": "image", "file": {"filePath": where.shown, "type": media_type, "originalSize": len(data)}}
        seen = SeenFile(status.st_mtime_ns, status.st_size, digest(data), False, 0)
        return ToolOutput((ImageBlock(source),), structured=structured), seen


def _remember(where: Located, seen: SeenFile, known: ReadCache) -> None:
    before = known.get(where.key)
    # After the whole file was seen, reading a part of the same bytes does not make it partial again.
    partial = seen.partial and not (before is not None and before.digest == seen.digest != "" and not before.partial)
    known.note(where.key, SeenFile(seen.mtime_ns, seen.size, seen.digest, partial, known.next_order()))


def find_image_type(start: bytes) -> str | None:
    """The type by content, not by name: the API refuses an image with a wrong type."""
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for kind, marks in _IMAGE_MARKS.items() if start.startswith(marks)), None)


def _refuse_binary(where: Located, start: bytes, size: int) -> None:
    if start.startswith(b"%PDF-"):
        raise UserError(f"{where.shown} is a PDF, which Read does not support: convert it first (pdftotext in Bash).")
    if looks_binary(start):
        raise UserError(f"{where.shown} is a binary file of {size:,} bytes: look at it with a command in Bash.")


def _count_lines(data: bytes) -> int:
    mark, encoding = find_encoding(data)
    if encoding != "utf-8":
        text = data[len(mark) :].decode(encoding, "replace")
        return text.count("\n") + bool(text and not text.endswith("\n"))
    return data.count(b"\n") + (len(data) > len(mark) and not data.endswith(b"\n"))
