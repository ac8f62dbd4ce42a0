"""How a check says no: one exception that carries one sentence, raised deep inside and caught at the public function.

It never leaves this package: callers get a bool, a sentence or a `PermissionRefused`.
"""

from __future__ import annotations

from reverie.errors import ReverieError


def clip(text: str) -> str:
    """A piece of somebody's input, short enough for a sentence."""
    return text if len(text) <= 60 else f"{text[:60]}…"


class NotReadOnly(ReverieError):
    """The command is not provably read-only; `str(error)` says why in one sentence."""
