"""Follows the session files of other agents: copies them into our home and keeps the copies up to date."""

from __future__ import annotations

from reverie.storage.following.copying import CopyRefused, copy_session
from reverie.storage.following.follower import Followed, Follower, Outcome
from reverie.storage.following.sources import Sources

__all__ = ["CopyRefused", "Followed", "Follower", "Outcome", "Sources", "copy_session"]
