"""Purges a team's git remote: the newest files there, and our clone. Only the owner of the remote can rewrite its
history, so the report lists it as left."""

from __future__ import annotations

import shutil
from pathlib import Path

from reverie.errors import ReverieError
from reverie.memory.sharing.team_git import TeamCheckout
from reverie.memory.upkeep.purge import PurgedPlace, PurgeReport, purge_files
from reverie.memory.upkeep.purge_forms import PurgeTarget, SecretForms
from reverie.storage.atomic import storage_error
from reverie.storage.locks import exclusive

REMOTE = "remote"


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
            purge_files(checkout.folder, forms)
            checkout.publish()
        except ReverieError:
            pass  # the report lists it as left anyway, and no sync brings it back
        try:
            shutil.rmtree(checkout.folder)
        except OSError as error:
            raise storage_error(error, checkout.folder, "remove") from error
    return PurgeReport(False, place, left=place)
