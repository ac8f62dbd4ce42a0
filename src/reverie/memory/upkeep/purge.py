"""Removes a secret from everything we keep, contents and names; `paths/text_places.py` lists the places.

Only a purge rewrites transcripts. It refuses while a session that holds the secret is open, replaces each file in one
step, then looks again and reports what is left. The secret itself is never logged or reported.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from reverie.errors import ReverieError, SessionBusy
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import MemoryInbox
from reverie.memory.gate.marks import Marks
from reverie.memory.sharing.shared_files import SHARED_LOCK
from reverie.memory.sharing.team_git import TeamCheckout
from reverie.memory.topic_file import decode, encode
from reverie.memory.upkeep.purge_forms import PurgeTarget, SecretForms
from reverie.memory.upkeep.purged_record import PurgedRecord
from reverie.paths.text_places import Treatment, find_text_place
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import storage_error, write_atomic
from reverie.storage.history.objects import decode_tree
from reverie.storage.history.purge import make_unique, read_all_objects
from reverie.storage.history.state import STATE_FILE
from reverie.storage.lease import Lease
from reverie.storage.locks import exclusive

SHARED = "shared"
REMOTE = "remote"
RECORDED = "recorded"
"""A file of another agent, whose session is followed."""


@dataclass(frozen=True, slots=True)
class PurgeScope:
    """Where to look, in addition to the memory directory and its history."""

    projects: tuple[Path, ...] = ()
    """Project folders: transcripts, and one folder per session with tool results, notes and more."""
    files: tuple[Path, ...] = ()
    """Other text files, handled line by line, JSON or not: background logs, chat input."""
    derived: tuple[Path, ...] = ()
    """Files that can be built again (the search index): they are deleted."""
    inbox: MemoryInbox | None = None
    shared: Path | None = None
    """The folder that a team shares, rewritten under the lock of a sync."""
    record: Path | None = None
    """The file with digests of purged values, so that no sync brings them back."""
    home: Path | None = None
    """The home, which gives each file its kind; the user's own files in it are reported, never changed."""
    sources: tuple[Path, ...] = ()
    """Session files of other agents: they are reported, and large results beside them are rewritten."""


@dataclass(frozen=True, slots=True)
class PurgedPlace:
    """One place where the secret was found. `kind` is one of those in `paths/text_places.py`."""

    kind: str
    where: str
    found: int


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge found, changed and left. `versions` counts rewritten versions; `left` is where the secret still is,
    including the user's own files."""

    dry_run: bool
    places: tuple[PurgedPlace, ...]
    versions: int = 0
    left: tuple[PurgedPlace, ...] = ()

    @property
    def found(self) -> int:
        return sum(place.found for place in self.places)


@dataclass(frozen=True, slots=True)
class _PurgeFile:
    path: Path
    kind: str
    lease: Path | None = None
    treatment: Treatment = Treatment.REWRITTEN


def purge(
    wanted: PurgeTarget, memory: MemoryDirectory, scope: PurgeScope, *, dry_run: bool, look_only: bool = False
) -> PurgeReport:
    """Finds the secret everywhere and, unless it is a dry run, removes it. `SessionBusy` names a live session that
    holds the secret; then nothing is changed. `look_only` is a dry run that never refuses."""
    files = list(_files(memory, scope))
    forms = SecretForms(_values(wanted, memory, scope, files))
    found = list(_find_places(forms, memory, scope, files))
    holding = [file for file in files if any(place.where == str(file.path) for place in found)]
    if look_only:
        return PurgeReport(True, tuple(found))
    _refuse_live(holding)
    if dry_run or not found:
        return PurgeReport(dry_run, tuple(found))
    if scope.record is not None:
        PurgedRecord(scope.record).add(forms.values)
    info = WriteInfo(Writer.USER, "A secret was purged.")
    report = memory.purge(forms.replace, info, rename=forms.rename)
    if scope.inbox is not None:
        scope.inbox.replace_everywhere(forms.replace)
    Marks(memory.root).replace_everywhere(forms.replace)
    for file in holding:
        if file.treatment is Treatment.YOURS:
            continue
        if file.treatment is Treatment.DELETED:
            _delete_derived(file.path)
            continue
        with _hold_lease(file), _lock_shared(scope.shared if file.kind == SHARED else None):
            _rewrite(file.path, forms)
    for path in (*scope.derived, memory.history.git_dir / STATE_FILE):
        _delete_derived(path)
    left = tuple(_find_places(forms, memory, scope, list(_files(memory, scope))))
    return PurgeReport(False, tuple(found), len(report.versions), left)


