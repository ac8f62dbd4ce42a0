"""The floor where everything meets: a session wires layers, loop and tools together and carries out what they decide.

`session.py` is the composition root and the public API, `wiring.py` the one place a layer is plugged in; each other
module does one thing for them. The public names are loaded on first use, so that a part costs only itself.
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
