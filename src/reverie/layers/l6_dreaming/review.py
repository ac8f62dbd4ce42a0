"""What the user does with a dream afterwards: accept or reject a waiting one, undo one that landed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.errors import UserError
from reverie.layers.l6_dreaming.landing import LandingResult, land
from reverie.layers.l6_dreaming.proposal import DreamRefused, Proposal, Proposals
from reverie.memory.changes import Evidence, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.storage.history.versions import Version

_DREAM = re.compile(r"(?:Dream|Accepted dream) [0-9a-f]{8}\.")


def dream_info(proposal: Proposal, evidence: tuple[Evidence, ...] = ()) -> WriteInfo:
    """Returns the version info of a dream that landed by itself."""
    return WriteInfo(Writer.DREAM, f"Dream {proposal.id}.", session=proposal.session, evidence=evidence)


def accept(directory: MemoryDirectory, proposals: Proposals, spec: str = "") -> tuple[Proposal, LandingResult]:
    """Lands a waiting proposal, merged with later changes, and removes it. It counts as the user's own change."""
    proposal = proposals.find(spec)
    info = WriteInfo(Writer.USER, f"Accepted dream {proposal.id}.", session=proposal.session)
    try:
        landed = land(directory, proposal, info)
    except DreamRefused as error:  # the user asked, and may read the quotes
        raise DreamRefused(f"{error} {error.among}".rstrip()) from error
    proposals.remove(proposal)
    return proposal, landed


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
