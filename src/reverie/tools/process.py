"""Makes the short environment of programs that run without a question."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from reverie.paths.programs import SYSTEM_FOLDERS

_KEPT = ("HOME", "USER", "LOGNAME", "TZ")
# One locale for all: the check read the command as UTF-8, and bash may split it differently in another locale.
_LOCALE = "C.UTF-8" if sys.platform.startswith("linux") else "C"


def make_bare_environment() -> dict[str, str]:
    """Makes an environment with the user's name and home, and our own PATH and locale.

    A project may have changed the user's environment: a folder on PATH, an exported function, a locale that changes how
    bash reads quotes. A program that runs without a question must not use it.
    """
    kept = {key: value for key, value in dict(os.environ).items() if key in _KEPT}
    if not Path(kept.get("HOME", "/")).is_absolute():
        del kept["HOME"]
    return {**kept, "PATH": os.pathsep.join(SYSTEM_FOLDERS), "LC_ALL": _LOCALE, "TERM": "dumb"}
