"""The first page: projects, the last sessions, what was spent, and what waits for the user."""

from __future__ import annotations

from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    site = visit.site
    return {
        "folder": str(site.cwd),
        "projects": [{"name": one.name, "label": one.label} for one in site.projects()],
    }


PAGES = (Page("/", "overview", "Reverie", read, section="overview", about="Projects and what is new."),)
