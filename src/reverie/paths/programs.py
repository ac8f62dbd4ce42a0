"""Finds the programs that we start: in the system's folders, or on the user's PATH outside the project.

A project must not choose what runs: relative entries of PATH and those inside the project are skipped.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from reverie.paths.repo import find_repo

SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin")
"""Folders that only the administrator can write to (the last one is NixOS's)."""

_KEPT = ("HOME", "USER", "LOGNAME", "TZ")
# One locale for all: the check read the command as UTF-8, and bash may split it differently in another locale.
_LOCALE = "C.UTF-8" if sys.platform.startswith("linux") else "C"


def system_program(name: str) -> Path | None:
    """Returns the program of this name in the system's folders, whatever PATH says."""
    found = shutil.which(name, path=os.pathsep.join(SYSTEM_FOLDERS))
    return Path(found) if found else None


def users_program(name: str, *projects: Path) -> Path | None:
    """Returns the program as the user would start it, but never one from a project or this repository."""
    roots = [Path(os.path.realpath(project)) for project in projects]
    with suppress(OSError):  # the working folder may be gone
        roots.append(find_repo(Path.cwd()).checkout)
    for entry in os.get_exec_path():
        found = shutil.which(name, path=entry) if Path(entry).is_absolute() else None
        places = [Path(os.path.realpath(place)) for place in (entry, found or entry)]
        if found and not any(place.is_relative_to(root) for place in places for root in roots):
            return Path(found)
    return system_program(name)


def make_bare_environment() -> dict[str, str]:
    """Makes an environment with the user's name and home, and our own PATH and locale.

    A project may have changed the user's environment: a folder on PATH, an exported function, a locale that changes how
    bash reads quotes. A program that runs without a question must not use it.
    """
    kept = {key: value for key, value in dict(os.environ).items() if key in _KEPT}
    if not Path(kept.get("HOME", "/")).is_absolute():
        del kept["HOME"]
    return {**kept, "PATH": os.pathsep.join(SYSTEM_FOLDERS), "LC_ALL": _LOCALE, "TERM": "dumb"}
