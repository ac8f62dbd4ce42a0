"""The team's part of the memory, `<memory>/team/`, shared through a folder or a git remote, file by file. Both sides
are compared with the last common state: a change on one side goes to the other, a changed index is merged line by line,
and of a topic file that both changed both versions stay. Arrivals pass the write gate and can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from reverie.errors import ReverieError, StorageError, UserError
from reverie.memory.changes import ABSENT, Change, ChangedUnderneath, Gate, ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.index import entry_of, with_entry
from reverie.memory.sharing.shared_files import SHARED_LOCK, Files, read_files, write_files
from reverie.memory.sharing.team_git import TeamCheckout
from reverie.memory.taxonomy import INDEX, TEAM, is_index
from reverie.memory.topic_file import TopicFile, decode, encode
from reverie.memory.upkeep.purged_record import RECORD_NAME, PurgedRecord
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.storage.atomic import make_private_dir
from reverie.storage.history.objects import blob_id
from reverie.storage.locks import exclusive

_TRIES = 5
_LOCK_S = 30.0
_INFO = WriteInfo(Writer.IMPORT, "shared by the team")


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did; names are relative to the team's folder."""

    received: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    """Indexes that both sides had changed."""
    kept_both: tuple[str, ...] = ()
    """Topic files that both sides had changed: theirs keeps the name, ours gets another."""
    held_back: tuple[str, ...] = ()
    """Files that were not sent or not received, each with the reason."""

    @property
    def changed(self) -> bool:
        return bool(self.received or self.sent)

    @property
    def summary(self) -> str:
        """One line: how many files went which way, and which were held back and why."""
        counts = (
            (len(self.received), "received"),
            (len(self.sent), "sent"),
            (len(self.merged), "merged"),
            (len(self.kept_both), "kept in both versions"),
        )
        parts = [f"{count} {what}" for count, what in counts if count]
        held = [f"held back {one}" for one in self.held_back]
        return "; ".join([", ".join(parts) or "nothing changed", *held])


