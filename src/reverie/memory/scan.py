"""Lists the memory directory: every topic file by its head (thirty lines), newest first. It leaves out indexes, daily
logs and hidden files. A file that cannot be read is skipped; a directory that cannot be read gives an empty list with
the reason. It needs no lock and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from reverie.memory.frontmatter import split
from reverie.memory.taxonomy import INDEX, LOGS, MemoryType, Trust
from reverie.moments import change_ns, iso
from reverie.quick import dataclass
from reverie.regular_files import read_head
from reverie.storage.atomic import storage_error
from reverie.text.patterns import late

HEADER_LINES = 30
NEWEST = 200
_HEADER_BYTES = 65_536
_CONTROL = late(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class ScanEntry:
    """The head of a topic file. `name` is its relative path, `modified` is in seconds since 1970."""

    name: str
    path: Path
    modified: float
    size: int
    title: str
    description: str
    type: MemoryType | None
    trust: Trust | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """The topic files that were found. `skipped` lists files that could not be read with the reason; `failed` says why
    the whole scan failed; `total` includes files beyond the newest."""

    entries: tuple[ScanEntry, ...]
    skipped: tuple[str, ...] = ()
    failed: str | None = None
    total: int = 0


def scan(root: Path, *, newest: int | None = NEWEST) -> Scan:
    """The topic files below `root`, newest first, at most `newest` of them (None: all)."""
    found: list[tuple[float, int, str, str]] = []
    try:
        for name, entry in _topic_files(root, []):
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
    """One line per file for the selecting model: `- [type] file.md (ISO time): description`."""
    return "\n".join(map(_manifest_line, entries))


def _manifest_line(entry: ScanEntry) -> str:
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


class FileStat(NamedTuple):
    """A topic file by its relative path, and what differs between two versions of it."""

    path: str
    mtime_ns: int
    size: int


def stat_topics(root: Path) -> tuple[list[FileStat], tuple[str, ...]]:
    """Every topic file, and the relative folders that were searched. Quick: ten thousand files take some 50 ms."""
    files, folders = list[FileStat](), list[str]()
    with suppress(OSError):
        for name, entry in _topic_files(root, folders):
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                files.append(FileStat(name, change_ns(found), found.st_size))
    return files, tuple(folders or [""])


def folder_mtimes(root: Path, folders: Sequence[str]) -> tuple[int, ...]:
    """The mtimes of the folders: they change when a file is added, removed or replaced, but not when one is edited."""
    marks: list[int] = []
    for folder in folders:
        try:
            marks.append((root / folder).stat().st_mtime_ns)
        except OSError:
            marks.append(-1)
    return tuple(marks)


def _topic_files(root: Path, folders: list[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(relative path, entry) of every topic file; fills `folders` with the relative folders on the way."""
    folders.append("")
    for above in folders:
        try:
            with os.scandir(root / above) as listing:
                entries = list(listing)
        except OSError:
            if above:
                continue  # a folder that cannot be read hides only itself
            raise
        for entry in entries:
            name = entry.name
            if name.startswith(".") or _CONTROL.search(name):
                continue  # no tool can use such a name; `memory check` reports it
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if above or name != LOGS:
                        folders.append(f"{above}{name}/")
                elif name.endswith(".md") and name != INDEX and entry.is_file(follow_symlinks=False):
                    yield above + name, entry
