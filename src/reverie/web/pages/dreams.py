"""The page about dreams."""

from __future__ import annotations

from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    return {}


PAGES = (Page("/dreams", "dreams", "Dreams", read, section="dreams"),)
