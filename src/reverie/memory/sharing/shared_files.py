"""The memory files in a folder that others can write to: read with care, written whole. Links, pipes, hidden, oversized
and oddly named files are left out and reported."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from reverie.memory.taxonomy import TEAM, is_index, is_topic
from reverie.permissions.memory_paths import PermissionRefused, check_memory_write
from reverie.regular_files import read_regular
from reverie.storage.atomic import storage_error, write_atomic

Files: TypeAlias = Mapping[str, bytes]
"""Relative name → content."""

SHARED_LOCK = ".reverie-sync.lock"
MAX_FILES = 10_000
MAX_BYTES = 1_000_000
_MAX_DEPTH = 8


def read_files(folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """Every memory file in a folder, and a sentence for each file that was left out. A missing folder is empty."""
    files: dict[str, bytes] = {}
    odd: list[str] = []
    for name in _names(folder, "", 0):
        if len(files) == MAX_FILES:
            odd.append(f"{folder} holds more than {MAX_FILES:,} files; the rest was left out.")
            break
        data, problem = _read(folder, name)
        if data is None:
            odd.append(f"{name} was left out: it {problem}.")
        elif data.strip():
            files[name] = data
    return files, odd


def write_files(folder: Path, changes: Mapping[str, bytes | None], *, mode: int) -> None:
    """Writes files, each whole; None removes one. `StorageError` if the disk fails."""
    for name, data in changes.items():
        path = folder / name
        try:
            if data is None:
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, path, "change") from error
        write_atomic(path, data, mode=mode, fsync=False)


def _names(folder: Path, above: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder / above) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(error, folder / above, "read") from error
    for entry in entries:
        name = f"{above}{entry.name}"
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _MAX_DEPTH:
                yield from _names(folder, f"{name}/", depth + 1)
        elif is_topic(f"{TEAM}/{name}") or is_index(name):
            yield name


def _read(folder: Path, name: str) -> tuple[bytes | None, str]:
    try:
        check_memory_write(f"{os.path.realpath(folder)}/{name}", Path(os.path.realpath(folder)))
        return read_regular(folder / name, MAX_BYTES, follow=False), ""
    except PermissionRefused:
        return None, "has a name or a form that a memory cannot have"
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"
