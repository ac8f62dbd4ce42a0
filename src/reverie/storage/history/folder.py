"""A folder where every change is one version: many files change together or not at all, even if the process is killed.

A change is staged, noted in a journal, landed by renames and then named. Changes of others are never overwritten.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from reverie.errors import ReverieError, StorageError
from reverie.parsing import load_json
from reverie.regular_files import read_regular, read_regular_text
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic
from reverie.storage.history.objects import blob_id
from reverie.storage.history.packs import HistoryDamaged
from reverie.storage.history.purge import HistoryPurge, Rename, Replace, finish_purge, purge_history
from reverie.storage.history.state import STATE_FILE, FolderState, SeenFile, Staged, flush_where_possible, see_file
from reverie.storage.history.versions import PACK_ABOVE, FileChange, History, Version, VersionInfo
from reverie.storage.locks import exclusive

HAND = "hand"
_LOCK = "reverie.lock"
PathFor = Callable[[str], Path]
"""Returns the real path of a relative name inside the folder; raises a `ReverieError` to refuse it."""

Follow = Callable[[Mapping[str, bytes], Callable[[str], bytes | None]], Mapping[str, bytes]]
"""Returns files that must follow changes of others. It gets what the changed files were, and reads what files are."""


class ChangedOnDisk(ReverieError):
    """Other programs changed files between reading and landing; nothing was written. `names` lists the files."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"{', '.join(names)}: changed by somebody else in the meantime; nothing was written.")
        self.names = tuple(names)


def history_place(root: Path) -> Path:
    """Returns where the history of a folder is: next to it, or hidden inside. It depends on the folder alone."""
    inside = root / ".reverie" / "history.git"
    beside = root.with_name(f"{root.name}-history.git")
    if (inside / "HEAD").exists():
        return inside
    if (beside / "HEAD").exists():
        return beside
    # On a mounted volume, only what is inside it is kept: a folder next to it may be gone tomorrow.
    above = next(folder for folder in root.parents if folder.exists())
    if os.path.ismount(root) or _is_foreign(beside) or not os.access(above, os.W_OK | os.X_OK):
        return inside
    return beside


def _is_foreign(place: Path) -> bool:
    """Whether the place holds something that is not ours. A history that another process is creating is ours."""
    try:  # In this order: the lock is the first file of a history, so it exists whenever anything of ours does.
        return any(place.iterdir()) and not (place / _LOCK).exists()
    except FileNotFoundError:
        return False
    except OSError:
        return True


