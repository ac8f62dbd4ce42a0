"""Writes whole files: next to their place first, then flushed, then moved there in one step.

Nobody ever sees half a file, and a failed write leaves the old content. Errors become one StorageError sentence.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from reverie.errors import StorageError

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
# Some file systems cannot flush a folder or make a hard link; they report it with one of these.
_UNSUPPORTED = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_NO_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EACCES, errno.EMLINK}

_TEMPORARY = Path("/tmp")

_CAUSES: dict[int, str] = {
    errno.ENOSPC: "the disk is full; free some space and try again",
    errno.EDQUOT: "your disk quota is used up; free some space and try again",
    errno.EROFS: "the file system is read-only; choose a folder that can be written",
    errno.EACCES: "permission denied; check who owns it and its mode",
    errno.EPERM: "permission denied; check who owns it and its mode",
    errno.ENOENT: "the file or its folder is not there",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "it is a folder, not a file",
    errno.EEXIST: "something else is already there",
    errno.ENAMETOOLONG: "the name is too long for this file system",
    errno.ELOOP: "its symbolic links form a loop",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
    errno.EFBIG: "the file would be larger than the system allows (ulimit -f)",
    errno.EIO: "the disk reported an input/output error; check its health",
    errno.ESTALE: "the network file system lost the file; mount it again",
}


def storage_error(error: OSError, path: Path, doing: str) -> StorageError:
    """Turns an error of the disk into one sentence: `Cannot <doing> <path>: <cause and what to do>.`"""
    return StorageError(f"Cannot {doing} {_printable(path)}: {cause_of(error)}.")


def cause_of(error: OSError) -> str:
    """Why the system refused, and what to do if that is known; without a full stop."""
    if error.errno == errno.ENOENT and error.filename is None and "temporary directory" in (error.strerror or ""):
        return _no_temporary()
    return _CAUSES.get(error.errno or 0) or (error.strerror or str(error) or type(error).__name__).lower()


def _no_temporary() -> str:
    """Why no folder accepts temporary files: Python tries each of them and does not report the reason."""
    probe = _temporary_path(_TEMPORARY / "probe")
    try:
        write_new(probe, b"probe", 0o600, fsync=False)
    except OSError as error:
        return cause_of(error)
    remove(probe)
    return "no folder for temporary files can be written; set TMPDIR to one that can"


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600, fsync: bool = True) -> None:
    """Replaces `path` with `data` in one step. With `fsync` it survives a power cut. Raises StorageError."""
    temporary = _temporary_path(path)
    try:
        write_new(temporary, data, mode, fsync)
        try:
            temporary.replace(path)
        except BaseException:
            remove(temporary)
            raise
        if fsync:
            flush_folder(path.parent)
    except OSError as error:
        raise storage_error(error, path, "write") from error


def create_exclusive(path: Path, data: bytes, *, mode: int = 0o600, fsync: bool = True) -> bool:
    """Creates `path` with `data` unless it exists; returns whether it did. Readers never see a part of it."""
    try:
        if os.path.lexists(path):  # a cheap answer for the usual case; the link below decides
            return False
        temporary = _temporary_path(path)
        write_new(temporary, data, mode, fsync)
        try:
            created = _link(temporary, path)
        finally:
            remove(temporary)
        if created is None:
            created = _create_in_place(path, data, mode, fsync)
        if created and fsync:
            flush_folder(path.parent)
        return created
    except OSError as error:
        raise storage_error(error, path, "create") from error


def make_private_dir(path: Path) -> None:
    """Makes the folder and its missing parents with mode 0700; existing folders stay unchanged."""
    missing: list[Path] = []
    here = path
    while not os.path.lexists(here) and here != here.parent:
        missing.append(here)
        here = here.parent
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):  # another process made it
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)  # the umask may have removed more
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise storage_error(error, path, "make the folder") from error


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def write_new(path: Path, data: bytes, mode: int, fsync: bool) -> None:
    """Writes a new file; after any error it is gone again."""
    fd = os.open(path, _NEW_FILE, mode)
    try:
        try:
            os.fchmod(fd, mode)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if fsync:
                os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:  # Ctrl-C too: nobody else would remove the temporary file
        remove(path)
        raise


def _link(temporary: Path, path: Path) -> bool | None:
    """Whether the name was free and is ours now; None where the file system has no hard links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _NO_LINKS:
            return None
        raise
    return True


def _create_in_place(path: Path, data: bytes, mode: int, fsync: bool) -> bool:
    try:
        write_new(path, data, mode, fsync)
    except FileExistsError:
        return False
    return True


def flush_folder(folder: Path) -> None:
    """Makes a rename or a new name durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)


def remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _printable(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")
