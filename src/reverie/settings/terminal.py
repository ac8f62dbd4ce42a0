"""What the environment says about the terminal: conventions all programs share, not settings of ours."""

from __future__ import annotations

import os
from collections.abc import Mapping


def wants_colour(is_terminal: bool, env: Mapping[str, str] | None = None) -> bool:
    """Colour on a terminal that can show it, unless NO_COLOR is set; FORCE_COLOR brings it back elsewhere."""
    env = os.environ if env is None else env
    if env.get("NO_COLOR"):
        return False
    return bool(env.get("FORCE_COLOR")) or (is_terminal and env.get("TERM") != "dumb")


def editor(env: Mapping[str, str] | None = None) -> str:
    """The command that edits a file: VISUAL, else EDITOR, else vi."""
    env = os.environ if env is None else env
    return env.get("VISUAL", "").strip() or env.get("EDITOR", "").strip() or "vi"