def purge_remote(wanted: PurgeTarget, checkout: TeamCheckout, keep: Path, *, dry_run: bool) -> PurgeReport:
    """Looks through all versions in our clone; unless it is a dry run, sends cleaned files and removes the clone."""
    stored = checkout.stored()
    forms = SecretForms(wanted.find_in(stored))
    found = forms.count(stored)
    place = (PurgedPlace(REMOTE, checkout.address, found),) if found else ()
    if dry_run or not found:
        return PurgeReport(dry_run, place)
    with exclusive(keep / "lock", timeout_s=30, what="the team's memory"):
        try:
            checkout.fetch()
            for path in list(_files_below(checkout.folder)):
                _rewrite(path, forms)
            checkout.publish()
        except ReverieError:
            pass  # the report lists it as left anyway, and no sync brings it back
        try:
            shutil.rmtree(checkout.folder)
        except OSError as error:
            raise storage_error(error, checkout.folder, "remove") from error
    return PurgeReport(False, place, left=place)


def _values(wanted: PurgeTarget, memory: MemoryDirectory, scope: PurgeScope, files: Sequence[_PurgeFile]) -> set[str]:
    if wanted.pattern is None:
        return {wanted.text}
    values: set[str] = set()
    for _, _, text in (*_memory_texts(memory), *_inbox_texts(scope.inbox)):
        values |= wanted.find_in(text)
    for file in files:
        values |= wanted.find_in(_read(file.path))
    return values


def _find_places(
    forms: SecretForms, memory: MemoryDirectory, scope: PurgeScope, files: Iterable[_PurgeFile]
) -> Iterator[PurgedPlace]:
    for kind, where, text in (*_memory_texts(memory), *_inbox_texts(scope.inbox)):
        found = forms.count_in_line(text)
        if found:
            yield PurgedPlace(kind, where, found)
    for kind, where, name in _memory_names(memory):
        if forms.rename(name) != name:
            yield PurgedPlace(kind, where, 1)
    for file in files:
        text = _read(file.path)
        found = sum(map(forms.count_in_line, text.split("\n"))) or forms.count(text)
        found += forms.rename(file.path.name) != file.path.name
        if found:
            yield PurgedPlace(file.kind, str(file.path), found)


def _memory_texts(memory: MemoryDirectory) -> Iterator[tuple[str, str, str]]:
    """(kind, where, text) of every memory file, and of everything in the history."""
    for path in _memory_files(memory):
        yield "memory", path.relative_to(memory.root).as_posix(), _read(path)
    if (memory.history.git_dir / "HEAD").exists():
        for name, kind, data in read_all_objects(memory.history):
            if kind != "tree":
                yield "history", f"{kind} {name[:10]}", decode(data)
        for path in _git_files(memory.history.git_dir):
            yield "history", path.name, _read(path)


def _memory_names(memory: MemoryDirectory) -> Iterator[tuple[str, str, str]]:
    """(kind, where, name) of every memory file, and of every name in the history."""
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
    """The files of git that are not objects: journals, reflogs, messages."""
    for folder, folders, names in os.walk(git_dir):
        folders[:] = [name for name in folders if not (Path(folder) == git_dir and name == "objects")]
        yield from (Path(folder, name) for name in names if name != STATE_FILE and not Path(folder, name).is_symlink())


def _inbox_texts(inbox: MemoryInbox | None) -> Iterator[tuple[str, str, str]]:
    if inbox is not None and inbox.folder.is_dir():
        for path in sorted(inbox.folder.glob("*.json")):
            yield "inbox", path.stem, _read(path)


