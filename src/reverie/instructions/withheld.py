"""Which files no instruction, command or agent of a project may hand to a model: secrets, and what belongs to git.

Reading such a file asks the user, and a file of the project must not read it in their place: under no other name, by no
link. The name that counts is that of the file itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from reverie.permissions.sensitive import SENSITIVE_NAMES, is_sensitive

_MOST_COMPARED = 2_000


def why_withheld(real: str, project: str) -> str:
    """Why a project must not hand over this file (a resolved path), as the end of a sentence; empty if it may."""
    path = Path(real)
    if _is_secret(path, project):
        return "has the name of a file with secrets"
    if _is_gits(path):
        return "belongs to git"
    other = _linked_secret(path, project)
    return f"is the same file as {other}" if other else ""


def _is_secret(path: Path, project: str) -> bool:
    return is_sensitive(path.relative_to(project) if path.is_relative_to(project) else path)


def _is_gits(path: Path) -> bool:
    """Whether it is in a repository of git, also a bare one or one with another name."""
    if any(part.lower() == ".git" for part in path.parts):
        return True
    return any(all((folder / name).exists() for name in ("HEAD", "objects", "refs")) for folder in path.parents)


def _linked_secret(path: Path, project: str) -> Path | None:
    """A secret near the project or in the user's home that is the same file: a hard link is a file with two names."""
    with suppress(OSError):
        status = path.stat()
        if status.st_nlink > 1:
            for entry in _near(path, project):
                if entry.inode() == status.st_ino and entry.stat().st_dev == status.st_dev:
                    other = Path(entry.path)
                    if _is_secret(other, project) or _is_gits(other):
                        return other
    return None


def _near(path: Path, project: str) -> Iterator[os.DirEntry[str]]:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (unlike Path.home, it never fails)
    kept = [name for name in SENSITIVE_NAMES if not set(name) & set("*[?")]
    folders = [path.parent, Path(project), Path(project, ".git"), home, *(home / name for name in kept)]
    for folder in dict.fromkeys(folders):
        with suppress(OSError), os.scandir(folder) as entries:
            for _, entry in zip(range(_MOST_COMPARED), entries, strict=False):
                yield entry
