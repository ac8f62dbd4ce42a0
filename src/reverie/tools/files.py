"""The common part of the file tools: where a path leads, what was seen of a file, and how a file is saved.

Every path is resolved and mapped by the context. Results show it as the model wrote it; the read cache uses its real
path, so that a link and its target are one file. Refusals are errors of one sentence.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from reverie.errors import StorageError, UserError
from reverie.quick import dataclass
from reverie.regular_files import open_regular
from reverie.storage.atomic import create_exclusive, storage_error, write_atomic
from reverie.tools.base import EditorFiles, Keeper, ReadCache, SeenFile, ToolContext
from reverie.tools.text_form import decode, encode, is_clean, looks_binary, with_newlines
from reverie.types import Purpose

WHOLE_FILE_LIMIT = 64 * 1024 * 1024
"""In bytes: a larger file is never read whole, so it has no digest and cannot be edited."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Located:
    """One file by three names: as shown, as the key of the read cache, and its real path."""

    shown: str
    key: Path
    real: Path
    keeper: Keeper | None = None
    """Writes the file, if not the tool itself."""
    unsaved: bytes | None = None
    """What the user's editor shows, if that is not what the disk holds."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file's bytes and status at one moment."""

    data: bytes
    status: os.stat_result

    def seen(self, *, partial: bool, order: int) -> SeenFile:
        return SeenFile(self.status.st_mtime_ns, self.status.st_size, digest(self.data), partial, order)


def locate(given: str, context: ToolContext) -> Located:
    """Finds the file that a path of the model names; raises UserError for text that cannot be a path."""
    path = resolve(given, context, "file")
    real = Path(os.path.realpath(context.map_path(path)))
    return Located(format_path(path), Path(os.path.realpath(path)), real, context.keeper(path))


async def locate_open(given: str, context: ToolContext) -> Located:
    """Like `locate`; asks the user's editor whether it has changes of the file that are not saved."""
    where = locate(given, context)
    asks = context.caller.purpose in (Purpose.MAIN, Purpose.AGENT) and where.keeper is None
    if context.editor is None or not asks or where.real != where.key:
        return where
    return replace(where, unsaved=await _find_unsaved(where, context.editor))


async def _find_unsaved(where: Located, editor: EditorFiles) -> bytes | None:
    """Returns the editor's text in the form of the file; None if the disk holds the same, or no text."""
    if not where.real.is_file() or (text := await editor.text_of(where.real)) is None:
        return None

    def compare() -> bytes | None:
        before = load(where).data
        if len(text) > WHOLE_FILE_LIMIT or looks_binary(before[:8_192]):
            return None
        saved, form = decode(before)
        if not form.valid or not is_clean(text) or with_newlines(saved, "\n") == with_newlines(text, "\n"):
            return None
        return encode(with_newlines(text, form.newline), form)

    try:
        return await asyncio.to_thread(compare)
    except UserError:  # the tool says what is wrong with the file
        return None


def resolve(given: str, context: ToolContext, what: str) -> Path:
    """Returns the absolute path, before mapping; raises UserError for text that cannot be the path of a `what`."""
    if not given or "\0" in given or not is_clean(given):
        raise UserError(f"{given!a} is not a path: give the path of a {what}.")
    try:
        return context.resolve(given)
    except RuntimeError as error:  # `~somebody`, and there is no such user
        raise UserError(f"{given} names a home folder that does not exist: give an absolute path.") from error


