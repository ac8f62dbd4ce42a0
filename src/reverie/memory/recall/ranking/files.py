"""Which files of a memory directory are searched: every topic file, at any depth, by its relative path.

Indexes (MEMORY.md), logs/, hidden entries and symbolic links are left out;
a folder that cannot be read is left out alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from reverie.memory.taxonomy import INDEX, LOGS
from reverie.moments import change_ns


class FileStat(NamedTuple):
    """A topic file and what tells one version of it from the next."""

    path: str
    mtime_ns: int
    size: int


class Scan(NamedTuple):
    """What is in a memory directory: its topic files, and the folders they were looked for in (relative)."""

    files: list[FileStat]
    folders: tuple[str, ...]


def scan(memory_dir: Path) -> Scan:
    """Every topic file. Ten thousand take a few hundredths of a second, so it is done before each cold search."""
    files: list[FileStat] = []
    folders = [""]
    for prefix in folders:
        try:
            entries = os.scandir(memory_dir / prefix)
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if prefix or name != LOGS:
                            folders.append(f"{prefix}{name}/")
                    elif name.endswith(".md") and name != INDEX and entry.is_file(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        files.append(FileStat(prefix + name, change_ns(found), found.st_size))
                except OSError:
                    continue
    return Scan(files, tuple(folders))


def folder_marks(memory_dir: Path, folders: Sequence[str]) -> tuple[int, ...]:
    """The mtimes of the folders: they change whenever a file comes, goes or is replaced, but not when one is edited."""
    marks: list[int] = []
    for folder in folders:
        try:
            marks.append((memory_dir / folder).stat().st_mtime_ns)
        except OSError:
            marks.append(-1)
    return tuple(marks)
