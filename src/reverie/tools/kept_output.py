"""The output of a command: in memory while it is small; else in a file, with its beginning and end in memory.

If the file cannot be written, the result still shows the beginning, the end and the reason.
"""

from __future__ import annotations

import codecs
import io
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

from reverie.errors import StorageError
from reverie.storage.atomic import make_private_dir, storage_error

END_BYTES = 10_000
"""How many bytes of the beginning and of the end are shown, if the output is in a file."""
MAX_KEPT_BYTES = 1_000_000_000
"""A command with more bytes of output is stopped, before it fills the disk."""
_PROGRESS_SECONDS = 0.5


class KeptOutput:
    """Collects the chunks of one output; `text()` is the part that a result shows."""

    def __init__(self, folder: Path, inline_bytes: int, progress: Callable[[str], None]) -> None:
        self.size = 0
        self.lines = 0
        self.path: Path | None = None
        self.problem: str | None = None
        self._folder = folder
        self._inline_bytes = inline_bytes
        self._progress = progress
        self._reported = monotonic()
        self._start = bytearray()
        self._end = b""
        self._file: io.FileIO | None = None
        self._large = False

    def add(self, chunk: bytes) -> bool:
        """Adds a chunk; False if the output is too large to keep."""
        self.size += len(chunk)
        self.lines += chunk.count(b"\n")
        if not self._large and len(self._start) + len(chunk) <= self._inline_bytes:
            self._start += chunk
        else:
            if not self._large:
                self._begin_file()
            self._keep(chunk)
            self._end = (self._end + chunk)[-END_BYTES:]
        self._report_progress(chunk)
        return self.size <= MAX_KEPT_BYTES

    def text(self) -> str:
        if not self._large:
            return self._start.decode("utf-8", "replace")
        first, last = _cut_start(bytes(self._start)), _cut_end(self._end)
        where = f"the whole output is in {self.path}" if self.path else f"the rest could not be kept: {self.problem}"
        whole = f"{self.size:,} bytes in {self.lines:,} lines in all"
        return f"{first}\n\n[… {whole}; beginning and end are shown, {where}]\n\n{last}"

    def close(self) -> None:
        if self._file:
            try:
                self._file.close()
            except OSError as error:
                self._give_up(error)
            self._file = None

    def discard(self) -> None:
        """Deletes the file."""
        self.close()
        if self.path:
            with suppress(OSError):
                self.path.unlink()
            self.path = None

    def _begin_file(self) -> None:
        self._large = True
        try:
            make_private_dir(self._folder)
            descriptor, name = tempfile.mkstemp(dir=self._folder, prefix="bash-", suffix=".txt")
            # Unbuffered: the file always has exactly the bytes that were counted.
            self._file, self.path = os.fdopen(descriptor, "wb", buffering=0), Path(name)
        except StorageError as error:
            self.problem = str(error)
        except OSError as error:
            self._give_up(error)
        self._keep(bytes(self._start))
        self._end = bytes(self._start[-END_BYTES:])
        del self._start[END_BYTES:]

    def _keep(self, chunk: bytes) -> None:
        if not self._file:
            return
        view = memoryview(chunk)
        try:
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Deletes the file and keeps the reason: an incomplete file would look complete."""
        self.problem = str(storage_error(error, self._folder, "keep the output in"))
        file, self._file = self._file, None
        with suppress(OSError):
            if file:
                file.close()
            if self.path:
                self.path.unlink()
        self.path = None

    def _report_progress(self, chunk: bytes) -> None:
        if monotonic() - self._reported >= _PROGRESS_SECONDS:
            self._reported = monotonic()
            lines = chunk[-2_000:].decode("utf-8", "replace").strip().splitlines()
            if lines:
                self._progress(lines[-1][-200:])


def _cut_start(data: bytes) -> str:
    cut = data.rfind(b"\n")
    if cut > len(data) // 2:
        data = data[:cut]
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)  # not final: half a character is dropped


def _cut_end(data: bytes) -> str:
    cut = data.find(b"\n")
    if 0 <= cut < len(data) // 2:
        data = data[cut + 1 :]
    while data and data[0] & 0xC0 == 0x80:  # the rest of a character that was cut
        data = data[1:]
    return data.decode("utf-8", "replace")
