"""Opens and reads files from anybody: regular files only, and only up to a limit.

Anything else in place of a file is an `OSError` at once. The architecture test checks that all code reads files here.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, TypeAlias

LARGEST: Final = 512 * 1024 * 1024
"""The largest file that is read whole: transcripts, logs, objects of a history."""
LARGEST_TEXT: Final = 16_000_000  # the usual limit, for a memory, a definition or a state file

_Name: TypeAlias = str | Path
_PIECE: Final = 1 << 20
_KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: _Name, *, follow: bool = True, append: bool = False, create: bool = True) -> int:
    """Opens a regular file for reading from its start or, with `append`, for adding to its end. Else raises `OSError`.

    Without `follow`, a symbolic link is an error. Appending creates a missing file for its owner only, unless `create`
    is false.
    """
    try:
        _check(os.stat(path, follow_symlinks=follow), path)  # noqa: PTH116 (before opening: a device may act on that)
    except FileNotFoundError:
        if not (append and create):
            raise
    wanted = os.O_WRONLY | os.O_APPEND | (os.O_CREAT if create else 0) if append else os.O_RDONLY
    fd = os.open(path, wanted | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW), 0o600)
    try:
        _check(os.fstat(fd), path)  # once more: it may have been replaced in between
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_regular(path: _Name, most: int = LARGEST_TEXT, *, follow: bool = True) -> bytes:
    """Reads a regular file. Raises `OSError` for anything else, or for more than `most` bytes."""
    fd = open_regular(path, follow=follow)
    with os.fdopen(fd, "rb", buffering=0) as file:
        size = os.fstat(fd).st_size
        data = b"" if size > most else _up_to(file, most + 1)
    if size > most or len(data) > most:
        raise OSError(errno.EOVERFLOW, f"it has more than {most:,} bytes", str(path))
    return data


def read_regular_text(path: _Name, most: int = LARGEST_TEXT, *, errors: str = "strict") -> str:
    """Reads the same as UTF-8 text with normalised line ends."""
    return read_regular(path, most).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def read_head(path: _Name, most: int, *, follow: bool = True) -> bytes:
    """Reads the first bytes of a regular file, at most `most`."""
    with os.fdopen(open_regular(path, follow=follow), "rb", buffering=0) as file:
        return _up_to(file, most)


def read_tail(path: _Name, most: int, *, follow: bool = True) -> tuple[bytes, bool]:
    """Reads the last bytes of a regular file, at most `most`; also returns whether that is all of it."""
    with os.fdopen(open_regular(path, follow=follow), "rb", buffering=0) as file:
        start = max(0, os.fstat(file.fileno()).st_size - most)
        file.seek(start)
        return _up_to(file, most), start == 0


def refuse_special(path: _Name) -> None:
    """Raises `OSError` if the path is neither a regular file nor free. Call it before long work that writes there."""
    with suppress(FileNotFoundError):
        _check(os.stat(path), path)  # noqa: PTH116


def _up_to(file: FileIO, most: int) -> bytes:
    """Reads in pieces, so that no memory is used before there is data."""
    parts: list[bytes] = []
    while most > 0 and (part := file.read(min(most, _PIECE))):
        parts.append(part)
        most -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def special_kind(path: _Name) -> str | None:
    """Says what a path leads to if that is neither a file nor a folder: reading it may never end."""
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))  # noqa: PTH116 (as above)
    except (OSError, ValueError):
        return None


def _check(found: os.stat_result, path: _Name) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link", str(path))
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
    raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))
