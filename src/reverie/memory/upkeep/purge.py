"""Takes a secret out of everything we keep, in contents and in names: `paths/text_places.py` lists the places.

The one thing that rewrites transcripts. It looks first and says what it would do; it refuses while a session that holds
the secret is open; each file is replaced in one step; and afterwards it looks again, and says where anything is left.
The secret itself is never logged, reported or put into a version's reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import SessionBusy
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import Inbox
from reverie.memory.sharing.shared_files import SHARED_LOCK
from reverie.memory.topic_file import decode, encode
from reverie.memory.upkeep.purge_forms import Forms, Wanted
from reverie.memory.upkeep.purged_record import PurgedRecord
from reverie.paths.text_places import Treatment, find_text_place
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import storage_error, write_atomic
from reverie.storage.history.objects import decode_tree
from reverie.storage.history.purge import make_unique, read_all_objects
from reverie.storage.history.state import STATE_FILE
from reverie.storage.lease import Lease
from reverie.storage.locks import exclusive

SHARED = "shared"
"""The kind of a file in a folder that a team shares."""


@dataclass(frozen=True, slots=True)
class PurgeScope:
    """Where to look besides the memory directory and its history."""

    projects: tuple[Path, ...] = ()
    """Project folders: transcripts, and a folder a session with tool results, notes and the like."""
    files: tuple[Path, ...] = ()
    """Other text files: background logs, what was typed into the chat. Line by line, JSON or not."""
    derived: tuple[Path, ...] = ()
    """Files that can be made again (the search index): they are deleted."""
    inbox: Inbox | None = None
    shared: Path | None = None
    """The folder that a team shares, outside the home: rewritten too, under the lock that a sync takes."""
    record: Path | None = None
    """Where digests of what is purged are kept, so that no sync brings it back."""
    home: Path | None = None
    """The home, whose places give each file its kind; its files that are the user's own are named, never changed."""


@dataclass(frozen=True, slots=True)
class PurgedPlace:
    """One place where it was found."""

    kind: str
    """As in `paths/text_places.py`: memory, history, inbox, transcript, session, log, …"""
    where: str
    found: int


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge found, did and left."""

    dry_run: bool
    places: tuple[PurgedPlace, ...]
    versions: int = 0
    """Versions that were rewritten; they have new names."""
    left: tuple[PurgedPlace, ...] = ()
    """Where it is after all, the user's own files included; empty if it is gone."""

    @property
    def found(self) -> int:
        return sum(place.found for place in self.places)


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    kind: str
    lease: Path | None = None
    """The lease of the session it belongs to."""
    treatment: Treatment = Treatment.REWRITTEN


def purge(
    wanted: Wanted, memory: MemoryDirectory, scope: PurgeScope, *, dry_run: bool, look_only: bool = False
) -> PurgeReport:
    """Finds the secret everywhere and, unless it is a dry run, takes it out. `SessionBusy` names who holds it open.

    Nothing is changed if a live session is among those that hold it. `look_only` is a dry run that never refuses.
    """
    files = list(_files(memory, scope))
    forms = Forms(_values(wanted, memory, scope, files))
    found = list(_look(forms, memory, scope, files))
    holding = [file for file in files if any(place.where == str(file.path) for place in found)]
    if look_only:
        return PurgeReport(True, tuple(found))
    _refuse_live(holding)
    if dry_run or not found:
        return PurgeReport(dry_run, tuple(found))
    if scope.record is not None:
        PurgedRecord(scope.record).add(forms.values)
    info = WriteInfo(Writer.USER, "A secret was purged.")
    report = memory.purge(forms.replaced, info, rename=forms.renamed)
    if scope.inbox is not None:
        scope.inbox.replace_everywhere(forms.replaced)
    for file in holding:
        if file.treatment is Treatment.YOURS:
            continue
        if file.treatment is Treatment.DELETED:
            _delete_derived(file.path)
            continue
        with _leased(file), _alone(scope.shared if file.kind == SHARED else None):
            _rewrite(file.path, forms)
    for path in (*scope.derived, memory.history.git_dir / STATE_FILE):
        _delete_derived(path)
    left = tuple(_look(forms, memory, scope, list(_files(memory, scope))))
    return PurgeReport(False, tuple(found), len(report.versions), left)


