"""Whether the history of a repository holds files with the names of secrets: a kernel cannot hide a part of an object.

The answer is kept until a reference of the repository changes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from reverie.paths.programs import make_bare_environment, system_program
from reverie.paths.repo import find_repo
from reverie.permissions.sensitive import is_sensitive_tracked
from reverie.runtime.bounded import bounded

_SECONDS = 20
_known: dict[str, tuple[str, bool]] = {}


def holds_secrets(project: Path) -> bool:
    """Whether some commit, on any branch or in the reflog, has a file with the name of a secret; yes if git fails."""
    repo = find_repo(project)
    if repo.git_dir is None:
        return False
    git = system_program("git")
    if git is None:
        return False
    key, state = str(repo.git_dir), _references(git, repo.git_dir)
    if state is None:
        return True
    if (known := _known.get(key)) is not None and known[0] == state:
        return known[1]
    listed = _run(git, repo.git_dir, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects")
    answer = listed is None or _names_secret(listed)
    _known[key] = (state, answer)
    return answer


def _names_secret(listed: str) -> bool:
    names = {name for line in listed.splitlines() if (name := line.partition(" ")[2])}
    folders = {name.rpartition("/")[0] for name in names}
    return any(is_sensitive_tracked(Path(name)) for name in names - folders)


def tracked_folders(project: Path, folders: Iterable[str]) -> frozenset[str]:
    """Those of the folders in which git tracks a file: source code, whatever they are called."""
    wanted = sorted(folder for folder in folders if not folder.rpartition("/")[2].startswith("."))
    repo, git = find_repo(project), system_program("git")
    if not wanted or repo.git_dir is None or git is None:
        return frozenset()
    listed = _run(git, repo.git_dir, f"--work-tree={repo.checkout}", "ls-files", "-z", "--full-name", "--", *wanted)
    names = [f"{repo.checkout}/{name}" for name in (listed or "").split("\0") if name]
    return frozenset(folder for folder in wanted if any(name.startswith(f"{folder}/") for name in names))


def _references(git: Path, git_dir: Path) -> str | None:
    """All references, HEAD, and when the index and the logs last changed."""
    listed = _run(git, git_dir, "for-each-ref", "--format=%(objectname)")
    if listed is None:
        return None
    times = list[str]()
    for name in ("HEAD", "index", "logs/HEAD", "packed-refs", "refs/stash"):
        try:
            status = os.stat(git_dir / name)
            times.append(f"{name}:{status.st_mtime_ns}:{status.st_size}:{status.st_ino}")
        except OSError:
            continue
    return "\n".join((listed, *times))


def _run(git: Path, git_dir: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            bounded([git, f"--git-dir={git_dir}", "-c", "core.fsmonitor=false", *words]),
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            cwd="/",
            env={**make_bare_environment(), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(done.stdout)
