"""Purges what a team shares through a git remote: the newest files there, and our clone.

Only the owner of the remote can rewrite its history, so that is reported as left. Nothing here touches the memory.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from reverie.errors import ReverieError
from reverie.memory.sharing.team_git import TeamCheckout
from reverie.memory.upkeep.purge import PurgedPlace, PurgeReport, purge_files
from reverie.memory.upkeep.purge_forms import Forms, Wanted
from reverie.storage.atomic import storage_error
from reverie.storage.locks import exclusive

REMOTE = "remote"
"""The kind of a place that is the history of a git remote."""


def purge_remote(wanted: Wanted, checkout: TeamCheckout, keep: Path, *, dry_run: bool) -> PurgeReport:
    """Looks in our clone, all versions; unless it is a dry run, sends cleaned files and removes the clone."""
    stored = checkout.stored()
    forms = Forms(wanted.met_in(stored))
    found = forms.count(stored)
    place = (PurgedPlace(REMOTE, checkout.address, found),) if found else ()
    if dry_run or not found:
        return PurgeReport(dry_run, place)
    with exclusive(keep / "lock", timeout_s=30, what="the team's memory"):
        try:
            checkout.fetch()
            purge_files(checkout.folder, forms)
            checkout.publish()
        except ReverieError:
            pass  # it is reported as left in any case, and no sync brings it back
        try:
            shutil.rmtree(checkout.folder)
        except OSError as error:
            raise storage_error(error, checkout.folder, "remove") from error
    return PurgeReport(False, place, left=place)
