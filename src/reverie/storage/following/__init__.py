"""Follows the session files of other agents: copies them into our home and keeps the copies up to date."""

from __future__ import annotations

from reverie.storage.following.follower import Followed, Follower, Outcome, followed_copies
from reverie.storage.following.importing import import_file, session_files
from reverie.storage.following.sources import Sources, sources_of

__all__ = [
    "Followed",
    "Follower",
    "Outcome",
    "Sources",
    "followed_copies",
    "import_file",
    "session_files",
    "sources_of",
]
