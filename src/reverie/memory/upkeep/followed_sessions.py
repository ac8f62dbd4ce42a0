"""Follows and imports recorded sessions without the texts that the user has purged. Call these from a program."""

from __future__ import annotations

from pathlib import Path

from reverie.memory.upkeep.purged_record import PurgedRecord
from reverie.paths import Places
from reverie.settings import Settings
from reverie.storage.following import Followed, Follower, import_file


def open_follower(settings: Settings) -> Follower:
    """Opens a follower for one pass, or for one file that grew."""
    return Follower(settings, PurgedRecord(Places.of(settings.places.home, settings).purged_record).clean)


def import_session(file: Path, places: Places) -> Followed:
    """Copies a session to the sessions of this folder, or what is new in it."""
    return import_file(file, places, clean=PurgedRecord(places.purged_record).clean)
