"""The memory directory: topic files and their index, read by anyone, changed only through here.

Every change, whoever makes it, passes the write gate, happens under one lock between processes, lands file and index
together or not at all, and is one version with who and why. What somebody else changed meanwhile, with an editor or
another agent, is recorded as theirs and never overwritten. It decides nothing about what is worth remembering.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.errors import StorageError, UserError
from reverie.memory.changes import (
    ABSENT,
    Change,
    ChangedUnderneath,
    Evidence,
    Gate,
    Origin,
    ProposedWrite,
    WriteInfo,
    Writer,
)
from reverie.memory.index import following, without_entry
from reverie.memory.scan import ScanEntry, scan
from reverie.memory.taxonomy import INDEX, TEAM, index_of, is_index, is_log, is_topic, pointer_of
from reverie.memory.topic_file import TopicFile, decode, encode
from reverie.memory.upkeep.purge_names import Cleaning
from reverie.memory.upkeep.undo import UndoConflict, plan_restore, plan_undo
from reverie.permissions.memory_paths import PermissionRefused, check_memory_write, is_inside
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, storage_error
from reverie.storage.history.folder import ChangedOnDisk, Held, VersionedFolder, history_place
from reverie.storage.history.objects import blob_id
from reverie.storage.history.purge import PurgeReport
from reverie.storage.history.versions import Version, VersionInfo

if TYPE_CHECKING:
    from reverie.paths import MemoryPlace

_ATTEMPTS = 4  # somebody without our lock may write at the very moment of landing: look again that often
_PERSON = (Writer.USER, Writer.IMPORT)


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was read."""

    name: str
    """Relative to the memory directory."""
    content: bytes
    modified: float
    """Seconds since 1970."""

    @property
    def text(self) -> str:
        return decode(self.content)

    @property
    def digest(self) -> str:
        """What to give as `base` of a change that rests on this reading."""
        return blob_id(self.content)

    @property
    def topic(self) -> TopicFile:
        return TopicFile.parse(self.content)