class VersionedFolder:
    """A folder and its history. Opening changes nothing; `lock` creates what is missing."""

    def __init__(
        self,
        root: Path,
        git_dir: Path,
        path_for: PathFor,
        *,
        lock_timeout_s: float = 30.0,
        pack_above: int = PACK_ABOVE,
        follow: Follow | None = None,
    ) -> None:
        self.root = root
        self.follow = follow
        self.history = History(git_dir, pack_above=pack_above)
        self.path_for = path_for
        self._timeout_s = lock_timeout_s
        self.state = FolderState(git_dir / STATE_FILE)
        self._journal = git_dir / "reverie-journal.json"

    @property
    def unfinished(self) -> bool:
        """Whether a change was interrupted and waits for the next `lock` (or is landing right now)."""
        return self._journal.exists()

    @contextmanager
    def lock(self, found: VersionInfo | None = None) -> Generator[LockedFolder]:
        """Locks the folder, finishes interrupted changes, and records changes by others (as `found` says)."""
        git_dir = self.history.git_dir
        make_private_dir(self.root)
        make_private_dir(git_dir)
        with exclusive(git_dir / _LOCK, timeout_s=self._timeout_s, what="the memory directory"):
            self.history.create()
            self.history.sweep()
            finish_purge(self.history)
            self._recover()
            held = LockedFolder(self)
            held.absorb(found)
            yield held
            self.history.pack_if_many()

    def _recover(self) -> None:
        try:
            note: Any = load_json(read_regular_text(self._journal))
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            note = {}
        version = note.get("version")
        if version and version != self.history.head() and note.get("parent") == self.history.head():
            changes = [FileChange(*row) for row in cast(list[Any], note["files"])]
            with suppress(HistoryDamaged):  # then the files on disk count, as found
                for change in changes:
                    self._finish(change)
                self.history.move_branch(version)
        self._forget_journal()

    def _finish(self, change: FileChange) -> None:
        try:
            path = self.path_for(change.name)
        except StorageError:
            raise
        except ReverieError:
            return  # the folder has another shape now: leave it unchanged
        now = _content(path)
        if now == change.after or now != change.before:
            return
        if change.after is None:
            _remove(path)
        else:
            make_private_dir(path.parent)
            write_atomic(path, self.history.read(change.after))

    def _forget_journal(self) -> None:
        try:
            self._journal.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, self._journal, "remove") from error

    def land(self, version: Version, changes: Sequence[FileChange], contents: Mapping[str, bytes]) -> dict[str, Path]:
        """Writes a prepared version into the folder, in the order of `changes`, and into the log."""
        paths = {change.name: self.path_for(change.name) for change in changes}
        staged: dict[str, Staged] = {}
        branch: Staged | None = None
        try:
            for change in changes:
                if change.after is not None:
                    staged[change.name] = Staged(paths[change.name], contents[change.name])
            branch = Staged(self.history.branch_file, f"{version.id}\n".encode())
            rows = [[change.name, change.before, change.after] for change in changes]
            write_atomic(
                self._journal, json.dumps({"version": version.id, "parent": version.parent, "files": rows}).encode()
            )
            self._land_files(changes, paths, staged)
            branch.land()
        finally:
            for one in (*staged.values(), *([branch] if branch else [])):
                one.discard()
        flush_where_possible(self.history.branch_file.parent)
        with suppress(StorageError):  # the change is complete; a journal that stays is recognised as done
            self._forget_journal()
        return paths

    def _land_files(self, changes: Sequence[FileChange], paths: Mapping[str, Path], staged: dict[str, Staged]) -> None:
        landed: list[FileChange] = []
        try:
            for change in changes:
                # Check again before the rename: a program without our lock may have written just now.
                now = _content(paths[change.name])
                if now == change.after:
                    continue
                if now != change.before:
                    contents = ((one, _content(paths[one.name])) for one in changes)
                    raise ChangedOnDisk([one.name for one, now in contents if now not in (one.before, one.after)])
                if change.after is None:
                    _remove(paths[change.name])
                else:
                    staged[change.name].land()
                landed.append(change)
            for folder in {path.parent for path in paths.values()}:
                flush_where_possible(folder)
        except BaseException:
            self._take_back(landed, paths)
            raise

    def _take_back(self, landed: Sequence[FileChange], paths: Mapping[str, Path]) -> None:
        """Restores the old content. If the disk refuses, the journal stays and the next `lock` goes on."""
        with suppress(StorageError):
            for change in reversed(landed):
                path = paths[change.name]
                if _content(path) != change.after:
                    continue
                if change.before is None:
                    _remove(path)
                else:
                    write_atomic(path, self.history.read(change.before))
            self._forget_journal()