def _files(memory: MemoryDirectory, scope: PurgeScope) -> Iterator[_PurgeFile]:
    """Every file of the sessions, the hidden files of the memory directory, and the other named files. Never the memory
    files themselves or their history."""
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
                yield _PurgeFile(path, "transcript" if path.name.endswith((".jsonl", ".torn")) else "session", lease)
    inbox = scope.inbox.folder if scope.inbox is not None else None
    for hidden in _children(memory.root):
        if hidden.name.startswith(".") and hidden != inbox and not hidden.is_symlink():
            yield from (
                _PurgeFile(path, _kind(path, scope)[0]) for path in _files_below(hidden) if path not in scope.files
            )
    if scope.shared is not None and scope.shared.is_dir():
        for path in _files_below(scope.shared):
            if path.name != SHARED_LOCK and path not in scope.files:
                yield _PurgeFile(path, SHARED)
    for path in scope.files:
        if path.is_file() and not path.is_symlink():
            yield _PurgeFile(path, _kind(path, scope)[0], None, _kind(path, scope)[1])
    for path in scope.sources:
        folder = path.with_suffix("")
        below = _files_below(folder) if folder.is_dir() and not folder.is_symlink() else ()
        for file in (path, *below) if path.is_file() else ():
            is_result = file.parent.name == "tool-results"
            yield _PurgeFile(file, RECORDED, None, Treatment.REWRITTEN if is_result else Treatment.YOURS)


def _kind(path: Path, scope: PurgeScope) -> tuple[str, Treatment]:
    if scope.home is None or not path.is_relative_to(scope.home):
        kinds = {".dreams": "dream", ".trust": "marks"}
        return next((kinds[part] for part in path.parts if part in kinds), "log"), Treatment.REWRITTEN
    kept = find_text_place(path.relative_to(scope.home).as_posix())
    return kept.kind, kept.treatment


def files_of_home(home: Path, skip: Iterable[Path]) -> Iterator[Path]:
    """Every regular file of the home, except what is below `skip`, weights and git folders."""
    for path in _children(home):
        if path in skip or path.name in ("models", "run") or path.is_symlink():
            continue
        yield from (below for below in _files_below(path) if not any(below.is_relative_to(one) for one in skip))


def _files_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if stat.S_ISREG(path.lstat().st_mode):
            yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.endswith(".git"))
        for name in sorted(names):
            if stat.S_ISREG(Path(folder, name).lstat().st_mode):
                yield Path(folder, name)


def _session_files(session: Path, own: set[Path]) -> Iterator[_PurgeFile]:
    for path in _files_below(session):
        if path.name != Lease.NAME and not any(path.is_relative_to(one) for one in own):
            yield _PurgeFile(path, "session", session / Lease.NAME)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, folder, "read") from error


def _refuse_live(files: Iterable[_PurgeFile]) -> None:
    for lease in dict.fromkeys(file.lease for file in files if file.lease is not None):
        holder = Lease.holder(lease)
        if holder is not None:
            pid = int(holder.get("pid") or 0)
            name = holder.get("session") or lease.parent.name
            raise SessionBusy(
                f"Session {name} is open in process {pid} and holds the secret; end it, then purge again.",
                pid,
            )


def _lock_shared(shared: Path | None) -> AbstractContextManager[None]:
    """Keeps syncs of others away from a shared folder."""
    if shared is None:
        return nullcontext()
    return exclusive(shared / SHARED_LOCK, timeout_s=30, what="the shared folder")


def _hold_lease(file: _PurgeFile) -> AbstractContextManager[object]:
    """Keeps others from opening the session while its files are replaced."""
    if file.lease is None:
        return nullcontext()
    return Lease.take(file.lease, info={"session": file.lease.parent.name, "purpose": "purge"})


def _rewrite(path: Path, forms: SecretForms) -> None:
    """Replaces a file's content in one step; lines, times and mode stay."""
    before = _read(path)
    after = forms.replace("\n".join(map(forms.replace_in_line, before.split("\n"))))
    if after != before:
        status = path.stat()
        write_atomic(path, encode(after), mode=stat.S_IMODE(status.st_mode))
        with suppress(OSError):
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    name = forms.rename(path.name)
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
