"""The memory directory: topic files and their index. Everybody may read it; every change goes through here. A change
passes the write gate, happens under one lock between processes, writes file and index together or not at all, and
becomes one version. Changes that somebody else made meanwhile are recorded as theirs and never overwritten."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.errors import StorageError, UserError
from reverie.memory.changes import (
    ABSENT,
    Change,
    ChangedUnderneath,
    Decision,
    Gate,
    Mark,
    Outcome,
    ProposedWrite,
    WriteInfo,
    Writer,
)
from reverie.memory.in_step import follow_body, follow_found, follow_topic
from reverie.memory.index import without_entry
from reverie.memory.scan import ScanEntry, scan
from reverie.memory.taxonomy import INDEX, TEAM, index_of, is_index, is_log, is_topic, pointer_of
from reverie.memory.topic_file import TopicFile, decode, encode
from reverie.memory.upkeep.purge_plan import PurgePlan
from reverie.memory.upkeep.undo import plan_restore, plan_undo
from reverie.permissions.memory_paths import check_memory_write, is_inside
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, storage_error
from reverie.storage.history.folder import ChangedOnDisk, LockedFolder, VersionedFolder, history_place
from reverie.storage.history.objects import blob_id
from reverie.storage.history.purge import HistoryPurge
from reverie.storage.history.versions import Version, VersionInfo

if TYPE_CHECKING:
    from reverie.paths import MemoryPlace

_ATTEMPTS = 4  # somebody without our lock may write while we write: try again this often
_PERSON = (Writer.USER, Writer.IMPORT)


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was read. `name` is relative to the memory directory, `modified` is in seconds since 1970."""

    name: str
    content: bytes
    modified: float

    @property
    def text(self) -> str:
        return decode(self.content)

    @property
    def digest(self) -> str:
        """The `base` of a change that depends on this reading."""
        return blob_id(self.content)

    @property
    def topic(self) -> TopicFile:
        return TopicFile.parse(self.content)