class MemoryDirectory:
    """One memory directory. `open` touches nothing; the folder and its history are made by the first write."""

    def __init__(self, root: Path, gate: Gate, keep_index: bool, lock_timeout_s: float) -> None:
        self.root = root
        self._gate = gate
        self._keep_index = keep_index
        self._folder = VersionedFolder(root, history_place(root), self._path_for, lock_timeout_s=lock_timeout_s)
        self.history = self._folder.history
        """For looking: `log`, `find`, `show`, `diff`. Changes go through the directory."""

    @classmethod
    def open(
        cls, place: MemoryPlace | Path, *, gate: Gate, keep_index: bool = True, lock_timeout_s: float = 30.0
    ) -> MemoryDirectory:
        """The directory at `place`, as `memory_place` decided. `gate` sees every write of every writer.

        Without `keep_index`, saving is one step: the file alone.
        """
        root = place if isinstance(place, Path) else place.directory
        return cls(Path(os.path.realpath(root)), gate, keep_index, lock_timeout_s)

    # Reading. Takes no lock; only finishes a change that was cut short.

    def names(self) -> list[str]:
        """Every topic file, by relative path."""
        return sorted(entry.name for entry in self.list())

    def list(self) -> tuple[ScanEntry, ...]:
        """Every topic file with its head, newest first."""
        self.settle()
        return scan(self.root, newest=None).entries

    def exists(self, name: str) -> bool:
        return self._readable(name).is_file()

    def read(self, name: str) -> Document:
        """A file by its relative path; `UserError` if there is none."""
        self.settle()
        path = self._readable(name)
        try:
            return Document(name, read_regular(path), path.stat().st_mtime)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise UserError(f"There is no memory {name!r}; `reverie memory list` shows what there is.") from None
        except OSError as error:
            raise storage_error(error, path, "read") from error

    def index(self, *, team: bool = False) -> str:
        """The index as it stands, whole; empty if there is none. `load_index` cuts it to its limits."""
        name = f"{TEAM}/{INDEX}" if team else INDEX
        return self.read(name).text if self.exists(name) else ""

    def settle(self) -> None:
        """Finishes a change that was cut short, if there is one; a disk that cannot be written is left as it is."""
        if self._folder.unfinished:
            with suppress(StorageError), self._folder.locked():
                pass

    # Writing.

    def make(self) -> None:
        """Makes the folder, for a prompt that says it exists; every write makes it anyway."""
        make_private_dir(self.root)

    def create(self, name: str, topic: TopicFile, info: WriteInfo, *, hook: str = "") -> Version:
        """A new memory and its index line; `ChangedUnderneath` if a file of that name is there already."""
        return self._saved(name, lambda _: topic, info, base=ABSENT, hook=hook)

    def update(
        self, name: str, topic: TopicFile, info: WriteInfo, *, base: str | None = None, hook: str = ""
    ) -> Version | None:
        """A memory with new content; None if it is the same. Give `base` (`Document.digest`) if it rests on a reading.

        Its index line follows a new name or description, unless a person has worded it otherwise.
        """
        return self._run(self._saving(name, lambda _: topic, base, hook), info)

    def edit(self, name: str, change: Callable[[TopicFile], TopicFile], info: WriteInfo) -> Version | None:
        """Changes what stands there now, whoever wrote it last; `change` may run more than once."""

        def changed(now: TopicFile | None) -> TopicFile:
            if now is None:
                raise UserError(f"There is no memory {name!r}; `reverie memory list` shows what there is.")
            return change(now)

        return self._run(self._saving(name, changed, None, ""), info)

    def append(self, name: str, text: str, info: WriteInfo) -> Version | None:
        """Adds to the end of a file, which is made if it is not there: for daily logs."""

        def grown(held: Held) -> list[Change]:
            now = decode(held.read(self._name(name)) or b"")
            return [Change(name, now + text)]

        return self._run(grown, info)

    def remove(self, name: str, info: WriteInfo, *, base: str | None = None) -> Version:
        """Forgets a memory: file and index line go, as one version. `restore` brings it back."""

        def gone(held: Held) -> list[Change]:
            if self._name(name) not in held.files:
                raise UserError(f"There is no memory {name!r}; `reverie memory list` shows what there is.")
            return [Change(name, None, base)]

        return _made(self._run(gone, info))

    def transaction(self, changes: Sequence[Change], info: WriteInfo) -> Version | None:
        """Many files as one version, or none of them. `ChangedUnderneath` lists files that are not as `base` says.

        Index lines of removed files go with them; lines for new files are the caller's own changes of the index.
        """
        return self._run(lambda _: list(changes), info)

    def apply_tool_write(
        self, path: str, text: str | None, info: WriteInfo, *, base: str | None = None
    ) -> Version | None:
        """What an agent's Write or Edit does to a real path: `text` is the whole new content; None if nothing differs.

        An empty text forgets a topic file. The agent words the index itself, so no line is added here.
        """
        name = self._name_at(check_memory_write(path, self.root))
        return self._run(lambda _: [Change(name, text, base)], info)

    def absorb(self, info: WriteInfo | None = None) -> Version | None:
        """Records what is already changed on disk, as `info` says or else as done by hand. What is on disk is past
        every gate: use it for programs that cannot be asked, never to let an agent write.
        """
        with self._folder.locked(_version_info(info) if info else None) as held:
            return held.absorbed

    # Going back.

    def log(self, name: str | None = None, *, limit: int | None = None) -> Iterator[Version]:
        """Versions, newest first; changes by hand since the last touch are not among them yet."""
        return self.history.log(name, limit=limit)

    def undo(self, spec: str, info: WriteInfo) -> Version | None:
        """Reverses exactly that version; later changes of other lines stay. `UndoConflict` where they do not fit."""
        with self._locked() as held:
            version = self.history.find(spec)
            writes = plan_undo(self.history, version, held.read)
            subject = f"Undo: {version.info.subject}" if version.info.subject else f"Undo {version.short}"
            return self._commit(held, writes, info, restores=True, subject=subject, reverses=version.id)

    def restore(self, name: str, info: WriteInfo, *, spec: str | None = None) -> Version | None:
        """Brings a file back as it was in a version, or before it was last changed or removed, with its index line."""
        with self._locked() as held:
            writes, version = plan_restore(self.history, self._name(name), spec, held.read)
            subject = f"Restore {name} as in {version[:10]}"
            return self._commit(held, writes, info, restores=True, subject=subject)

    def purge(
        self, replace: Callable[[str], str], info: WriteInfo, *, rename: Callable[[str], str] = str
    ) -> PurgeReport:
        """Takes a text out of every file and its name, and out of every version of it. Versions get new names.

        `replace` and `rename` give back a text or a path with the secret replaced; `info` must not hold the secret. No
        gate is asked: a purge only takes away.
        """
        with self._locked() as held:
            past = {change.name for version in self.history.log() for change in version.files}
            clean = Cleaning(past | set(held.files), replace, rename)
            writes = {
                name: data for old in held.files for name, data in clean.writes(old, held.read(old) or b"").items()
            }
            ordered = dict(sorted(writes.items(), key=lambda item: _landing_order(*item)))
            held.commit(ordered, _version_info(info, subject="Purge"))
            return held.purge(clean.content, clean.part)

    # How it is done.

    def _saved(
        self, name: str, topic: Callable[[TopicFile | None], TopicFile], info: WriteInfo, *, base: str, hook: str
    ) -> Version:
        return _made(self._run(self._saving(name, topic, base, hook), info))

    def _saving(
        self, name: str, topic: Callable[[TopicFile | None], TopicFile], base: str | None, hook: str
    ) -> Callable[[Held], list[Change]]:
        def plan(held: Held) -> list[Change]:
            own = self._name(name)
            if not is_topic(own):
                raise UserError(f"{name!r} is no topic file; the index and the daily logs are written otherwise.")
            data = held.read(own)
            before = None if data is None else TopicFile.parse(data)
            after = topic(before)
            changes = [Change(own, after.text, base)]
            if self._keep_index:
                index = decode(held.read(index_of(own)) or b"")
                old = (before.name, before.description) if before else None
                followed = following(index, pointer_of(own), old, (after.name, after.description), hook)
                if followed != index and after.text.strip():
                    changes.append(Change(index_of(own), followed))
            return changes

        return plan

    def _run(self, plan: Callable[[Held], list[Change]], info: WriteInfo) -> Version | None:
        for attempt in range(_ATTEMPTS):
            try:
                with self._folder.locked() as held:
                    changes = plan(held)
                    reasons = {change.name: change.reason for change in changes if change.reason}
                    return self._commit(held, self._resolved(held, changes, info), info, reasons=reasons)
            except ChangedOnDisk as error:
                if attempt + 1 == _ATTEMPTS:
                    raise ChangedUnderneath(error.names) from error
        raise AssertionError  # unreachable: the loop returns or raises

    @contextmanager
    def _locked(self) -> Generator[Held]:
        try:
            with self._folder.locked() as held:
                yield held
        except ChangedOnDisk as error:
            raise ChangedUnderneath(error.names) from error

    def _resolved(self, held: Held, changes: Sequence[Change], info: WriteInfo) -> dict[str, bytes | None]:
        """Changes as writes: names checked, expectations met, empty topic files removed together with their lines."""
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
                    raise UserError(f"{name} is a daily log: it is only added to, never rewritten.")
            writes[name] = None if text is None else encode(text)
        if stale:
            raise ChangedUnderneath(stale)
        for name in [name for name, data in writes.items() if data is None and is_topic(name)]:
            index = index_of(name)
            data = writes[index] if index in writes else held.read(index)
            text = decode(data or b"")
            shorter = without_entry(text, pointer_of(name))
            if shorter != text:
                writes[index] = encode(shorter)
        return writes

    def _commit(
        self,
        held: Held,
        writes: Mapping[str, bytes | None],
        info: WriteInfo,
        *,
        restores: bool = False,
        subject: str = "",
        reverses: str = "",
        reasons: Mapping[str, str] | None = None,
    ) -> Version | None:
        """The one way to the disk: the gate, then the version."""
        ordered = dict(sorted(writes.items(), key=lambda item: _landing_order(*item)))
        after = {name: None if data is None else decode(data) for name, data in ordered.items()}
        for name, data in ordered.items():
            before = held.read(name)
            if data is not None and data != before:
                self._gate(
                    ProposedWrite(
                        name=name,
                        text=decode(data),
                        before=None if before is None else decode(before),
                        writer=info.writer,
                        evidence=info.evidence,
                        restores=restores,
                        together={other: text for other, text in after.items() if other != name},
                    )
                )
        return held.commit(ordered, _version_info(info, subject=subject, reverses=reverses, reasons=reasons))

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
    """Files before the index that names them, removals after it: a reader in between meets no dead pointer."""
    return 2 if data is None else 1 if is_index(name) else 0


def _version_info(
    info: WriteInfo, *, subject: str = "", reverses: str = "", reasons: Mapping[str, str] | None = None
) -> VersionInfo:
    return VersionInfo(info.writer.value, info.why, info.session, info.message, subject, reverses, reasons or {})


def _made(version: Version | None) -> Version:
    assert version is not None, "a file that was not there, or goes, makes a version"
    return version


__all__ = [
    "ABSENT",
    "Change",
    "ChangedUnderneath",
    "Document",
    "Evidence",
    "Gate",
    "MemoryDirectory",
    "Origin",
    "PermissionRefused",
    "ProposedWrite",
    "UndoConflict",
    "WriteInfo",
    "Writer",
]