def _values(wanted: Wanted, memory: MemoryDirectory, scope: PurgeScope, files: Sequence[_File]) -> set[str]:
    if wanted.pattern is None:
        return {wanted.text}
    values: set[str] = set()
    for _, _, text in (*_memory_texts(memory), *_inbox_texts(scope.inbox)):
        values |= wanted.met_in(text)
    for file in files:
        values |= wanted.met_in(_read(file.path))
    return values


def _look(forms: Forms, memory: MemoryDirectory, scope: PurgeScope, files: Iterable[_File]) -> Iterator[PurgedPlace]:
    for kind, where, text in (*_memory_texts(memory), *_inbox_texts(scope.inbox)):
        found = forms.count_in_line(text)
        if found:
            yield PurgedPlace(kind, where, found)
    for kind, where, name in _memory_names(memory):
        if forms.renamed(name) != name:
            yield PurgedPlace(kind, where, 1)
    for file in files:
        text = _read(file.path)
        found = sum(map(forms.count_in_line, text.split("\n"))) or forms.count(text)
        found += forms.renamed(file.path.name) != file.path.name
        if found:
            yield PurgedPlace(file.kind, str(file.path), found)


def _memory_texts(memory: MemoryDirectory) -> Iterator[tuple[str, str, str]]:
    """(kind, where, text) of every memory file, and of everything that the history holds, named by a version or not."""
    for path in _memory_files(memory):
        yield "memory", path.relative_to(memory.root).as_posix(), _read(path)
    if (memory.history.git_dir / "HEAD").exists():
        for name, kind, data in read_all_objects(memory.history):
            if kind != "tree":
                yield "history", f"{kind} {name[:10]}", decode(data)
        for path in _git_files(memory.history.git_dir):
            yield "history", path.name, _read(path)


def _memory_names(memory: MemoryDirectory) -> Iterator[tuple[str, str, str]]:
    """(kind, where, name) of every memory file, and of every name in a folder of the history."""
    for path in _memory_files(memory):
        name = path.relative_to(memory.root).as_posix()
        yield "memory", name, name
    if (memory.history.git_dir / "HEAD").exists():
        for name, kind, data in read_all_objects(memory.history):
            for entry in decode_tree(data) if kind == "tree" else ():
                yield "history", f"tree {name[:10]}", entry.name


