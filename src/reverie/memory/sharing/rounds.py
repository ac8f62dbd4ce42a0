"""One round of a sync: a part of the memory directory is compared with a shared copy, and both take what they lack. The
copy is a folder, a git checkout or a store of a server. Arrivals pass the write gate and can be undone; what both sides
changed stays in two versions, and a question waits in the inbox."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from reverie.errors import ReverieError, StorageError
from reverie.memory.changes import ABSENT, Change, ChangedUnderneath, Gate, ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.sharing.merging import Merge, apply, common_files, three_way
from reverie.memory.sharing.questions import ask_which
from reverie.memory.sharing.shared_files import Files
from reverie.memory.taxonomy import INDEX, is_topic
from reverie.memory.topic_file import decode
from reverie.memory.upkeep.purged_record import PurgedRecord
from reverie.quick import dataclass
from reverie.storage.history.objects import blob_id

TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did."""

    received: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    """Indexes that both sides had changed."""
    kept_both: tuple[str, ...] = ()
    """Topic files that both sides had changed: theirs keeps the name, ours gets another."""
    held_back: tuple[str, ...] = ()
    """Files that were not sent or not received, each with the reason."""

    def __add__(self, other: SyncReport) -> SyncReport:
        """Both together, each name once."""

        def join(one: tuple[str, ...], two: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(dict.fromkeys((*one, *two)))

        return SyncReport(
            join(self.received, other.received),
            join(self.sent, other.sent),
            join(self.merged, other.merged),
            join(self.kept_both, other.kept_both),
            join(self.held_back, other.held_back),
        )

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
class Part:
    """Which files of the memory directory a round is about."""

    prefix: str
    """The folder, with a slash at its end; empty for the directory itself."""
    info: WriteInfo
    """What the version of an arrival says."""
    without: tuple[str, ...] = ()
    """Folders in it that belong to another part, relative to it, each with a slash at its end."""
    has_index: bool = True
    """Whether the index is shared; if not, its lines follow the files on each machine."""

    def holds(self, name: str) -> bool:
        """Whether a file, named relative to the part, belongs to it."""
        is_index = name == INDEX and self.has_index
        return (is_index or is_topic(f"{self.prefix}{name}")) and not name.startswith(self.without)


class Side(Protocol):
    """The shared copy."""

    def read(self, ours: Files) -> tuple[Files, list[str]]:
        """Its files, and a sentence for each one that was left out. `ours` saves fetching a text that we have."""
        ...

    def write(self, changes: Mapping[str, bytes | None], theirs: Files) -> Collection[str]:
        """Changes it, and returns the names that it took; the others are tried in the next round."""
        ...


class CommonState(Protocol):
    """The last state that both sides had."""

    def read(self, ours: Files, theirs: Files) -> Files: ...

    def write(self, common: Files) -> None: ...


class Round:
    """One comparison. `may_send` returns why a file may not be sent by itself, or an empty text."""

    def __init__(
        self, memory: MemoryDirectory, part: Part, side: Side, state: CommonState, gate: Gate, purged: Path
    ) -> None:
        self._memory = memory
        self._part = part
        self._side = side
        self._state = state
        self._gate = gate
        self._purged = PurgedRecord(purged)
        self._held_back: list[str] = []
        self._common: Files = {}
        self._seen: dict[str, str] = {}
        self.is_complete = True
        """Whether the other side took everything that was sent."""

    def run(self, *, dry_run: bool = False) -> SyncReport:
        """Compares and changes both sides; a dry run changes nothing."""
        for _ in range(TRIES):
            try:
                return self._once(dry_run)
            except ChangedUnderneath:
                continue  # somebody saves right now
        raise StorageError("The memory directory keeps changing; the next sync tries again.")

    def remember(self) -> None:
        """Stores the present common state for the next sync."""
        self._state.write(self._common)

    def is_asked_for(self, name: str) -> bool:
        """Whether the user shared or unshared this file by a command."""
        return False

    def why_not_sent(self, name: str, data: bytes | None) -> str | None:
        """Why a change is not sent by itself, as the end of a sentence; None: it is sent."""
        return None

    def _once(self, dry_run: bool) -> SyncReport:
        self._held_back = []
        ours = self._ours()
        theirs, odd = self._side.read(ours)
        self._held_back += odd
        base = self._state.read(ours, theirs)
        if not ours and not self._memory.exists(f"{self._part.prefix}{INDEX}"):
            # Our folder was emptied or moved away. It must not empty everybody's, except for what the user asked for.
            base = {name: data for name, data in base.items() if self.is_asked_for(name)}
        merge = three_way(base, ours, theirs)
        if dry_run:
            sent = {name for name, data in merge.there.items() if self._may_leave(name, data, theirs.get(name))}
            return self._report(merge, merge.here, sent)
        self._ask(merge)
        taken = self._take(merge.here)
        leaving = {name: data for name, data in merge.there.items() if self._may_leave(name, data, theirs.get(name))}
        arrived = set(self._side.write(leaving, theirs)) if leaving else set[str]()
        self.is_complete = arrived == set(leaving)
        sent = {name: data for name, data in leaving.items() if name in arrived}
        self._common = common_files(apply(ours, taken), apply(theirs, sent), base)
        return self._report(merge, taken, sent)

    def _report(self, merge: Merge, taken: Collection[str], sent: Collection[str]) -> SyncReport:
        return SyncReport(
            received=tuple(taken),
            sent=tuple(name for name in merge.there if name in sent),
            merged=merge.merged,
            kept_both=tuple(merge.kept_both),
            held_back=tuple(self._held_back),
        )

    def _ours(self) -> Files:
        prefix = self._part.prefix
        inside = [name.removeprefix(prefix) for name in self._memory.names() if name.startswith(prefix)]
        inside += [INDEX] if self._memory.exists(f"{prefix}{INDEX}") else []
        contents = {name: self._memory.read(f"{prefix}{name}").content for name in inside if self._part.holds(name)}
        self._seen = {name: blob_id(data) for name, data in contents.items()}
        return {name: data for name, data in contents.items() if data.strip()}

    def _ask(self, merge: Merge) -> None:
        """Asks the user which version is right, before anything changes: a question too many is better than none."""
        for name, copy in merge.kept_both.items():
            own, other = merge.here[copy], merge.here[name]
            assert own is not None and other is not None, "both sides changed it"
            problem = ask_which(self._memory, self._part.prefix + name, self._part.prefix + copy, own, other)
            if problem:
                self._held_back.append(problem)

    def _take(self, arrivals: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
        """Writes arrivals into the memory: all as one version or, if one is refused, one by one without it."""
        changes = {
            name: Change(
                f"{self._part.prefix}{name}", None if data is None else decode(data), self._seen.get(name, ABSENT)
            )
            for name, data in arrivals.items()
            if data is None or self._is_welcome(name, data)
        }
        if not changes:
            return {}
        try:
            self._memory.transaction(list(changes.values()), self._part.info)
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
            f"{self._part.prefix}{name} was not received: it holds a text that you purged; have it removed where it "
            "is shared"
        )
        return False

    def _takes(self, change: Change) -> bool:
        try:
            self._memory.transaction([change], self._part.info)
        except ReverieError as error:
            self._held_back.append(f"{change.name} was not received: {error}")
            return False
        return True

    def _may_leave(self, name: str, data: bytes | None, there: bytes | None) -> bool:
        """Judges a file for others like a new memory: an editor may have put a secret into it."""
        full = f"{self._part.prefix}{name}"
        why = self.why_not_sent(name, data)
        if why is not None:
            self._held_back += [f"{full} was not sent: {why}"] if why else []
            return False
        if data is None:
            return True
        before = None if there is None else decode(there)
        try:
            self._gate(ProposedWrite(full, decode(data), before, Writer.IMPORT))
        except ReverieError as error:
            self._held_back.append(f"{full} was not sent: {error}")
            return False
        return True


def in_folder(report: SyncReport, prefix: str) -> SyncReport:
    """The report with names relative to the memory directory; the sentences have them already."""

    def full(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{prefix}{name}" for name in names)

    return replace(
        report,
        received=full(report.received),
        sent=full(report.sent),
        merged=full(report.merged),
        kept_both=full(report.kept_both),
    )
