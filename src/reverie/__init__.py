"""Reverie: a memory for LLM agents, in seven layers ordered by cost.

The public names are in `reverie.session`. They are loaded on first use, so that `import reverie` is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reverie.session import Session, ask

__all__ = ["Session", "__version__", "ask"]


def __getattr__(name: str) -> Any:
    if name in ("Session", "ask"):
        from reverie import session

        return getattr(session, name)
    raise AttributeError(f"module 'reverie' has no attribute {name!r}")