def _memory_files(memory: MemoryDirectory) -> Iterator[Path]:
    for folder, folders, names in os.walk(memory.root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if not name.startswith(".") and not path.is_symlink():
                yield path


def _git_files(git_dir: Path) -> Iterator[Path]:
    """What git keeps beside its objects: journals, reflogs, messages."""
    for folder, folders, names in os.walk(git_dir):
        folders[:] = [name for name in folders if not (Path(folder) == git_dir and name == "objects")]
        yield from (Path(folder, name) for name in names if name != STATE_FILE and not Path(folder, name).is_symlink())


def _inbox_texts(inbox: Inbox | None) -> Iterator[tuple[str, str, str]]:
    if inbox is not None and inbox.folder.is_dir():
        for path in sorted(inbox.folder.glob("*.json")):
            yield "inbox", path.stem, _read(path)


def _files(memory: MemoryDirectory, scope: PurgeScope) -> Iterator[_File]:
    """Every file of the sessions, the hidden ones of the memory directory, and the others that were named.

    Never the memory files themselves or their history.
    """
    own = {memory.root, memory.history.git_dir}
    for project in scope.projects:
        for path in _children(project):
            if path.is_symlink() or path in own or path.resolve() in own or path.name.endswith(".git"):
                continue
            if path.is_dir():
                yield from _session_files(path, own)
            elif stat.S_ISREG(path.lstat().st_mode):
                session = path.name.partition(".")[0]
                lease = project / session / Lease.NAME if session else None
                yield _File(path, "transcript" if path.name.endswith((".jsonl", ".torn")) else "session", lease)
    inbox = scope.inbox.folder if scope.inbox is not None else None
    for hidden in _children(memory.root):
        if hidden.name.startswith(".") and hidden != inbox and not hidden.is_symlink():
            yield from (_File(path, _kind(path, scope)[0]) for path in _below(hidden) if path not in scope.files)
    if scope.shared is not None and scope.shared.is_dir():
        for path in _below(scope.shared):
            if path.name != SHARED_LOCK and path not in scope.files:
                yield _File(path, SHARED)
    for path in scope.files:
        if path.is_file() and not path.is_symlink():
            yield _File(path, _kind(path, scope)[0], None, _kind(path, scope)[1])


def _kind(path: Path, scope: PurgeScope) -> tuple[str, Treatment]:
    if scope.home is None or not path.is_relative_to(scope.home):
        return ("dream" if ".dreams" in path.parts else "log"), Treatment.REWRITTEN
    kept = find_text_place(path.relative_to(scope.home).as_posix())
    return kept.kind, kept.treatment


def purge_files(folder: Path, forms: Forms) -> None:
    """Takes the values out of every file below a folder, and out of its name."""
    for path in list(_below(folder)):
        _rewrite(path, forms)


def files_of_home(home: Path, skip: Iterable[Path]) -> Iterator[Path]:
    """Every regular file of the home but for what is below `skip`, weights and what git keeps."""
    for path in _children(home):
        if path in skip or path.name in ("models", "run") or path.is_symlink():
            continue
        yield from (below for below in _below(path) if not any(below.is_relative_to(one) for one in skip))


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if stat.S_ISREG(path.lstat().st_mode):
            yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.endswith(".git"))
        for name in sorted(names):
            if stat.S_ISREG(Path(folder, name).lstat().st_mode):
                yield Path(folder, name)


def _session_files(session: Path, own: set[Path]) -> Iterator[_File]:
    for path in _below(session):
        if path.name != Lease.NAME and not any(path.is_relative_to(one) for one in own):
            yield _File(path, "session", session / Lease.NAME)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, folder, "read") from error


def _refuse_live(files: Iterable[_File]) -> None:
    for lease in dict.fromkeys(file.lease for file in files if file.lease is not None):
        holder = Lease.holder(lease)
        if holder is not None:
            pid = int(holder.get("pid") or 0)
            name = holder.get("session") or lease.parent.name
            raise SessionBusy(
                f"Session {name} is open in process {pid} and holds what shall be purged; end it, then purge again.",
                pid,
            )


def _alone(shared: Path | None) -> AbstractContextManager[None]:
    """Keeps syncs of others away from a shared folder."""
    if shared is None:
        return nullcontext()
    return exclusive(shared / SHARED_LOCK, timeout_s=30, what="the shared folder")


@contextmanager
def _leased(file: _File) -> Generator[None]:
    """Keeps others from opening the session while its files are replaced."""
    if file.lease is None:
        yield
        return
    with Lease.take(file.lease, info={"session": file.lease.parent.name, "purpose": "purge"}):
        yield


def _rewrite(path: Path, forms: Forms) -> None:
    """Replaces a file's content in one step, lines kept as lines, its times and mode as they were."""
    before = _read(path)
    after = forms.replaced("\n".join(map(forms.replaced_in_line, before.split("\n"))))
    if after != before:
        status = path.stat()
        write_atomic(path, encode(after), mode=stat.S_IMODE(status.st_mode))
        with suppress(OSError):
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    name = forms.renamed(path.name)
    if name != path.name:
        there = {one.name for one in _children(path.parent)}
        try:
            path.rename(path.with_name(make_unique({one: one for one in there} | {path.name: name})[path.name]))
        except OSError as error:
            raise storage_error(error, path, "rename") from error


def _read(path: Path) -> str:
    try:
        return decode(read_regular(path, LARGEST))
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise storage_error(error, path, "read") from error


def _delete_derived(path: Path) -> None:
    for one in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        try:
            one.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, one, "remove") from error
