"""The page about sessions."""

from __future__ import annotations

from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    return {}


PAGES = (Page("/sessions", "sessions", "Sessions", read, section="sessions"),)
