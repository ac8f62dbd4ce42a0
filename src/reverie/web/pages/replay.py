"""The page about replay."""

from __future__ import annotations

from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    return {}


PAGES = (Page("/replay", "replay", "Replay", read, section="replay"),)