def format_path(path: Path | str) -> str:
    """Formats a path for a result: on one line, and always valid text."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def format_path_from(path: Path, cwd: Path) -> str:
    """Like `format_path`, but relative to the working folder if the path is inside it."""
    return format_path(path.relative_to(cwd) if path != cwd and path.is_relative_to(cwd) else path)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def open_file(where: Located) -> tuple[int, os.stat_result]:
    """Opens a regular file for reading; raises for anything else and never waits."""
    try:
        fd = open_regular(where.real)
    except FileNotFoundError as error:
        raise UserError(_explain_missing(where)) from error
    except IsADirectoryError as error:
        raise UserError(f"{where.shown} is a folder: list it with Glob, or with ls in Bash.") from error
    except OSError as error:
        if error.errno == errno.EINVAL:
            why = str(error.strerror).removeprefix("it ")  # is a device, not a regular file
            raise UserError(f"{where.shown} {why}: only regular files can be read and changed.") from error
        raise storage_error(error, Path(where.shown), "read") from error
    return fd, os.fstat(fd)


def load(where: Located) -> Snapshot:
    """Reads the whole file; raises if it does not exist, is not a regular file, or is too large."""
    fd, status = open_file(where)
    if where.unsaved is not None:
        os.close(fd)
        return Snapshot(where.unsaved, status)
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
    """Like `load`, but None if there is no file."""
    return load(where) if os.path.lexists(where.real) else None


def require_unchanged(where: Located, now: Snapshot, known: ReadCache) -> SeenFile:
    """Returns what the conversation last saw of this file; raises if it was not read or has changed."""
    seen = known.get(where.key)
    if seen is None:
        raise UserError(f"{where.shown} has not been read in this conversation: Read it first.")
    if seen.digest != digest(now.data):
        raise UserError(f"{where.shown} has changed since it was read: Read it again, then decide.")
    return seen


def is_judged_by_disk(where: Located, context: ToolContext) -> bool:
    """Whether the disk holds what the conversation saw of the file; else the editor may hold it."""
    seen = context.read_cache.get(where.key)
    if context.editor is None or seen is None:
        return True
    now = load_if_there(where)
    return now is None or digest(now.data) == seen.digest


@dataclass(frozen=True, slots=True)
class Saved:
    """A file after a write. `now` is None if there is no file; `note` is a sentence for the model, instead of ours."""

    now: Snapshot | None
    note: str = ""


def save(where: Located, data: bytes, before: Snapshot | None) -> Saved:
    """Writes the data in one step and keeps mode and owner; raises and changes nothing if it cannot.

    `before` is the file that the model decided on (None: no file); if that has changed, the write is refused.
    """
    try:
        if where.keeper is not None:
            kept = where.keeper(data, None if before is None else before.data)
            return Saved(None if kept.data is None else Snapshot(kept.data, where.real.stat()), kept.note)
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
        return Saved(Snapshot(data, where.real.stat()))
    except OSError as error:
        raise storage_error(error, Path(where.shown), "write") from error
    except StorageError as error:
        if isinstance(error.__cause__, OSError):  # name the path that the model knows, not the mapped one
            raise storage_error(error.__cause__, Path(where.shown), "write") from error
        raise


async def store(where: Located, data: bytes, before: Snapshot | None, context: ToolContext) -> Saved:
    """Saves the file: on disk, or in the editor if that has changes which are not saved, so that none is lost."""
    if where.unsaved is None or before is None or context.editor is None:
        return await finish_in_thread(lambda: save(where, data, before))
    if await _find_unsaved(replace(where, unsaved=None), context.editor) != where.unsaved:
        raise UserError(f"{where.shown} is being changed in the editor right now: Read it again.")
    text, _ = decode(data)
    await context.editor.write(where.real, with_newlines(text, "\n"))
    return Saved(Snapshot(data, where.real.stat()))


async def finish_in_thread(work: Callable[[], T]) -> T:
    """Runs blocking work in a thread; a cancellation waits until the work has ended."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # fetched, so that asyncio does not report it as never retrieved
        raise


def _explain_missing(where: Located) -> str:
    path = Path(where.shown)
    try:
        names = [entry.name for entry in islice(where.real.parent.iterdir(), 5_000)]
    except OSError:
        return f"{where.shown} does not exist, and its folder cannot be read: check the path."
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
        with suppress(PermissionError):  # only root may change the owner; the content matters more
            os.chown(path, then.st_uid, then.st_gid)
            path.chmod(stat.S_IMODE(then.st_mode))  # a change of owner removes special bits


@cache
def _umask() -> int:
    """The mask for new files. It can only be read by setting it, so it is stricter for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
