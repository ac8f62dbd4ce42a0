"""What Read, Write and Edit share: where a path leads, what was seen of a file, and saving it whole or not at all.

Every path goes through the context's resolve and mapping, results show it as the model wrote it, and the read cache
knows it by its real name, so that a link and its target are one file. Refusals are raised as one sentence.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from reverie.errors import StorageError, UserError
from reverie.storage.atomic import create_exclusive, storage_error, write_atomic
from reverie.tools.base import Keeper, ReadCache, SeenFile, ToolContext
from reverie.tools.text_form import is_clean

WHOLE_FILE_LIMIT = 64 * 1024 * 1024
"""Bytes up to which a file is read whole: to know it again by its digest, and to be edited."""

T = TypeVar("T")
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Located:
    """One file under three names: as it is shown, as the read cache knows it, and where it really is."""

    shown: str
    key: Path
    real: Path
    keeper: Keeper | None = None
    """Who puts new content in its place, where that is not the tool itself."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file's bytes and status at one moment."""

    data: bytes
    status: os.stat_result

    def seen(self, *, partial: bool, order: int) -> SeenFile:
        return SeenFile(self.status.st_mtime_ns, self.status.st_size, digest(self.data), partial, order)


def locate(given: str, context: ToolContext) -> Located:
    """Where a path a model named leads; raises UserError for text that cannot be a path."""
    if not given or "\0" in given or not is_clean(given):
        raise UserError(f"{given!a} is not a path: give the path of a file.")
    try:
        path = context.resolve(given)
    except RuntimeError as error:  # `~somebody` with no such user
        raise UserError(f"{given} names a home folder that is not there: give an absolute path.") from error
    real = Path(os.path.realpath(context.map_path(path)))
    return Located(format_path(path), Path(os.path.realpath(path)), real, context.keeper(path))


def format_path(path: Path | str) -> str:
    """A path as a result shows it: on one line, and valid text whatever the name is made of."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def format_path_from(path: Path, cwd: Path) -> str:
    """As `format_path`, relative to the working folder if it lies inside."""
    return format_path(path.relative_to(cwd) if path != cwd and path.is_relative_to(cwd) else path)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def open_file(where: Located) -> tuple[int, os.stat_result]:
    """Opens a regular file for reading, never waiting for one that is not; raises with a sentence."""
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would hang here.
        fd = os.open(where.real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise UserError(_explain_missing(where)) from error
    except OSError as error:
        raise storage_error(error, Path(where.shown), "read") from error
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode):
        return fd, status
    os.close(fd)
    if stat.S_ISDIR(status.st_mode):
        raise UserError(f"{where.shown} is a folder: list it with Glob, or with ls in Bash.")
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
    raise UserError(f"{where.shown} is {kind}, not a file: only regular files can be read and changed.")


def load(where: Located) -> Snapshot:
    """The whole file; raises if it is not there, not a regular file, or too large to be changed."""
    fd, status = open_file(where)
    with os.fdopen(fd, "rb") as file:
        try:
            data = file.read(WHOLE_FILE_LIMIT + 1) or b""
        except OSError as error:
            raise storage_error(error, Path(where.shown), "read") from error
    if len(data) > WHOLE_FILE_LIMIT:
        raise UserError(
            f"{where.shown} has more than the {WHOLE_FILE_LIMIT:,} bytes that can be changed here: "
            "use a command such as sed in Bash."
        )
    return Snapshot(data, status)


def load_if_there(where: Located) -> Snapshot | None:
    """As `load`, but None if nothing is there."""
    return load(where) if os.path.lexists(where.real) else None


def require_unchanged(where: Located, now: Snapshot, known: ReadCache) -> SeenFile:
    """What the conversation last saw of this file, if it is still so; raises with what to do otherwise."""
    seen = known.get(where.key)
    if seen is None:
        raise UserError(f"{where.shown} has not been read in this conversation: Read it first.")
    if seen.digest != digest(now.data):
        raise UserError(f"{where.shown} has changed since it was read: Read it again, then decide.")
    return seen


def save(where: Located, data: bytes, before: Snapshot | None) -> os.stat_result:
    """Puts the data in place in one step, keeping mode and owner; raises and changes nothing if it cannot.

    `before` is what the decision was based on (None: nothing was there); if that is no longer so, it is refused.
    """
    try:
        if where.keeper is not None:
            there = where.keeper(data, None if before is None else before.data)
            return where.real.stat() if there or before is None else before.status
        if before is None:
            _make_folder(where.real.parent)
            if not create_exclusive(where.real, data, mode=0o666 & ~_umask()):
                raise UserError(f"{where.shown} has just been created by somebody else: Read it first.")
        else:
            now, then = where.real.stat(), before.status
            if (now.st_ino, now.st_mtime_ns, now.st_size) != (then.st_ino, then.st_mtime_ns, then.st_size):
                raise UserError(f"{where.shown} is being changed by somebody else right now: Read it again.")
            write_atomic(where.real, data, mode=stat.S_IMODE(then.st_mode))
            _keep_owner(where.real, then)
        return where.real.stat()
    except OSError as error:
        raise storage_error(error, Path(where.shown), "write") from error
    except StorageError as error:
        if isinstance(error.__cause__, OSError):  # say it of the path the model knows, not of the one it is mapped to
            raise storage_error(error.__cause__, Path(where.shown), "write") from error
        raise


async def finish_in_thread(work: Callable[[], T]) -> T:
    """Runs blocking work in a thread; if the call is cancelled meanwhile, that is passed on once it has ended."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # looked at, so that nobody reports it as forgotten
        raise


def _explain_missing(where: Located) -> str:
    path = Path(where.shown)
    try:
        names = [entry.name for entry in islice(where.real.parent.iterdir(), 5_000)]
    except OSError:
        return f"{where.shown} does not exist, nor can its folder be read: check the path."
    near = get_close_matches(path.name, names, n=1)
    hint = f"did you mean {format_path(path.with_name(near[0]))}?" if near else "find it with Glob."
    return f"{where.shown} does not exist: {hint}"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error


def _keep_owner(path: Path, then: os.stat_result) -> None:
    now = path.stat()
    if (now.st_uid, now.st_gid) != (then.st_uid, then.st_gid):
        with suppress(PermissionError):  # only root may give a file away; the content is what matters
            os.chown(path, then.st_uid, then.st_gid)
            path.chmod(stat.S_IMODE(then.st_mode))  # a change of owner takes special bits away


@cache
def _umask() -> int:
    """The mask for new files. The only way to read it is to set it: for that moment to a stricter one."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
