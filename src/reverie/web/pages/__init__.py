"""The pages of the web view, one module per subject, and the order of the navigation."""

from __future__ import annotations

from reverie.web.pages import (
    about,
    dream_actions,
    dreams,
    inbox,
    memory,
    memory_actions,
    money,
    overview,
    reader,
    session_money,
    sessions,
    window,
)
from reverie.web.visit import Action, Page, Raw, Stream

_MODULES = (
    overview,
    sessions,
    reader,
    window,
    session_money,
    money,
    memory,
    memory_actions,
    inbox,
    dreams,
    dream_actions,
    about,
)

PAGES: tuple[Page, ...] = tuple(page for module in _MODULES for page in getattr(module, "PAGES", ()))
ACTIONS: tuple[Action, ...] = tuple(action for module in _MODULES for action in getattr(module, "ACTIONS", ()))
STREAMS: tuple[Stream, ...] = tuple(stream for module in _MODULES for stream in getattr(module, "STREAMS", ()))
RAWS: tuple[Raw, ...] = tuple(raw for module in _MODULES for raw in getattr(module, "RAWS", ()))

SECTIONS = (
    ("overview", "/", "Overview"),
    ("sessions", "/sessions", "Sessions"),
    ("money", "/money", "Money"),
    ("memory", "/memory", "Memory"),
    ("dreams", "/dreams", "Dreams"),
)
"""The navigation: section, address, label."""
