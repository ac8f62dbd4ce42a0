"""Imports memories: from a memory directory, a file of notes such as AGENTS.md, or a folder of Markdown. `plan_import`
says what would happen to each piece, `carry_out` writes the rest as one version. Every piece passes the write gate,
nothing is overwritten, and the sources are only read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from reverie.errors import ReverieError, UserError
from reverie.memory.changes import ABSENT, Change, ProposedWrite, WriteInfo, Writer
from reverie.memory.index import entries, with_entry
from reverie.memory.note import DESCRIPTION_CHARACTERS, classify, title_of
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import INDEX, LOGS, MemoryType, file_name, index_of, pointer_of
from reverie.memory.topic_file import TopicFile, decode
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import cause_of
from reverie.storage.history.versions import Version
from reverie.text.cutting import shorten

_NOTES = re.compile(
    r"(?:agents|claude|gemini|memor(?:y|ies)|memos?|notes?|cursorrules)(?:\.local)?\.(?:md|mdc|txt)", re.I
)
_HEADING = re.compile(r"^(#{1,3})\s+(?=\S)(.*)")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LARGEST = 1_000_000
_MOST_FILES = 10_000
_NAMES = 1_000


@dataclass(frozen=True, slots=True)
class ImportPiece:
    """One memory found in a source. `source` is a path, and the heading if it is a part of a file; `name` is the new
    file name; `hook` is its line in the index it came with; `modified` is None for a part of a file."""

    source: str
    topic: TopicFile
    name: str
    hook: str = ""
    modified: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """What happens to a piece."""

    piece: ImportPiece
    action: Literal["add", "known", "refused"]
    name: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UnreadSource:
    """A file or folder that could not be read, and why; the others are imported."""

    source: str
    reason: str


def read_pieces(paths: Sequence[Path]) -> Iterator[ImportPiece | UnreadSource]:
    """Everything that can be imported from these files and folders; `UserError` for a path that does not exist."""
    for path in paths:
        if not os.path.lexists(path):
            raise UserError(
                f"{path} does not exist; name a memory directory, a folder of .md files or a file of notes."
            )
    for path in paths:
        try:
            yield from _of_folder(path) if path.is_dir() else _of_file(path, may_split=True)
        except OSError as error:
            yield UnreadSource(str(path), cause_of(error))


def plan_import(memory: OpenedMemory, paths: Sequence[Path]) -> tuple[list[PlannedImport], list[UnreadSource]]:
    """What would happen to each piece, and what could not be read; writes nothing."""
    directory = memory.directory
    there = {name: _body_words(directory.read(name).text) for name in directory.names()}
    taken, bodies = set(there), {body: name for name, body in there.items() if body}
    planned: list[PlannedImport] = []
    unread: list[UnreadSource] = []
    for piece in read_pieces(paths):
        if isinstance(piece, UnreadSource):
            unread.append(piece)
            continue
        body = _body_words(piece.topic.text)
        if body in bodies:
            planned.append(PlannedImport(piece, "known", bodies[body], "says the same"))
            continue
        name = _free_name(piece.name, taken)
        write = ProposedWrite(name, piece.topic.text, None, Writer.IMPORT)
        try:
            memory.gate(write)
        except ReverieError as error:
            planned.append(PlannedImport(piece, "refused", name, str(error).removeprefix(f"{name}: ")))
            continue
        doubles = memory.gate.warnings(write)
        if doubles:
            planned.append(PlannedImport(piece, "known", name, doubles[0]))
            continue
        taken.add(name)
        bodies[body] = name
        planned.append(PlannedImport(piece, "add", name))
    return planned, unread


def carry_out(memory: OpenedMemory, planned: Sequence[PlannedImport], info: WriteInfo) -> Version | None:
    """Writes everything to be added, with its index lines, as one version; files keep their age."""
    directory = memory.directory
    new = [one for one in planned if one.action == "add"]
    if not new:
        return None
    indexes: dict[str, str] = {}
    changes: list[Change] = []
    for one in new:
        index = index_of(one.name)
        text = indexes.get(index, directory.read(index).text if directory.exists(index) else "")
        topic = one.piece.topic
        indexes[index] = with_entry(text, pointer_of(one.name), topic.name, one.piece.hook or topic.description)
        changes.append(Change(one.name, topic.text, ABSENT, reason=f"from {one.piece.source}"))
    for index, text in indexes.items():
        base = directory.read(index).digest if directory.exists(index) else ABSENT
        changes.append(Change(index, text, base))
    version = directory.transaction(changes, info).version
    for one in new:
        if one.piece.modified is not None:
            with suppress(OSError):  # the age is useful, but not worth a failure
                os.utime(directory.root / one.name, (one.piece.modified, one.piece.modified))
    return version


def _of_folder(folder: Path) -> Iterator[ImportPiece | UnreadSource]:
    """A memory directory, a folder that contains one, or any folder of Markdown files."""
    for inner in ("memory", ".claude/memory", ".reverie/memory"):
        if not (folder / INDEX).exists() and (folder / inner).is_dir():
            folder = folder / inner
            break
    closed: list[OSError] = []
    index = _read(folder / INDEX) if os.path.lexists(folder / INDEX) else ""
    if isinstance(index, UnreadSource):
        yield index
        index = ""
    hooks = {entry.file: entry.hook for entry in entries(index)}
    count = 0
    for above, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in (LOGS, "node_modules"))
        for name in sorted(names):
            path = Path(above, name)
            if not name.endswith(".md") or name == INDEX or name.startswith(".") or path.is_symlink():
                continue
            count += 1
            if count > _MOST_FILES:
                raise UserError(f"{folder} holds more than {_MOST_FILES:,} files; name the folder with the memories.")
            relative = path.relative_to(folder).as_posix()
            yield from _of_file(path, may_split=False, hook=hooks.get(relative, ""))
    yield from (UnreadSource(str(error.filename), cause_of(error)) for error in closed)
    if index:
        yield from _prose(index, folder / INDEX)


def _prose(index: str, path: Path) -> Iterator[ImportPiece]:
    """Sections that the index itself contains and no other file has."""
    lines = {entry.line for entry in entries(index)}
    kept = "\n".join(line for number, line in enumerate(index.splitlines(), 1) if number not in lines)
    for heading, text in _sections(kept):
        if heading and len(text.split()) >= 3:
            yield _piece(TopicFile.parse(text), heading, f"{path} ({heading})", None)


def _of_file(path: Path, *, may_split: bool, hook: str = "") -> Iterator[ImportPiece | UnreadSource]:
    text = _read(path)
    if isinstance(text, UnreadSource):
        yield text
        return
    topic = TopicFile.parse(text)
    if not topic.body.strip() and not topic.description:
        return
    stem = re.sub(r"[_-]+", " ", path.stem).strip()
    modified = path.stat().st_mtime
    if topic.front.present or not (may_split or _NOTES.fullmatch(path.name)):
        yield _piece(topic, topic.name or _heading(topic.body) or stem, str(path), modified, path.stem, hook)
        return
    sections = [(heading, body) for heading, body in _sections(text) if body.strip()]
    if len([heading for heading, _ in sections if heading]) < 2:
        yield _piece(topic, _heading(topic.body) or stem, str(path), modified)
        return
    for heading, body in sections:
        title = heading or stem
        yield _piece(TopicFile.parse(body), title, f"{path} ({title})", None)


def _piece(
    topic: TopicFile, title: str, source: str, modified: float | None, stem: str = "", hook: str = ""
) -> ImportPiece:
    lines = [line for line in topic.body.splitlines() if line.strip() and not _HEADING.match(line)]
    first = re.sub(r"\*\*|__", "", next((line.strip(" *->\t") for line in lines), ""))
    kind = topic.type or MemoryType.read(stem.partition("_")[0]) or classify(f"{first}\n{topic.body}")
    name = shorten(topic.name or title_of(title), DESCRIPTION_CHARACTERS)
    described = topic.description or shorten(f"{title}: {first}" if first not in (title, "") else title, 150)
    whole = topic.with_changes(name=name, description=described, type=kind)
    is_ours = MemoryType.read(stem.partition("_")[0]) is not None
    return ImportPiece(source, whole, f"{stem}.md" if is_ours else file_name(kind, stem or title), hook, modified)


def _sections(text: str) -> list[tuple[str, str]]:
    """(heading, text) of the parts of a text, split at the highest level of heading below its title."""
    lines = text.replace("\r\n", "\n").split("\n")
    heads: list[tuple[int, int, str]] = []
    fenced = False
    for number, line in enumerate(lines):
        fenced ^= bool(_FENCE.match(line))
        found = None if fenced else _HEADING.match(line)
        if found:
            heads.append((number, len(found[1]), _title(found)))
    levels = [level for _, level, _ in heads]
    several = (one for one in (1, 2, 3) if levels.count(one) > 1)
    level = next(several, None) or next((one for one in (2, 3) if one in levels), None)
    if level is None:
        return [("", text)]
    starts = [(number, title) for number, own, title in heads if own == level]
    parts = [("", "\n".join(lines[: starts[0][0]]))]
    ends = [*(number for number, _ in starts[1:]), len(lines)]
    parts += [(title, "\n".join(lines[at + 1 : end])) for (at, title), end in zip(starts, ends, strict=True)]
    # The text above the first heading counts only if it is more than the title.
    head = [line for line in parts[0][1].splitlines() if line.strip() and not _HEADING.match(line)]
    return parts if len(" ".join(head).split()) >= 8 else parts[1:]


def _heading(body: str) -> str:
    found = next((match for line in body.splitlines() if (match := _HEADING.match(line))), None)
    return _title(found) if found else ""


def _title(heading: re.Match[str]) -> str:
    """The text of a heading, without closing marks."""
    said = heading[2].rstrip()
    return said.rstrip("#").rstrip() or said


def _read(path: Path) -> str | UnreadSource:
    try:
        if path.stat().st_size > _LARGEST:
            return UnreadSource(str(path), f"it has more than {_LARGEST:,} bytes, too many for notes")
        return decode(read_regular(path, _LARGEST))
    except OSError as error:
        return UnreadSource(str(path), cause_of(error))


def _body_words(text: str) -> str:
    return " ".join(TopicFile.parse(text).body.split())


def _free_name(name: str, taken: set[str]) -> str:
    stem = name.removesuffix(".md")
    named = (name if number == 1 else f"{stem}_{number}.md" for number in range(1, _NAMES))
    return next(one for one in named if one not in taken)
