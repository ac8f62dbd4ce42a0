"""The page about money."""

from __future__ import annotations

from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    return {}


PAGES = (Page("/money", "money", "Money", read, section="money"),)
