"""The team's part of the memory, `<memory>/team/`, shared through a folder or a git remote, file by file. The rounds
are those of `rounds.py`; here is what a folder and a git checkout need around them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from reverie.errors import StorageError, UserError
from reverie.memory.changes import Gate, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.sharing.rounds import TRIES, Part, Round, SyncReport
from reverie.memory.sharing.shared_files import SHARED_LOCK, Files, read_files, write_files
from reverie.memory.sharing.team_git import TeamCheckout
from reverie.memory.taxonomy import TEAM
from reverie.memory.upkeep.purged_record import RECORD_NAME
from reverie.settings import Settings
from reverie.storage.atomic import make_private_dir
from reverie.storage.locks import exclusive

_LOCK_S = 30.0
_PART = Part(f"{TEAM}/", WriteInfo(Writer.IMPORT, "shared by the team"))


def sync(memory: MemoryDirectory, settings: Settings, keep: Path, gate: Gate) -> SyncReport:
    """Brings the team's folder and its shared copy to the same state. Blocks: run it in a thread. `keep`
    (`Places.team_sync`) stores the last common state. Raises a `ReverieError` if it fails; then nothing is lost, and
    the next sync continues."""
    given = settings.team
    if given.sharing == "none":
        return SyncReport()
    make_private_dir(keep)
    with exclusive(keep / "lock", timeout_s=_LOCK_S, what="the team's memory"):
        if given.sharing == "folder":
            if given.folder is None:
                raise UserError("`team.sharing` is folder, but `team.folder` is not set; name the shared folder.")
            if not given.folder.is_dir():
                raise StorageError(f"The shared folder {given.folder} is missing; mount it, or correct `team.folder`.")
            lock = given.folder / SHARED_LOCK
            known = lock.exists()
            with exclusive(lock, timeout_s=_LOCK_S, what="the shared folder"):
                one = _open_round(memory, given.folder, keep / "base", gate, mode=0o664, known=known)
                report = one.run()
                one.remember()
                return report
        checkout = TeamCheckout(given, keep / "checkout", settings.env)
        for _ in range(TRIES):
            known = checkout.fetch()
            one = _open_round(memory, checkout.folder, keep / "base", gate, mode=0o600, known=known)
            report = one.run()
            if checkout.publish():
                one.remember()
                return report
        raise StorageError("The team's memory changes faster than it can be sent; the next sync tries again.")


class _SharedFolder:
    """The copy of the team: a folder, or the checkout of a git remote."""

    def __init__(self, folder: Path, mode: int) -> None:
        self._folder = folder
        self._mode = mode

    def read(self, ours: Files) -> tuple[Files, list[str]]:
        return read_files(self._folder)

    def write(self, changes: Mapping[str, bytes | None], theirs: Files) -> Collection[str]:
        write_files(self._folder, changes, mode=self._mode)
        return changes.keys()


class _BaseFolder:
    """The last common state as a folder of files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = read_files(folder)[0]

    def read(self, ours: Files, theirs: Files) -> Files:
        return self.files

    def write(self, common: Files) -> None:
        make_private_dir(self._folder)
        gone = {name: None for name in self.files if name not in common}
        write_files(self._folder, {**common, **gone}, mode=0o600)


def _open_round(memory: MemoryDirectory, shared: Path, base: Path, gate: Gate, *, mode: int, known: bool) -> Round:
    state = _BaseFolder(base)
    if state.files and not known:
        raise StorageError(
            f"The team's shared memory is missing, although it held {len(state.files)} files at the last sync: "
            f"check that the folder is mounted, or that the address is right. To start again, remove {base}."
        )
    return Round(memory, _PART, _SharedFolder(shared, mode), state, gate, base.parent.parent / RECORD_NAME)
