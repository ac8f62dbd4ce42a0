"""Makes a dream part of memory: one version with a reason per file, merged with what others changed meanwhile.

Every file passes the write gate. A file that cannot land (somebody changed the same lines, the gate refuses it) stays
as it is, and so do files whose content had moved there. The index then follows what really landed.
The user can accept or reject a waiting dream, and undo one that landed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reverie.errors import ReverieError, UserError
from reverie.layers.l6_dreaming.loss import LostStatement, loss
from reverie.layers.l6_dreaming.proposal import DreamRefused, Proposal, Proposals, ProposedChange
from reverie.memory.changes import ABSENT, Change, ChangedUnderneath, Evidence, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.index import entries, entry_of, linked_files, with_entry, without_entry
from reverie.memory.taxonomy import INDEX, TEAM, index_of, is_index, is_topic, pointer_of
from reverie.memory.topic_file import TopicFile, decode
from reverie.quick import dataclass
from reverie.storage.history.merge import merge
from reverie.storage.history.versions import Version

_RACES: Final = 5  # how often somebody else may write during the landing
_INDEXES: Final = (INDEX, f"{TEAM}/{INDEX}")


@dataclass(frozen=True, slots=True)
class LandingResult:
    """The result of a proposal. `version` is None if there was nothing left to do."""

    version: Version | None
    files: tuple[str, ...]
    left: Mapping[str, str]
    """Unchanged files, each with the reason."""
    merged: tuple[str, ...] = ()
    """Files that have somebody else's changes next to the dream's."""


def land(
    directory: MemoryDirectory, proposal: Proposal, info: WriteInfo, *, without: Mapping[str, str] | None = None
) -> LandingResult:
    """Lands what can land. Raises `DreamRefused` if the gate refuses everything, and errors of the disk. `without` are
    files that stay as they are, each with the reason."""
    left: dict[str, str] = dict(without or {})
    races = 0
    while True:
        plan = _Plan(directory, proposal, left)
        if not plan.changes:
            if left and set(proposal.files) <= set(left):
                why = [reason for name, reason in left.items() if name not in (without or {})]
                raise DreamRefused("Nothing of the dream could land.", next(iter(why or left.values())))
            return LandingResult(None, (), left)
        try:
            version = directory.transaction(plan.changes, info).version
        except ChangedUnderneath as error:
            races += 1
            if races > _RACES:
                raise DreamRefused(f"The memory directory is being changed all the time: {error}") from error
        except ReverieError as error:
            name = _find_refused(error)
            if name is None or name not in plan.pending:
                raise
            left[name] = str(error)
        else:
            topics = tuple(change.name for change in plan.changes if is_topic(change.name))
            return LandingResult(version, topics if version else (), left, tuple(plan.merged))


def _find_refused(error: ReverieError) -> str | None:
    from reverie.memory.gate.write_gate import Refused

    return error.refusal.name if isinstance(error, Refused) else None


class _Plan:
    """One try: which changes land on the current directory. Adds to `left` what does not."""

    def __init__(self, directory: MemoryDirectory, proposal: Proposal, left: dict[str, str]) -> None:
        self._directory = directory
        self._now: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        for name in [*directory.names(), *_INDEXES, *(change.name for change in proposal.changes)]:
            if name not in self._now and directory.exists(name):
                document = directory.read(name)
                self._now[name], self._digests[name] = document.text, document.digest
        self.merged: list[str] = []
        self.pending: dict[str, ProposedChange] = {}
        for change in proposal.changes:
            if change.name not in left and (settled := self._rebase(change, left)) is not None:
                self.pending[change.name] = settled
        self._keep_sources(proposal, left)
        self.changes = self._with_indexes(proposal, left)

    def _rebase(self, change: ProposedChange, left: dict[str, str]) -> ProposedChange | None:
        """Returns the change against the current file; None if there is nothing to do, or it may not be done."""
        now = self._now.get(change.name)
        if now == change.after:
            return None
        if now == change.before:
            return change
        theirs = "somebody else changed it meanwhile, so theirs stays"
        if now is None or change.after is None or change.before is None:
            left[change.name] = f"{change.name}: {theirs}"
            return None
        both = merge(change.before, change.after, now, both_insert=is_index(change.name))
        if both is None:
            left[change.name] = f"{change.name}: {theirs} (the same lines were touched)"
            return None
        self.merged.append(change.name)
        return replace(change, after=both) if both != now else None

    def _keep_sources(self, proposal: Proposal, left: dict[str, str]) -> None:
        """If a file could not land, what moved into it must stay where it was."""
        if not left:
            return
        planned = {(one.file, one.text) for one in self._loss({c.name: c for c in proposal.changes})}
        while True:
            lost = [one for one in self._loss(self.pending) if (one.file, one.text) not in planned]
            sources = {one.file for one in lost} & self.pending.keys()
            if not sources:
                return
            for name in sources:
                del self.pending[name]
                left[name] = f"{name}: kept, because its content was to go to a file that stays as it is"

    def _loss(self, changes: Mapping[str, ProposedChange]) -> tuple[LostStatement, ...]:
        after = dict(self._now)
        for change in changes.values():
            if change.after is None:
                after.pop(change.name, None)
            else:
                after[change.name] = change.after
        return loss(self._now, after).lost

    def _with_indexes(self, proposal: Proposal, left: Mapping[str, str]) -> list[Change]:
        after = {name: change.after for name, change in self.pending.items()}
        there = {name for name in {*self._now, *after} if after.get(name, self._now.get(name)) is not None}
        reasons = {name: change.reason for name, change in self.pending.items()}
        for index in _INDEXES if after or left else ():
            text = after.get(index, self._now.get(index)) or ""
            followed = self._follow_files(index, text, proposal, there)
            if followed != text:
                after[index] = followed
                reasons.setdefault(index, "the index follows the files")
        return [
            Change(name, text, self._digests.get(name, ABSENT), reasons.get(name, ""))
            for name, text in after.items()
            if text != self._now.get(name)
        ]

    def _follow_files(self, index: str, text: str, proposal: Proposal, there: set[str]) -> str:
        old = self._now.get(index, "")
        for file in linked_files(text) - linked_files(old):  # planned, then refused
            name = _below(index, file)
            if name not in there and not self._directory.exists(name):
                text = without_entry(text, file)
        for change in proposal.changes:
            name = change.name
            if not is_topic(name) or index_of(name) != index:
                continue
            pointer = pointer_of(name)
            if name not in there:
                text = without_entry(text, pointer)
            elif pointer not in linked_files(text):
                topic = TopicFile.parse(self.pending[name].after or "") if name in self.pending else None
                if topic is not None and change.before is None and entry_of(old, pointer) is None:
                    text = with_entry(text, pointer, topic.name or name.removesuffix(".md"), topic.description)
        for own in entries(old):  # listed and still there: it is missing by mistake
            name = _below(index, own.file)
            is_its = name in there and is_topic(name) and index_of(name) == index
            if is_its and own.file not in linked_files(text):
                text = with_entry(text, own.file, own.title, own.hook)
        return text


def _below(index: str, file: str) -> str:
    folder = index.rpartition("/")[0]
    return f"{folder}/{file}" if folder else file


_DREAM = re.compile(r"(?:Dream|Accepted dream) [0-9a-f]{8}\.")


def dream_info(proposal: Proposal, evidence: tuple[Evidence, ...] = ()) -> WriteInfo:
    """Returns the version info of a dream that landed by itself."""
    return WriteInfo(Writer.DREAM, f"Dream {proposal.id}.", session=proposal.session, evidence=evidence)


def accept(
    directory: MemoryDirectory,
    proposals: Proposals,
    spec: str = "",
    *,
    only: Collection[str] | None = None,
    keep_rest: bool = False,
) -> tuple[Proposal, LandingResult]:
    """Lands a waiting proposal, merged with later changes, and removes it. It counts as the user's own change.

    `only`: the files to accept. The index follows them, and content that was to move into another file stays where it
    is. The rest is dropped, or waits on with `keep_rest`.
    """
    proposal = proposals.find(spec)
    names = [change.name for change in proposal.changes]
    chosen = set(names) if only is None else {_find_name(one, names) for one in only}
    if not chosen:
        raise UserError(f"Choose at least one file of dream {proposal.id}: {', '.join(names)}.")
    without = {name: f"{name}: not accepted" for name in names if name not in chosen}
    info = WriteInfo(Writer.USER, f"Accepted dream {proposal.id}.", session=proposal.session)
    try:
        landed = land(directory, proposal, info, without=without)
    except DreamRefused as error:  # the user asked, and may read the quotes
        raise DreamRefused(f"{error} {error.among}".rstrip()) from error
    rest = tuple(change for change in proposal.changes if change.name in landed.left) if keep_rest and without else ()
    if any(not is_index(change.name) or change.name in without for change in rest):
        proposals.add(replace(proposal, changes=rest))
    else:
        proposals.remove(proposal)
    return proposal, landed


def _find_name(given: str, names: Sequence[str]) -> str:
    """The file of a proposal with this name, with or without `.md`."""
    found = next((name for name in names if given in (name, name.removesuffix(".md"))), None)
    if found is None:
        raise UserError(f"The dream does not change {given[:80]!r}; it changes {', '.join(names)}.")
    return found


def reject(proposals: Proposals, spec: str = "") -> Proposal:
    """Drops a waiting proposal."""
    proposal = proposals.find(spec)
    proposals.remove(proposal)
    return proposal


def dreams(directory: MemoryDirectory) -> Iterator[Version]:
    """Returns versions that dreams have made, newest first."""
    return (version for version in directory.log() if is_dream(version))


def is_dream(version: Version) -> bool:
    return not version.info.reverses and bool(_DREAM.match(version.info.why))


def changes_of(directory: MemoryDirectory, version: Version) -> Iterator[ProposedChange]:
    """What a version changed, file by file with its reason."""
    history = directory.history
    for change in version.files:
        before = None if change.before is None else decode(history.read(change.before))
        after = None if change.after is None else decode(history.read(change.after))
        yield ProposedChange(change.name, before, after, version.info.reasons.get(change.name, ""))


def undo(directory: MemoryDirectory, spec: str = "") -> tuple[Version, Version | None]:
    """Takes back a landed dream: the named one, else the last that was not taken back yet."""
    if spec:
        version = directory.history.find(spec)
        if not is_dream(version):
            raise UserError(f"{version.short} is not a dream; `reverie memory undo {version.short}` takes it back.")
    else:
        taken_back = {version.info.reverses for version in directory.log() if version.info.reverses}
        found = next((version for version in dreams(directory) if version.id not in taken_back), None)
        if found is None:
            raise UserError("No dream has changed anything that was not taken back already.")
        version = found
    return version, directory.undo(version.id, WriteInfo(Writer.USER, f"Undid dream {version.short}."))