class MemoryDirectory:
    """One memory directory. `open` changes nothing; the first write makes the folder and its history."""

    def __init__(self, root: Path, gate: Gate, keep_index: bool, lock_timeout_s: float) -> None:
        self.root = root
        self._gate = gate
        self._keep_index = keep_index
        self._folder = VersionedFolder(
            root,
            history_place(root),
            self._path_for,
            lock_timeout_s=lock_timeout_s,
            follow=partial(follow_found, keep_index=keep_index),
        )
        self.history = self._folder.history
        """For reading: `log`, `find`, `show`, `diff`."""

    @classmethod
    def open(
        cls, place: MemoryPlace | Path, *, gate: Gate, keep_index: bool = True, lock_timeout_s: float = 30.0
    ) -> MemoryDirectory:
        """The directory at `place`. `gate` sees every write of every writer. Without `keep_index`, saving writes the
        file alone."""
        root = place if isinstance(place, Path) else place.directory
        return cls(Path(os.path.realpath(root)), gate, keep_index, lock_timeout_s)

    # Reading needs no lock. It only finishes a change that was interrupted.

    def names(self) -> list[str]:
        """The relative path of every topic file."""
        return sorted(entry.name for entry in self.list())

    def list(self) -> tuple[ScanEntry, ...]:
        """Every topic file with its head, newest first."""
        self.finish_pending()
        return scan(self.root, newest=None).entries

    def exists(self, name: str) -> bool:
        return self._readable(name).is_file()

    def read(self, name: str) -> Document:
        """A file by its relative path; `UserError` if there is none."""
        self.finish_pending()
        path = self._readable(name)
        try:
            return Document(name, read_regular(path), path.stat().st_mtime)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise UserError(f"There is no memory {name!r}; `reverie memory list` shows what there is.") from None
        except OSError as error:
            raise storage_error(error, path, "read") from error

    def index(self, *, team: bool = False) -> str:
        """The whole index; empty if there is none. `load_index` cuts it to its limits."""
        name = f"{TEAM}/{INDEX}" if team else INDEX
        return self.read(name).text if self.exists(name) else ""

    def finish_pending(self) -> None:
        """Finishes a change that was interrupted; does nothing if the disk cannot be written."""
        if self._folder.unfinished:
            with suppress(StorageError), self._folder.lock():
                pass

    # Writing.

    def make(self) -> None:
        """Makes the folder, for a prompt that says it exists."""
        make_private_dir(self.root)

    def create(self, name: str, topic: TopicFile, info: WriteInfo, *, hook: str = "") -> Version:
        """Adds a memory and its index line; `ChangedUnderneath` if the file exists already."""
        saved = self._run(self._plan_save(name, lambda _: topic, ABSENT), info, hook)
        return _require_version(saved.version)

    def update(
        self, name: str, topic: TopicFile, info: WriteInfo, *, base: str | None = None, hook: str = ""
    ) -> Version | None:
        """Replaces the content of a memory; None if it is the same. Give `base` (`Document.digest`) if the change
        depends on a reading. Its index line follows a new name or description, unless somebody worded the line
        differently."""
        return self._run(self._plan_save(name, lambda _: topic, base), info, hook).version

    def edit(self, name: str, change: Callable[[TopicFile], TopicFile], info: WriteInfo) -> Version | None:
        """Changes the present content; `change` may run more than once."""

        def changed(now: TopicFile | None) -> TopicFile:
            if now is None:
                raise UserError(f"There is no memory {name!r}; `reverie memory list` shows what there is.")
            return change(now)

        return self._run(self._plan_save(name, changed, None), info).version

    def append(self, name: str, text: str, info: WriteInfo) -> Version | None:
        """Adds to the end of a file (a daily log), and makes the file if it is missing."""

        def grown(held: LockedFolder) -> list[Change]:
            now = decode(held.read(self._name(name)) or b"")
            return [Change(name, now + text)]

        return self._run(grown, info).version

    def remove(self, name: str, info: WriteInfo, *, base: str | None = None) -> Version:
        """Removes a memory and its index line as one version. `restore` brings it back."""

        def gone(held: LockedFolder) -> list[Change]:
            if self._name(name) not in held.files:
                raise UserError(f"There is no memory {name!r}; `reverie memory list` shows what there is.")
            return [Change(name, None, base)]

        return _require_version(self._run(gone, info).version)

    def transaction(self, changes: Sequence[Change], info: WriteInfo) -> Outcome:
        """Writes many files as one version, or none of them. `ChangedUnderneath` lists files that differ from their
        `base`. Index lines follow the files."""
        return self._run(lambda _: list(changes), info)

    def apply_tool_write(self, path: str, text: str | None, info: WriteInfo, *, base: str | None = None) -> Outcome:
        """Applies an agent's Write or Edit to a real path. `text` is the whole new content. An empty text removes a
        topic file. The index follows."""
        name = self._name_at(check_memory_write(path, self.root))
        return self._run(lambda _: [Change(name, text, base)], info)

    def absorb(self, info: WriteInfo | None = None) -> Version | None:
        """Records changes that are on disk already, as `info` says or else as made by hand. No gate sees them: use it
        for programs that cannot be asked, never to let an agent write."""
        with self._locked(info) as held:
            return held.absorbed

    # Going back.

    def log(self, name: str | None = None, *, limit: int | None = None) -> Iterator[Version]:
        """Versions, newest first; changes by hand since the last access are not included yet."""
        return self.history.log(name, limit=limit)

    def undo(self, spec: str, info: WriteInfo) -> Version | None:
        """Reverses exactly that version and keeps later changes of other lines. `UndoConflict` where they overlap."""
        with self._locked() as held:
            version = self.history.find(spec)
            writes = plan_undo(self.history, version, held.read)
            subject = f"Undo: {version.info.subject}" if version.info.subject else f"Undo {version.short}"
            return self._commit(held, writes, info, restores=True, subject=subject, reverses=version.id).version

    def restore(self, name: str, info: WriteInfo, *, spec: str | None = None) -> Version | None:
        """Brings a file and its index line back, as in a version or as before its last change."""
        with self._locked() as held:
            writes, version = plan_restore(self.history, self._name(name), spec, held.read)
            subject = f"Restore {name} as in {version[:10]}"
            return self._commit(held, writes, info, restores=True, subject=subject).version

    def purge(
        self, replace: Callable[[str], str], info: WriteInfo, *, rename: Callable[[str], str] = str
    ) -> HistoryPurge:
        """Removes a text from every file, file name and version. Versions get new ids. `replace` and `rename` return a
        text or a path without the secret; `info` must not hold the secret. The gate is not asked: a purge only removes.
        """
        with self._locked() as held:
            past = {change.name for version in self.history.log() for change in version.files}
            clean = PurgePlan(past | set(held.files), replace, rename)
            writes = {
                name: data for old in held.files for name, data in clean.writes(old, held.read(old) or b"").items()
            }
            ordered = dict(sorted(writes.items(), key=lambda item: _landing_order(*item)))
            held.commit(ordered, _version_info(info, subject="Purge"))
            return held.purge(clean.content, clean.part)

    def _plan_save(
        self, name: str, topic: Callable[[TopicFile | None], TopicFile], base: str | None
    ) -> Callable[[LockedFolder], list[Change]]:
        def plan(held: LockedFolder) -> list[Change]:
            own = self._name(name)
            if not is_topic(own):
                raise UserError(f"{name!r} is not a topic file; the index and the daily logs are written differently.")
            data = held.read(own)
            return [Change(own, topic(None if data is None else TopicFile.parse(data)).text, base)]

        return plan

    def _run(self, plan: Callable[[LockedFolder], list[Change]], info: WriteInfo, hook: str = "") -> Outcome:
        for attempt in range(_ATTEMPTS):
            try:
                with self._locked() as held:
                    changes = plan(held)
                    reasons = {change.name: change.reason for change in changes if change.reason}
                    return self._commit(held, self._to_writes(held, changes, info), info, reasons=reasons, hook=hook)
            except ChangedUnderneath as error:
                if attempt + 1 == _ATTEMPTS or not isinstance(error.__cause__, ChangedOnDisk):
                    raise
        raise AssertionError  # unreachable: the loop returns or raises

    @contextmanager
    def _locked(self, found: WriteInfo | None = None) -> Generator[LockedFolder]:
        """The folder under its lock, with changes by others recorded, as `found` says."""
        try:
            with self._folder.lock(_version_info(found) if found else None) as held:
                yield held
        except ChangedOnDisk as error:
            raise ChangedUnderneath(error.names) from error

    def _to_writes(self, held: LockedFolder, changes: Sequence[Change], info: WriteInfo) -> dict[str, bytes | None]:
        """Turns changes into writes: checks names and bases; an empty topic file is removed."""
        writes: dict[str, bytes | None] = {}
        stale: list[str] = []
        for change in changes:
            name = self._name(change.name)
            if change.base is not None and held.files.get(name, ABSENT) != change.base:
                stale.append(name)
            text = change.text
            if text is not None and is_topic(name) and not text.strip("\ufeff \t\r\n"):
                text = None
            if is_log(name) and info.writer not in _PERSON:
                before = decode(held.read(name) or b"")
                if text is None or not text.startswith(before):
                    raise UserError(f"{name} is a daily log: entries are added, never rewritten.")
            writes[name] = None if text is None else encode(text)
        if stale:
            raise ChangedUnderneath(stale)
        return writes

    def _commit(
        self,
        held: LockedFolder,
        writes: Mapping[str, bytes | None],
        info: WriteInfo,
        *,
        restores: bool = False,
        subject: str = "",
        reverses: str = "",
        reasons: Mapping[str, str] | None = None,
        hook: str = "",
    ) -> Outcome:
        """The only way to the disk: the gate decides, the index follows, then the version."""
        after = {name: None if data is None else decode(data) for name, data in writes.items()}
        settled: dict[str, bytes | None] = {}
        decisions: dict[str, Decision] = {}
        for name in sorted(writes, key=is_index):
            data, before = writes[name], held.read(name)
            if data == before or (data is None and is_index(name)):
                settled[name] = data
                continue
            proposed = ProposedWrite(
                name=name,
                text=after[name],
                before=None if before is None else decode(before),
                writer=info.writer,
                evidence=info.evidence,
                restores=restores,
                together={other: text for other, text in after.items() if other != name},
                session=info.session,
                confirms=info.confirms,
                notes=info.notes,
            )
            decided = self._gate(proposed) or Decision(after[name])
            target = self._free(decided.name, held.files, settled) if decided.name else name
            is_whole = restores or info.writer is Writer.IMPORT  # it comes with its own head
            if decided.text and before is not None and is_topic(name) and not is_whole:
                followed = follow_body(TopicFile.parse(before), TopicFile.parse(decided.text))
                decided = replace(decided, text=followed.text)
            decisions[name] = replace(decided, name=target)
            del after[name]
            after[target] = decided.text
            if decided.text is not None or before is not None:
                settled[target] = None if decided.text is None else encode(decided.text)
        if not restores:
            self._follow_index(held, settled, hook)
        marks = {text: mark for one in decisions.values() for text, mark in one.marks.items()}
        self._keep_marks(marks)
        ordered = dict(sorted(settled.items(), key=lambda item: _landing_order(*item)))
        told = _version_info(info, subject=subject, reverses=reverses, reasons=reasons)
        return Outcome(held.commit(ordered, told), decisions)

    def _keep_marks(self, marks: Mapping[str, Mark]) -> None:
        if marks:
            from reverie.memory.gate.marks import Marks

            Marks(self.root).add(marks)

    def _free(self, name: str, *taken: Collection[str]) -> str:
        """A name like this one that no file has."""
        stem = name.removesuffix(".md")
        numbered = (name if number == 1 else f"{stem}_{number}.md" for number in range(1, 1_000))
        return self._name(next(one for one in numbered if not any(one in names for names in taken)))

    def _follow_index(self, held: LockedFolder, settled: dict[str, bytes | None], hook: str) -> None:
        """Lets the lines of the index follow the topic files that change."""
        for name in [name for name in settled if is_topic(name)]:
            index, data, before = index_of(name), settled[name], held.read(name)
            stood = decode(held.read(index) or b"")
            text = decode(settled[index] or b"") if index in settled else stood
            if data is None:
                followed = without_entry(text, pointer_of(name))
            elif data == before or not self._keep_index:
                continue
            else:
                followed = follow_topic(text, stood, name, before, data, hook)
            if followed != text:
                settled[index] = encode(followed)

    def _name(self, name: str) -> str:
        if name.startswith("/"):
            raise UserError(f"{name!r} is not the name of a memory: give it relative to the memory directory.")
        return self._name_at(check_memory_write(f"{self.root}/{name}", self.root))

    def _name_at(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _path_for(self, name: str) -> Path:
        return check_memory_write(f"{self.root}/{name}", self.root)

    def _readable(self, name: str) -> Path:
        path = self.root / name
        if not name.endswith(".md") or not is_inside(str(path), self.root):
            raise UserError(f"{name!r} is not the name of a memory: an .md file, relative to the memory directory.")
        return path


def _landing_order(name: str, data: bytes | None) -> int:
    """Files before the index that names them, removals after it: a reader in between never sees a dead pointer."""
    return 2 if data is None else 1 if is_index(name) else 0


def _version_info(
    info: WriteInfo, *, subject: str = "", reverses: str = "", reasons: Mapping[str, str] | None = None
) -> VersionInfo:
    return VersionInfo(info.writer.value, info.why, info.session, info.message, subject, reverses, reasons or {})


def _require_version(version: Version | None) -> Version:
    assert version is not None, "a new or removed file makes a version"
    return version
