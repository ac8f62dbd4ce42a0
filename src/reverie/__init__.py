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
    )
    from reverie.errors import (
        ModelError as ModelError,
    )
    from reverie.errors import (
        NoAnswer as NoAnswer,
    )
    from reverie.errors import (
        ReverieError as ReverieError,
    )
    from reverie.errors import (
        SessionBusy as SessionBusy,
    )
    from reverie.errors import (
        StorageError as StorageError,
    )
    from reverie.errors import (
        UserError as UserError,
    )
    from reverie.library.memory import Memory as Memory
    from reverie.library.results import (
        Decided as Decided,
    )
    from reverie.library.results import (
        Dreamt as Dreamt,
    )
    from reverie.library.results import (
        Extracted as Extracted,
    )
    from reverie.library.results import (
        Forgotten as Forgotten,
    )
    from reverie.library.results import (
        MemoryVersion as MemoryVersion,
    )
    from reverie.library.results import (
        Recalled as Recalled,
    )
    from reverie.library.results import (
        Remembered as Remembered,
    )
    from reverie.library.results import (
        Saved as Saved,
    )
    from reverie.library.results import (
        Statement as Statement,
    )
    from reverie.library.results import (
        Waiting as Waiting,
    )
    from reverie.session.session import Session as Session
    from reverie.session.session import ask as ask

PUBLIC = {
    "reverie.library.memory": ("Memory",),
    "reverie.session.session": ("Session", "ask"),
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
    "reverie.errors": (
        "BlockingLimit",
        "ModelError",
        "NoAnswer",
        "ReverieError",
        "SessionBusy",
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
