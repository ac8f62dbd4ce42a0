"""Reverie: a memory for LLM agents, in seven layers ordered by cost.

`PUBLIC` lists the public names and where each is. They are loaded on first use, so that `import reverie` is cheap and
`from reverie import Memory` loads nothing else. `docs/api.md` describes them; a test fails when they change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reverie.errors import (
        BlockingLimit as BlockingLimit,
        ModelError as ModelError,
        NoAnswer as NoAnswer,
        ReverieError as ReverieError,
        SessionBusy as SessionBusy,
        SettingsError as SettingsError,
        StorageError as StorageError,
        UserError as UserError,
    )
    from reverie.library.engine import Engine as Engine
    from reverie.library.memory import Memory as Memory
    from reverie.library.prepared import (
        AnnouncedBreak as AnnouncedBreak,
        CompactedMessages as CompactedMessages,
        Cost as Cost,
        KeptResult as KeptResult,
        PreparedRequest as PreparedRequest,
    )
    from reverie.library.results import (
        Decided as Decided,
        Dreamt as Dreamt,
        Extracted as Extracted,
        Forgotten as Forgotten,
        MemoryVersion as MemoryVersion,
        Recalled as Recalled,
        Remembered as Remembered,
        Saved as Saved,
        Statement as Statement,
        Waiting as Waiting,
    )
    from reverie.memory.secrets.new_secret import HoldsSecret as HoldsSecret
    from reverie.session.session import Session as Session, ask as ask

PUBLIC = {
    "reverie.library.engine": ("Engine",),
    "reverie.library.memory": ("Memory",),
    "reverie.session.session": ("Session", "ask"),
    "reverie.library.prepared": ("PreparedRequest", "KeptResult", "CompactedMessages", "AnnouncedBreak", "Cost"),
    "reverie.library.results": (
        "Decided",
        "Dreamt",
        "Extracted",
        "Forgotten",
        "MemoryVersion",
        "Recalled",
        "Remembered",
        "Saved",
        "Statement",
        "Waiting",
    ),
    "reverie.memory.secrets.new_secret": ("HoldsSecret",),
    "reverie.errors": (
        "BlockingLimit",
        "ModelError",
        "NoAnswer",
        "ReverieError",
        "SessionBusy",
        "SettingsError",
        "StorageError",
        "UserError",
    ),
}
"""Every public name by its module."""

__all__ = ["__version__", *(name for names in PUBLIC.values() for name in names)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    for module, names in PUBLIC.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(module), name)
    raise AttributeError(f"module 'reverie' has no attribute {name!r}")
