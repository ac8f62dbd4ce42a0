"""A session joins the engine, the loop, tools, agents and hooks. It only composes.

`session.py` is the public API. `assembly.py` builds every part once. The public names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.session.session import Session, ask

__all__ = ["Session", "ask"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from reverie.session import session

        return getattr(session, name)
    raise AttributeError(f"module 'reverie.session' has no attribute {name!r}")