class LockedFolder:
    """The folder while its lock is held. `files` maps each file to the name of its content."""

    def __init__(self, folder: VersionedFolder) -> None:
        self._folder = folder
        self._history = folder.history
        self.head = self._history.head()
        self.files: dict[str, str] = {}
        self.absorbed: Version | None = None
        """The version that recorded changes by others just now, if there were any."""
        self._seen: dict[str, SeenFile] = {}
        self._began = 0

    def absorb(self, info: VersionInfo | None = None) -> Version | None:
        """Records all changes that others made on disk since the newest version as one version."""
        known = self._history.files(self.head)
        changes = self._look(known)
        if self._follow(changes):
            changes = self._look(known)
        if not changes:
            return None
        contents: dict[str, bytes] = {}
        for change in changes:
            if change.after is not None:
                data = self._on_disk(change.name)
                if data is not None and blob_id(data) == change.after:
                    contents[change.name] = data
                else:  # changed again during the look: the next one sees it
                    self._revert_view(change)
        changes = [change for change in changes if change.after is None or change.name in contents]
        if changes:
            version = self._history.prepare(
                self.head, self.files, info or _found_info(self.head, len(changes)), contents, tuple(changes)
            )
            self._history.move_branch(version.id)
            self.head, self.absorbed = version.id, version
        self._folder.state.save(self._seen, self._began)
        return self.absorbed

    def _look(self, known: Mapping[str, str]) -> list[FileChange]:
        self._seen, self._began = self._folder.state.look(self._folder.root, known)
        self.files = {name: one.content for name, one in self._seen.items()}
        return _differences(known, self.files)

    def _follow(self, changes: Sequence[FileChange]) -> bool:
        """Writes what must follow changes of others, so that it becomes a part of their version."""
        was = {one.name: self._history.read(one.before) for one in changes if one.before and one.after}
        follow = self._folder.follow
        followed = follow(was, self.read) if was and follow else dict[str, bytes]()
        wrote = False
        for name, data in followed.items():
            with suppress(ReverieError):  # what cannot be written stays as it was found
                path, now = self._folder.path_for(name), self.files.get(name)
                if blob_id(data) != now == _content(path):
                    write_atomic(path, data)
                    wrote = True
        return wrote

    def read(self, name: str) -> bytes | None:
        """Returns a file's content as it was when the lock was taken; None if it does not exist."""
        content = self.files.get(name)
        if content is None:
            return None
        data = self._on_disk(name)
        return data if data is not None and blob_id(data) == content else self._history.read(content)

    def commit(self, writes: Mapping[str, bytes | None], info: VersionInfo) -> Version | None:
        """Makes `writes` one version (None removes a file). Raises `ChangedOnDisk` or StorageError, with no change."""
        after = dict(self.files)
        changes: list[FileChange] = []
        contents: dict[str, bytes] = {}
        for name, data in writes.items():
            before, content = self.files.get(name), None if data is None else blob_id(data)
            if before == content:
                continue
            changes.append(FileChange(name, before, content))
            if data is None:
                del after[name]
            else:
                after[name] = blob_id(data)
                contents[name] = data
        if not changes:
            return None
        version = self._history.prepare(self.head, after, info, contents, tuple(changes))
        paths = self._folder.land(version, changes, contents)
        self.head, self.files = version.id, after
        for change in changes:
            self._seen.pop(change.name, None)
            if change.after is not None:
                with suppress(OSError):
                    self._seen[change.name] = see_file(paths[change.name], change.after)
        self._folder.state.save(self._seen, self._began)
        return version

    def purge(self, replace: Replace, rename: Rename = str) -> HistoryPurge:
        """Removes a text from every version. The files themselves must be without it already (by `commit`)."""
        report = purge_history(self._history, replace, rename)
        self.head = self._history.head()
        return report

    def _on_disk(self, name: str) -> bytes | None:
        try:
            return read_regular(self._folder.root / name)
        except OSError:
            return None

    def _revert_view(self, change: FileChange) -> None:
        self._seen.pop(change.name, None)
        if change.before is None:
            self.files.pop(change.name, None)
        else:
            self.files[change.name] = change.before


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[FileChange]:
    names = sorted(before.keys() | after.keys())
    return [
        FileChange(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    ]


def _found_info(head: str | None, count: int) -> VersionInfo:
    if head is None:
        return VersionInfo(HAND, "They existed before there was a history.", subject=f"Begin with {count} files")
    return VersionInfo(HAND, "Changed with an editor or by another program; found at the next use.")


def _content(path: Path) -> str | None:
    try:
        return blob_id(read_regular(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path, "read") from error


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, path, "remove") from error
