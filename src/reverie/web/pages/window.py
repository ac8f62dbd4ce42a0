"""The page about window."""

from __future__ import annotations

from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    return {}


PAGES = (Page("/sessions/{session}/window", "window", "Window", read, section="sessions"),)