@dataclass(frozen=True, slots=True)
class Merge:
    """The changes for each side; None removes a file."""

    here: dict[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    there: dict[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    merged: tuple[str, ...] = ()
    kept_both: tuple[str, ...] = ()


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
                one = _Round(memory, given.folder, keep / "base", gate, mode=0o664, known=known)
                report = one.run()
                one.remember()
                return report
        checkout = TeamCheckout(given, keep / "checkout", settings.env)
        for _ in range(_TRIES):
            known = checkout.fetch()
            one = _Round(memory, checkout.folder, keep / "base", gate, mode=0o600, known=known)
            report = one.run()
            if checkout.publish():
                one.remember()
                return report
        raise StorageError("The team's memory changes faster than it can be sent; the next sync tries again.")


def three_way(base: Files, ours: Files, theirs: Files) -> Merge:
    """The changes that make both sides the same and lose nobody's change. Pure."""
    merge = Merge()
    merged, kept_both = list[str](), list[str]()
    for name in sorted({*base, *ours, *theirs}):
        before, our, their = base.get(name), ours.get(name), theirs.get(name)
        if our == their:
            continue
        if our == before:
            merge.here[name] = their
        elif their == before:
            merge.there[name] = our
        elif our is None:  # a change wins over a removal, so that no new text is lost
            merge.here[name] = their
        elif their is None:
            merge.there[name] = our
        elif is_index(name):
            both = encode(_merge_lines(decode(before or b""), decode(our), decode(their)))
            merged.append(name)
            if both != our:
                merge.here[name] = both
            if both != their:
                merge.there[name] = both
        else:
            copy = _free_name(name, {*base, *ours, *theirs, *merge.here})
            kept_both.append(name)
            merge.here[name] = their
            merge.here[copy] = merge.there[copy] = our
    if any(INDEX in side for side in (base, ours, theirs)):
        _list_survivors(merge, ours, theirs)
    return Merge(merge.here, merge.there, tuple(merged), tuple(kept_both))


def _list_survivors(merge: Merge, ours: Files, theirs: Files) -> None:
    """Adds the index line of a file that a removal did not win over, or that is a second version."""
    after = _apply(ours, merge.here)
    index = before = decode(after.get(INDEX, b""))
    for name, data in {**merge.there, **merge.here}.items():
        if data is not None and not is_index(name) and entry_of(index, name) is None:
            topic = TopicFile.parse(data)
            index = with_entry(index, name, topic.name or name.removesuffix(".md"), topic.description)
    if index != before:
        for changes, side in ((merge.here, ours), (merge.there, theirs)):
            changes.pop(INDEX, None)
            if side.get(INDEX) != encode(index):
                changes[INDEX] = encode(index)


def _merge_lines(base: str, ours: str, theirs: str) -> str:
    """Their lines without those we removed, then the lines we added, in their order."""
    known, own, other = set(base.splitlines()), ours.splitlines(), theirs.splitlines()
    removed, there = known - set(own), set(other)
    kept = [line for line in other if line not in removed or not line.strip()]
    added = [line for line in own if line.strip() and line not in known and line not in there]
    return "".join(f"{line}\n" for line in (*kept, *added))


def _free_name(name: str, taken: set[str]) -> str:
    stem = name.removesuffix(".md")
    return next(made for number in range(1, 10_000) if (made := f"{stem}_other_version_{number}.md") not in taken)


class _Round:
    """One comparison of our folder with the shared one."""

    def __init__(
        self, memory: MemoryDirectory, shared: Path, base: Path, gate: Gate, *, mode: int, known: bool
    ) -> None:
        self._memory = memory
        self._shared = shared
        self._base_folder = base
        self._gate = gate
        self._mode = mode
        self._purged = PurgedRecord(base.parent.parent / RECORD_NAME)
        self._held_back: list[str] = []
        self._base: Files = read_files(base)[0]
        self._common: dict[str, bytes] = {}
        self._seen: dict[str, str] = {}
        if self._base and not known:
            raise StorageError(
                f"The team's shared memory is missing, although it held {len(self._base)} files at the last sync: "
                f"check that the folder is mounted, or that the address is right. To start again, remove {base}."
            )

    def run(self) -> SyncReport:
        for _ in range(_TRIES):
            try:
                return self._once()
            except ChangedUnderneath:
                continue  # somebody saves right now
        raise StorageError("The team's folder keeps changing; the next sync tries again.")

    def remember(self) -> None:
        """Stores the present common state for the next sync."""
        make_private_dir(self._base_folder)
        gone = {name: None for name in self._base if name not in self._common}
        write_files(self._base_folder, {**self._common, **gone}, mode=0o600)

    def _once(self) -> SyncReport:
        self._held_back = []
        ours = self._ours()
        # If our folder was emptied or moved away, it must not empty everybody's: then there is no common state.
        has_own = bool(ours) or self._memory.exists(f"{TEAM}/{INDEX}")
        base: Files = self._base if has_own else dict[str, bytes]()
        theirs, odd = read_files(self._shared)
        self._held_back += odd
        merge = three_way(base, ours, theirs)
        taken = self._take(merge.here)
        sent = {name: data for name, data in merge.there.items() if self._may_leave(name, data, theirs.get(name))}
        write_files(self._shared, sent, mode=self._mode)
        self._common = _common_files(_apply(ours, taken), _apply(theirs, sent), base)
        return SyncReport(
            received=tuple(taken),
            sent=tuple(sent),
            merged=merge.merged,
            kept_both=merge.kept_both,
            held_back=tuple(self._held_back),
        )

    def _ours(self) -> Files:
        prefix = f"{TEAM}/"
        names = [name for name in self._memory.names() if name.startswith(prefix)]
        names += [f"{prefix}{INDEX}"] if self._memory.exists(f"{prefix}{INDEX}") else []
        contents = {name.removeprefix(prefix): self._memory.read(name).content for name in names}
        self._seen = {name: blob_id(data) for name, data in contents.items()}
        return {name: data for name, data in contents.items() if data.strip()}

    def _take(self, arrivals: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
        """Writes arrivals into the memory: all as one version or, if one is refused, one by one without it."""
        changes = {
            name: Change(f"{TEAM}/{name}", None if data is None else decode(data), self._seen.get(name, ABSENT))
            for name, data in arrivals.items()
            if data is None or self._is_welcome(name, data)
        }
        if not changes:
            return {}
        try:
            self._memory.transaction(list(changes.values()), _INFO)
        except ChangedUnderneath:
            raise
        except ReverieError:
            return {name: arrivals[name] for name, change in changes.items() if self._takes(change)}
        return {name: arrivals[name] for name in changes}

    def _is_welcome(self, name: str, data: bytes) -> bool:
        """False for a file with a text that was purged here: a sync must not bring it back."""
        if not self._purged.holds(f"{name} {decode(data)}"):
            return True
        self._held_back.append(
            f"{TEAM}/{name} was not received: it holds a text that you purged; have it removed where it is shared"
        )
        return False

    def _takes(self, change: Change) -> bool:
        try:
            self._memory.transaction([change], _INFO)
        except ReverieError as error:
            self._held_back.append(f"{change.name} was not received: {error}")
            return False
        return True

    def _may_leave(self, name: str, data: bytes | None, there: bytes | None) -> bool:
        """Judges a file for the team like a new memory: an editor may have put a secret into it."""
        if data is None:
            return True
        before = None if there is None else decode(there)
        try:
            self._gate(ProposedWrite(f"{TEAM}/{name}", decode(data), before, Writer.IMPORT))
        except ReverieError as error:
            self._held_back.append(f"{TEAM}/{name} was not sent: {error}")
            return False
        return True


def _apply(files: Files, changes: Mapping[str, bytes | None]) -> Files:
    after = {**files, **changes}
    return {name: data for name, data in after.items() if data is not None}


def _common_files(ours: Files, theirs: Files, base: Files) -> dict[str, bytes]:
    """The files both sides agree on; for a file that was held back, the last common version."""
    common: dict[str, bytes] = {}
    for name in {*ours, *theirs, *base}:
        agreed = ours.get(name) if ours.get(name) == theirs.get(name) else base.get(name)
        if agreed is not None:
            common[name] = agreed
    return common
