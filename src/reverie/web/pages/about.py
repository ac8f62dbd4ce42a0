"""`/about`: which home is shown, and every page and action as an interface for programs."""

from __future__ import annotations

from reverie import __version__
from reverie.web.visit import Data, Page, Visit


def read(visit: Visit) -> Data:
    from reverie.web.pages import ACTIONS, PAGES, STREAMS

    actions = () if visit.site.read_only else ACTIONS
    return {
        "version": __version__,
        "home": str(visit.site.settings.places.home),
        "folder": str(visit.site.cwd),
        "read_only": visit.site.read_only,
        "pages": [
            {
                "path": "/api/overview" if page.path == "/" else f"/api{page.path}",
                "about": page.about,
                "query": dict(page.query),
            }
            for page in PAGES
        ],
        "actions": [{"path": f"/api{one.path}", "about": one.about, "form": dict(one.form)} for one in actions],
        "streams": [{"path": one.path, "about": one.about} for one in STREAMS],
    }


PAGES = (Page("/about", "about", "About", read, about="The home that is shown, and this list."),)
