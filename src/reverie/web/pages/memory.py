"""The page about memory."""

from __future__ import annotations

from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    return {}


PAGES = (Page("/memory", "memory", "Memory", read, section="memory"),)
