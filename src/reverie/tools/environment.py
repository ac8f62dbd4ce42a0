"""The environment of a program that runs without a question: built from a short list, so that nothing can steer it.

The user's own environment may hold what a project put there (a folder on PATH, an exported function, a locale in which
bash reads other bytes as quotes). A program that runs unasked gets none of it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from reverie.paths.programs import SYSTEM_FOLDERS

_KEPT = ("HOME", "USER", "LOGNAME", "TZ")
# One locale for all: the check read the command as UTF-8, and in another one bash may cut it up differently.
_LOCALE = "C.UTF-8" if sys.platform.startswith("linux") else "C"


def bare_environment() -> dict[str, str]:
    """Who the user is and nothing else of theirs; PATH and the locale are ours."""
    kept = {key: value for key, value in dict(os.environ).items() if key in _KEPT}
    if not Path(kept.get("HOME", "/")).is_absolute():
        del kept["HOME"]
    return {**kept, "PATH": os.pathsep.join(SYSTEM_FOLDERS), "LC_ALL": _LOCALE, "TERM": "dumb"}
