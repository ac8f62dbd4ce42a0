"""Texts that could not be saved, kept in memory until the user has seen them. They are never written to disk."""

from __future__ import annotations

import secrets
from typing import Final

from reverie.web.site import Site

_MOST: Final = 20


def keep_draft(site: Site, text: str) -> str:
    """Keeps a text; returns the name by which the next page finds it."""
    drafts = site.keep("drafts", dict[str, str])
    name = secrets.token_hex(6)
    drafts[name] = text
    while len(drafts) > _MOST:
        drafts.pop(next(iter(drafts)))
    return name


def find_draft(site: Site, name: str) -> str | None:
    """The text with this name; None if there is none any more."""
    return site.keep("drafts", dict[str, str]).get(name)
