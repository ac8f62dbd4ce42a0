"""Which files no instruction, command or agent of a project may hand to a model: secrets, and what belongs to git.

Reading such a file asks the user, and a file of the project must not read it in their place: under no other name, by no
link. The name that counts is that of the file itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from reverie.permissions.sensitive import is_sensitive, is_sensitive_place

_MOST_COMPARED = 2_000


def why_withheld(real: str, project: str) -> str:
    """Why a project must not hand over this file (a resolved path), as the end of a sentence; empty if it may."""
    path = Path(real)
    if _is_secret(path, project):
        return "has the name of a file with secrets"
    if _is_gits(path):
        return "belongs to git"
    return _why_names(path, project)


def _is_secret(path: Path, project: str) -> bool:
    """The name of a folder above the project says nothing, but the place of the file counts from the root."""
    return is_sensitive_place(path) or is_sensitive(path.relative_to(project) if path.is_relative_to(project) else path)


def _is_gits(path: Path) -> bool:
    """Whether it is in a repository of git, also a bare one or one with another name."""
    if any(part.lower() == ".git" for part in path.parts):
        return True
    return any(all((folder / name).exists() for name in ("HEAD", "objects", "refs")) for folder in path.parents)


def _why_names(path: Path, project: str) -> str:
    """A hard link is a file with several names. Each must be beside it or at the top of the project."""
    try:
        status = path.lstat()  # the path is resolved
        near = _near(path, project) if status.st_nlink > 1 else ()
        names = [other for other in near if os.path.samestat(os.lstat(other), status)]
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if secret := next((other for other in names if _is_secret(other, project) or _is_gits(other)), None):
        return f"is the same file as {secret}"
    return "" if status.st_nlink in (1, len(names)) else "is also in a place that is not known (a hard link)"


def _near(path: Path, project: str) -> Iterator[Path]:
    for folder in dict.fromkeys((path.parent, Path(project))):
        with suppress(OSError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in islice(entries, _MOST_COMPARED))
