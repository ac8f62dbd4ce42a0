"""The name of a project at a memory server: what the user set, or the address of its repository, or its folder."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from reverie.memory.opening import OpenedMemory
from reverie.paths.programs import users_program
from reverie.quick import dataclass
from reverie.runtime.bounded import bounded
from reverie.text.patterns import late

_SCP = late(r"(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)")


@dataclass(frozen=True, slots=True)
class ProjectName:
    """`name` names the private store. Others can have the project too only if `is_shared`."""

    name: str
    is_shared: bool


def name_project(memory: OpenedMemory) -> ProjectName:
    """A memory directory that somebody chose by its path is named by this path: two programs with memories of their own
    must not meet in one store because they work in one repository."""
    given = memory.settings.memory.store_project.strip()
    if given:
        return ProjectName(given, True)
    is_chosen = bool(memory.settings.memory.path or memory.settings.memory.directory)
    root = memory.directory.root if is_chosen else memory.places.root
    remote = "" if is_chosen else normalise(_remote(root))
    if remote:
        return ProjectName(remote, True)
    home = memory.settings.places.user_home
    return ProjectName(f"~/{root.relative_to(home)}" if root.is_relative_to(home) else str(root), False)


def normalise(remote: str) -> str:
    """`git@host:team/app.git` and `https://me@host/team/app` are both `host/team/app`; empty for a folder."""
    if "://" in remote:
        try:
            parts = urlsplit(remote)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme == "file":
            return ""
    elif found := _SCP.fullmatch(remote):
        host, path = found[1].lower(), found[2]
    else:
        return ""
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}" if host and path else ""


def _remote(root: Path) -> str:
    git = users_program("git", root)
    if git is None:
        return ""
    try:
        done = subprocess.run(
            bounded([git, "config", "--get", "remote.origin.url"]),
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
