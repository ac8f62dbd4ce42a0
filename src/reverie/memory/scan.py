"""What is in the memory directory: every topic file by its head alone, newest first.

Indexes and daily logs are left out, and everything hidden. A file that cannot be read is skipped alone; a directory
that cannot be read is an empty list with the reason. It reads thirty lines a file, takes no lock and changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reverie.memory.frontmatter import split
from reverie.memory.taxonomy import INDEX, LOGS, MemoryType, Trust
from reverie.moments import iso
from reverie.regular_files import read_head
from reverie.storage.atomic import storage_error

HEADER_LINES = 30
NEWEST = 200
_HEADER_BYTES = 65_536
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class ScanEntry:
    """A topic file as its head tells."""

    name: str
    """Relative path."""
    path: Path
    modified: float
    """Seconds since 1970."""
    size: int
    title: str
    description: str
    type: MemoryType | None
    trust: Trust | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found, and what was not."""

    entries: tuple[ScanEntry, ...]
    skipped: tuple[str, ...] = ()
    """Files that could not be read, each with the reason."""
    failed: str | None = None
    """Why the whole scan failed; then there are no entries."""
    total: int = 0
    """Topic files there are, also those beyond the newest."""


def scan(root: Path, *, newest: int | None = NEWEST) -> Scan:
    """The topic files below `root`, newest first, at most `newest` of them (None: all)."""
    found: list[tuple[float, int, str, str]] = []
    try:
        for name, entry in _topic_files(root):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # removed while we looked
            found.append((status.st_mtime, status.st_size, name, entry.path))
    except FileNotFoundError:
        return Scan(())
    except OSError as error:
        return Scan((), failed=str(storage_error(error, root, "read")))
    found.sort(key=lambda one: (-one[0], one[2]))
    entries: list[ScanEntry] = []
    skipped: list[str] = []
    for modified, size, name, path in found[:newest]:
        try:
            head = _head(path)
        except OSError as error:
            skipped.append(str(storage_error(error, Path(path), "read")))
            continue
        entries.append(_entry(name, Path(path), modified, size, head))
    return Scan(tuple(entries), tuple(skipped), None, len(found))


def manifest(entries: Iterable[ScanEntry]) -> str:
    """One line a file, as a selecting model reads them: `- [type] file.md (ISO time): description`."""
    return "\n".join(map(manifest_line, entries))


def manifest_line(entry: ScanEntry) -> str:
    kind = f"[{entry.type}] " if entry.type else ""
    when = iso(entry.modified).replace("+00:00", "Z")
    line = f"- {kind}{entry.name} ({when})"
    line = f"{line}: {entry.description}" if entry.description else line
    return _CONTROL.sub(" ", line)


def _entry(name: str, path: Path, modified: float, size: int, head: str) -> ScanEntry:
    front = split(head)
    values = front.values
    return ScanEntry(
        name=name,
        path=path,
        modified=modified,
        size=size,
        title=" ".join(values.get("name", "").split()) or name.rpartition("/")[2].removesuffix(".md"),
        description=" ".join(values.get("description", "").split()),
        type=MemoryType.read(values.get(front.key_of("type"), "")),
        trust=Trust.read(values.get(front.key_of("trust"), "")),
        problems=front.problems,
    )


def _head(path: str) -> str:
    lines = read_head(path, _HEADER_BYTES, follow=False).split(b"\n", HEADER_LINES)
    text = b"\n".join(lines[:HEADER_LINES]).decode("utf-8", "surrogateescape")
    return text + "\n" if len(lines) > HEADER_LINES else text


def _topic_files(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    folders = [("", str(root))]
    while folders:
        above, folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError:
            if above:
                continue  # one folder that cannot be read hides nothing but itself
            raise
        for entry in entries:
            name = entry.name
            if name.startswith(".") or _CONTROL.search(name):
                continue  # a name that no tool can take is passed over; `memory check` names it
            if entry.is_dir(follow_symlinks=False):
                if above or name != LOGS:
                    folders.append((f"{above}{name}/", entry.path))
            elif name.endswith(".md") and name != INDEX and entry.is_file(follow_symlinks=False):
                yield above + name, entry
